//! The origin of stored texts: the run that wrote them, and whether it had read untrusted text before.
//!
//! Untrusted is what somebody wrote whom nobody asked: results of the network, of MCP servers, of other sessions, and
//! memory documents that such a run wrote. It decides nothing here; memory shows it, and configuration can keep such
//! documents out of prompts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use crate::id::JobId;

/// The origin of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// The run that wrote it; `None` where a person did, or a call outside of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<JobId>,
    /// The run had read untrusted text before, or the document was untrusted already.
    #[serde(default)]
    pub untrusted: bool,
}

/// The run that a caller acts in. Clones share what it has read.
#[derive(Debug, Clone, Default)]
pub struct RunTrace {
    run: Option<JobId>,
    has_read: Arc<AtomicBool>,
}

impl RunTrace {
    /// Returns the trace of a run; `untrusted` where its session has read untrusted text already.
    pub fn of(run: JobId, untrusted: bool) -> Self {
        Self { run: Some(run), has_read: Arc::new(AtomicBool::new(untrusted)) }
    }

    /// Records that the run reads untrusted text. Outside of a run nothing is recorded.
    pub fn read_untrusted(&self) {
        if self.run.is_some() {
            self.has_read.store(true, Ordering::Release);
        }
    }

    /// Returns whether the run has read untrusted text.
    pub fn is_untrusted(&self) -> bool {
        self.has_read.load(Ordering::Acquire)
    }

    /// Returns the origin of what the caller writes now.
    pub fn provenance(&self) -> Provenance {
        Provenance { run: self.run, untrusted: self.is_untrusted() }
    }
}

/// The use of untrusted memory documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UntrustedMemory {
    /// Prompts and searches have them, fenced as data.
    #[default]
    Show,
    /// Prompts leave them out; agents find them by search, fenced as data.
    SearchOnly,
    /// Prompts, searches of memory and of the graph leave them out; people see them.
    Hide,
}
