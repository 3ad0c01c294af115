//! Looking at programs and files through a container, before a call is judged.

use std::path::{Path, PathBuf};
use std::time::Duration;

use claw_core::port::RunContext;
use claw_core::tool::{Sight, Target};

use super::super::Network;
use super::call::{self, Heard};
use super::container::{self, Container};
use super::mounts::WORKSPACE;
use super::this_program::Own;
use super::wire::{Order, Seen, Told};
use super::{DockerError, DockerShell, WorkspaceAccess};
use crate::shell::{TEMPORARY, is_writable};

/// The number of containers that may end while they look at targets.
const LOOKS: u32 = 3;
/// The pause between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

impl DockerShell {
    /// Describes the sandbox to the person who is asked for approval.
    fn described(&self, container: &Container) -> String {
        let workspace = match container::access(&container.reach, self.options.workspace) {
            WorkspaceAccess::None => "no workspace",
            WorkspaceAccess::Ro => "workspace read only at `/workspace`",
            WorkspaceAccess::Rw => "workspace read and write at `/workspace`",
        };
        let network = match container.reach.network {
            Network::None | Network::Loopback => "no network".to_owned(),
            Network::Host => format!("the engine's network `{}`", self.options.network),
        };
        let digest: String = container.image.trim_start_matches("sha256:").chars().take(12).collect();
        format!("a Docker container of `{}` ({digest}): {workspace}, {network}", self.options.image)
    }

    /// Looks at targets inside. Looking changes nothing, so if the container ends meanwhile, a new one looks.
    async fn seen(&self, own: &Own, container: &Container, look: Order) -> Result<Vec<Seen>, DockerError> {
        let mut reason = String::new();
        for attempt in 0..LOOKS {
            if attempt > 0 {
                // The engine takes a moment to notice that a container ended; until then it starts commands in it that fail.
                tokio::time::sleep(BETWEEN_LOOKS).await;
            }
            let heard = match self.pool.order(own, container, &look).await {
                Ok((_ear, mut mouth)) => call::answer(&self.engine, &container.name, mouth.hear()).await?,
                Err(error) => Err(error),
            };
            reason = match heard {
                Ok(Some(Heard::Told(Told::Looked(looked)))) => return Ok(looked),
                Ok(None) => "the container ended meanwhile".to_owned(),
                Ok(Some(other)) => format!("the answer was {other:?}"),
                Err(DockerError::Lost(reason)) => reason,
                Err(error) => return Err(error),
            };
        }
        Err(DockerError::Start { step: "look at its programs and files".to_owned(), reason })
    }

    pub(super) async fn looked(
        &self,
        context: &RunContext,
        targets: &[Target],
    ) -> Result<Vec<Sight>, DockerError> {
        let own = Own::find().await?;
        let container = self.container(context, &own).await?;
        let inside: Vec<_> = targets.iter().filter_map(|target| self.target(context, target)).collect();
        let seen = match inside.is_empty() {
            true => Vec::new(),
            false => self.seen(&own, &container, Order::Look(inside)).await?,
        };
        let mut seen = seen.into_iter();
        let sight = |target: &Target| {
            let (path, identity) = match target {
                Target::Sandbox => (Some(self.described(&container)), Some(self.place(&container))),
                _ => {
                    let Seen { path, identity } = seen.next().unwrap_or_default();
                    // Files of the image cannot change: the image and the path identify them.
                    let identity = path
                        .as_ref()
                        .map(|path| identity.unwrap_or_else(|| format!("{}:{path}", container.image)));
                    (path, identity)
                }
            };
            let mut writable: Vec<PathBuf> = TEMPORARY.iter().map(PathBuf::from).collect();
            writable.push(PathBuf::from(WORKSPACE));
            writable.extend(
                container.reach.grants.iter().filter(|grant| grant.write).map(|grant| grant.path.clone()),
            );
            let writable = is_writable(target, path.as_deref(), Path::new(WORKSPACE), &writable);
            Sight { target: target.clone(), path, identity, credential: None, writable }
        };
        Ok(targets.iter().map(sight).collect())
    }
}
