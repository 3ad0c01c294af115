//! Results too long to send whole, kept so that they can be read in parts.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::Owner;
use crate::id::{ArtifactId, CallId};
use crate::tool::ToolError;

/// Reading kept results of the caller's own session.
#[async_trait]
pub trait Artifacts: Send + Sync {
    /// The kept results, newest first.
    async fn list(&self) -> Result<Vec<Artifact>, ToolError>;
    /// Lines `first..first + count` of one, counted from 1.
    async fn lines(&self, id: ArtifactId, first: usize, count: usize) -> Result<Part, ToolError>;
}

/// Keeps results. What it is given is scrubbed already.
#[async_trait]
pub trait ArtifactStore: Send + Sync {
    /// Keeps a text whole.
    async fn put(&self, owner: &Owner, call: CallId, text: &str) -> Result<Artifact, ToolError>;
    /// What is kept for this owner, newest first.
    async fn list(&self, owner: &Owner) -> Result<Vec<Artifact>, ToolError>;
    /// Lines of one, counted from 1. Another owner's does not exist.
    async fn lines(
        &self,
        owner: &Owner,
        id: ArtifactId,
        first: usize,
        count: usize,
    ) -> Result<Part, ToolError>;
}

/// A kept result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Its id.
    pub id: ArtifactId,
    /// The call it came from.
    pub call: CallId,
    /// Its size in bytes.
    pub bytes: usize,
    /// Its lines.
    pub lines: usize,
}

/// Some lines of a kept result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The text.
    pub text: String,
    /// The first line in it, counted from 1.
    pub first: usize,
    /// How many lines are in it.
    pub count: usize,
    /// How many there are in all.
    pub total: usize,
}
