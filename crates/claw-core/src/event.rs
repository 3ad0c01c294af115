//! Every event the system emits, one enum. The contents of events are scrubbed.

use std::pin::Pin;

use serde::Serialize;

use crate::id::{ApprovalId, CallId, SessionKey, TenantId, ToolName};
use crate::store::{Approval, Outcome};

/// An event of a call that front ends may show.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    /// The tenant that owns the call.
    pub tenant: TenantId,
    /// The session of the call.
    pub session: SessionKey,
    /// The call.
    pub call: CallId,
    /// The kind of event, with its values.
    #[serde(flatten)]
    pub what: What,
}

/// The kinds of events, with their values.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// The call was refused.
    CallRefused {
        /// The tool; the name the model used if no tool was found.
        tool: String,
        /// The step of the road that refused it.
        step: &'static str,
        /// The rule that refused it, in words.
        reason: String,
        /// The setting by which a person would allow it; `None` where no setting does.
        setting: Option<String>,
    },
    /// A person is asked for approval.
    ApprovalRequested {
        /// The approval.
        approval: Box<Approval>,
    },
    /// The approval is closed.
    ApprovalClosed {
        /// The approval.
        id: ApprovalId,
        /// Its final state.
        state: crate::store::ApprovalState,
    },
    /// The call started to run.
    CallStarted {
        /// The tool.
        tool: ToolName,
    },
    /// The call reports its progress.
    CallProgress {
        /// The reported text.
        text: String,
    },
    /// The call ended.
    CallFinished {
        /// The tool.
        tool: ToolName,
        /// The outcome.
        outcome: Outcome,
        /// The running time, in microseconds.
        micros: u64,
    },
}

/// Receives events. Must not block: a listener that cannot keep up drops events, or delays the calls to come.
pub trait Listener: Send + Sync {
    /// Takes one event.
    fn hear(&self, event: Event);

    /// Returns a future that ends when the listener has room for the events of another call; `None` if it has room
    /// now. A call waits for it before it begins, never while it runs.
    fn room(&self) -> Option<Room<'_>> {
        None
    }
}

/// Waits for a listener to catch up.
pub type Room<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
