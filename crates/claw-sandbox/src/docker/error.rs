//! Why a container is not available, and what to try.

use std::path::PathBuf;

use super::super::SandboxError;

/// Why a command cannot run in a container. None of these lets it run elsewhere instead.
#[derive(Debug, thiserror::Error)]
pub enum DockerError {
    /// Nothing answers at the engine's socket.
    #[error("no Docker engine answers at `{}`; start one, or set `sandbox.docker.socket`", socket.display())]
    Away {
        /// The socket that was tried.
        socket: PathBuf,
        /// The error of the connection.
        #[source]
        source: bollard::errors::Error,
    },
    /// The engine accepts the connection but does not answer.
    #[error("the Docker engine at `{}` did not answer in time; check whether it hangs, and restart it", socket.display())]
    Hung {
        /// The engine's socket.
        socket: PathBuf,
    },
    /// The kernel does not let this user connect.
    #[error("this user may not connect to `{}`; give the user access to the socket, or set `sandbox.docker.socket`", socket.display())]
    Forbidden {
        /// The engine's socket.
        socket: PathBuf,
        /// The error of the request.
        #[source]
        source: bollard::errors::Error,
    },
    /// Somebody paused the container.
    #[error(
        "the container `{0}` is paused; resume it with `docker unpause {0}`, or remove it with `docker rm -f {0}` and a new one is created"
    )]
    Paused(String),
    /// The engine does not have the image.
    #[error("the Docker engine has no image `{image}`; pull or build it, or set `sandbox.docker.image`")]
    Image {
        /// The image's name.
        image: String,
    },
    /// The engine refused something.
    #[error("the Docker engine could not {step}: {reason}")]
    Engine {
        /// The requested step.
        step: &'static str,
        /// The engine's message.
        reason: String,
    },
    /// This program cannot be mounted inside.
    #[error("this program cannot be mounted into a container: {0}")]
    Own(String),
    /// A path the command needs cannot be mounted, or one that must be hidden cannot be hidden.
    #[error(transparent)]
    Reach(#[from] SandboxError),
    /// The command could not be started inside.
    #[error("the command cannot be started in the container: {step}: {reason}")]
    Start {
        /// The step that failed.
        step: String,
        /// The cause.
        reason: String,
    },
    /// A judged target has changed.
    #[error("target {0} changed since the call was judged")]
    Changed(usize),
    /// The keeper in the container did not answer in time.
    #[error(
        "the container did not accept the command within {0} s and was removed; call again, and a new container is created"
    )]
    Silent(u64),
    /// The container stopped answering during a file operation.
    #[error(
        "the container did not answer within {0} s during a file operation and was removed, with the files of its own workspace; call again, and a new container is created"
    )]
    SilentFiles(u64),
    /// The engine went away during a file operation.
    #[error("the container was lost during a file operation: {0}; read the file before you change it again")]
    LostFiles(String),
    /// The engine went away while a command ran.
    #[error(
        "the container was lost while the command ran: {0}; it is unknown what the command did, so check before you run it again"
    )]
    Lost(String),
}
