//! Facts that a run reads again only when they may have changed.
//!
//! A turn asks the model many times, and most of its prompt stays the same meanwhile. Each fact here has a
//! topic of the store that announces its changes.

use std::collections::HashMap;
use std::time::Duration;

use claw_core::ToolName;
use claw_core::port::UnixMillis;
use claw_core::store::{Store, Topic};
use claw_registry::Offer;
use tokio::sync::watch;

/// The longest time without a look for waiting messages: the notice of one may be late.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The facts of one run.
pub(super) struct Known {
    documents: watch::Receiver<u64>,
    processes: watch::Receiver<u64>,
    work: watch::Receiver<u64>,
    /// The context files, as they were last read; `None` if they must be read.
    pub(super) files: Option<Vec<(String, String)>>,
    has_processes: bool,
    /// The time of the last look for waiting messages; `None` before the first.
    looked: Option<UnixMillis>,
    /// The last offer; `None` if it must be decided. It is used as long as the executor says that it is current: calls
    /// list the tools that they make callable in this very offer, and the token budget chooses the same tools again.
    pub(super) offer: Option<Offer>,
    /// The section about skills, as first sent to the model.
    pub(super) skills: Option<String>,
    /// The section about the project, as first sent to the model.
    pub(super) project: Option<String>,
    /// The tools that the session was offered. Nobody else changes them during the run.
    pub(super) offered: Option<Vec<ToolName>>,
    /// The agent's use count of each tool before the run.
    pub(super) uses: Option<HashMap<ToolName, u64>>,
    /// This run's use count of each tool; stored when it ends.
    pub(super) used: HashMap<ToolName, u64>,
}

impl Known {
    pub(super) fn new(store: &dyn Store) -> Self {
        Self {
            documents: store.changes(Topic::Documents),
            processes: store.changes(Topic::Processes),
            work: store.changes(Topic::Work),
            files: None,
            has_processes: false,
            looked: None,
            offer: None,
            skills: None,
            project: None,
            offered: None,
            uses: None,
            used: HashMap::new(),
        }
    }

    /// Drops the context files if a document may have changed.
    pub(super) fn forget_changed_files(&mut self) {
        if changed(&mut self.documents) {
            self.files = None;
        }
    }

    /// Returns whether background processes must be read: for the first time, or because one may have
    /// changed.
    pub(super) fn must_read_processes(&mut self) -> bool {
        let is_first = !std::mem::replace(&mut self.has_processes, true);
        changed(&mut self.processes) || is_first
    }

    /// Returns whether waiting messages must be looked for now: for the first time, because a job was accepted, or because
    /// the last look was too long ago.
    pub(super) fn must_look_for_messages(&mut self, now: UnixMillis) -> bool {
        let is_due = self.looked.is_none_or(|looked| now.since(looked) > LOOK_EVERY);
        let must = changed(&mut self.work) || is_due;
        if must {
            self.looked = Some(now);
        }
        must
    }
}

/// Returns whether a topic rose since the last check. A closed store counts as changed, so that reading it
/// reports the error.
fn changed(topic: &mut watch::Receiver<u64>) -> bool {
    let changed = topic.has_changed().unwrap_or(true);
    topic.mark_unchanged();
    changed
}
