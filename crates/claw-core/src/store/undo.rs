//! The index of the undo journal: changed files, the calls that changed them, and their states before and
//! after.
//!
//! An entry is written before its change. If the file is still in its earlier state, the program ended before
//! making the change. The bytes themselves are stored apart, by their digest.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::id::{AgentId, CallId, JobId, SessionKey, TenantId, ToolName, UndoId, UserId};
use crate::port::UnixMillis;
use crate::tool::Digest;

/// One state of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// The digest of its bytes, by which they are stored.
    pub blob: Digest,
    /// The number of bytes.
    pub bytes: u64,
    /// Its permissions; `None` if the storage has none, as for a document in the store.
    pub mode: Option<u32>,
}

/// The changes of a command. The earlier contents are stored apart, by the id of the transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandUndo {
    /// Id of the transaction that made the changes.
    pub transaction: UndoId,
    /// True if the changes were reverted, not made.
    #[serde(default)]
    pub reverts: bool,
    /// Number of files and links that changed.
    pub files: u64,
    /// Lines added in text files.
    pub added: u64,
    /// Lines removed from text files.
    pub removed: u64,
    /// Bytes that are stored for undoing it.
    pub bytes: u64,
}

impl CommandUndo {
    /// Returns the name under which the transaction's files are stored.
    pub fn blob(transaction: UndoId) -> Digest {
        Digest::of_bytes(transaction.to_string().as_bytes())
    }
}

impl NewUndo {
    /// Returns the blob with the state before, and its size in bytes.
    pub fn kept_before(&self) -> Option<(Digest, u64)> {
        let of_command = self.command.as_ref().map(|it| (CommandUndo::blob(it.transaction), it.bytes));
        of_command.or_else(|| self.before.as_ref().map(|file| (file.blob, file.bytes)))
    }
}

/// A change before it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewUndo {
    /// Its id.
    pub id: UndoId,
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// The session.
    pub session: SessionKey,
    /// The agent that made the change.
    pub agent: AgentId,
    /// The user the agent acts for; `None` if there is none.
    pub user: Option<UserId>,
    /// The call.
    pub call: CallId,
    /// The run of the call; `None` for a call made by hand.
    pub run: Option<JobId>,
    /// The tool.
    pub tool: ToolName,
    /// The workspace in which the change was made and is undone.
    pub workspace: String,
    /// The absolute path of the file, or the place of a document in the store.
    pub place: String,
    /// Key of the sandbox that holds the file; `None` if the machine or the store holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The path that the tool was given, for people.
    pub shown: String,
    /// The file before; `None` if it did not exist.
    pub before: Option<FileState>,
    /// The file after; `None` if it was removed.
    pub after: Option<FileState>,
    /// The changes of a command, made as one; `None` for the change of one file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandUndo>,
    /// The time.
    pub at: UnixMillis,
}

/// A stored change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Undo {
    /// The change.
    #[serde(flatten)]
    pub new: NewUndo,
    /// The time it was undone; `None` if it was not.
    pub undone: Option<UnixMillis>,
}

/// A filter of changes; a change must match every part that is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoFilter {
    /// Only changes of this session.
    pub session: Option<SessionKey>,
    /// Only changes of this call.
    pub call: Option<CallId>,
    /// Only changes of this run.
    pub run: Option<JobId>,
    /// Only changes of the file at this place.
    pub place: Option<String>,
    /// Older than the change of this time and id: the last of the page before.
    pub before: Option<(UnixMillis, UndoId)>,
}

/// Stores the index of the undo journal.
#[async_trait]
pub trait UndoIndex: Send + Sync {
    /// Stores a change that is about to be made. The same id again changes nothing.
    async fn record_undo(&self, new: NewUndo) -> Result<(), StoreError>;
    /// Withdraws a change that was not made after all.
    async fn withdraw_undo(&self, tenant: &TenantId, id: UndoId) -> Result<(), StoreError>;
    /// Returns one change; `None` if this tenant has none with that id.
    async fn undo(&self, tenant: &TenantId, id: UndoId) -> Result<Option<Undo>, StoreError>;
    /// Returns changes, newest first, at most `limit`.
    async fn undos(
        &self,
        tenant: &TenantId,
        filter: &UndoFilter,
        limit: usize,
    ) -> Result<Vec<Undo>, StoreError>;
    /// Marks a change undone; `false` if it already was, or does not exist.
    async fn mark_undone(&self, tenant: &TenantId, id: UndoId, at: UnixMillis) -> Result<bool, StoreError>;
    /// Removes the oldest changes of all tenants until none is older than `before` and the rest refers to at
    /// most `bytes`, each blob counted once. Returns the blobs that no entry names any more, including those
    /// of withdrawn changes.
    async fn prune_undo(&self, before: UnixMillis, bytes: u64) -> Result<Vec<Digest>, StoreError>;
    /// Returns those of these blobs that no entry of any tenant names, not even one of a withdrawn change.
    async fn unnamed_undo(&self, blobs: &[Digest]) -> Result<Vec<Digest>, StoreError>;
}
