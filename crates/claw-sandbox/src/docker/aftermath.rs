//! The end of a command whose keeper exited early or does not answer.

use std::time::Duration;

use tokio::time::timeout;

use super::super::helper::wire::Ending;
use super::DockerError;
use super::call::{self, Heard};
use super::engine::Engine;
use super::this_program::Own;
use super::wire::{Order, Told};

/// The longest a container may take to kill its leftover processes.
const SWEEPING: Duration = Duration::from_secs(5);

/// The fate of a keeper that did not report its command's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeeperEnd {
    /// The keeper ended before its command.
    Gone,
    /// The keeper does not answer, and its command may run on: only removing the container ends it.
    Silent,
}

/// Cleans up after a keeper.
pub(super) struct Aftermath {
    pub(super) engine: Engine,
    pub(super) own: Own,
    /// The name of the container.
    pub(super) container: String,
}

impl Aftermath {
    /// Kills the rest of the command; if that is not possible, removes the container. Returns that the
    /// command was killed.
    pub(super) async fn see_to(&self, keeper: KeeperEnd) -> Result<Ending, DockerError> {
        let Self { engine, own, container } = self;
        let killed = |stragglers| Ending { signal: Some(libc::SIGKILL), stragglers, ..Ending::default() };
        if keeper == KeeperEnd::Silent {
            engine.remove(container).await?;
            return Ok(killed(0));
        }
        let swept = match call::order(engine, own, container, &Order::Sweep).await {
            // The container is gone, and everything with it.
            Ok(None) => return Ok(killed(0)),
            Ok(Some((_ear, mut mouth))) => timeout(SWEEPING, mouth.hear()).await.unwrap_or(Ok(None)),
            Err(error @ DockerError::Away { .. }) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                return Err(DockerError::Lost(format!("{error}: {cause}")));
            }
            Err(error) => Err(error),
        };
        match swept {
            Ok(Some(Heard::Told(Told::Swept(count)))) => Ok(killed(count)),
            _ => {
                engine.remove(container).await?;
                Ok(killed(0))
            }
        }
    }
}
