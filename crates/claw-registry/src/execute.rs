//! The road: every call takes these steps, in this order, and nothing else runs a tool.
//!
//! 1. [`find`] the tool  2. [`authorise`] the caller  3. [`limit`] the rate  4. [`validate`] the arguments
//! 5. [`judge`] what it would do, asking a person if need be  6. [`record`] the intent  7. [`run`] it
//! 8. [`finish`]: scrub, cap, record the outcome
//!
//! Nothing outside happens before step 6 is done, so a call that was turned away, or whose program died
//! while it waited for an answer, can be made again.

mod abandoned;
mod telling;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use claw_core::event::What;
use claw_core::store::{EntryEvent, NewApproval, Outcome, Record, StoreError};
use claw_core::tool::{
    Call, CallParts, Digest, Effects, ErrorKind, Facts, Output, Plan, Progress, Secrets, Sight, Target,
    ToolError,
};
use claw_core::{ApprovalId, CallId};
use claw_policy::approval::{self as policy, Circumstances, Judgement};
use claw_policy::nearest::nearest;
use claw_policy::pipeline::Subject;
use futures_util::FutureExt as _;
use serde_json::Value;
use smol_str::SmolStr;
use tokio_util::sync::CancellationToken;

use self::abandoned::Abandoned;
use crate::guard::{self, Grant};
use crate::offer::{Offered, State};
use crate::registry::Built;
use crate::reply::{CallError, Refusal, Reply, Step};
use crate::validate::Checked;
use crate::{Executor, Offer, approval, output, validate};

/// A call that someone wants to make.
#[derive(Debug, Clone)]
pub struct Request {
    /// The name the model used.
    pub tool: String,
    /// The arguments.
    pub args: Arguments,
    /// Our id of the call. The same id is given again to attach to a question put before a restart.
    pub call: CallId,
    /// The model's id of it, kept beside ours.
    pub model_id: Option<SmolStr>,
    /// Rings when the caller gives up.
    pub cancel: CancellationToken,
    /// Who hears how far the tool is.
    pub progress: Progress,
    /// How long the tool may run; the tool's or the deployment's limit where none is given.
    pub timeout: Option<Duration>,
    /// Whether a person can be asked.
    pub asking: Asking,
}

/// Arguments as a front end has them.
#[derive(Debug, Clone)]
pub enum Arguments {
    /// Read already.
    Json(Value),
    /// As the model wrote them.
    Text(String),
}

/// Whether a person can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Asking {
    /// Someone watches the questions.
    #[default]
    Possible,
    /// Nobody does: what would be asked is refused.
    Impossible,
}

impl Request {
    /// A call of `tool` with these arguments and a new id.
    pub fn new(tool: impl Into<String>, args: Value) -> Self {
        Self {
            tool: tool.into(),
            args: Arguments::Json(args),
            call: CallId::new(),
            model_id: None,
            cancel: CancellationToken::new(),
            progress: Progress::silent(),
            timeout: None,
            asking: Asking::default(),
        }
    }
}

/// What the steps before running have established.
struct Judged {
    plan: Plan,
    sights: Vec<Sight>,
    digest: Digest,
    effects: Effects,
    facts: Facts,
    approval: Option<ApprovalId>,
}

impl Executor {
    /// Takes one call down the road.
    pub async fn execute(&self, offer: &Offer, request: Request) -> Reply {
        let call = request.call;
        let mut tool = request.tool.clone();
        let mut notes = Vec::new();
        let (outcome, took) = match self.drive(offer, request, &mut tool, &mut notes).await {
            Ok((outcome, took)) => (outcome.map_err(CallError::Failed), took),
            Err(refusal) => {
                let refusal = self.refuse(offer, call, &tool, refusal).await;
                (Err(CallError::Refused(refusal)), Duration::ZERO)
            }
        };
        Reply { call, tool, outcome, notes, took }
    }

