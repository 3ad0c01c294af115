//! A tool call that a person makes: through every check, with the result as a person reads it.

use std::sync::Arc;
use std::time::Duration;

use claw_core::CallId;
use claw_core::event::Listener;
use claw_core::tool::{Caller, Progress, ToolError};
use claw_policy::explain::explain;
use claw_policy::pipeline::Subject;
use claw_registry::{Arguments, Asking, CallError, OfferOptions, Refusal, Reply, Request, Step};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::question::{ASK_ELSEWHERE, is_unasked};
use super::{App, Error, Hooks, Kind};

/// A call to be made.
pub struct PersonalCall {
    /// The caller.
    pub caller: Caller,
    /// The tool, or another name it answers to.
    pub tool: String,
    /// The arguments, as text that should be JSON.
    pub args: String,
    /// The timeout; `None` for the tool's own.
    pub timeout: Option<Duration>,
    /// Whether a person can be asked for an approval.
    pub asking: Asking,
    /// Hears of approvals that the call needs.
    pub listener: Arc<dyn Listener>,
    /// Receives output while the call runs.
    pub progress: Progress,
    /// Stops the call.
    pub cancel: CancellationToken,
    /// The grants that a failed call of a custom tool lacked are looked for.
    pub names_grants: bool,
}

/// A call that was made, or refused.
pub struct MadeCall {
    /// The reply, as a model would get it.
    pub reply: Reply,
    /// Why the caller has no such tool; `None` if it has.
    pub lacks_tool: Option<LacksTool>,
    /// The grants that a failed call of a custom tool lacked: `network`, or paths.
    pub lacks_grants: Vec<String>,
}

impl MadeCall {
    /// Says what a person can do about a refusal; the model was told what it can do. `flags` make `policy explain` speak of
    /// the same caller.
    pub fn advice(&self, flags: &str) -> Vec<String> {
        let Err(CallError::Refused(refusal)) = &self.reply.outcome else { return Vec::new() };
        let name = &self.reply.tool;
        let list = || "  try: clawsmith tools list".to_owned();
        match (&self.lacks_tool, refusal.step) {
            (Some(LacksTool::Unknown), _) => vec![list()],
            (Some(LacksTool::NotInBuild), _) => {
                vec![format!("  `{name}` is known but not in this build"), list()]
            }
            (Some(LacksTool::Policy(reason)), _) => {
                vec![format!("  policy: {reason}"), format!("  try: clawsmith policy explain {name}{flags}")]
            }
            (None, Step::Validate) => vec![format!("  try: clawsmith tools show {name}")],
            (None, Step::Judge) if is_unasked(&refusal.reason) => vec![ASK_ELSEWHERE.to_owned()],
            (None, _) => Vec::new(),
        }
    }

    /// Says how the grants are given that a call of a custom tool lacked.
    pub fn grant_advice(&self) -> Vec<String> {
        let advice = |grant: &String| {
            let flag = if grant == "network" { "--network".to_owned() } else { format!("--path {grant}") };
            format!("missing grant: {grant}\n  try: clawsmith tools edit {} {flag}", self.reply.tool)
        };
        self.lacks_grants.iter().map(advice).collect()
    }
}

/// Why a caller does not have a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LacksTool {
    /// There is no such tool.
    Unknown,
    /// The tool is known, but not in this build.
    NotInBuild,
    /// The policy decided so, for this reason.
    Policy(String),
}

impl App {
    /// Makes a call. What fails before the call may run is a refusal.
    pub async fn call_tool(&self, call: PersonalCall) -> Result<MadeCall, Error> {
        let hooks = Hooks { listener: Some(call.listener), owner_answers: true, ..Hooks::default() };
        // The call may take long, and wait for its approval longer.
        let (toolbox, _following) =
            self.followed_toolbox(hooks).await.map_err(|error| match error.kind() {
                Kind::Invalid => error,
                _ => error.refusing(),
            })?;
        let executor = toolbox.executor();
        let token_budget = self.setup().config().limits.tool_tokens.map(|tokens| tokens as usize);
        let options = OfferOptions { token_budget, ..OfferOptions::default() };
        let offer = executor.offer_with(call.caller, options).await;
        let request = Request {
            tool: call.tool,
            args: Arguments::Text(call.args),
            call: CallId::new(),
            model_id: None,
            run: None,
            cancel: call.cancel,
            progress: call.progress,
            timeout: call.timeout,
            within: None,
            asking: call.asking,
            narrowing: None,
            inputs: None,
        };
        let reply = executor.execute(&offer, request).await;
        let lacks_tool = match &reply.outcome {
            Err(CallError::Refused(Refusal { step: Step::Find | Step::Authorise, .. })) => {
                let tools = executor.registry_for(offer.caller()).await.tool_set();
                Some(match tools.find(&reply.tool) {
                    _ if tools.find_absent(&reply.tool).is_some() => LacksTool::NotInBuild,
                    None => LacksTool::Unknown,
                    Some(_) => {
                        let subject = Subject::from(offer.caller().as_ref());
                        let explained = explain(&executor.policy(), &tools, &subject, &reply.tool);
                        LacksTool::Policy(explained.verdict.trace.to_string())
                    }
                })
            }
            _ => None,
        };
        let lacks_grants = match call.names_grants {
            true => self.lacks_grants(offer.caller(), &reply).await?,
            false => Vec::new(),
        };
        Ok(MadeCall { reply, lacks_tool, lacks_grants })
    }

    async fn lacks_grants(&self, caller: &Caller, reply: &Reply) -> Result<Vec<String>, Error> {
        let Ok(output) = &reply.outcome else { return Ok(Vec::new()) };
        let exit = output.details.as_ref().and_then(|details| details["exit"].as_i64());
        let exit = exit.and_then(|exit| i32::try_from(exit).ok());
        self.missing_grants(caller, &reply.tool, exit, &output.model_text()).await
    }
}

/// A reply as JSON, with its status: `done`, `failed`, `refused` or `waiting`.
pub fn reply_json(reply: &Reply) -> Value {
    let mut json = json!({
        "call": reply.call,
        "tool": reply.tool,
        "notes": reply.notes,
        "took_ms": reply.took.as_secs_f64() * 1000.0,
    });
    let (status, key, value) = match &reply.outcome {
        Ok(output) => ("done", "output", json!(output)),
        Err(CallError::Failed(error)) => ("failed", "error", failed(error)),
        Err(CallError::Refused(refusal)) => ("refused", "refusal", refused(refusal)),
        Err(CallError::Waiting(waiting)) => ("waiting", "approval", json!(waiting.approval)),
    };
    json["status"] = json!(status);
    json[key] = value;
    json
}

fn failed(error: &ToolError) -> Value {
    json!({
        "kind": error.kind,
        "message": error.message,
        "advice": error.advice,
        "setting": error.setting,
        "details": error.details,
    })
}

fn refused(refusal: &Refusal) -> Value {
    json!({
        "step": refusal.step,
        "reason": refusal.reason,
        "advice": refusal.advice,
        "setting": refusal.setting,
        "details": refusal.details,
        "retry_after_ms": refusal.retry_after.map(|after| after.as_millis() as u64),
    })
}
