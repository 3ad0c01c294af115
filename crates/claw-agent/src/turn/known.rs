//! Facts that a run reads again only when they may have changed.
//!
//! A turn asks the model many times; most of what it is told stays the same meanwhile. Each fact here has the topic of the
//! store that tells of its changes.

use std::collections::HashMap;

use claw_core::ToolName;
use claw_core::store::{Store, Topic};
use tokio::sync::watch;

/// The facts of one run.
pub(super) struct Known {
    documents: watch::Receiver<u64>,
    processes: watch::Receiver<u64>,
    /// The context files, as they were last read.
    pub(super) files: Option<Vec<(String, String)>>,
    has_processes: bool,
    /// The section about skills, as it was first told.
    pub(super) skills: Option<String>,
    /// The project's own words, as they were first told.
    pub(super) project: Option<String>,
    /// The tools that the session was told of. Nobody else changes them while the run goes on.
    pub(super) offered: Option<Vec<ToolName>>,
    /// How often the agent used each tool before the run.
    pub(super) uses: Option<HashMap<ToolName, u64>>,
    /// How often this run used each tool; written when it ends.
    pub(super) used: HashMap<ToolName, u64>,
}

impl Known {
    pub(super) fn new(store: &dyn Store) -> Self {
        Self {
            documents: store.changes(Topic::Documents),
            processes: store.changes(Topic::Processes),
            files: None,
            has_processes: false,
            skills: None,
            project: None,
            offered: None,
            uses: None,
            used: HashMap::new(),
        }
    }

    /// Forgets the context files if a document may have changed.
    pub(super) fn forget_changed_files(&mut self) {
        if changed(&mut self.documents) {
            self.files = None;
        }
    }

    /// Whether background processes are to be read: for the first time, or since one may have changed.
    pub(super) fn must_read_processes(&mut self) -> bool {
        let is_first = !std::mem::replace(&mut self.has_processes, true);
        changed(&mut self.processes) || is_first
    }
}

/// Whether a topic rose since it was last looked at. A store that is closed is read, and says so.
fn changed(topic: &mut watch::Receiver<u64>) -> bool {
    let changed = topic.has_changed().unwrap_or(true);
    topic.mark_unchanged();
    changed
}