    /// The eight steps.
    async fn drive(
        &self,
        offer: &Offer,
        mut request: Request,
        name: &mut String,
        notes: &mut Vec<String>,
    ) -> Result<(Result<Output, ToolError>, Duration), Refusal> {
        let (tool, built) = find(offer, name)?;
        tool.entry.meta.name.as_str().clone_into(name);
        let left = self.authorise(offer, tool)?;
        self.limit(offer, tool)?;
        let args = std::mem::replace(&mut request.args, Arguments::Json(Value::Null));
        let checked = self.validate(&built, args)?;
        notes.extend(checked.notes);
        let judged = self.judge(offer, tool, &built, (&checked.args, left), &request).await?;
        self.record(offer, &request, name, &judged, &checked.args).await?;
        let ran = self.run(offer, tool, &built, judged, (request, checked.args)).await;
        Ok(self.finish(offer, ran, notes).await)
    }

    /// 2. Is it in the offer, and in today's decision? What is left of its ceiling?
    fn authorise(&self, offer: &Offer, tool: &Offered) -> Result<Effects, Refusal> {
        let meta = &tool.entry.meta;
        let name = &meta.name;
        match tool.state() {
            State::Listed => {}
            State::Deferred => {
                let refusal = Refusal::at(Step::Authorise, format!("`{name}` has not been looked up yet"));
                return Err(refusal.try_instead("find it with `tool_search` first, which makes it callable"));
            }
            State::Dormant => {
                let reason = format!("there is nothing for `{name}` to do yet");
                return Err(Refusal::at(Step::Authorise, reason));
            }
            State::Withdrawn => {}
        }
        let registry = &offer.0.registry;
        if offer.0.made_from == (registry.version(), self.policy_version()) && tool.state() == State::Listed {
            return Ok(tool.effects);
        }
        let there = registry.find(name.as_str()).is_some_and(|now| Arc::ptr_eq(&now, &tool.entry));
        if !there {
            let refusal = Refusal::at(Step::Authorise, format!("`{name}` has been removed or replaced"));
            return Err(refusal.try_instead("look at the tools of the next turn"));
        }
        let verdict =
            self.policy().judge(&registry.tool_set(), &Subject::from(offer.caller().as_ref()), meta);
        if !verdict.allowed {
            let reason = format!("`{name}` is not allowed here: {}", verdict.trace);
            return Err(Refusal::at(Step::Authorise, reason).try_instead("use another tool"));
        }
        Ok(verdict.effects)
    }

    /// 3. Are there too many calls?
    fn limit(&self, offer: &Offer, tool: &Offered) -> Result<(), Refusal> {
        let caller = offer.caller();
        let now = offer.0.registry.world().clock.now();
        let key = (&caller.tenant, &caller.session);
        self.0.limiter.load().check(&key, tool.entry.meta.cost, now).map_err(|limited| Refusal {
            retry_after: Some(limited.retry_after),
            ..Refusal::at(Step::Limit, limited.to_string())
        })
    }

    /// 4. Do the arguments fit?
    fn validate(&self, built: &Built, args: Arguments) -> Result<Checked, Refusal> {
        let args = match args {
            Arguments::Json(args) => args,
            Arguments::Text(text) => {
                validate::Arguments::parse_within(&text, self.0.limits.argument_bytes).map_err(misfit)?
            }
        };
        built.validator.check(args).map_err(misfit)
    }

