//! Commands in containers of a Docker engine, by its API over its socket.
//!
//! A container belongs to a sandbox key and to everything that defines it: image, mounts, network, limits,
//! this very program. Commands that agree in all of it share one; it ends by itself when nobody uses it.
//! Inside, this program keeps each command (`inside/`), so the image needs nothing but a shell.

mod access;
mod aftermath;
mod call;
mod child;
mod container;
mod engine;
mod error;
mod files;
mod flow;
pub(super) mod inside;
mod looking;
mod mounts;
mod options;
mod pool;
mod shell;
mod start;
mod this_program;
mod watch;
mod wire;

pub use engine::{EngineFacts, Listed};
pub use error::DockerError;
pub use files::DockerFiles;
pub use mounts::WORKSPACE;
pub use options::{DockerOptions, SOCKET, WorkspaceAccess};
pub use shell::{DockerCommand, DockerShell};
