//! Events of a session: one type for those who write them and those who read them.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::{ApprovalState, Outcome, Role};
use crate::id::{ApprovalId, CallId, JobId, MessageId, SessionKey, ToolName};
use crate::port::UnixMillis;
use crate::tool::Effects;

/// Something that happened in a session, with its place in the session's log.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SessionEvent {
    /// Place in the log, counted from 1 without gaps.
    pub seq: u64,
    /// Time of the event.
    pub at: UnixMillis,
    /// The event.
    pub what: SessionEventBody,
}

/// An event of one of many sessions, with its place among all events of the tenant.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedEvent {
    /// Place in the tenant's feed. Places rise, with gaps, and belong to one store.
    pub feed: u64,
    /// The session.
    pub session: SessionKey,
    /// The event.
    pub event: SessionEvent,
}

/// Something that happened in a session. Its JSON form has the kind as `type`, and `state` where it has states.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionEventBody {
    /// A message was stored. The event says where it is, not what it says.
    Message {
        /// Id of the message.
        id: MessageId,
        /// Place of the message in the session.
        seq: u64,
        /// Role of the speaker.
        role: Role,
        /// The run that the message was part of when it was stored.
        run: JobId,
    },
    /// A run moved on.
    Run {
        /// The run.
        run: JobId,
        /// Its state.
        #[serde(flatten)]
        state: RunEvent,
    },
    /// A call moved on.
    Tool {
        /// The call.
        call: CallId,
        /// The tool; the name that the model used where no tool was found.
        tool: String,
        /// Its state.
        #[serde(flatten)]
        state: ToolEvent,
    },
    /// An approval was requested or is over.
    Approval {
        /// The approval.
        approval: ApprovalId,
        /// The call that needs it.
        call: CallId,
        /// Its state.
        state: ApprovalState,
        /// The request; `None` where the approval is over.
        #[serde(flatten)]
        request: Option<ApprovalAsked>,
    },
}

impl SessionEventBody {
    /// Returns the kind as a word: the `type` of the JSON form.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Message { .. } => "message",
            Self::Run { .. } => "run",
            Self::Tool { .. } => "tool",
            Self::Approval { .. } => "approval",
        }
    }
}

/// State of a run, as its session is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RunEvent {
    /// A worker began it.
    Began {
        /// Number of the claim.
        attempt: u32,
    },
    /// A worker took it up again after a crash, a failure or a wait.
    Resumed {
        /// Number of the claim.
        attempt: u32,
    },
    /// It waits without a worker.
    Parked {
        /// Time from which it goes on by itself.
        until: UnixMillis,
    },
    /// It waits for a worker again.
    Woken,
    /// An attempt failed, and another one follows.
    Failed {
        /// The error, scrubbed.
        why: String,
        /// Time of the next attempt.
        retry: UnixMillis,
    },
    /// It came to its end.
    Ended {
        /// How it ended.
        end: RunEnd,
    },
    /// It was given up.
    Reported {
        /// The reason, scrubbed.
        why: String,
    },
    /// The beginning of the session was summarised in it.
    Summarised {
        /// The last message that the summary covers.
        upto: u64,
    },
    /// It was ended on request.
    Cancelled {
        /// Name of the person or program that asked.
        by: String,
    },
}

/// How a run came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunEnd {
    /// The model was done.
    Answered,
    /// A limit was reached, or it went in circles; the model had a last word.
    Limited,
    /// Someone stopped it.
    Stopped,
}

impl RunEnd {
    /// The end as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Limited => "limited",
            Self::Stopped => "stopped",
        }
    }
}

/// State of a call, as its session is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ToolEvent {
    /// It runs.
    Started,
    /// It ended.
    Finished {
        /// How it ended.
        outcome: Outcome,
        /// Duration in microseconds.
        micros: u64,
    },
    /// It was refused.
    Refused {
        /// The step that refused it.
        step: SmolStr,
        /// The rule, in words.
        reason: String,
    },
}

/// An approval's request, as its session is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ApprovalAsked {
    /// The tool to be called.
    pub tool: ToolName,
    /// Effects of the call.
    pub effects: Effects,
    /// The request as a person reads it, scrubbed.
    pub summary: String,
    /// The rule that asks, and why.
    pub reason: String,
    /// Time at which the approval expires.
    pub expires: UnixMillis,
}

#[cfg(test)]
mod tests;
