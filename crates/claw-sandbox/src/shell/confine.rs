//! The confinement of a context's commands: the paths, the network and the home that they reach.

use std::path::{Path, PathBuf};

use claw_core::port::{Allowed, CommandHome, RunContext, WorkspaceAccess};
use claw_core::tool::Effect;
use claw_host::secret_files::secret_files;

use super::local::LocalShell;
use super::{home_and_tmp, identify_files};
use crate::{Confinement, Execute, Grant, HOME, Network, Reach};

/// The directory in a data directory that holds workspaces.
const WORKSPACES: &str = "workspaces";

impl LocalShell {
    /// The directories that commands of agents can write to, as they are inside of the sandbox.
    pub(super) fn writable(&self, context: &RunContext) -> Vec<PathBuf> {
        let grants = self.options().grants.iter().filter(|grant| grant.write);
        let grants = grants.map(|grant| grant.path.canonicalize().unwrap_or_else(|_| grant.path.clone()));
        let given = context.paths.iter().chain(&context.granted).filter(|path| path.write);
        let given = given.map(|path| path.path.canonicalize().unwrap_or_else(|_| path.path.clone()));
        let temporary = identify_files::TEMPORARY.iter().map(PathBuf::from);
        let home = self.options().homes.as_ref().filter(|_| context.home.is_some());
        let homes = home.into_iter().flat_map(|homes| [PathBuf::from(HOME), homes.clone()]);
        let own = std::iter::once(context.workspace.clone()).chain(homes);
        let changeable = context.changeable.iter();
        let changeable = changeable.map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()));
        own.chain(temporary).chain(grants).chain(given).chain(changeable).collect()
    }

    /// The network that a command of this context has.
    pub(super) fn network(&self, context: &RunContext) -> Network {
        match (context.effects.has(Effect::Network), context.network) {
            (false, _) => Network::None,
            (true, true) => Network::Host,
            (true, false) => self.options().network,
        }
    }

    pub(crate) async fn confinement(&self, context: &RunContext) -> Confinement {
        let write = writes(context);
        let grant = |grant: &Grant| Grant { path: grant.path.clone(), write: grant.write && write };
        let given =
            context.paths.iter().map(|path| Grant { path: path.path.clone(), write: path.write && write });
        let reach = Reach {
            workspace: context.workspace.clone(),
            write,
            layer: None,
            temporary: self.temporary(context).await,
            home: self.home(context).await,
            grants: self
                .options()
                .grants
                .iter()
                .map(grant)
                .chain(given)
                .chain(self.readable(context).await)
                .chain(granted(context).await)
                .collect(),
            hidden: self.hidden(context).await,
            network: self.network(context),
            closed_ports: closed_ports(self.network(context)),
            processes: true,
            execute: Execute::Any,
        };
        Confinement { reach, required: self.options().required.clone() }
    }

    /// Returns the existing directories beside the workspace that a command can read.
    async fn readable(&self, context: &RunContext) -> Vec<Grant> {
        if context.readable.is_empty() {
            return Vec::new();
        }
        let there = identify_files::existing(context.readable.clone()).await;
        there.into_iter().map(|path| Grant { path, write: false }).collect()
    }

    /// The paths that a command never reaches. A data directory with the workspace in it is not shown as it is: nothing but
    /// that workspace is.
    async fn hidden(&self, context: &RunContext) -> Vec<PathBuf> {
        let granted = |path: &Path| self.options().grants.iter().any(|grant| path.starts_with(&grant.path));
        let shown = |path: &&PathBuf| {
            let workspaces = path.join(WORKSPACES);
            let inside = context.workspace.starts_with(&workspaces) && context.workspace != workspaces;
            !inside || granted(path)
        };
        let mut hidden: Vec<PathBuf> = self.options().hidden.iter().filter(shown).cloned().collect();
        // A missing path cannot be read; paths that must not be created either are in the options.
        let is_granted = |path: &Path| context.granted.iter().any(|granted| path.starts_with(&granted.path));
        let is_shown = |path: &&PathBuf| path.starts_with(&context.workspace) || is_granted(path);
        let inside = context.hidden.iter().filter(is_shown).cloned();
        hidden.extend(identify_files::existing(inside.chain(secrets(context).await).collect()).await);
        hidden
    }

    /// Returns the `/tmp` of the context's session. If it cannot be made, the command runs with one of its
    /// own.
    async fn temporary(&self, context: &RunContext) -> Option<PathBuf> {
        let (root, key) = (self.options().temporary.clone()?, context.sandbox_key.clone());
        let made = tokio::task::spawn_blocking(move || home_and_tmp::directory(&root, &key)).await;
        match made.unwrap_or_else(|stopped| Err(std::io::Error::other(stopped))) {
            Ok(directory) => Some(directory),
            Err(error) => {
                tracing::warn!(%error, "the `/tmp` of a session cannot be created");
                None
            }
        }
    }

    /// The home directory of the context's commands. Without it the workspace is their home.
    pub(super) async fn home(&self, context: &RunContext) -> Option<Grant> {
        let (root, CommandHome { key, write }) = (self.options().homes.clone()?, context.home.clone()?);
        let knows_user = self.options().knows_user;
        let made = tokio::task::spawn_blocking(move || home_and_tmp::home(&root, &key, knows_user)).await;
        match made.unwrap_or_else(|stopped| Err(std::io::Error::other(stopped))) {
            Ok(path) => Some(Grant { path, write: write && writes(context) }),
            Err(error) => {
                tracing::warn!(%error, "the home of commands cannot be created");
                None
            }
        }
    }
}

/// The ports that a command with this network must not reach: those on which this program listens.
pub(crate) fn closed_ports(network: Network) -> Vec<u16> {
    match network {
        // Nobody listens on a network of its own.
        Network::None | Network::Loopback => Vec::new(),
        Network::Host => claw_core::own_listen_addresses::own_ports(),
    }
}

/// Returns the existing directories that the deployment grants.
async fn granted(context: &RunContext) -> Vec<Grant> {
    let there =
        identify_files::existing(context.granted.iter().map(|granted| granted.path.clone()).collect()).await;
    let granted = context.granted.iter().filter(|granted| there.contains(&granted.path));
    granted
        .map(|granted| {
            // Changes there cannot be taken back, so where changes are looked at first it can only be read.
            let write = granted.write && writes(context) && context.access != WorkspaceAccess::OnlyLayer;
            Grant { path: granted.path.clone(), write }
        })
        .collect()
}

/// Returns the files with secrets in those directories. A directory that cannot be searched is hidden as a
/// whole.
async fn secrets(context: &RunContext) -> Vec<PathBuf> {
    if context.granted.is_empty() {
        return Vec::new();
    }
    let (granted, workspace) = (context.granted.clone(), context.workspace.clone());
    let all: Vec<PathBuf> = granted.iter().map(|granted| granted.path.clone()).collect();
    let found = tokio::task::spawn_blocking(move || {
        let of = |granted: &Allowed| match secret_files(&granted.path) {
            Ok(files) => files.iter().filter(|file| !file.starts_with(&workspace)).cloned().collect(),
            Err(error) => {
                tracing::warn!(%error, path = %granted.path.display(), "a granted directory is not shown");
                vec![granted.path.clone()]
            }
        };
        granted.iter().flat_map(of).collect()
    });
    found.await.unwrap_or(all)
}

/// Returns whether a command may change the workspace.
pub(super) fn writes(context: &RunContext) -> bool {
    context.effects.has(Effect::Write) && context.access != WorkspaceAccess::ReadOnly
}