    /// 5. What would it do, and may it?
    async fn judge(
        &self,
        offer: &Offer,
        tool: &Offered,
        built: &Built,
        (args, left): (&Value, Effects),
        request: &Request,
    ) -> Result<Judged, Refusal> {
        let caller = offer.caller();
        let meta = &tool.entry.meta;
        let facts = caller.facts(meta.name.as_str());
        let plan = catch_unwind(AssertUnwindSafe(|| built.tool.plan(&facts, args)))
            .unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
            .map_err(|error| Refusal { advice: error.advice, ..Refusal::at(Step::Judge, error.message) })?;
        let scope = guard::scope(caller);
        let sights = self.look(offer, &plan, left, request).await?;
        let digest = Digest::of_call(meta.name.as_str(), args, &plan, &sights);
        let config = self.0.approvals.load();
        let circumstances =
            Circumstances { ceiling: meta.effects, left, directory: &facts.directory, scope: &scope };
        let approval = match policy::judge(&config, &plan, &circumstances) {
            Judgement::Allow => None,
            Judgement::Deny { reason } => {
                let refusal = Refusal::at(Step::Judge, format!("this call is not allowed: {reason}"));
                return Err(refusal.try_instead("do it another way"));
            }
            Judgement::Ask { reason } if request.asking == Asking::Impossible => {
                return Err(approval::nobody_to_ask(&reason, request.call));
            }
            Judgement::Ask { reason } => {
                let now = offer.0.registry.world().clock.now();
                let question = NewApproval {
                    tenant: caller.tenant.clone(),
                    session: caller.session.clone(),
                    agent: caller.agent.clone(),
                    user: caller.user.clone(),
                    call: request.call,
                    digest,
                    tool: meta.name.clone(),
                    effects: plan.effects,
                    summary: self.0.scrubbers.for_tenant(&caller.tenant).text(&summary(&plan, args)),
                    reason,
                    asked: now,
                    expires: now.plus(Duration::from_secs(config.wait_secs.into())),
                };
                drop(config);
                Some(approval::ask(self, offer, question, &request.cancel).await?)
            }
        };
        Ok(Judged { plan, sights, digest, effects: left, facts, approval })
    }

    /// Has the ports look at what the plan leads to, so that the answer binds what will really run.
    async fn look(
        &self,
        offer: &Offer,
        plan: &Plan,
        effects: Effects,
        request: &Request,
    ) -> Result<Vec<Sight>, Refusal> {
        let targets = policy::targets(plan);
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        let unseen = |error: ToolError| Refusal {
            advice: error.advice.clone(),
            ..Refusal::at(
                Step::Judge,
                format!("what the call leads to cannot be looked at: {}", error.message),
            )
        };
        let (files, commands): (Vec<_>, Vec<_>) =
            targets.into_iter().partition(|target| matches!(target, Target::File { .. }));
        let mut sights = guard::look_at_files(offer, &files).await.map_err(unseen)?;
        sights.extend(
            guard::look_at_commands(offer, &commands, effects, &request.cancel).await.map_err(unseen)?,
        );
        Ok(sights)
    }

    /// 6. Writes down what is about to happen. A call id that was begun is never run again.
    async fn record(
        &self,
        offer: &Offer,
        request: &Request,
        tool: &str,
        judged: &Judged,
        args: &Value,
    ) -> Result<(), Refusal> {
        if request.cancel.is_cancelled() {
            return Err(Refusal::at(Step::Record, "the call was cancelled before it began"));
        }
        let scrubber = self.0.scrubbers.for_tenant(&offer.caller().tenant);
        let intent = EntryEvent::Intent {
            digest: judged.digest,
            effects: judged.plan.effects,
            args: scrubber.json(args),
            approval: judged.approval,
        };
        let written = self.0.store.begin_call(self.line(offer, request.call, tool, intent)).await;
        written.map_err(|error| match error {
            StoreError::AlreadyBegun { .. } | StoreError::ApprovalState { .. } => {
                Refusal::at(Step::Record, error.to_string())
            }
            error => {
                tracing::error!(%error, "an intent could not be written");
                Refusal::at(Step::Record, "the call cannot be recorded right now, so it is not run")
                    .try_instead("try again later")
            }
        })
    }

