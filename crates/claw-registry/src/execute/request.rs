//! The request to call a tool, as a front end makes it.

use std::sync::Arc;
use std::time::Duration;

use claw_core::store::Approval;
use claw_core::tool::Progress;
use claw_core::{CallId, JobId};
use claw_policy::approval::Narrowing;
use claw_schema::validate;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A request to call a tool.
#[derive(Debug, Clone)]
pub struct Request {
    /// The name the model used.
    pub tool: String,
    /// The arguments.
    pub args: Arguments,
    /// Our id of the call. Repeat the id to continue with an approval requested before a restart.
    pub call: CallId,
    /// The model's id of the call, stored with ours.
    pub model_id: Option<SmolStr>,
    /// The agent's run that the call is part of: its changes can be undone with the rest of the run.
    pub run: Option<JobId>,
    /// Cancelled when the caller gives up.
    pub cancel: CancellationToken,
    /// Receives the tool's progress.
    pub progress: Progress,
    /// Time limit of the tool; `None` uses the tool's or the deployment's limit.
    pub timeout: Option<Duration>,
    /// Time that the caller has left; the tool may not run longer, whatever its own limit is.
    pub within: Option<Duration>,
    /// The way to get an approval, if the call needs one.
    pub asking: Asking,
    /// The mode of the run that the call is part of: it narrows the call, and nothing else does away with it.
    pub narrowing: Option<Arc<Narrowing>>,
    /// Hears of requests for input that the running call puts to a person, so that a front end can ask there and then.
    pub inputs: Option<mpsc::UnboundedSender<Approval>>,
}

/// Arguments as a front end has them.
#[derive(Debug, Clone)]
pub enum Arguments {
    /// Parsed.
    Json(Value),
    /// As the model wrote them.
    Text(String),
}

impl Arguments {
    /// Drops arguments whose depth was not checked yet: a deeply nested value would overflow the stack.
    pub(super) fn discard(self) {
        if let Self::Json(args) = self {
            validate::dismantle(args);
        }
    }
}

/// The way in which a call gets an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asking {
    /// The call waits for the answer, at most `approvals.wait_secs`.
    #[default]
    Possible,
    /// Nobody can be asked: the call is refused.
    Impossible,
    /// The call does not wait: it ends as [`CallError::Waiting`](crate::CallError::Waiting) until the approval is answered. Somebody
    /// watches, so the approval stays open for `approvals.wait_secs`.
    Watched,
    /// The same if nobody watches: the approval stays open for `approvals.park_hours`.
    Unwatched,
}

impl Asking {
    /// Returns whether the call ends while its approval is pending.
    pub(crate) const fn parks(self) -> bool {
        matches!(self, Self::Watched | Self::Unwatched)
    }
}

impl Request {
    /// A call of `tool` with these arguments and a new id.
    pub fn new(tool: impl Into<String>, args: Value) -> Self {
        Self {
            tool: tool.into(),
            args: Arguments::Json(args),
            call: CallId::new(),
            model_id: None,
            run: None,
            cancel: CancellationToken::new(),
            progress: Progress::silent(),
            timeout: None,
            within: None,
            asking: Asking::default(),
            narrowing: None,
            inputs: None,
        }
    }

    /// The call's id: the same id is given again to attach to an approval that was asked for before a restart.
    #[must_use]
    pub fn with_id(mut self, call: CallId) -> Self {
        self.call = call;
        self
    }

    /// The run that the call is part of: its changes are undone with the rest of the run.
    #[must_use]
    pub const fn in_run(mut self, run: JobId) -> Self {
        self.run = Some(run);
        self
    }

    /// Stops the call when the token is cancelled.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Hears what the tool tells while it runs.
    #[must_use]
    pub fn with_progress(mut self, progress: Progress) -> Self {
        self.progress = progress;
        self
    }

    /// How the call gets the approval that it may need.
    #[must_use]
    pub const fn asking(mut self, asking: Asking) -> Self {
        self.asking = asking;
        self
    }
}
