//! Events of a session: one type for writers and readers.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::{ApprovalState, Outcome, Role};
use crate::id::{ApprovalId, CallId, JobId, MessageId, SessionKey, ToolName};
use crate::port::UnixMillis;
use crate::tool::Effects;

/// An event of a session, with its number in the session's log.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SessionEvent {
    /// Number in the log, counted from 1 without gaps.
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

/// An event of a session. Its JSON form has the kind as `type`, and `state` if it has states.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionEventBody {
    /// A message was stored. The event names the message and does not hold its content.
    Message {
        /// Id of the message.
        id: MessageId,
        /// Number of the message in the session.
        seq: u64,
        /// Role of the author.
        role: Role,
        /// The run that the message was part of when it was stored.
        run: JobId,
    },
    /// The state of a run changed.
    Run {
        /// The run.
        run: JobId,
        /// Its state.
        #[serde(flatten)]
        state: RunEvent,
    },
    /// The state of a call changed.
    Tool {
        /// The call.
        call: CallId,
        /// The tool; the name that the model used if no tool was found.
        tool: String,
        /// Its state.
        #[serde(flatten)]
        state: ToolEvent,
    },
    /// An approval was requested or closed.
    Approval {
        /// The approval.
        approval: ApprovalId,
        /// The call that needs it.
        call: CallId,
        /// Its state.
        state: ApprovalState,
        /// The request; `None` if the approval is closed.
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

/// State of a run, as session events report it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RunEvent {
    /// A worker began it.
    Began {
        /// Number of the claim.
        attempt: u32,
    },
    /// A worker resumed it after a crash, a failure or a wait.
    Resumed {
        /// Number of the claim.
        attempt: u32,
    },
    /// It waits without a worker.
    Parked {
        /// Time from which it resumes even if nothing wakes it.
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
    /// The run ended.
    Ended {
        /// The kind of end.
        end: RunEnd,
    },
    /// The run was given up.
    Reported {
        /// The reason, scrubbed.
        why: String,
    },
    /// The run summarised the beginning of the session.
    Summarised {
        /// The last message that the summary covers.
        upto: u64,
    },
    /// The run was ended on request.
    Cancelled {
        /// Name of the person or program that asked.
        by: String,
    },
}

/// The kind of a run's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunEnd {
    /// The model completed its answer.
    Answered,
    /// A limit was reached, or the run went in circles; the model gave a last answer.
    Limited,
    /// Someone stopped the run.
    Stopped,
    /// The model called tools of the client, whose results come with its next message.
    Called,
}

impl RunEnd {
    /// Returns the end as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Limited => "limited",
            Self::Stopped => "stopped",
            Self::Called => "called",
        }
    }
}

/// State of a call, as session events report it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ToolEvent {
    /// The call runs.
    Started,
    /// The call ended.
    Finished {
        /// The outcome.
        outcome: Outcome,
        /// Duration in microseconds.
        micros: u64,
    },
    /// The call was refused.
    Refused {
        /// The step that refused it.
        step: SmolStr,
        /// The rule, in words.
        reason: String,
        /// The setting by which a person would allow it; `None` where no setting does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        setting: Option<String>,
    },
}

/// The request of an approval, as session events report it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ApprovalAsked {
    /// The tool to be called.
    pub tool: ToolName,
    /// Effects of the call.
    pub effects: Effects,
    /// The request as a person reads it, scrubbed.
    pub summary: String,
    /// The rule that requires approval, and the reason.
    pub reason: String,
    /// Time at which the approval expires.
    pub expires: UnixMillis,
}

#[cfg(test)]
mod tests;
