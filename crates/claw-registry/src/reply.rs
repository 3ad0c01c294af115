//! What comes back from the road.

use std::fmt;
use std::time::Duration;

use claw_core::port::UnixMillis;
use claw_core::tool::{Output, ToolError};
use claw_core::{ApprovalId, CallId, ToolName};
use serde::Serialize;
use serde_json::Value;

/// The end of one call. Everything in it is scrubbed and capped.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Which call.
    pub call: CallId,
    /// Which tool, by its real name; the name that was asked for where no tool was found.
    pub tool: String,
    /// What came of it.
    pub outcome: Result<Output, CallError>,
    /// What was repaired or left out on the way, for the model.
    pub notes: Vec<String>,
    /// How long the tool ran.
    pub took: Duration,
}

/// Why a call gave no output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// It was turned away, and nothing happened.
    #[error("{0}")]
    Refused(Refusal),
    /// It ran and failed.
    #[error("{0}")]
    Failed(ToolError),
    /// It needs an approval that nobody has given yet, and nothing happened. Make the same call, by its id, again once
    /// the approval is answered.
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

/// Why a call was turned away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// At which step of the road.
    pub step: Step,
    /// Which rule, in words, with the values.
    pub reason: String,
    /// What to try.
    pub advice: Option<String>,
    /// The setting by which a person would allow it; `None` where no setting does. People read this, the model does not.
    pub setting: Option<String>,
    /// When to try again, where waiting helps.
    pub retry_after: Option<Duration>,
    /// The same as data, for programs: which fields do not fit, what was expected and what came.
    pub details: Option<Box<Value>>,
    /// The approval that is still open, where the call does not wait for it: then nothing is refused yet.
    pub(crate) waiting: Option<Box<Waiting>>,
}

/// The steps at which a call can be turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// No such tool.
    Find,
    /// Not in the offer, or not in today's decision.
    Authorise,
    /// Too many calls.
    Limit,
    /// The arguments do not fit.
    Validate,
    /// What it would do is denied, or nobody said yes.
    Judge,
    /// The intent could not be written, or was written before.
    Record,
}

impl Step {
    /// The step as a word.
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
    /// Turned away at this step for this reason.
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

    /// Says what to try.
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
    /// What the model reads: the output or the error, then the notes.
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

    /// Whether the call ran and worked.
    pub fn is_done(&self) -> bool {
        self.outcome.is_ok()
    }

    /// Why it was turned away, if it was.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &self.outcome {
            Err(CallError::Refused(refusal)) => Some(refusal),
            _ => None,
        }
    }

    /// The approval that the call waits for, where it does.
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

    /// Why it failed, if it ran and did.
    pub fn failure(&self) -> Option<&ToolError> {
        match &self.outcome {
            Err(CallError::Failed(error)) => Some(error),
            _ => None,
        }
    }

    /// The tool's name, where a tool was found.
    pub fn tool_name(&self) -> Option<ToolName> {
        ToolName::new(&self.tool).ok()
    }
}
