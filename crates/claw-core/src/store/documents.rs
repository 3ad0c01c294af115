//! Documents of agents: context files and memory documents.
//!
//! A document has a version that rises with every change, including its removal, and never falls. A writer
//! states the version it has seen, and gets an error if the stored one differs: no update is lost silently.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Changes, StoreError};
use crate::id::{AgentId, TenantId, UserId};
use crate::port::UnixMillis;
use crate::provenance::Provenance;

/// The kind of a document.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Shelf {
    /// `SOUL.md`, `IDENTITY.md`, `AGENTS.md`, `TOOLS.md`, `HEARTBEAT.md`, `USER.md`, `BOOTSTRAP.md`.
    Context,
    /// `MEMORY.md`, `memory/**`.
    Memory,
}

impl Shelf {
    /// Returns the shelf as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Memory => "memory",
        }
    }
}

/// The key of a document.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct DocumentKey {
    /// The tenant that owns the document.
    pub tenant: TenantId,
    /// The agent it belongs to; `None` for the tenant's, shared by all its agents.
    pub agent: Option<AgentId>,
    /// The user it belongs to; `None` for the agent's own, shared by all its users. Only an agent has users.
    pub user: Option<UserId>,
    /// The kind.
    pub shelf: Shelf,
    /// Its path from the workspace's root, with `/` between parts.
    pub path: String,
}

/// A stored document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its key.
    pub key: DocumentKey,
    /// Its version.
    pub version: u64,
    /// Its text.
    pub text: String,
    /// The time it was written.
    pub at: UnixMillis,
    /// Its origin.
    pub provenance: Provenance,
}

/// A version of a document, to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentWrite<'a> {
    /// The text.
    pub text: &'a str,
    /// The version that the writer saw; `None` where it saw none.
    pub seen: Option<u64>,
    /// The time.
    pub at: UnixMillis,
    /// Its origin.
    pub provenance: Provenance,
    /// An untrusted document stays untrusted, also where it was removed before. `false` where a person answers for the
    /// text.
    pub keeps_mark: bool,
}

/// A document in a list, without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct DocumentCard {
    /// Its key.
    #[serde(flatten)]
    pub key: DocumentKey,
    /// Its version.
    pub version: u64,
    /// The length of its text in bytes.
    pub bytes: u64,
    /// The time it was written.
    pub at: UnixMillis,
    /// Its origin.
    pub provenance: Provenance,
}

/// A part of a document, as search finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Its first line in the document, counted from 1.
    pub first_line: u64,
    /// Its last line.
    pub last_line: u64,
    /// The headings above it, outermost first, with ` > ` between them; empty if there are none.
    pub heading: String,
    /// Its text.
    pub text: String,
}

/// A search for passages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassageQuery {
    /// The tenant that owns the documents.
    pub tenant: TenantId,
    /// The agent that owns the documents.
    pub agent: AgentId,
    /// The user whose documents are searched beside the agent's own; `None` for no user.
    pub user: Option<UserId>,
    /// The query, as a person or a model writes it. Every text is valid; no character is an operator.
    pub text: String,
    /// The most passages.
    pub limit: usize,
}

/// A passage that was found. The order is the rank, best first; scores of different stores do not compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPassage {
    /// The document.
    pub key: DocumentKey,
    /// Its version.
    pub version: u64,
    /// The origin of the document.
    pub provenance: Provenance,
    /// The passage.
    pub passage: Passage,
    /// The words of the query that the passage, its headings or its path contain, as the query spells them.
    pub words: Vec<String>,
}

/// Lines of a version of a document, near which passages are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassagePlace {
    /// The document.
    pub key: DocumentKey,
    /// Its version.
    pub version: u64,
    /// The first line.
    pub first_line: u64,
    /// The last line.
    pub last_line: u64,
}

/// Stores documents; a change is announced as [`Topic::Documents`](super::Topic::Documents).
#[async_trait]
pub trait Documents: Changes {
    /// Returns the document with exactly this key.
    async fn document(&self, key: &DocumentKey) -> Result<Option<Document>, StoreError>;
    /// Writes a document whose version is `seen`, or adds it if `seen` is `None`; returns its new version.
    /// [`StoreError::Stale`], and nothing written, if the stored version differs. The passages of a memory
    /// document replace those of the previous version in the same transaction, so that its words are found at
    /// once.
    async fn write_document(&self, key: &DocumentKey, write: DocumentWrite<'_>) -> Result<u64, StoreError>;
    /// Writes a document for which a person answers, as [`write_document`](Self::write_document) does.
    async fn put_document(
        &self,
        key: &DocumentKey,
        text: &str,
        seen: Option<u64>,
        at: UnixMillis,
    ) -> Result<u64, StoreError> {
        let provenance = Provenance::default();
        self.write_document(key, DocumentWrite { text, seen, at, provenance, keeps_mark: false }).await
    }
    /// Removes a document whose version is `seen`. [`StoreError::Stale`] if the stored version differs or the
    /// document is gone.
    async fn remove_document(&self, key: &DocumentKey, seen: u64, at: UnixMillis) -> Result<(), StoreError>;
    /// Returns the agent's own documents and, if a user is given, the user's, sorted by path and then the
    /// agent's first. Without an agent: the tenant's.
    async fn documents(
        &self,
        tenant: &TenantId,
        agent: Option<&AgentId>,
        user: Option<&UserId>,
        shelf: Shelf,
    ) -> Result<Vec<DocumentCard>, StoreError>;
    /// Marks the memory documents of a tenant to be indexed again; returns their number. Their present
    /// passages are found until then.
    async fn mark_unindexed(&self, tenant: &TenantId) -> Result<u64, StoreError>;
    /// Returns documents that are marked to be indexed, longest marked first, of every tenant: all of a
    /// copied store, and those of [`mark_unindexed`](Self::mark_unindexed).
    async fn unindexed(&self, limit: usize) -> Result<Vec<DocumentCard>, StoreError>;
    /// Replaces a document's indexed passages and removes the mark. `false`, and nothing changed, if the
    /// stored version differs.
    async fn index_document(
        &self,
        key: &DocumentKey,
        version: u64,
        passages: Vec<Passage>,
    ) -> Result<bool, StoreError>;
    /// Returns the passages of the memory of the user, the agent and the tenant that match the query, best
    /// first. Stop words ("the", "and") find nothing by themselves; very frequent words are used only if the
    /// query has no rarer one.
    async fn search_passages(&self, query: &PassageQuery) -> Result<Vec<FoundPassage>, StoreError>;
    /// Returns the passages before and after each place in its document, at most `limit` for each, the nearest
    /// first, and the earlier of two that are as near. No words are matched. Empty for a document that is gone
    /// or has another version.
    async fn passages_near(
        &self,
        places: &[PassagePlace],
        limit: usize,
    ) -> Result<Vec<Vec<FoundPassage>>, StoreError>;
}
