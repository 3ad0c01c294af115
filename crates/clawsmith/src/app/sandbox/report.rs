//! The sandbox in facts for programs and in words for people: its parts, the reach of a command, its limits.

use claw_core::tool::Effect;
use claw_policy::sandbox_mode::SandboxMode;
use claw_sandbox::docker::{DockerShell, Listed, WorkspaceAccess};
use claw_sandbox::{LayerName, Limits, Network, Standing};
use serde_json::{Value, json};

use super::CommandSandbox;

/// The sandbox as it is here.
#[derive(Debug)]
pub struct SandboxStatus {
    /// Everything, for programs.
    pub facts: Value,
    /// The commands that run in it, and what it means for the others.
    pub held: &'static str,
    /// Its layers, or the parts of its backend.
    pub parts: Vec<SandboxPart>,
    /// Why no command runs; `None` if commands run.
    pub unusable: Option<String>,
    /// The paths and the network that a command reaches.
    pub reach: Vec<ReachedPath>,
    /// A warning of what does not hold here.
    pub warning: Option<&'static str>,
    /// The limits of a command, in words.
    pub limits: Vec<(&'static str, String)>,
    /// The containers; none in the kernel sandbox.
    pub containers: Vec<Listed>,
}

/// A part of the sandbox.
#[derive(Debug)]
pub struct SandboxPart {
    /// Its name.
    pub name: String,
    /// Whether it works here.
    pub state: PartState,
    /// How it works, or why not.
    pub by: String,
}

/// Whether a part of the sandbox works here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartState {
    /// It does.
    Works,
    /// It does not, and commands run without it.
    Missing,
    /// It does not, and no command runs without it.
    Required,
}

/// A path or network that a command reaches.
#[derive(Debug)]
pub struct ReachedPath {
    /// The path on this machine.
    pub path: String,
    /// The path in a container.
    pub inside: String,
    /// The access.
    pub access: String,
    /// It is hidden from every command.
    pub is_hidden: bool,
}

impl ReachedPath {
    fn new(path: impl ToString, inside: impl ToString, access: impl ToString) -> Self {
        let (path, inside, access) = (path.to_string(), inside.to_string(), access.to_string());
        Self { path, inside, access, is_hidden: false }
    }
}

impl CommandSandbox {
    /// The sandbox as it is here.
    pub async fn status(&self) -> SandboxStatus {
        match &self.docker {
            Some(docker) => self.docker_status(docker).await,
            None => self.kernel_status().await,
        }
    }

    async fn kernel_status(&self) -> SandboxStatus {
        let layers = self.launcher.layers().await;
        let required = &self.options.required;
        let missing = required.iter().find(|layer| !layers.works(**layer));
        let Limits { memory, processes, open_files, file_size, disk, temporary, .. } = self.options.limits;
        let write = self.context.effects.has(Effect::Write);
        let facts = json!({
            "mode": self.mode,
            "backend": "kernel",
            "usable": missing.is_none(),
            "layers": layers,
            "required": required,
            "reach": {
                "workspace": self.context.workspace, "write": write, "grants": self.options.grants,
                "hidden": self.options.hidden, "network": self.options.network,
            },
            "limits": {
                "memory": memory, "processes": processes, "open_files": open_files, "file_size": file_size,
                "disk": disk, "temporary": temporary,
            },
        });
        let part = |(name, standing): (LayerName, &Standing)| {
            let (state, by) = match standing {
                Standing::Works(by) => (PartState::Works, by),
                Standing::Missing(reason) if required.contains(&name) => (PartState::Required, reason),
                Standing::Missing(reason) => (PartState::Missing, reason),
            };
            SandboxPart { name: name.to_string(), state, by: by.to_string() }
        };
        let mounted = layers.works(LayerName::Mounts);
        let temporary_files =
            if mounted { "private to the session" } else { "none: a private one needs mounts" };
        let mut reach = self.workspace_and_grants(write, "", access(write));
        reach.push(ReachedPath::new("/tmp", "", temporary_files));
        reach.push(ReachedPath::new("programs and libraries of the system", "", "read"));
        reach.extend(self.hidden());
        let network = match self.options.network {
            Network::None => "none",
            Network::Loopback => "its own loopback interface",
            Network::Host => "the network of this machine",
        };
        reach.push(ReachedPath::new("network", "", network));
        let count =
            |value: Option<u64>| value.map_or_else(|| "no limit".to_owned(), |value| value.to_string());
        // A limit that nothing holds here is none.
        let held_by = |layer: LayerName, limit: Option<u64>| limit.filter(|_| layers.works(layer));
        let (memory, processes) =
            (held_by(LayerName::Memory, memory), held_by(LayerName::ProcessCount, processes));
        SandboxStatus {
            facts,
            held: held(self.mode),
            parts: layers.iter().map(|layer| part((layer.name, &layer.standing))).collect(),
            unusable: missing.map(|layer| format!("No command runs: `{layer}` is required.")),
            reach,
            warning: (!mounted).then_some(
                "Without mounts a command that may write needs approval: it can change modes and times of \
                 files outside the workspace, and its changes cannot be undone.",
            ),
            limits: vec![
                ("memory", size(memory)),
                ("processes", count(processes)),
                ("open files", count(open_files)),
                ("one file", size(file_size)),
                ("the workspace's disk", size(disk)),
                ("/tmp", size(Some(temporary))),
            ],
            containers: Vec::new(),
        }
    }

