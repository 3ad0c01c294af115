//! Stored results that are too long to send whole and are read in parts.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::Owner;
use crate::id::{ArtifactId, CallId};
use crate::tool::ToolError;

/// Reads the stored results of the caller's own session.
#[async_trait]
pub trait Artifacts: Send + Sync {
    /// Returns the stored results, newest first.
    async fn list(&self) -> Result<Vec<Artifact>, ToolError>;
    /// Returns the lines `first..first + count` of one result, counted from 1.
    async fn lines(&self, id: ArtifactId, first: usize, count: usize) -> Result<Part, ToolError>;
}

/// Stores results. The texts it gets are already scrubbed.
#[async_trait]
pub trait ArtifactStore: Send + Sync {
    /// Stores a whole text.
    async fn put(&self, owner: &Owner, call: CallId, text: &str) -> Result<Artifact, ToolError>;
    /// Returns this owner's results, newest first.
    async fn list(&self, owner: &Owner) -> Result<Vec<Artifact>, ToolError>;
    /// Returns lines of one result, counted from 1. A result of another owner counts as missing.
    async fn lines(
        &self,
        owner: &Owner,
        id: ArtifactId,
        first: usize,
        count: usize,
    ) -> Result<Part, ToolError>;
}

/// A stored result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Its id.
    pub id: ArtifactId,
    /// The call it came from.
    pub call: CallId,
    /// Its size in bytes.
    pub bytes: usize,
    /// The number of its lines.
    pub lines: usize,
}

/// Some lines of a stored result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The text.
    pub text: String,
    /// The first line in it, counted from 1.
    pub first: usize,
    /// The number of lines in it.
    pub count: usize,
    /// The number of lines of the whole result.
    pub total: usize,
}
