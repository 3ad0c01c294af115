//! Changes of files, and the versions seen of them, in memory.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use async_trait::async_trait;
use claw_core::port::{Change, CommandChange, Contents, Owner, SeenFiles, UndoJournal, Version};
use claw_core::tool::ToolError;
use claw_core::{CallId, TenantId, ToolName, UndoId};

/// An undo journal in memory. It can be told to fail.
#[derive(Debug, Default)]
pub struct MemoryJournal(Mutex<Journal>);

#[derive(Debug, Default)]
struct Journal {
    changes: Vec<Kept>,
    full: bool,
}

/// A change that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The change's id.
    pub id: UndoId,
    /// The tenant that owns the change.
    pub tenant: TenantId,
    /// The call that made it.
    pub call: CallId,
    /// The tool that made it.
    pub tool: ToolName,
    /// The file's place.
    pub place: String,
    /// The content before; `None` if the file did not exist.
    pub before: Option<Vec<u8>>,
    /// The intended content; `None` if the file was to be removed.
    pub after: Option<Vec<u8>>,
}

impl MemoryJournal {
    /// Returns the changes recorded and not withdrawn, oldest first.
    pub fn changes(&self) -> Vec<Kept> {
        self.0.lock().unwrap().changes.clone()
    }

    /// Makes recording fail from now on, as on a full disk.
    pub fn fill(&self) {
        self.0.lock().unwrap().full = true;
    }
}

#[async_trait]
impl UndoJournal for MemoryJournal {
    async fn record(&self, change: &Change<'_>) -> Result<UndoId, ToolError> {
        let mut journal = self.0.lock().unwrap();
        if journal.full {
            return Err(ToolError::failed("the change cannot be journaled: no space is left"));
        }
        let bytes = |contents: Option<Contents<'_>>| contents.map(|contents| contents.bytes.to_vec());
        let id = UndoId::new();
        journal.changes.push(Kept {
            id,
            tenant: change.caller.tenant.clone(),
            call: change.call,
            tool: change.tool.clone(),
            place: change.place.to_owned(),
            before: bytes(change.before),
            after: bytes(change.after),
        });
        Ok(id)
    }

    async fn record_command(&self, change: &CommandChange<'_>) -> Result<(), ToolError> {
        let mut journal = self.0.lock().unwrap();
        if journal.full {
            return Err(ToolError::failed("the change cannot be journaled: no space is left"));
        }
        journal.changes.push(Kept {
            id: change.id,
            tenant: change.caller.tenant.clone(),
            call: change.call,
            tool: change.tool.clone(),
            place: change.shown.to_owned(),
            before: None,
            after: None,
        });
        Ok(())
    }

    async fn withdraw(&self, tenant: &TenantId, id: UndoId) -> Result<(), ToolError> {
        self.0.lock().unwrap().changes.retain(|kept| kept.id != id || kept.tenant != *tenant);
        Ok(())
    }
}

/// The versions of files that sessions have seen, in memory that outlives an executor.
#[derive(Debug, Default)]
pub struct MemorySeen(Mutex<HashMap<(Owner, PathBuf), Version>>);

#[async_trait]
impl SeenFiles for MemorySeen {
    async fn seen(&self, owner: &Owner, path: &Path) -> Result<Option<Version>, ToolError> {
        Ok(self.0.lock().unwrap().get(&(owner.clone(), path.to_owned())).cloned())
    }

    async fn saw(&self, owner: &Owner, path: &Path, version: &Version) -> Result<(), ToolError> {
        self.0.lock().unwrap().insert((owner.clone(), path.to_owned()), version.clone());
        Ok(())
    }
}
