//! Finding tools that are not listed.

use serde::Serialize;

use crate::id::ToolName;

/// The tools that the caller may use but was not sent.
pub trait Catalogue: Send + Sync {
    /// Returns the best matches, best first. The returned tools become callable for this session.
    fn search(&self, query: &str, limit: usize) -> Vec<Hit>;
    /// Returns the number of tools that can be found.
    fn deferred(&self) -> usize;
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    /// Its name.
    pub name: ToolName,
    /// Its description.
    pub about: String,
    /// The schema of its arguments.
    pub parameters: serde_json::Value,
}
