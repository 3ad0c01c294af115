//! An approval as a person is asked for it, by any front end: in the store of this process, or at a gateway.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use claw_core::event::{Event, Listener, What};
use claw_core::port::{Clock as _, InputRequest, UnixMillis};
use claw_core::store::{Approval, ApprovalState, RuleWidth};
use claw_core::tool::Effects;
use claw_core::{ApprovalId, CallId, ToolName};
use claw_host::SystemClock;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::{App, Error, InputValues, Verdict};

/// The interval between checks whether an approval in the store is still pending.
const LOOKED_AFTER: Duration = Duration::from_millis(200);

/// Checks values before they are sent; the error is the reason why they cannot be.
pub type InputCheck = dyn Fn(&Map<String, Value>) -> Result<(), String> + Send;

/// An approval as a person is asked for it.
#[derive(Debug, Clone)]
pub struct Question {
    /// Id of the approval.
    pub id: ApprovalId,
    /// The tool.
    pub tool: ToolName,
    /// The effects of the call.
    pub effects: Effects,
    /// The rule that asks.
    pub reason: String,
    /// The call as a person reads it.
    pub summary: String,
    /// Id of the call.
    pub call: CallId,
    /// When it was asked.
    pub asked: UnixMillis,
    /// When it expires.
    pub expires: UnixMillis,
    /// The rules that can be given with a yes, the narrowest first: their widths and what they cover.
    pub offered: Vec<(RuleWidth, String)>,
    /// Input that a server asks for; `None` for a plain yes or no.
    pub input: Option<Box<InputRequest>>,
}

impl From<&Approval> for Question {
    fn from(approval: &Approval) -> Self {
        let request = &approval.request;
        let rules = request.remember.iter().flat_map(|suggestions| &suggestions.rules);
        Self {
            id: approval.id,
            tool: request.tool.clone(),
            effects: request.effects,
            reason: request.reason.clone(),
            summary: request.summary.clone(),
            call: request.call,
            asked: request.asked,
            expires: request.expires,
            offered: rules.map(|rule| (rule.width, rule.text.clone())).collect(),
            input: request.input.clone(),
        }
    }
}

impl Question {
    /// Says from which commands an approval in the store can be answered.
    pub fn elsewhere(&self) -> Vec<String> {
        let id = self.id;
        let answer = match &self.input {
            Some(_) => format!("clawsmith approvals answer {id} NAME=VALUE ..."),
            None => format!("clawsmith approvals approve {id}"),
        };
        vec![format!("clawsmith approvals show {id}"), answer]
    }

    /// The longest it waits, in seconds.
    pub fn wait_secs(&self) -> u64 {
        self.expires.since(self.asked).as_secs()
    }
}

/// The approval behind a question.
#[async_trait(?Send)]
pub trait AskedFor {
    /// The interval between checks whether the question still waits.
    fn look_after(&self) -> Duration;
    /// Says how the approval ended; `None` while it waits, or where that cannot be known now.
    async fn ended(&self, question: &Question) -> Option<String>;
    /// Returns a check of values for a request for input; they are checked again when they are given.
    fn checker(&self) -> Box<InputCheck>;
    /// Answers it.
    async fn answer(&self, question: &Question, verdict: Verdict) -> Result<(), Error>;
}

/// An approval in the store.
pub struct StoredApproval {
    app: App,
    approval: Approval,
    by: String,
}

impl StoredApproval {
    /// An approval that this person answers.
    pub fn new(app: &App, approval: Approval, by: String) -> Self {
        Self { app: app.clone(), approval, by }
    }

    /// The question.
    pub fn question(&self) -> Question {
        Question::from(&self.approval)
    }
}

#[async_trait(?Send)]
impl AskedFor for StoredApproval {
    fn look_after(&self) -> Duration {
        LOOKED_AFTER
    }

    async fn ended(&self, _: &Question) -> Option<String> {
        let found = self.app.store().approval(&self.approval.request.tenant, self.approval.id).await.ok()?;
        how_ended(found.as_ref(), SystemClock.now())
    }

    fn checker(&self) -> Box<InputCheck> {
        let (app, approval) = (self.app.clone(), self.approval.clone());
        Box::new(move |values| {
            let given = InputValues { values: values.clone(), allow_secrets: false };
            app.input_values(&approval, given).map(drop).map_err(|error| error.message().to_owned())
        })
    }

    async fn answer(&self, _: &Question, verdict: Verdict) -> Result<(), Error> {
        self.app.answer_found(&self.approval, verdict, &self.by).await.map(drop)
    }
}

