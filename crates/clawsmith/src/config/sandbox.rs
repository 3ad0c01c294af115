//! `sandbox`: the sandbox of shell commands.

use std::path::PathBuf;
use std::time::Duration;

use claw_policy::sandbox_mode::{SandboxMode, SandboxScope, Sandboxing};
use claw_sandbox::docker::{DockerOptions, SOCKET, WORKSPACE, WorkspaceAccess};
use claw_sandbox::shell::GENERATED;
use claw_sandbox::{LayerName, REQUIRED};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The sandbox of shell commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// The callers that are sandboxed.
    pub mode: SandboxMode,
    /// The kind of sandbox.
    pub backend: SandboxBackend,
    /// Layers of the kernel sandbox that may be missing on this machine. Commands then run without their protection,
    /// and changes of commands cannot be undone.
    pub allow_missing: Vec<OptionalLayer>,
    /// Names of directories with generated files. If git ignores one, commands write to it directly: its
    /// changes are not held back and cannot be undone.
    pub direct: Vec<String>,
    /// The containers, if `backend` is `docker`.
    pub docker: DockerConfig,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            mode: SandboxMode::default(),
            backend: SandboxBackend::default(),
            allow_missing: Vec::new(),
            direct: GENERATED.map(str::to_owned).to_vec(),
            docker: DockerConfig::default(),
        }
    }
}

/// A required layer of the kernel sandbox that a person may give up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OptionalLayer {
    /// The mount namespace, with a file tree of its own.
    Mounts,
    /// The process namespace: the command sees only its own processes.
    Processes,
}

impl SandboxConfig {
    /// The layers without which no command runs.
    pub fn required(&self) -> Vec<LayerName> {
        let given_up = |layer: &LayerName| match layer {
            LayerName::Mounts => self.allow_missing.contains(&OptionalLayer::Mounts),
            LayerName::Processes => self.allow_missing.contains(&OptionalLayer::Processes),
            _ => false,
        };
        REQUIRED.into_iter().filter(|layer| !given_up(layer)).collect()
    }

    /// Returns the sandbox rules for callers.
    pub fn sandboxing(&self) -> Sandboxing {
        let workspace = (self.backend == SandboxBackend::Docker).then_some(WORKSPACE);
        Sandboxing { mode: self.mode, scope: self.docker.scope, workspace }
    }
}

/// The kind of sandbox. If it does not work, no command runs; there is no fallback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SandboxBackend {
    /// Unprivileged kernel features: no set-up, no daemon.
    #[default]
    Kernel,
    /// Containers of a Docker engine.
    Docker,
}

/// The containers of a Docker engine in which commands run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DockerConfig {
    /// The engine's socket on this machine.
    pub socket: PathBuf,
    /// The image. It must exist: nothing is pulled. It needs a shell at `/bin/sh` or `/bin/bash`.
    #[schemars(length(min = 1))]
    pub image: String,
    /// Commands that share a container.
    pub scope: SandboxScope,
    /// Access to the workspace at `/workspace`.
    pub workspace: ShownWorkspace,
    /// MiB of memory for the commands of one container together.
    #[schemars(range(min = 16, max = 1_048_576))]
    pub memory_mib: u32,
    /// MiB of `/tmp` in a container, and of each other directory of its own. Files there count as its memory.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub tmp_mib: u32,
    /// Processor time for the commands of one container together, in percent of one processor: 150 is one and a half.
    #[schemars(range(min = 1, max = 100_000))]
    pub cpu_percent: u32,
    /// The most processes and threads in one container; each command uses two more than it starts.
    #[schemars(range(min = 16, max = 1_000_000))]
    pub pids: u32,
    /// A container ends when no command has used it for this many seconds.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub idle_secs: u32,
    /// A container that is older than this many seconds ends as soon as no command uses it.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub max_age_secs: u32,
    /// The engine's network for commands that were granted network access; all others have none.
    #[schemars(length(min = 1))]
    pub network: String,
}

/// Access of commands in a container to the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ShownWorkspace {
    /// None: the container has a private workspace, which is lost with it.
    None,
    /// Read only.
    Ro,
    /// Read and write, for callers that may write.
    #[default]
    Rw,
}

impl Default for DockerConfig {
    fn default() -> Self {
        Self {
            socket: PathBuf::from(SOCKET),
            image: "debian:bookworm-slim".to_owned(),
            scope: SandboxScope::default(),
            workspace: ShownWorkspace::default(),
            memory_mib: 2048,
            tmp_mib: 1024,
            cpu_percent: 200,
            pids: 512,
            idle_secs: 900,
            max_age_secs: 86_400,
            network: "bridge".to_owned(),
        }
    }
}

impl DockerConfig {
    /// Converts the options for the containers of this installation.
    pub fn options(&self, installation: String) -> DockerOptions {
        DockerOptions {
            socket: self.socket.clone(),
            image: self.image.clone(),
            workspace: match self.workspace {
                ShownWorkspace::None => WorkspaceAccess::None,
                ShownWorkspace::Ro => WorkspaceAccess::Ro,
                ShownWorkspace::Rw => WorkspaceAccess::Rw,
            },
            memory: u64::from(self.memory_mib) << 20,
            temporary: u64::from(self.tmp_mib) << 20,
            cpu_percent: self.cpu_percent.into(),
            processes: self.pids.into(),
            idle: Duration::from_secs(self.idle_secs.into()),
            age: Duration::from_secs(self.max_age_secs.into()),
            network: self.network.clone(),
            installation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workspace_of_a_container_is_shown_at_its_path() {
        let shown = |backend, workspace| {
            let docker = DockerConfig { workspace, ..DockerConfig::default() };
            SandboxConfig { backend, docker, ..SandboxConfig::default() }.sandboxing().workspace
        };
        for workspace in [ShownWorkspace::None, ShownWorkspace::Ro, ShownWorkspace::Rw] {
            assert_eq!(shown(SandboxBackend::Docker, workspace), Some("/workspace"));
            assert_eq!(shown(SandboxBackend::Kernel, workspace), None);
        }
    }
}
