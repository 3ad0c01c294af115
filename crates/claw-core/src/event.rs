//! Every event the system emits, one enum. What they carry is scrubbed.

use serde::Serialize;

use crate::id::{ApprovalId, CallId, SessionKey, TenantId, ToolName};
use crate::store::{Approval, Outcome};

/// Something happened that a front end may want to show.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    /// Whose data it is.
    pub tenant: TenantId,
    /// In which conversation.
    pub session: SessionKey,
    /// Which call.
    pub call: CallId,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// A call was turned away.
    CallRefused {
        /// Which tool; the name the model used where none was found.
        tool: String,
        /// Which step of the road.
        step: &'static str,
        /// Which rule, in words.
        reason: String,
        /// The setting by which a person would allow it; `None` where no setting does.
        setting: Option<String>,
    },
    /// A person is asked.
    ApprovalRequested {
        /// The question.
        approval: Box<Approval>,
    },
    /// The question is over.
    ApprovalClosed {
        /// The question.
        id: ApprovalId,
        /// How.
        state: crate::store::ApprovalState,
    },
    /// A call runs.
    CallStarted {
        /// Which tool.
        tool: ToolName,
    },
    /// A call tells how far it is.
    CallProgress {
        /// What it tells.
        text: String,
    },
    /// A call ended.
    CallFinished {
        /// Which tool.
        tool: ToolName,
        /// How.
        outcome: Outcome,
        /// How long it ran, in microseconds.
        micros: u64,
    },
}

/// Takes events. Must not block; one that cannot keep up drops.
pub trait Listener: Send + Sync {
    /// Takes one.
    fn hear(&self, event: Event);
}
