//! Why a command could not be started.

use std::io;

use super::LayerName;

/// Why a command could not be started. None of these lets it run with weaker confinement instead.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The program never called `enter_if_asked`, so it must not be executed as a helper.
    #[error("this program has no sandbox helper; call `claw_sandbox::enter_if_asked()` first in its `main`")]
    NoHelper,
    /// The helper could not be started or went away.
    #[error("the sandbox helper cannot be reached; try again, and check the system's log if this persists")]
    Helper(#[source] io::Error),
    /// A layer that is required does not work here.
    #[error("the sandbox layer `{layer}` is required and does not work here: {reason}")]
    Missing {
        /// The missing layer.
        layer: LayerName,
        /// The cause.
        reason: String,
    },
    /// The requested sandbox cannot be built.
    #[error("the command cannot be started: {step}: {reason}")]
    Start {
        /// The step that failed.
        step: String,
        /// The kernel's error.
        reason: String,
    },
    /// No layer can be mounted over the workspace.
    #[error("no layer can be mounted over the workspace: {0}")]
    NoLayer(String),
    /// A path that cannot be granted.
    #[error("`{path}` cannot be granted to a sandbox: {reason}")]
    Path {
        /// The refused path.
        path: String,
        /// The cause.
        reason: String,
    },
}
