//! Vectors of passages: missing ones, ones cached by the hash of a text, and search by similarity.
//!
//! A vector belongs to a model. A document whose passages have no vectors of the wanted model is work, leased
//! to one indexer at a time; a changed document or model makes work again by itself. Search never waits for
//! it.

use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

use super::{DocumentKey, Documents, FoundPassage, StoreError};
use crate::id::{AgentId, TenantId, UserId};
use crate::port::UnixMillis;

/// SHA-256 of the text that a vector is computed from.
pub type PassageHash = [u8; 32];

/// A document whose passages wait for vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingWork {
    /// The document.
    pub key: DocumentKey,
    /// Its version; vectors of another one are not stored.
    pub version: u64,
    /// The number of earlier attempts.
    pub tries: u64,
    /// Its passages.
    pub passages: Vec<UnembeddedPassage>,
}

/// A passage that waits for its vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnembeddedPassage {
    /// The hash of `text`, by which a vector is found again.
    pub hash: PassageHash,
    /// The text to be embedded: the headings and the passage.
    pub text: String,
}

/// The outcome of storing a document's vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingDone {
    /// Every passage has its vector.
    Stored,
    /// The document has another version by now, or is gone; nothing was stored.
    Stale,
    /// Some passages have no cached vector; nothing was stored.
    Missing,
}

/// A document that could not be embedded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct EmbeddingFailure {
    /// The document.
    #[serde(flatten)]
    pub key: DocumentKey,
    /// The number of attempts.
    pub tries: u64,
    /// The time of the next attempt.
    pub next: UnixMillis,
    /// The error of the last attempt.
    pub error: String,
}

/// The progress of a tenant's memory index.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct MemoryState {
    /// Memory documents.
    pub documents: u64,
    /// Passages in the word index.
    pub passages: u64,
    /// Documents that wait for the word index.
    pub unindexed: u64,
    /// Documents whose passages wait for vectors of the requested model.
    pub unembedded: u64,
    /// Passages that have such a vector.
    pub vectors: u64,
    /// Cached vectors by the hash of their text, of every model.
    pub cached: u64,
    /// Documents that failed, most attempts first; at most ten.
    pub failures: Vec<EmbeddingFailure>,
}

/// A search for passages by similarity to a vector.
#[derive(Debug, Clone, PartialEq)]
pub struct SimilarQuery {
    /// The tenant that owns the documents.
    pub tenant: TenantId,
    /// The agent whose documents are compared, beside the tenant's.
    pub agent: AgentId,
    /// The user whose documents are compared too; `None` for no user.
    pub user: Option<UserId>,
    /// The model that made the vector; vectors of others are not compared.
    pub model: String,
    /// The vector of the query.
    pub vector: Vec<f32>,
    /// The most passages.
    pub limit: usize,
}

/// A passage that is near a vector.
#[derive(Debug, Clone, PartialEq)]
pub struct SimilarPassage {
    /// The passage; its words are empty.
    pub found: FoundPassage,
    /// The cosine of the two vectors, from -1 to 1.
    pub similarity: f32,
}

/// Stores vectors of passages.
#[async_trait]
pub trait Memories: Documents {
    /// Leases documents of every tenant whose passages have no vectors of `model`, fewest attempts first.
    /// Nobody else gets them before the lease ends.
    async fn claim_unembedded(
        &self,
        model: &str,
        now: UnixMillis,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<EmbeddingWork>, StoreError>;
    /// Returns the cached vectors of these texts, by their hashes.
    async fn embeddings(
        &self,
        tenant: &TenantId,
        model: &str,
        hashes: &[PassageHash],
    ) -> Result<Vec<(PassageHash, Vec<f32>)>, StoreError>;
    /// Caches vectors by the hashes of their texts. A cached one stays.
    async fn put_embeddings(
        &self,
        tenant: &TenantId,
        model: &str,
        vectors: &[(PassageHash, Vec<f32>)],
        at: UnixMillis,
    ) -> Result<(), StoreError>;
    /// Assigns each passage of a document its cached vector.
    async fn embed_document(
        &self,
        key: &DocumentKey,
        version: u64,
        model: &str,
    ) -> Result<EmbeddingDone, StoreError>;
    /// Records that embedding a document failed, and when to try again. Does nothing if the version differs.
    async fn fail_embedding(
        &self,
        key: &DocumentKey,
        version: u64,
        error: &str,
        next: UnixMillis,
    ) -> Result<(), StoreError>;
    /// Returns the passages with the nearest vectors, best first.
    async fn similar_passages(&self, query: &SimilarQuery) -> Result<Vec<SimilarPassage>, StoreError>;
    /// Returns the progress of a tenant's memory index; `model` is the one whose vectors are counted.
    async fn memory_state(&self, tenant: &TenantId, model: Option<&str>) -> Result<MemoryState, StoreError>;
}
