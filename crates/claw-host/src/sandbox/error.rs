//! Why a command could not be started.

use std::io;

use super::LayerName;

/// Why a command could not be started. None of these is answered by running it with less around it.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The program never called `enter_if_asked`, so it must not be executed as a helper.
    #[error(
        "this program has no sandbox helper; call `claw_host::sandbox::enter_if_asked()` first in its `main`"
    )]
    NoHelper,
    /// The helper could not be started or went away.
    #[error("the sandbox helper cannot be reached; try again, and see the log of the system if it persists")]
    Helper(#[source] io::Error),
    /// A layer that is required does not work here.
    #[error("the sandbox layer `{layer}` is required and does not work here: {reason}")]
    Missing {
        /// Which one.
        layer: LayerName,
        /// Why not.
        reason: String,
    },
    /// What was asked for cannot be built.
    #[error("the command cannot be started: {step}: {reason}")]
    Start {
        /// What was being done.
        step: String,
        /// What the kernel said.
        reason: String,
    },
    /// No layer can be laid over the workspace.
    #[error("no layer can be laid over the workspace: {0}")]
    NoLayer(String),
    /// A path that cannot be granted.
    #[error("`{path}` cannot be granted to a sandbox: {reason}")]
    Path {
        /// Which one.
        path: String,
        /// Why not.
        reason: String,
    },
}
