//! Vectors of passages: which are missing, which are known by the hash of a text, and what is similar to a question.
//!
//! A vector belongs to a model. Documents whose passages have no vectors of the wanted model are work, leased to one
//! indexer at a time; a changed document or a changed model makes work again by itself. Search never waits for it.

use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

use super::{DocumentKey, Documents, Found, StoreError};
use crate::id::{AgentId, TenantId, UserId};
use crate::port::UnixMillis;

/// SHA-256 of the text that a vector is made of.
pub type PassageHash = [u8; 32];

/// A document whose passages wait for vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingWork {
    /// The document.
    pub key: DocumentKey,
    /// Its version; vectors of another one are not stored.
    pub version: u64,
    /// How often it was tried before.
    pub tries: u64,
    /// Its passages.
    pub passages: Vec<UnembeddedPassage>,
}

/// A passage that waits for its vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnembeddedPassage {
    /// The hash of `text`, by which a vector is found again.
    pub hash: PassageHash,
    /// The text to be embedded: the headings and what the passage says.
    pub text: String,
}

/// The outcome of storing a document's vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingDone {
    /// Every passage has its vector.
    Stored,
    /// The document is another version by now, or gone; nothing was stored.
    Stale,
    /// Vectors of some passages are not known; nothing was stored.
    Missing,
}

/// A document that could not be embedded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct EmbeddingFailure {
    /// The document.
    #[serde(flatten)]
    pub key: DocumentKey,
    /// How often it was tried.
    pub tries: u64,
    /// When it is tried again.
    pub next: UnixMillis,
    /// Why it failed the last time.
    pub error: String,
}

/// How far a tenant's memory is indexed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct MemoryState {
    /// Memory documents.
    pub documents: u64,
    /// Passages that words find.
    pub passages: u64,
    /// Documents whose words wait to be indexed.
    pub unindexed: u64,
    /// Documents whose passages wait for vectors of the model that was asked for.
    pub unembedded: u64,
    /// Passages that have such a vector.
    pub vectors: u64,
    /// Vectors that are known by the hash of their text, of every model.
    pub cached: u64,
    /// Documents that failed, those with the most tries first; at most ten.
    pub failures: Vec<EmbeddingFailure>,
}

/// A vector that passages are compared with, and for whom.
#[derive(Debug, Clone, PartialEq)]
pub struct SimilarQuery {
    /// The tenant that owns the documents.
    pub tenant: TenantId,
    /// The agent whose documents are compared, beside the tenant's.
    pub agent: AgentId,
    /// The user whose documents are compared too.
    pub user: Option<UserId>,
    /// The model that made the vector; vectors of others are not compared.
    pub model: String,
    /// The vector of the question.
    pub vector: Vec<f32>,
    /// How many passages at most.
    pub limit: usize,
}

/// A passage that is near a vector.
#[derive(Debug, Clone, PartialEq)]
pub struct SimilarPassage {
    /// The passage; its words are empty.
    pub found: Found,
    /// The cosine of the two vectors, from -1 to 1.
    pub similarity: f32,
}

/// Keeps vectors of passages.
#[async_trait]
pub trait Memories: Documents {
    /// Leases documents whose passages have no vectors of `model`, of every tenant, so that nobody else gets them
    /// before the lease ends; those that were tried least first.
    async fn claim_unembedded(
        &self,
        model: &str,
        now: UnixMillis,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<EmbeddingWork>, StoreError>;
    /// The vectors of these texts that are known, by their hashes.
    async fn embeddings(
        &self,
        tenant: &TenantId,
        model: &str,
        hashes: &[PassageHash],
    ) -> Result<Vec<(PassageHash, Vec<f32>)>, StoreError>;
    /// Keeps vectors by the hashes of their texts. One that is known stays.
    async fn put_embeddings(
        &self,
        tenant: &TenantId,
        model: &str,
        vectors: &[(PassageHash, Vec<f32>)],
        at: UnixMillis,
    ) -> Result<(), StoreError>;
    /// Gives each passage of a document its vector, of those that are kept.
    async fn embed_document(
        &self,
        key: &DocumentKey,
        version: u64,
        model: &str,
    ) -> Result<EmbeddingDone, StoreError>;
    /// Records that a document could not be embedded, and when to try again. Nothing where its version is another.
    async fn fail_embedding(
        &self,
        key: &DocumentKey,
        version: u64,
        error: &str,
        next: UnixMillis,
    ) -> Result<(), StoreError>;
    /// The passages whose vectors are nearest, best first.
    async fn similar_passages(&self, query: &SimilarQuery) -> Result<Vec<SimilarPassage>, StoreError>;
    /// How far a tenant's memory is indexed; `model` is the one whose vectors are wanted.
    async fn memory_state(&self, tenant: &TenantId, model: Option<&str>) -> Result<MemoryState, StoreError>;
}
