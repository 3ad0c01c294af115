//! The version of a file that a session has seen last, stored beyond the process.

use std::path::Path;

use async_trait::async_trait;

use super::{Owner, Version};
use crate::tool::ToolError;

/// Remembers the version of a file that a session has seen. It backs the executor's own memory, so that a
/// program may read in one process and write in the next.
#[async_trait]
pub trait SeenFiles: Send + Sync {
    /// Returns the last seen version of the file at this absolute path; `None` if the session has seen none.
    async fn seen(&self, owner: &Owner, path: &Path) -> Result<Option<Version>, ToolError>;
    /// Stores that this version was seen.
    async fn saw(&self, owner: &Owner, path: &Path, version: &Version) -> Result<(), ToolError>;
}
