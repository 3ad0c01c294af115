//! The options of every container.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The engine's default socket.
pub const SOCKET: &str = "/var/run/docker.sock";

/// The options of every container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DockerOptions {
    /// The engine's socket.
    pub socket: PathBuf,
    /// The image; it must exist, nothing is pulled.
    pub image: String,
    /// The access to the workspace.
    pub workspace: WorkspaceAccess,
    /// Bytes of memory, for all commands of a container together.
    pub memory: u64,
    /// Bytes of its `/tmp`, and of each other directory of its own. They count as its memory.
    pub temporary: u64,
    /// Processors, in hundredths: 150 is one and a half.
    pub cpu_percent: u64,
    /// Processes and threads at once.
    pub processes: u64,
    /// A container that was unused for this long ends.
    pub idle: Duration,
    /// A container older than this ends as soon as nobody uses it.
    pub age: Duration,
    /// The engine's network for commands that were granted one.
    pub network: String,
    /// The id that separates containers of one installation from those of others.
    pub installation: String,
}

/// The access of commands inside to the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkspaceAccess {
    /// None: `/workspace` is the container's own, and lost with it.
    None,
    /// Read only.
    Ro,
    /// Read and write, for callers who may.
    #[default]
    Rw,
}

impl WorkspaceAccess {
    /// Returns the name as it is configured.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Ro => "ro",
            Self::Rw => "rw",
        }
    }
}

impl Default for DockerOptions {
    fn default() -> Self {
        Self {
            socket: PathBuf::from(SOCKET),
            image: "debian:bookworm-slim".to_owned(),
            workspace: WorkspaceAccess::Rw,
            memory: 2048 << 20,
            temporary: 1024 << 20,
            cpu_percent: 200,
            processes: 512,
            idle: Duration::from_secs(900),
            age: Duration::from_secs(24 * 3600),
            network: "bridge".to_owned(),
            installation: "default".to_owned(),
        }
    }
}
