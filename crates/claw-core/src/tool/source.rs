//! Tools that are added and removed while the program runs.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::AnyTool;

/// The reason why a registered tool cannot be used here. Shown in every listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unavailable(pub String);

impl Unavailable {
    /// Takes the reason: the missing part, and the advice.
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
/// The registry reads it when it is attached and each time it is refreshed; readers of the registry are not
/// blocked meanwhile.
pub trait ToolSource: Send + Sync {
    /// Returns the name for listings.
    fn name(&self) -> &str;

    /// Returns its present tools, or the reason why it has none.
    fn tools(&self) -> Result<Vec<Arc<dyn AnyTool>>, Unavailable>;
}
