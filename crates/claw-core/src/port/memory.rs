//! Memory: searching it, reading it, and the models that turn texts into vectors.

use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

use super::UnixMillis;
use crate::id::{AgentId, TenantId, UserId};
use crate::provenance::Provenance;
use crate::tool::ToolError;

/// The memory of the caller: the user's documents, the agent's and the tenant's.
#[async_trait]
pub trait Memory: Send + Sync {
    /// The passages that answer a question best.
    async fn search(&self, query: &MemoryQuery) -> Result<MemoryFound, ToolError>;
    /// Lines of one document; `None` where the caller has none of that path.
    async fn get(&self, part: &MemoryPart) -> Result<Option<MemoryText>, ToolError>;
    /// The paths of the documents that the caller can read, sorted.
    async fn paths(&self) -> Result<Vec<String>, ToolError>;
}

/// The memory of everyone.
#[async_trait]
pub trait MemoryHost: Send + Sync {
    /// The passages that answer a reader's question best.
    async fn search(&self, reader: &MemoryReader, query: &MemoryQuery) -> Result<MemoryFound, ToolError>;
    /// Lines of one document of the reader's.
    async fn get(&self, reader: &MemoryReader, part: &MemoryPart) -> Result<Option<MemoryText>, ToolError>;
    /// The paths of the documents that the reader can read, sorted.
    async fn paths(&self, reader: &MemoryReader) -> Result<Vec<String>, ToolError>;
}

/// The one whose memory is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryReader {
    /// The tenant.
    pub tenant: TenantId,
    /// The agent.
    pub agent: AgentId,
    /// The user; `None` reads the agent's and the tenant's documents alone.
    pub user: Option<UserId>,
}

/// A question to the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryQuery {
    /// The question, as a person writes it.
    pub text: String,
    /// How many hits at most.
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
    /// The owner as a word.
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
    /// How the memory was searched.
    pub mode: MemoryMode,
    /// Why similarity was not asked, or not of everything; `None` where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How a memory was searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemoryMode {
    /// By words and by similarity.
    Hybrid,
    /// By words alone.
    Words,
}

/// A part of a document that answers.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MemoryHit {
    /// The path of the document.
    pub path: String,
    /// Its first line, counted from 1.
    pub start_line: u64,
    /// Its last line.
    pub end_line: u64,
    /// How good it is beside the others: 1 is the best that a hit can be.
    pub score: f64,
    /// The headings that it stands under; empty under none.
    pub heading: String,
    /// The text.
    pub text: String,
    /// Why it was found.
    pub why: MemoryReason,
    /// The origin of the document.
    pub provenance: Provenance,
}

/// Why a hit was found.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MemoryReason {
    /// The words of the question that it contains.
    pub words: Vec<String>,
    /// The cosine of its vector and that of the question, where it was found by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f32>,
    /// The owner of the document.
    pub owner: MemoryOwner,
}

/// Lines of one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPart {
    /// The path of the document.
    pub path: String,
    /// The first line, counted from 1.
    pub from: u64,
    /// How many lines at most.
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
    /// When it was written.
    pub at: UnixMillis,
    /// Its origin.
    pub provenance: Provenance,
    /// How many lines the document has.
    pub total: u64,
    /// The first line of `text`.
    pub start_line: u64,
    /// The last line of `text`; before the first where there is none.
    pub end_line: u64,
    /// The lines.
    pub text: String,
}

/// The vector at length 1, which makes a product of two a cosine; `None` where it has no direction.
pub fn unit_vector(vector: &[f32]) -> Option<Vec<f32>> {
    let length = vector.iter().map(|number| f64::from(*number) * f64::from(*number)).sum::<f64>().sqrt();
    let is_usable = length.is_finite() && length > 0.0;
    is_usable.then(|| vector.iter().map(|number| (f64::from(*number) / length) as f32).collect())
}

/// A model that turns texts into vectors.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// The name that its vectors are kept by. Vectors of two names are never compared.
    fn model(&self) -> &str;
    /// How many texts are sent together at most.
    fn batch(&self) -> usize;
    /// The vectors of texts, in their order, each of length 1.
    async fn embed(
        &self,
        tenant: &TenantId,
        texts: &[String],
        purpose: EmbedPurpose,
    ) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// The use of a vector; some models make others for a question than for a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbedPurpose {
    /// A passage that is to be found.
    Passage,
    /// A question that is asked.
    Question,
}

/// Why there are no vectors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EmbedError {
    /// The cause and the advice, in a sentence.
    pub message: String,
    /// Trying again later may help.
    pub transient: bool,
    /// How long the provider asked to wait.
    pub retry_after: Option<Duration>,
}
