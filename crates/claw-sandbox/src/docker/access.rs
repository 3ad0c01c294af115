//! The access to the workspace that a command was granted, where a container is shared with commands that write.

use claw_core::port::{RunContext, WorkspaceAccess as Granted};
use claw_core::tool::{Effect, Effects, ToolError};

use super::{DockerError, DockerShell, WorkspaceAccess, wire};
use crate::shell::no_layer;

impl DockerShell {
    /// Refuses a command whose changes must be held back: in a container they cannot be.
    pub(super) fn hold_back(&self, context: &RunContext) -> Result<(), ToolError> {
        let writes = context.effects.has(Effect::Write) && self.options.workspace != WorkspaceAccess::Ro;
        match context.sandboxed && writes && context.access == Granted::OnlyLayer {
            true => Err(no_layer("commands in containers write to the workspace directly")),
            false => Ok(()),
        }
    }
}

/// Returns whether a command did not run because it could not be kept from writing in a shared container.
pub(super) fn cannot_hold(error: &DockerError) -> bool {
    matches!(error, DockerError::Start { step, .. } if step == wire::READING)
}

/// The same for a container that shows the workspace read-only.
pub(super) fn reading(context: &RunContext) -> RunContext {
    RunContext { effects: context.effects.without(Effects::of(&[Effect::Write])), ..context.clone() }
}
