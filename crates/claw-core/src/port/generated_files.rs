//! Files that the system itself writes for an agent: `TEAM.md`, `DELEGATION.md`.

use async_trait::async_trait;

use crate::tool::{Caller, ToolError};

/// Writes files for an agent to read, each time anew.
#[async_trait]
pub trait Generated: Send + Sync {
    /// Returns the text of the file of this name for this caller; `None` if there is none.
    async fn generated(&self, caller: &Caller, name: &str) -> Result<Option<String>, ToolError>;
}