    async fn docker_status(&self, docker: &DockerShell) -> SandboxStatus {
        let options = docker.options();
        let engine = docker.engine().await;
        // An engine that failed once is not waited for again.
        let (image, containers) = match &engine {
            Ok(_) => (Some(docker.image().await), docker.containers().await.unwrap_or_default()),
            Err(_) => (None, Vec::new()),
        };
        let write = options.workspace == WorkspaceAccess::Rw && self.context.effects.has(Effect::Write);
        let network = match self.options.network {
            Network::None | Network::Loopback => "none",
            Network::Host => &options.network,
        };
        let of_image = image.as_ref().and_then(|image| image.as_ref().err());
        let error = engine.as_ref().err().or(of_image).map(ToString::to_string);
        let (disk, temporary) = (self.options.limits.disk, options.temporary);
        let facts = json!({
            "mode": self.mode,
            "backend": "docker",
            "usable": error.is_none(),
            "error": error,
            "engine": engine.as_ref().ok(),
            "socket": options.socket,
            "image": { "name": options.image, "digest": image.as_ref().and_then(|image| image.as_ref().ok()) },
            "containers": containers,
            "reach": {
                "workspace": self.context.workspace, "access": options.workspace, "write": write,
                "grants": self.options.grants, "hidden": self.options.hidden, "network": network,
            },
            "limits": {
                "memory": options.memory, "cpu_percent": options.cpu_percent, "processes": options.processes,
                "temporary": temporary, "disk": disk,
                "idle_seconds": options.idle.as_secs(), "age_seconds": options.age.as_secs(),
            },
        });
        let part = |name: &str, by: Result<String, String>| {
            let (state, by) = by.map_or_else(|by| (PartState::Required, by), |by| (PartState::Works, by));
            SandboxPart { name: name.to_owned(), state, by }
        };
        let socket = options.socket.display();
        let engine = engine.map(|facts| format!("{}, API {}, at {socket}", facts.version, facts.api));
        let image = image.map(|image| image.map(|digest| format!("{} {digest}", options.image)));
        let mut parts = vec![part("engine", engine.map_err(|error| error.to_string()))];
        parts.extend(image.map(|image| part("image", image.map_err(|error| error.to_string()))));
        let shown = match (options.workspace, write) {
            (WorkspaceAccess::None, _) => "not shown",
            (_, write) => access(write),
        };
        let mut reach = self.workspace_and_grants(write, "/workspace", shown);
        reach.push(ReachedPath::new("the image", "/", "read"));
        reach.push(ReachedPath::new("its own", "/tmp", "removed with the container"));
        reach.extend(self.hidden());
        reach.push(ReachedPath::new("network", "", network));
        SandboxStatus {
            facts,
            held: held(self.mode),
            parts,
            unusable: error.map(|_| "No command runs.".to_owned()),
            reach,
            warning: None,
            limits: vec![
                ("memory", size(Some(options.memory))),
                ("processors", format!("{} %", options.cpu_percent)),
                ("processes", options.processes.to_string()),
                ("the workspace's disk", size(disk)),
                ("/tmp", size(Some(temporary))),
            ],
            containers,
        }
    }

    fn workspace_and_grants(&self, write: bool, inside: &str, workspace: &str) -> Vec<ReachedPath> {
        let mut reach = vec![ReachedPath::new(self.context.workspace.display(), inside, workspace)];
        reach.extend(self.options.grants.iter().map(|grant| {
            let path = grant.path.display();
            ReachedPath::new(&path, &path, access(grant.write && write))
        }));
        reach
    }

    fn hidden(&self) -> impl Iterator<Item = ReachedPath> {
        let hidden = |path: &std::path::PathBuf| ReachedPath {
            is_hidden: true,
            ..ReachedPath::new(path.display(), "", "never, even if granted")
        };
        self.options.hidden.iter().map(hidden)
    }
}

/// Says whose commands are sandboxed, and what it means for those that are not.
const fn held(mode: SandboxMode) -> &'static str {
    match mode {
        SandboxMode::All => "Every command of a tool runs in the sandbox (`sandbox.mode` is `all`).",
        SandboxMode::NonMain => {
            "Commands of your own sessions at the terminal run outside the sandbox (`sandbox.mode` is \
             `non-main`): an agent there can reach the store and answer its own approvals."
        }
        SandboxMode::Off => {
            "No command of a tool runs in the sandbox (`sandbox.mode` is `off`): an agent can reach the store and \
             answer its own approvals."
        }
    }
}

const fn access(write: bool) -> &'static str {
    if write { "read, write" } else { "read" }
}

fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "no limit".to_owned(), |bytes| format!("{} MiB", bytes >> 20))
}
