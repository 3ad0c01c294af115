//! Keeping what files were before they are changed, so that a change can be undone.

use async_trait::async_trait;

use crate::id::{CallId, JobId, TenantId, ToolName, UndoId};
use crate::tool::{Caller, ToolError};

/// Keeps changes of files. The guard records each one before it is made.
#[async_trait]
pub trait UndoJournal: Send + Sync {
    /// Keeps a change that is about to be made. It is durable once this returns; where it cannot be kept, the
    /// change is not made.
    async fn record(&self, change: &Change<'_>) -> Result<UndoId, ToolError>;
    /// Keeps the changes of a command that are about to be applied. Their id is the transaction's.
    async fn record_command(&self, change: &CommandChange<'_>) -> Result<(), ToolError>;
    /// Takes back a change that was not made after all.
    async fn withdraw(&self, tenant: &TenantId, id: UndoId) -> Result<(), ToolError>;
}

/// A change of one file.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// Who changes it.
    pub caller: &'a Caller,
    /// In which call.
    pub call: CallId,
    /// In which run of the agent; `None` where the call was made by hand.
    pub run: Option<JobId>,
    /// With which tool.
    pub tool: &'a ToolName,
    /// Where the file is: its absolute path, as text.
    pub place: &'a str,
    /// Its path as the tool was given it, for people.
    pub shown: &'a str,
    /// What it held; `None` where it was not there.
    pub before: Option<Contents<'a>>,
    /// What it will hold; `None` where it is removed.
    pub after: Option<Contents<'a>>,
}

/// Changes that a command made as one.
#[derive(Debug, Clone, Copy)]
pub struct CommandChange<'a> {
    /// Id of the transaction.
    pub id: UndoId,
    /// Caller of the command.
    pub caller: &'a Caller,
    /// Call that ran it.
    pub call: CallId,
    /// Run of the agent; `None` where the call was made by hand.
    pub run: Option<JobId>,
    /// Tool that ran it.
    pub tool: &'a ToolName,
    /// The command, for people.
    pub shown: &'a str,
    /// Number of files and links that changed.
    pub files: u64,
    /// Lines added and removed in text files.
    pub lines: (u64, u64),
    /// Bytes that are kept for undoing it.
    pub bytes: u64,
}

/// What a file holds. Its bytes are real: they may be secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Contents<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Its permissions, where they are known.
    pub mode: Option<u32>,
}

impl std::fmt::Debug for Contents<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Contents({} bytes)", self.bytes.len())
    }
}
