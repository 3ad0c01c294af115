//! Which state of a file a conversation has seen last, kept beyond the process.

use std::path::Path;

use async_trait::async_trait;

use super::{Owner, Version};
use crate::tool::ToolError;

/// Remembers which state of a file a conversation has seen. Behind the executor's own memory, so that a program
/// may read in one process and write in the next.
#[async_trait]
pub trait SeenFiles: Send + Sync {
    /// The state of the file at this absolute path that was seen last; `None` where none was.
    async fn seen(&self, owner: &Owner, path: &Path) -> Result<Option<Version>, ToolError>;
    /// Remembers that this state was seen.
    async fn saw(&self, owner: &Owner, path: &Path, version: &Version) -> Result<(), ToolError>;
}
