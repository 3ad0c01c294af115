//! Texts that agents live by and remember: context files and memory documents.
//!
//! A document has a version that rises with every change and never falls, its removal included; who writes says
//! which version they saw, and is told when it is another one by now. A lost update is an error, not a loss.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Changes, StoreError};
use crate::id::{AgentId, TenantId, UserId};
use crate::port::UnixMillis;
use crate::provenance::Provenance;

/// Which kind of document.
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
    /// The shelf as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Memory => "memory",
        }
    }
}

/// Where a document is.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct DocumentKey {
    /// Whose data it is.
    pub tenant: TenantId,
    /// The agent that it belongs to; `None` is the tenant's, for all of its agents.
    pub agent: Option<AgentId>,
    /// The user that it belongs to; `None` is the agent's own, for all of its users. Only an agent has users.
    pub user: Option<UserId>,
    /// Which kind.
    pub shelf: Shelf,
    /// Its path from the workspace's root, with `/` between parts.
    pub path: String,
}

/// A document as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Where it is.
    pub key: DocumentKey,
    /// Which version this is.
    pub version: u64,
    /// What it says.
    pub text: String,
    /// When it was written.
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
    /// Where it is.
    #[serde(flatten)]
    pub key: DocumentKey,
    /// Its version.
    pub version: u64,
    /// The length of its text in bytes.
    pub bytes: u64,
    /// When it was written.
    pub at: UnixMillis,
    /// Its origin.
    pub provenance: Provenance,
}

/// A part of a document, to be found by what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Its first line in the document, counted from 1.
    pub first_line: u64,
    /// Its last line.
    pub last_line: u64,
    /// The headings that it stands under, outermost first, with ` > ` between them; empty under none.
    pub heading: String,
    /// What it says.
    pub text: String,
}

/// What is searched for, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassageQuery {
    /// Whose data.
    pub tenant: TenantId,
    /// Which agent's.
    pub agent: AgentId,
    /// The user whose documents are searched beside the agent's own.
    pub user: Option<UserId>,
    /// Words, as a person or a model writes them. Any text is a question; no character is an operator.
    pub text: String,
    /// How many passages at most.
    pub limit: usize,
}

/// A passage that was found. The order is the rank: the best comes first, and stores score differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// In which document.
    pub key: DocumentKey,
    /// In which version of it.
    pub version: u64,
    /// The origin of the document.
    pub provenance: Provenance,
    /// What was found.
    pub passage: Passage,
    /// The words of the question that the passage, its headings or its path contain, as the question spells them.
    pub words: Vec<String>,
}

/// Keeps documents; a change is told as [`Topic::Documents`](super::Topic::Documents).
#[async_trait]
pub trait Documents: Changes {
    /// The document at exactly this place.
    async fn document(&self, key: &DocumentKey) -> Result<Option<Document>, StoreError>;
    /// Writes a document whose version is `seen`, or that is not there where `seen` is `None`; gives its new
    /// version. [`StoreError::Stale`], and nothing written, where it is another by now. The passages of a memory
    /// document replace those of the version before in the same transaction, so its words are found at once.
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
    /// Removes a document whose version is `seen`. [`StoreError::Stale`] where it is another by now, or gone.
    async fn remove_document(&self, key: &DocumentKey, seen: u64, at: UnixMillis) -> Result<(), StoreError>;
    /// The agent's own documents and, where a user is given, the user's beside them, sorted by path and then
    /// the agent's first. Without an agent: the tenant's.
    async fn documents(
        &self,
        tenant: &TenantId,
        agent: Option<&AgentId>,
        user: Option<&UserId>,
        shelf: Shelf,
    ) -> Result<Vec<DocumentCard>, StoreError>;
    /// Marks the memory documents of a tenant to be indexed again; returns how many. What was indexed of them is
    /// found until then.
    async fn mark_unindexed(&self, tenant: &TenantId) -> Result<u64, StoreError>;
    /// Documents that are marked to be indexed, longest marked first, of every tenant: all of a copied store, and
    /// those of [`mark_unindexed`](Self::mark_unindexed).
    async fn unindexed(&self, limit: usize) -> Result<Vec<DocumentCard>, StoreError>;
    /// Puts a document's passages in place of what was indexed of it, and takes the mark off. `false`, and
    /// nothing changed, where its version is another by now.
    async fn index_document(
        &self,
        key: &DocumentKey,
        version: u64,
        passages: Vec<Passage>,
    ) -> Result<bool, StoreError>;
    /// The passages of the user's, the agent's and the tenant's memory that say something of what is asked, best first. Words that say nothing ("the", "and") find
    /// nothing by themselves; those that are in much of what is searched are asked where no rarer one is.
    async fn search_passages(&self, query: &PassageQuery) -> Result<Vec<Found>, StoreError>;
}
