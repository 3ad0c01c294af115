//! The built-in tools, as the checks and generators see them.

use std::sync::Arc;

use claw_core::tool::AnyTool;

/// Every tool of this build, by group and then by name.
pub(crate) fn all() -> Vec<Arc<dyn AnyTool>> {
    claw_tools::builtin().map(|tool| (tool.make)()).collect()
}
