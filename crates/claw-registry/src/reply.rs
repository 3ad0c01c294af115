//! The result of executing a call.

use std::fmt;
use std::time::Duration;

use claw_core::port::UnixMillis;
use claw_core::tool::{Effects, Output, ToolError};
use claw_core::{ApprovalId, CallId, ToolName};
use serde::Serialize;
use serde_json::Value;

/// The result of a call. Everything in it is scrubbed and capped.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The call's id.
    pub call: CallId,
    /// The tool's name; the requested name if no tool was found.
    pub tool: String,
    /// The tool's output, or why there is none.
    pub outcome: Result<Output, CallError>,
    /// Repairs and omissions, for the model.
    pub notes: Vec<String>,
    /// Run time of the tool.
    pub took: Duration,
    /// The planned effects, and `network` if the output may come from there; none if the call did not run.
    pub effects: Effects,
}

/// The reason why a call has no output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// It was refused, and nothing happened.
    #[error("{0}")]
    Refused(Refusal),
    /// It ran and failed.
    #[error("{0}")]
    Failed(ToolError),
    /// It needs an approval that is still pending, and nothing happened. Repeat the call, with the same id,
    /// once the approval is answered.
    #[error("the call waits for approval `{}`", .0.approval)]
    Waiting(Waiting),
}

/// The approval that a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The approval.
    pub approval: ApprovalId,
    /// The time at which it expires.
    pub expires: UnixMillis,
}

/// The refusal of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The step that refused it.
    pub step: Step,
    /// The rule in words, with the values.
    pub reason: String,
    /// Advice on what to try.
    pub advice: Option<String>,
    /// The setting by which a person would allow it; `None` where no setting does. People read this, the model does not.
    pub setting: Option<String>,
    /// Time after which to try again, if waiting helps.
    pub retry_after: Option<Duration>,
    /// The same as data, for programs: the invalid fields, expected and given values.
    pub details: Option<Box<Value>>,
    /// The pending approval for which the call ended: it then counts as waiting, not as refused.
    pub(crate) waiting: Option<Box<Waiting>>,
}

/// The steps that can refuse a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// No such tool.
    Find,
    /// The tool is not offered, has been removed, or is not allowed.
    Authorise,
    /// Too many calls.
    Limit,
    /// The arguments are invalid.
    Validate,
    /// The planned effects are denied, or not approved.
    Judge,
    /// The intent could not be recorded, or was recorded before.
    Record,
}

impl Step {
    /// The step's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Find => "find",
            Self::Authorise => "authorise",
            Self::Limit => "limit",
            Self::Validate => "validate",
            Self::Judge => "judge",
            Self::Record => "record",
        }
    }
}

impl Refusal {
    /// A refusal at this step for this reason.
    pub fn at(step: Step, reason: impl Into<String>) -> Self {
        Self {
            step,
            reason: reason.into(),
            advice: None,
            setting: None,
            retry_after: None,
            details: None,
            waiting: None,
        }
    }

    /// Sets the advice.
    #[must_use]
    pub fn try_instead(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        match &self.advice {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

impl Reply {
    /// The text that the model reads: the output or the error, then the notes.
    pub fn model_text(&self) -> String {
        let mut text = match &self.outcome {
            Ok(output) => output.model_text(),
            Err(CallError::Refused(refusal)) => format!("refused: {refusal}"),
            Err(CallError::Failed(error)) => format!("error: {}", error.for_model()),
            Err(error @ CallError::Waiting(_)) => error.to_string(),
        };
        for note in &self.notes {
            text.push_str("\nnote: ");
            text.push_str(note);
        }
        text
    }

    /// Returns whether the call succeeded.
    pub fn is_done(&self) -> bool {
        self.outcome.is_ok()
    }

    /// The refusal, if the call was refused.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &self.outcome {
            Err(CallError::Refused(refusal)) => Some(refusal),
            _ => None,
        }
    }

    /// The approval that the call waits for, if any.
    pub fn waiting(&self) -> Option<Waiting> {
        match &self.outcome {
            Err(CallError::Waiting(waiting)) => Some(*waiting),
            _ => None,
        }
    }

    /// The setting by which a person would allow what was refused; `None` where no setting does.
    pub fn setting(&self) -> Option<&str> {
        match &self.outcome {
            Err(CallError::Refused(refusal)) => refusal.setting.as_deref(),
            Err(CallError::Failed(error)) => error.setting.as_deref(),
            Ok(_) | Err(CallError::Waiting(_)) => None,
        }
    }

    /// The error, if the call ran and failed.
    pub fn failure(&self) -> Option<&ToolError> {
        match &self.outcome {
            Err(CallError::Failed(error)) => Some(error),
            _ => None,
        }
    }

    /// The tool's name, if a tool was found.
    pub fn tool_name(&self) -> Option<ToolName> {
        ToolName::new(&self.tool).ok()
    }
}