    /// 7. Runs it: over guarded ports, for so long, and a panic is an error.
    async fn run(
        &self,
        offer: &Offer,
        tool: &Offered,
        built: &Built,
        judged: Judged,
        (request, args): (Request, Value),
    ) -> Ran {
        let meta = &tool.entry.meta;
        let secrets = Secrets::default();
        let cancel = request.cancel.child_token();
        let (progress, tail) = telling::scrubbed(self, offer, &request, &secrets);
        let grant = Arc::new(Grant {
            plan: judged.plan,
            sights: judged.sights,
            effects: judged.effects,
            scope: guard::scope(offer.caller()),
            cancel: cancel.clone(),
            progress: progress.clone(),
            secrets: secrets.clone(),
        });
        let call = Call::new(CallParts {
            id: request.call,
            model_id: request.model_id,
            caller: Arc::clone(offer.caller()),
            facts: judged.facts,
            cancel: cancel.clone(),
            progress,
            ports: guard::ports(self, offer, &meta.needs, &grant),
        });
        self.emit(offer.caller(), request.call, || What::CallStarted { tool: meta.name.clone() });
        let abandoned = Abandoned::watch(self, offer, request.call, meta.name.as_str(), &cancel);
        let limit = request
            .timeout
            .or(meta.timeout_secs.map(|seconds| Duration::from_secs(seconds.into())))
            .unwrap_or(self.0.limits.timeout);
        let begun = Instant::now();
        let work = AssertUnwindSafe(built.tool.run_erased(&call, args)).catch_unwind();
        let result = bounded(work, limit, self.0.limits.grace, &cancel).await;
        let took = begun.elapsed();
        abandoned.arrived();
        tail.end();
        Ran { call: request.call, tool: meta.name.clone(), result, secrets, took }
    }

    /// 8. Scrubs, caps, writes down how it ended and tells whoever listens.
    async fn finish(
        &self,
        offer: &Offer,
        ran: Ran,
        notes: &mut Vec<String>,
    ) -> (Result<Output, ToolError>, Duration) {
        let caller = offer.caller();
        let scrubber = self.0.scrubbers.for_call(&caller.tenant, &ran.secrets);
        if let Err(error) = &ran.result {
            let cause = scrubber.text(&error.for_log());
            tracing::debug!(tool = %ran.tool, call = %ran.call, error = cause, "a call failed");
        }
        let capped = output::finish(self, offer, ran.call, ran.result, &scrubber).await;
        notes.extend(capped.notes);
        let micros = u64::try_from(ran.took.as_micros()).unwrap_or(u64::MAX);
        let outcome = if capped.result.is_ok() { Outcome::Done } else { Outcome::Failed };
        let error = capped.result.as_ref().err().map(|error| capped.strict.text(&error.message));
        let end = EntryEvent::Outcome { outcome, micros, bytes: capped.bytes, error };
        if let Err(error) = self.0.store.finish_call(self.line(offer, ran.call, ran.tool.as_str(), end)).await
        {
            tracing::error!(%error, call = %ran.call, "an outcome could not be written");
            notes.push(
                "the outcome of this call could not be recorded; the ledger shows it as unknown".into(),
            );
        }
        self.emit(caller, ran.call, || What::CallFinished { tool: ran.tool.clone(), outcome, micros });
        tracing::debug!(tool = %ran.tool, call = %ran.call, micros, %outcome, "a call ended");
        (capped.result, ran.took)
    }

    /// Writes down that a call was turned away, and tells whoever listens.
    async fn refuse(&self, offer: &Offer, call: CallId, tool: &str, refusal: Refusal) -> Refusal {
        let caller = offer.caller();
        let scrubber = self.0.scrubbers.for_tenant(&caller.tenant);
        let reason = scrubber.text(&refusal.reason);
        let advice = refusal.advice.map(|advice| scrubber.text(&advice));
        let tool = scrubber.text(&output::shorten(tool, 80));
        let refusal = Refusal { reason: output::shorten(&reason, 4096), advice, ..refusal };
        let step = refusal.step.name();
        let event = EntryEvent::Refused { step: step.to_owned(), reason: refusal.reason.clone() };
        if let Err(error) = self.0.store.refuse(self.line(offer, call, &tool, event)).await {
            tracing::error!(%error, "a refusal could not be written");
        }
        self.emit(caller, call, || What::CallRefused { tool, step, reason: refusal.reason.clone() });
        refusal
    }

    pub(crate) fn line(&self, offer: &Offer, call: CallId, tool: &str, event: EntryEvent) -> Record {
        let caller = offer.caller();
        Record {
            at: offer.0.registry.world().clock.now(),
            tenant: caller.tenant.clone(),
            session: caller.session.clone(),
            agent: caller.agent.clone(),
            user: caller.user.clone(),
            call,
            tool: tool.to_owned(),
            event,
        }
    }
}

