//! The shell: where commands run, the paths they never reach, and the rules that judge them.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use claw_core::AgentId;
use claw_core::port::{FsBridge, ShellHost};
use claw_core::tool::Digest;
use claw_host::files::LocalFiles;
use claw_host::transaction::Transactions;
use claw_registry::{AgentCommands, CommandRules};
use claw_sandbox::Launcher;
use claw_sandbox::docker::{DockerFiles, DockerOptions, DockerShell};
use claw_sandbox::shell::{LocalShell, ShellOptions};
use claw_store::StoreLocation;

use super::toolchains::HintingShell;
use super::{Error, Setup, real};
use crate::config::{SandboxBackend, ShownWorkspace};

impl Setup {
    /// The shell that runs the commands of tools. Starts nothing before the first command.
    pub(crate) fn shell(&self) -> Arc<dyn ShellHost> {
        let local = self.machine();
        match self.config().sandbox.backend {
            // Where others connect, the user's own toolchains are not talked about.
            SandboxBackend::Kernel if self.local_user => {
                Arc::new(HintingShell { shell: local, setup: self.clone() })
            }
            SandboxBackend::Kernel => Arc::new(local),
            SandboxBackend::Docker => Arc::new(DockerShell::new(local, self.docker_options())),
        }
    }

    /// The shell of this machine: in the kernel sandbox, or on the host.
    pub(crate) fn machine(&self) -> LocalShell {
        LocalShell::new(Arc::new(Launcher::new()), self.shell_options())
    }

    /// Returns the files of this machine, or those of the container if the workspace is not shown to
    /// commands.
    pub(crate) fn files(&self) -> Arc<dyn FsBridge> {
        let files = Arc::new(LocalFiles::new());
        let sandbox = &self.config().sandbox;
        match (sandbox.backend, sandbox.docker.workspace) {
            (SandboxBackend::Docker, ShownWorkspace::None) => {
                let shell = Arc::new(DockerShell::new(self.machine(), self.docker_options()));
                Arc::new(DockerFiles::new(shell, files))
            }
            _ => files,
        }
    }

    /// The options of every container.
    pub fn docker_options(&self) -> DockerOptions {
        // Nodes that share the data share the containers; nobody else does.
        let data = self.data_dir().ok().map(|data| real(&data).display().to_string());
        let installation = Digest::of(&(data, &self.config().node)).to_string();
        let installation = installation.trim_start_matches("sha256:").chars().take(16).collect();
        self.config().sandbox.docker.options(installation)
    }

    /// The options of every command.
    pub fn shell_options(&self) -> ShellOptions {
        let transactions = self.data_dir().ok().map(|data| Transactions::new(&real(&data)));
        let temporary = self.data_dir().ok().map(|data| real(&data).join("sandbox"));
        let required = self.config().sandbox.required();
        let direct = self.config().sandbox.direct.clone();
        ShellOptions {
            hidden: self.hidden(),
            transactions,
            direct,
            temporary,
            homes: self.data_dir().ok().map(|data| real(&data).join("homes")),
            knows_user: self.local_user,
            required,
            ..ShellOptions::default()
        }
    }

    /// Returns the paths that no command reaches, wherever the workspace is: data, store, and the
    /// configuration, by which an agent could give itself more. A project's file that a command creates is
    /// not used until a person accepts it.
    fn hidden(&self) -> Vec<PathBuf> {
        let data = self.data_dir().ok().map(|data| real(&data));
        let mut hidden: Vec<PathBuf> = self.loaded.found.iter().map(|found| real(&found.path)).collect();
        hidden.extend(self.private_directories().iter().map(|directory| real(directory)));
        if let Some(StoreLocation::File(file)) = self.loaded.place(&self.around) {
            let file = real(&file);
            if !data.as_ref().is_some_and(|data| file.starts_with(data)) {
                hidden.extend(store_files(&file));
            }
        }
        hidden.extend(data);
        hidden
    }

    /// Returns the directories of the user's configuration and of accepted files, which only people write.
    fn private_directories(&self) -> Vec<PathBuf> {
        self.around.config_dir().into_iter().chain(self.around.trusted()).collect()
    }

    /// Creates those directories, so that no command can, if they are in its workspace.
    pub fn make_private_directories(&self) {
        for directory in self.private_directories() {
            // Where it cannot be made and a command could, the sandbox refuses the command.
            let _ = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        }
    }

    /// Returns the command rules of each agent. They were checked when the configuration was loaded.
    pub(crate) fn command_rules(&self) -> Result<CommandRules, Error> {
        let config = self.config();
        let of = |agent: &str| {
            let rules = config.shell_rules(agent).map_err(|error| Error::invalid(error.to_string()))?;
            Ok::<_, Error>(Arc::new(AgentCommands {
                rules,
                network: config.shell_network(agent),
                apply: config.shell_apply(agent),
            }))
        };
        let mut rules = CommandRules { all: of("")?, ..CommandRules::default() };
        for id in config.agents.keys() {
            if let Ok(agent) = AgentId::new(id) {
                rules.agents.insert((config.tenant.clone(), agent), of(id)?);
            }
        }
        Ok(rules)
    }
}

/// Returns the file of a SQLite store and those beside it.
pub(super) fn store_files(file: &Path) -> [PathBuf; 5] {
    ["", "-wal", "-shm", "-journal", "-mark"].map(|suffix| {
        let mut name = file.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    })
}
