//! Tools that come and go while the program runs.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::AnyTool;

/// Why a tool that is registered cannot be used here. Shown in every listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unavailable(pub String);

impl Unavailable {
    /// With this reason: what is missing; what to do about it.
    pub fn because(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unavailable {}

/// A set of tools that changes at run time: the tools of an MCP server, the custom tools of a store.
///
/// The registry reads it when it is attached and again each time it is told to refresh; reads of the
/// registry go on undisturbed meanwhile.
pub trait ToolSource: Send + Sync {
    /// What listings call it.
    fn name(&self) -> &str;

    /// The tools it has now, or why it has none.
    fn tools(&self) -> Result<Vec<Arc<dyn AnyTool>>, Unavailable>;
}