/// A call that has run.
struct Ran {
    call: CallId,
    tool: claw_core::ToolName,
    result: Result<Output, ToolError>,
    secrets: Secrets,
    took: Duration,
}

/// 1. Is there such a tool? If not, which is nearest?
fn find<'a>(offer: &'a Offer, name: &str) -> Result<(&'a Offered, Arc<Built>), Refusal> {
    let Some(tool) = offer.find(name) else { return Err(unknown(offer, name)) };
    let built = offer.built(tool).map_err(|why| {
        let reason = format!("`{}` is unavailable: {why}", tool.entry.meta.name);
        Refusal::at(Step::Find, reason)
    })?;
    Ok((tool, built))
}

fn unknown(offer: &Offer, name: &str) -> Refusal {
    let shown = output::shorten(name, 80);
    if let Some((meta, why)) = offer.unavailable().iter().find(|(meta, _)| answers_to(meta, name)) {
        return Refusal::at(Step::Find, format!("`{}` is unavailable: {why}", meta.name));
    }
    let names = offer.names();
    if offer.0.registry.has(name) {
        let refusal =
            Refusal::at(Step::Authorise, format!("`{shown}` is not among the tools offered to you"));
        return refusal.try_instead("use one of those you were sent");
    }
    let refusal = Refusal::at(Step::Find, format!("there is no tool called `{shown}`"));
    match nearest(name, names.iter().map(claw_core::ToolName::as_str)) {
        Some(near) => refusal.try_instead(format!("did you mean `{near}`?")),
        None => refusal.try_instead("use one of the tools you were sent"),
    }
}

fn answers_to(meta: &claw_core::tool::Meta, name: &str) -> bool {
    meta.name.as_str() == name || meta.aliases.contains(&name)
}

fn misfit(error: validate::ArgsError) -> Refusal {
    Refusal::at(Step::Validate, error.to_string())
}

/// What a person is shown of a call: what it would do, then the arguments.
fn summary(plan: &Plan, args: &Value) -> String {
    use claw_core::tool::Ask;
    let mut lines = Vec::new();
    for ask in &plan.asks {
        lines.push(match ask {
            Ask::Script(script) => format!("run in {}:\n{}", script.directory, script.text),
            Ask::Argv(argv) => format!("run in {}: {:?}", argv.directory, argv.argv),
            Ask::Write { path } => format!("write {path}"),
            Ask::Host { origin } => format!("connect to {origin}"),
            Ask::Opaque => "do something that cannot be told beforehand".to_owned(),
        });
    }
    lines.push(format!("arguments: {args}"));
    lines.join("\n")
}

type Caught = Result<Result<Output, ToolError>, Box<dyn Any + Send>>;

/// Waits for the work, for the caller to give up or for the time to be over. A tool that is told to stop has
/// a moment to clean up; then it is dropped.
async fn bounded(
    work: impl Future<Output = Caught>,
    limit: Duration,
    grace: Duration,
    cancel: &CancellationToken,
) -> Result<Output, ToolError> {
    let mut work = std::pin::pin!(work);
    let mut stopped = tokio::select! {
        biased;
        () = cancel.cancelled() => ToolError::new(ErrorKind::Cancelled, "the call was cancelled"),
        caught = &mut work => return uncaught(caught),
        () = tokio::time::sleep(limit) => {
            let message = format!("the call took longer than {} s and was stopped", limit.as_secs_f64());
            ToolError::new(ErrorKind::TimedOut, message).try_instead("ask for less at once, or allow more time")
        }
    };
    cancel.cancel();
    // Whatever it says now, it was stopped; what it had so far may still help.
    if let Ok(caught) = tokio::time::timeout(grace, work).await {
        let said = match uncaught(caught) {
            Ok(output) => output.model_text(),
            Err(error) => error.message,
        };
        stopped.message.push_str("; at the end it said:\n");
        stopped.message.push_str(&said);
    }
    Err(stopped)
}

fn uncaught(caught: Caught) -> Result<Output, ToolError> {
    caught.unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
}

fn panicked(panic: &(dyn Any + Send)) -> ToolError {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    ToolError::internal(format!("the tool panicked: {text}"))
}
