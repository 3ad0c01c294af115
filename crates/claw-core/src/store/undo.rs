//! The index of the undo journal: which file was changed by which call, from what to what.
//!
//! An entry is written before the change it tells of. A file that still is as it was before has not been
//! changed: the program ended in between. The bytes themselves are kept apart, by their digest.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::id::{AgentId, CallId, JobId, SessionKey, TenantId, ToolName, UndoId, UserId};
use crate::port::UnixMillis;
use crate::tool::Digest;

/// One state of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// The digest of its bytes, by which they are kept.
    pub blob: Digest,
    /// How many bytes.
    pub bytes: u64,
    /// Its permissions; `None` where the place has none, such as a document in the store.
    pub mode: Option<u32>,
}

/// The changes of a command. What was there before is kept apart, by the id of the transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandUndo {
    /// Id of the transaction that made the changes.
    pub transaction: UndoId,
    /// The changes were taken back, not made.
    #[serde(default)]
    pub reverts: bool,
    /// Number of files and links that changed.
    pub files: u64,
    /// Lines added in text files.
    pub added: u64,
    /// Lines removed from text files.
    pub removed: u64,
    /// Bytes that are kept for undoing it.
    pub bytes: u64,
}

impl CommandUndo {
    /// Name under which the transaction's files are kept.
    pub fn blob(transaction: UndoId) -> Digest {
        Digest::of_bytes(transaction.to_string().as_bytes())
    }
}

impl NewUndo {
    /// Blob with the state before, and its bytes.
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
    /// Whose data it is.
    pub tenant: TenantId,
    /// In which conversation.
    pub session: SessionKey,
    /// Which agent changed it.
    pub agent: AgentId,
    /// For whom.
    pub user: Option<UserId>,
    /// Which call.
    pub call: CallId,
    /// Which run the call was part of.
    pub run: Option<JobId>,
    /// Which tool.
    pub tool: ToolName,
    /// The workspace that it happened in: within it, it is undone.
    pub workspace: String,
    /// Where the file is: an absolute path, or the place of a document in the store.
    pub place: String,
    /// The path as the tool was given it, for people.
    pub shown: String,
    /// The file before; `None` where it was not there.
    pub before: Option<FileState>,
    /// The file after; `None` where it was removed.
    pub after: Option<FileState>,
    /// The changes of a command, made as one; `None` for the change of one file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandUndo>,
    /// When.
    pub at: UnixMillis,
}

/// A stored change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Undo {
    /// What changed.
    #[serde(flatten)]
    pub new: NewUndo,
    /// When it was undone; `None` where it stands.
    pub undone: Option<UnixMillis>,
}

/// Which changes are looked for; every part that is given must agree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoFilter {
    /// Of this conversation.
    pub session: Option<SessionKey>,
    /// Of this call.
    pub call: Option<CallId>,
    /// Of this run.
    pub run: Option<JobId>,
    /// Of the file at this place.
    pub place: Option<String>,
    /// Older than the change of this time and id: the last of the page before.
    pub before: Option<(UnixMillis, UndoId)>,
}

/// Keeps the index of the undo journal.
#[async_trait]
pub trait UndoIndex: Send + Sync {
    /// Stores a change that is about to be made. The same id again changes nothing.
    async fn record_undo(&self, new: NewUndo) -> Result<(), StoreError>;
    /// Takes back a change that was not made after all.
    async fn withdraw_undo(&self, tenant: &TenantId, id: UndoId) -> Result<(), StoreError>;
    /// One change; `None` where this tenant has none of that id.
    async fn undo(&self, tenant: &TenantId, id: UndoId) -> Result<Option<Undo>, StoreError>;
    /// Changes, newest first, at most `limit`.
    async fn undos(
        &self,
        tenant: &TenantId,
        filter: &UndoFilter,
        limit: usize,
    ) -> Result<Vec<Undo>, StoreError>;
    /// Marks a change undone; `false` where it was already, or is not there.
    async fn mark_undone(&self, tenant: &TenantId, id: UndoId, at: UnixMillis) -> Result<bool, StoreError>;
    /// Forgets the oldest changes of all tenants until none left is older than `before` and those left keep at
    /// most `bytes`, each blob counted once; gives the blobs that no entry names any more, those of changes
    /// that were withdrawn included.
    async fn prune_undo(&self, before: UnixMillis, bytes: u64) -> Result<Vec<Digest>, StoreError>;
    /// Which of these blobs no entry of any tenant names, not even one of a change that was withdrawn.
    async fn unnamed_undo(&self, blobs: &[Digest]) -> Result<Vec<Digest>, StoreError>;
}