/// Passes the approvals that calls request on to a front end.
pub struct RequestedApprovals(mpsc::UnboundedSender<Approval>);

impl RequestedApprovals {
    /// A listener for calls, and the approvals that it hears of.
    pub fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<Approval>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Arc::new(Self(sender)), receiver)
    }
}

impl Listener for RequestedApprovals {
    fn hear(&self, event: Event) {
        if let What::ApprovalRequested { approval } = event.what {
            // Nobody listens once the call is over, and then there is nothing to ask.
            let _ = self.0.send(*approval);
        }
    }
}

/// Advice for a call that was refused because nobody could be asked.
pub const ASK_ELSEWHERE: &str = "  try: run it at a terminal, where you are asked; or add `--wait`, and answer from \
                                 another terminal: `clawsmith approvals list`, then `clawsmith approvals approve ID`";

/// Returns whether a call was refused because nobody could be asked.
pub fn is_unasked(reason: &str) -> bool {
    reason.contains("nobody can be asked")
}

/// The state of an approval at a time: one whose time is over has expired, though nobody was there to close it.
pub fn approval_state(approval: &Approval, now: UnixMillis) -> ApprovalState {
    match approval.state {
        ApprovalState::Pending | ApprovalState::Approved if approval.request.expires <= now => {
            ApprovalState::Expired
        }
        state => state,
    }
}

/// Says how an approval ended; `None` while it waits.
pub fn how_ended(found: Option<&Approval>, now: UnixMillis) -> Option<String> {
    let Some(Approval { request, state, answered_by, .. }) = found else {
        return Some("the approval was withdrawn".to_owned());
    };
    let by = answered_by.as_deref().unwrap_or("somebody");
    Some(match state {
        // The asking program closes it, if it is still there.
        ApprovalState::Pending if now < request.expires => return None,
        ApprovalState::Approved | ApprovalState::Used => format!("answered elsewhere: {by} approved"),
        ApprovalState::Denied => format!("answered elsewhere: {by} denied"),
        ApprovalState::Expired if answered_by.is_some() => {
            format!("answered elsewhere: {by} approved, but the approval was not used in time")
        }
        ApprovalState::Pending | ApprovalState::Expired => {
            let waited = request.expires.since(request.asked).as_secs();
            format!("the approval expired: nobody answered within {waited} s")
        }
        ApprovalState::Cancelled => "the approval was withdrawn: the call was given up".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use claw_core::store::NewApproval;
    use claw_core::tool::{Digest, Effect};
    use claw_core::{AgentId, SessionKey, TenantId};

    use super::*;

    #[test]
    fn says_how_an_approval_ended_without_an_answer_here() {
        let asked = UnixMillis(1_000);
        let mut approval = Approval {
            id: ApprovalId::new(),
            request: NewApproval {
                tenant: TenantId::main(),
                session: SessionKey::new("cli:me").unwrap(),
                agent: AgentId::new("default").unwrap(),
                user: None,
                call: CallId::new(),
                run: None,
                digest: Digest::of_bytes(b""),
                tool: ToolName::literal("exec"),
                effects: Effects::of(&[Effect::Execute]),
                summary: "run".to_owned(),
                reason: "`approvals.effects.execute` says ask".to_owned(),
                asked,
                expires: asked.plus(Duration::from_secs(120)),
                remember: None,
                directories: Vec::new(),
                input: None,
            },
            state: ApprovalState::Pending,
            answered_by: None,
            reason: None,
        };
        let (early, late) = (UnixMillis(2_000), UnixMillis(500_000));
        assert_eq!(how_ended(Some(&approval), early), None);
        // The asking program may be gone: nobody closes it then.
        let expired = "the approval expired: nobody answered within 120 s";
        assert_eq!(how_ended(Some(&approval), late).as_deref(), Some(expired));
        assert_eq!(how_ended(None, early).as_deref(), Some("the approval was withdrawn"));
        let mut said = |state, by: Option<&str>| {
            approval.state = state;
            approval.answered_by = by.map(str::to_owned);
            how_ended(Some(&approval), early).unwrap()
        };
        assert_eq!(said(ApprovalState::Expired, None), expired);
        assert_eq!(said(ApprovalState::Used, Some("ann")), "answered elsewhere: ann approved");
        assert_eq!(said(ApprovalState::Denied, Some("ann")), "answered elsewhere: ann denied");
        assert_eq!(said(ApprovalState::Cancelled, None), "the approval was withdrawn: the call was given up");
    }
}
