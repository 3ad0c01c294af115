//! Where commands run, and how they are judged.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use claw_core::AgentId;
use claw_core::port::{FsBridge, ShellHost};
use claw_core::tool::Digest;
use claw_host::files::LocalFiles;
use claw_host::sandbox::Launcher;
use claw_host::sandbox::docker::{DockerFiles, DockerOptions, DockerShell};
use claw_host::shell::{LocalShell, ShellOptions};
use claw_registry::{AgentCommands, CommandRules};
use claw_store::Place;

use super::real;
use crate::config::{Config, Loaded, SandboxBackend, ShownWorkspace, Surroundings};
use crate::failure::Failure;

/// Where commands of tools run. Nothing is started before the first command.
pub(crate) fn shell(loaded: &Loaded, around: &Surroundings) -> Arc<dyn ShellHost> {
    let local = machine(loaded, around);
    match loaded.config.sandbox.backend {
        SandboxBackend::Kernel => Arc::new(local),
        SandboxBackend::Docker => Arc::new(DockerShell::new(local, docker(loaded, around))),
    }
}

/// Commands on this machine: in the kernel sandbox, or on the host.
pub(crate) fn machine(loaded: &Loaded, around: &Surroundings) -> LocalShell {
    LocalShell::new(Arc::new(Launcher::new()), options(loaded, around))
}

/// Where files are: on this machine, or in the container where the workspace is not shown to commands.
pub(crate) fn files(loaded: &Loaded, around: &Surroundings) -> Arc<dyn FsBridge> {
    let files = Arc::new(LocalFiles::new());
    let sandbox = &loaded.config.sandbox;
    match (sandbox.backend, sandbox.docker.workspace) {
        (SandboxBackend::Docker, ShownWorkspace::None) => {
            let shell = Arc::new(DockerShell::new(machine(loaded, around), docker(loaded, around)));
            Arc::new(DockerFiles::new(shell, files))
        }
        _ => files,
    }
}

/// What holds for every container.
pub(crate) fn docker(loaded: &Loaded, around: &Surroundings) -> DockerOptions {
    // Whoever shares the data shares the containers; nobody else does.
    let data = loaded.data_dir(around).map(|data| real(&data).display().to_string());
    let installation = Digest::of(&(data, &loaded.config.node)).to_string();
    let installation = installation.trim_start_matches("sha256:").chars().take(16).collect();
    loaded.config.sandbox.docker.options(installation)
}

/// What holds for every command.
pub(crate) fn options(loaded: &Loaded, around: &Surroundings) -> ShellOptions {
    ShellOptions { hidden: hidden(loaded, around), ..ShellOptions::default() }
}

/// What no command reaches, wherever the workspace is: our data, the store, and the configuration, by which an agent
/// could give itself more. A project's file that a command makes holds for nobody until a person accepts it.
fn hidden(loaded: &Loaded, around: &Surroundings) -> Vec<PathBuf> {
    let data = loaded.data_dir(around).map(|data| real(&data));
    let mut hidden: Vec<PathBuf> = loaded.found.iter().map(|found| real(&found.path)).collect();
    hidden.extend(said_by_people(around).iter().map(|directory| real(directory)));
    if let Some(Place::File(file)) = loaded.place(around) {
        let file = real(&file);
        if !data.as_ref().is_some_and(|data| file.starts_with(data)) {
            hidden.extend(["", "-wal", "-shm", "-journal"].map(|suffix| {
                let mut name = file.clone().into_os_string();
                name.push(suffix);
                PathBuf::from(name)
            }));
        }
    }
    hidden.extend(data);
    hidden
}

/// The directories in which a person says what holds: with the user's configuration, and with what was accepted.
pub(crate) fn said_by_people(around: &Surroundings) -> Vec<PathBuf> {
    around.config_dir().into_iter().chain(around.trusted()).collect()
}

/// Makes those directories, so that no command can where they lie in its workspace.
pub(crate) fn make_said_by_people(around: &Surroundings) {
    for directory in said_by_people(around) {
        // Where it cannot be made and a command could, the sandbox refuses the command.
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    }
}

/// How the commands of each agent are judged. The rules were tried when the configuration was loaded.
pub(crate) fn command_rules(config: &Config) -> Result<CommandRules, Failure> {
    let of = |agent: &str| {
        let rules = config.shell_rules(agent).map_err(|error| Failure::usage(error.to_string()))?;
        Ok::<_, Failure>(Arc::new(AgentCommands { rules, network: config.shell_network(agent) }))
    };
    let mut rules = CommandRules { all: of("")?, ..CommandRules::default() };
    for id in config.agents.keys() {
        if let Ok(agent) = AgentId::new(id) {
            rules.agents.insert((config.tenant.clone(), agent), of(id)?);
        }
    }
    Ok(rules)
}
