//! Stores the previous contents of files before they change, so that a change can be undone.

use async_trait::async_trait;

use crate::id::{CallId, JobId, TenantId, ToolName, UndoId};
use crate::tool::{Caller, ToolError};

/// Stores changes of files. The guard records each one before it is made.
#[async_trait]
pub trait UndoJournal: Send + Sync {
    /// Stores a change that is about to be made. It is durable once this returns; if it cannot be stored, the
    /// change is not made.
    async fn record(&self, change: &Change<'_>) -> Result<UndoId, ToolError>;
    /// Stores the changes of a command that are about to be applied. Their id is the transaction's.
    async fn record_command(&self, change: &CommandChange<'_>) -> Result<(), ToolError>;
    /// Withdraws a change that was not made after all.
    async fn withdraw(&self, tenant: &TenantId, id: UndoId) -> Result<(), ToolError>;
}

/// A change of one file.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// The call.
    pub call: CallId,
    /// The run of the agent; `None` for a call made by hand.
    pub run: Option<JobId>,
    /// The tool.
    pub tool: &'a ToolName,
    /// The absolute path of the file, as text.
    pub place: &'a str,
    /// Key of the sandbox that holds the file; `None` if the machine or the store holds it.
    pub sandbox: Option<&'a str>,
    /// The path that the tool was given, for people.
    pub shown: &'a str,
    /// The contents before; `None` if the file did not exist.
    pub before: Option<Contents<'a>>,
    /// The contents after; `None` if the file is removed.
    pub after: Option<Contents<'a>>,
}

/// Changes of a command that are applied together.
#[derive(Debug, Clone, Copy)]
pub struct CommandChange<'a> {
    /// Id of the transaction.
    pub id: UndoId,
    /// Caller of the command.
    pub caller: &'a Caller,
    /// Call that ran it.
    pub call: CallId,
    /// Run of the agent; `None` for a call made by hand.
    pub run: Option<JobId>,
    /// Tool that ran it.
    pub tool: &'a ToolName,
    /// The command, for people.
    pub shown: &'a str,
    /// Number of files and links that changed.
    pub files: u64,
    /// Lines added and removed in text files.
    pub lines: (u64, u64),
    /// Bytes that are stored for undoing it.
    pub bytes: u64,
}

/// The contents of a file. The bytes are not scrubbed: they may be secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Contents<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Its permissions; `None` if unknown.
    pub mode: Option<u32>,
}

impl std::fmt::Debug for Contents<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Contents({} bytes)", self.bytes.len())
    }
}
