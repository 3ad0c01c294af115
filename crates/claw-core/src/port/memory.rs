//! Memory: searching it, reading it, and embedding texts.

use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

use super::UnixMillis;
use crate::id::{AgentId, TenantId, UserId};
use crate::provenance::Provenance;
use crate::tool::{Caller, ToolError};

/// The caller's memory: the documents of the user, the agent and the tenant.
#[async_trait]
pub trait Memory: Send + Sync {
    /// Returns the passages that match a query best.
    async fn search(&self, query: &MemoryQuery) -> Result<MemoryFound, ToolError>;
    /// Returns lines of one document; `None` if the caller has no document of that path.
    async fn get(&self, part: &MemoryPart) -> Result<Option<MemoryText>, ToolError>;
    /// Returns the paths of the documents that the caller can read, sorted.
    async fn paths(&self) -> Result<Vec<String>, ToolError>;
}

/// The memory of all tenants.
#[async_trait]
pub trait MemoryHost: Send + Sync {
    /// Returns the passages that match a reader's query best.
    async fn search(&self, reader: &MemoryReader, query: &MemoryQuery) -> Result<MemoryFound, ToolError>;
    /// Returns lines of one of the reader's documents; `None` if there is no document of that path.
    async fn get(&self, reader: &MemoryReader, part: &MemoryPart) -> Result<Option<MemoryText>, ToolError>;
    /// Returns the paths of the documents that the reader can read, sorted.
    async fn paths(&self, reader: &MemoryReader) -> Result<Vec<String>, ToolError>;
}

/// The reader of memory documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryReader {
    /// The tenant.
    pub tenant: TenantId,
    /// The agent.
    pub agent: AgentId,
    /// The user; `None` reads the documents of the agent and the tenant alone.
    pub user: Option<UserId>,
}

impl MemoryReader {
    /// Returns the reader that a caller is.
    pub fn of(caller: &Caller) -> Self {
        let Caller { tenant, agent, user, .. } = caller;
        Self { tenant: tenant.clone(), agent: agent.clone(), user: user.clone() }
    }
}

/// A query of the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryQuery {
    /// The query, as a person writes it.
    pub text: String,
    /// The most hits.
    pub limit: usize,
}

/// The owner of a document, nearest to the caller first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemoryOwner {
    /// The user, with one agent.
    User,
    /// The agent, for all its users.
    Agent,
    /// The tenant, for all its agents.
    Tenant,
}

impl MemoryOwner {
    /// Returns the owner as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Agent => "agent",
            Self::Tenant => "tenant",
        }
    }
}

/// The hits of a search.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MemoryFound {
    /// The hits, best first.
    pub hits: Vec<MemoryHit>,
    /// The search method.
    pub mode: MemoryMode,
    /// The reason why similarity was not used, or not for everything; `None` if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The search method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemoryMode {
    /// By words and by similarity.
    Hybrid,
    /// By words alone.
    Words,
}

/// A matching passage of a document.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MemoryHit {
    /// The path of the document.
    pub path: String,
    /// Its first line, counted from 1.
    pub start_line: u64,
    /// Its last line.
    pub end_line: u64,
    /// The score among the hits; 1 is the highest possible, 0 if it only stands beside a hit.
    pub score: f64,
    /// The headings above it; empty if there are none.
    pub heading: String,
    /// The text.
    pub text: String,
    /// The reason for the match.
    pub why: MemoryReason,
    /// The origin of the document.
    pub provenance: Provenance,
}

/// The reason for a match.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MemoryReason {
    /// The words of the query that it contains.
    pub words: Vec<String>,
    /// True if it matches nothing itself: it stands in the document of a hit, and fills up the number of hits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub beside: bool,
    /// The cosine similarity to the query; `None` if it was not found by similarity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f32>,
    /// The owner of the document.
    pub owner: MemoryOwner,
}

/// The lines of a document to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPart {
    /// The path of the document.
    pub path: String,
    /// The first line, counted from 1.
    pub from: u64,
    /// The most lines.
    pub lines: u64,
}

/// Lines of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct MemoryText {
    /// The path.
    pub path: String,
    /// The owner.
    pub owner: MemoryOwner,
    /// The version of the document.
    pub version: u64,
    /// The time it was written.
    pub at: UnixMillis,
    /// Its origin.
    pub provenance: Provenance,
    /// The number of lines of the document.
    pub total: u64,
    /// The first line of `text`.
    pub start_line: u64,
    /// The last line of `text`; less than the first if there are no lines.
    pub end_line: u64,
    /// The lines.
    pub text: String,
}

/// Scales the vector to length 1, so that the product of two is their cosine; `None` if it has no direction.
pub fn unit_vector(vector: &[f32]) -> Option<Vec<f32>> {
    let length = vector.iter().map(|number| f64::from(*number) * f64::from(*number)).sum::<f64>().sqrt();
    let is_usable = length.is_finite() && length > 0.0;
    is_usable.then(|| vector.iter().map(|number| (f64::from(*number) / length) as f32).collect())
}

/// A model that embeds texts as vectors.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Returns the name its vectors are stored under. Vectors of two names are never compared.
    fn model(&self) -> &str;
    /// Returns the most texts to send together.
    fn batch(&self) -> usize;
    /// Returns the vectors of texts, in their order, each of length 1.
    async fn embed(
        &self,
        tenant: &TenantId,
        texts: &[String],
        purpose: EmbedPurpose,
    ) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// The purpose of a vector; some models embed questions differently from texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbedPurpose {
    /// A passage to be found.
    Passage,
    /// A query.
    Question,
}

/// The reason why texts could not be embedded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EmbedError {
    /// The cause and the advice, in a sentence.
    pub message: String,
    /// True if a retry may succeed.
    pub transient: bool,
    /// The wait that the provider asked for; `None` if it asked for none.
    pub retry_after: Option<Duration>,
}
