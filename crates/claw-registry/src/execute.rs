//! The road: every call takes these steps, in this order, and nothing else runs a tool.
//!
//! 1. [`find`] the tool  2. [`Trip::authorise`] the caller  3. [`Executor::limit`] the rate
//! 4. [`Trip::validate`] the arguments  5. [`Trip::judge`] what it would do, asking a person if need be
//! 6. [`Trip::record`] the intent  7. [`Trip::run`] it  8. [`Trip::finish`]: scrub, cap, record the outcome
//!
//! Nothing outside changes before step 6 is done, so a call that was refused, or whose program died while it
//! waited for an answer, can be repeated.

mod abandoned;
mod bounded;
mod judge;
mod outside;
mod programs;
mod remembered;
mod shown;
mod skills;
pub(crate) mod summary;
mod telling;

use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use claw_core::event::What;
use claw_core::nearest::nearest;
use claw_core::port::{ActiveSkills, Root};
use claw_core::store::{Approval, CallContext, EntryEvent, Outcome, Record, StoreError};
use claw_core::tool::{
    Ask, Call, CallParts, Caller, Cost, Effect, Effects, Need, Output, Progress, Secrets, ToolError,
};
use claw_core::{CallId, JobId, RuleId, ToolName};
use claw_policy::approval::{Judgement, Narrowing};
use claw_policy::pipeline::Subject;
use claw_schema::validate::{self, Checked};
use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::abandoned::Abandoned;
use self::bounded::{Bounds, bounded};
pub use self::bounded::{Paused, TimeLimit};
use self::judge::Judged;
use crate::guard::{self, Grant, Site};
use crate::offer::{Offered, State};
use crate::registry::Built;
use crate::reply::{CallError, Refusal, Reply, Step};
use crate::scrub::CallScrubber;
use crate::{Executor, Offer, output};

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
    fn discard(self) {
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
    /// The call does not wait: it ends as [`CallError::Waiting`] until the approval is answered. Somebody
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

    /// The model's id of the call.
    #[must_use]
    pub fn with_model_id(mut self, id: impl Into<SmolStr>) -> Self {
        self.model_id = Some(id.into());
        self
    }

    /// The arguments as the model wrote them, in place of those that were given.
    #[must_use]
    pub fn with_text(mut self, args: impl Into<String>) -> Self {
        self.args = Arguments::Text(args.into());
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

    /// How long the tool may run.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How the call gets the approval that it may need.
    #[must_use]
    pub const fn asking(mut self, asking: Asking) -> Self {
        self.asking = asking;
        self
    }
}

/// A call that has run.
struct Ran {
    result: Result<Output, ToolError>,
    secrets: Secrets,
    grant: Arc<Grant>,
    abandoned: Abandoned,
    took: Duration,
}

impl Executor {
    /// Executes one call.
    pub async fn execute(&self, offer: &Offer, mut request: Request) -> Reply {
        let call = request.call;
        let scrubber = self.0.scrubbers.for_tenant(&offer.caller().tenant);
        let args = std::mem::replace(&mut request.args, Arguments::Json(Value::Null));
        if let Some(refusal) = secret_name(offer.caller(), &scrubber) {
            args.discard();
            // No entry is written: it would hold the name.
            let (tool, outcome) = (output::name(&request.tool, &scrubber), Err(CallError::Refused(refusal)));
            return Reply {
                call,
                tool,
                outcome,
                notes: Vec::new(),
                took: Duration::ZERO,
                effects: Effects::NONE,
            };
        }
        let mut name = request.tool.clone();
        let mut notes = Vec::new();
        let end = match self.set_out(offer, request, &mut name, &scrubber) {
            Ok(trip) => trip.go(args, &scrubber, &mut notes).await,
            Err(refusal) => {
                args.discard();
                Err(refusal)
            }
        };
        let tool = if offer.find(&name).is_some() { name } else { output::name(&name, &scrubber) };
        let (outcome, took, effects) = match end {
            Ok((outcome, took, effects)) => (outcome.map_err(CallError::Failed), took, effects),
            Err(Refusal { waiting: Some(waiting), .. }) => {
                (Err(CallError::Waiting(*waiting)), Duration::ZERO, Effects::NONE)
            }
            Err(refusal) => {
                let refusal = output::refusal(refusal, &scrubber);
                self.note_refusal(offer, call, &tool, &refusal).await;
                (Err(CallError::Refused(refusal)), Duration::ZERO, Effects::NONE)
            }
        };
        Reply { call, tool, outcome, notes, took, effects }
    }

    /// Tells what a call would do and whether it may, as the road would decide it now: steps 1 to 5, without
    /// asking anybody. Nothing is recorded and nothing runs, but it counts in the rate limit.
    pub async fn rehearse(&self, offer: &Offer, mut request: Request) -> Result<Rehearsal, Refusal> {
        let scrubber = self.0.scrubbers.for_tenant(&offer.caller().tenant);
        let args = std::mem::replace(&mut request.args, Arguments::Json(Value::Null));
        let mut name = request.tool.clone();
        let rehearsed = match self.set_out(offer, request, &mut name, &scrubber) {
            Ok(trip) => trip.rehearse(args, &scrubber).await,
            Err(refusal) => {
                args.discard();
                Err(refusal)
            }
        };
        rehearsed.map_err(|refusal| output::refusal(refusal, &scrubber))
    }

    /// Finds the tool; requests for unknown tools count in the rate limit too.
    fn set_out<'a>(
        &'a self,
        offer: &'a Offer,
        request: Request,
        name: &mut String,
        scrubber: &CallScrubber,
    ) -> Result<Trip<'a>, Refusal> {
        match find(offer, name, scrubber) {
            Ok((tool, built)) => {
                tool.entry.meta.name.as_str().clone_into(name);
                Ok(Trip {
                    executor: self,
                    offer,
                    tool,
                    built,
                    request,
                    skills: skills::none(),
                    granted: Vec::new(),
                    asked: Vec::new(),
                })
            }
            Err(refusal) => {
                self.limit(offer, Cost::Light)?;
                Err(refusal)
            }
        }
    }

    fn limit(&self, offer: &Offer, cost: Cost) -> Result<(), Refusal> {
        let caller = offer.caller();
        let now = offer.0.registry.world().clock.now();
        let limiter = self.0.limiter.load();
        let of_session = limiter.check(&(&caller.tenant, &caller.session), cost, now);
        let of_user = || limiter.check_user(&(&caller.tenant, &caller.user), cost, now);
        of_session.and_then(|()| of_user()).map_err(|limited| Refusal {
            retry_after: Some(limited.retry_after),
            ..Refusal::at(Step::Limit, limited.to_string())
        })
    }

    /// Records a refusal and tells the listener.
    async fn note_refusal(&self, offer: &Offer, call: CallId, tool: &str, refusal: &Refusal) {
        let (step, reason) = (refusal.step.name(), refusal.reason.clone());
        let setting = refusal.setting.clone();
        let event = EntryEvent::Refused { step: step.to_owned(), reason: reason.clone() };
        if let Err(error) = self.0.store.refuse(self.line(offer, call, tool, event)).await {
            tracing::error!(%error, "a refusal could not be written");
        }
        self.emit(offer.caller(), call, || What::CallRefused {
            tool: tool.to_owned(),
            step,
            reason,
            setting,
        });
    }

    pub(crate) fn line(&self, offer: &Offer, call: CallId, tool: &str, event: EntryEvent) -> Record {
        let caller = offer.caller();
        let decides = !matches!(event, EntryEvent::Outcome { .. });
        Record {
            context: decides.then(|| Box::new(CallContext::from(caller.as_ref()))),
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

/// Refuses a caller whose names hold a known secret: the ledger and events hold names as they are.
fn secret_name(caller: &Caller, scrubber: &CallScrubber) -> Option<Refusal> {
    let user = caller.user.as_ref().map_or("", |user| user.as_str());
    let names = [("session", caller.session.as_str()), ("agent", caller.agent.as_str()), ("user", user)];
    // A scrubber that cannot decide withholds the result, and says so.
    let holds = |(_, name): &(&str, &str)| !scrubber.withholds() && scrubber.knows(name);
    let (what, _) = names.into_iter().find(holds)?;
    let reason = format!("the name of the {what} holds a secret, and names are recorded as they are");
    Some(Refusal::at(Step::Record, reason).try_instead("use another name"))
}

/// Step 1: finds the tool, or suggests the nearest name.
fn find<'a>(
    offer: &'a Offer,
    name: &str,
    scrubber: &CallScrubber,
) -> Result<(&'a Offered, Arc<Built>), Refusal> {
    let Some(tool) = offer.find(name) else { return Err(unknown(offer, name, scrubber)) };
    let unavailable = |why: claw_core::tool::Unavailable| {
        let reason = format!("`{}` is unavailable: {why}", tool.entry.meta.name);
        Refusal::at(Step::Find, reason)
    };
    let built = offer.built(tool).map_err(unavailable)?;
    built.validator().map_err(unavailable)?;
    Ok((tool, built))
}

fn unknown(offer: &Offer, name: &str, scrubber: &CallScrubber) -> Refusal {
    let shown = output::name(name, scrubber);
    let named = |meta: &claw_core::tool::Meta| meta.name.as_str() == name || meta.aliases.contains(name);
    if let Some((meta, why)) = offer.unavailable().into_iter().find(|(meta, _)| named(meta)) {
        return Refusal::at(Step::Find, format!("`{}` is unavailable: {why}", meta.name));
    }
    if offer.0.registry.has(name) {
        let refusal =
            Refusal::at(Step::Authorise, format!("`{shown}` is not among the tools that are offered here"));
        return refusal.try_instead("use one of those that are");
    }
    let refusal = Refusal::at(Step::Find, format!("there is no tool called `{shown}`"));
    match nearest(name, offer.names().iter().map(ToolName::as_str)) {
        Some(near) => refusal.try_instead(format!("did you mean `{near}`?")),
        None => refusal.try_instead("use one of the tools that are offered"),
    }
}

/// The text in place of a result that cannot be scrubbed.
const WITHHELD: &str = "what the call gave is withheld: a credential it ran with is too short to be told from \
                        ordinary text; a person has to give it a longer one";

/// A call in execution, once its tool is found.
struct Trip<'a> {
    executor: &'a Executor,
    offer: &'a Offer,
    tool: &'a Offered,
    built: Arc<Built>,
    request: Request,
    /// The skills in use.
    skills: Arc<ActiveSkills>,
    /// Directories outside the workspace that remembered rules grant.
    granted: Vec<(RuleId, Root)>,
    /// Directories outside the workspace that a person is asked about, or has granted to this call.
    asked: Vec<Root>,
}

/// A tool that the caller may use now.
struct Authorised {
    /// The tool's effects that the policy allows.
    left: Effects,
    /// The tool as registered now.
    built: Arc<Built>,
}

type Ended = (Result<Output, ToolError>, Duration, Effects);

/// Effects and plan of a call, and the verdict on it.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rehearsal {
    /// The verdict.
    pub verdict: RehearsedVerdict,
    /// The rule that asks or denies, and why; `None` if the call may run.
    pub reason: Option<String>,
    /// Advice, if the call is denied.
    pub advice: Option<String>,
    /// The setting by which a person would allow a denied call; `None` where no setting does.
    pub setting: Option<String>,
    /// Effects of the call.
    pub effects: Effects,
    /// The plan: commands, programs, files, hosts; scrubbed.
    pub plan: Value,
    /// Repairs of the arguments, for the model.
    pub notes: Vec<String>,
}

/// The verdict on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RehearsedVerdict {
    /// It may run.
    Allow,
    /// A person decides.
    Ask,
    /// It may not run.
    Deny,
}

impl Trip<'_> {
    /// Steps 2 to 5, without asking anybody.
    async fn rehearse(mut self, args: Arguments, scrubber: &CallScrubber) -> Result<Rehearsal, Refusal> {
        let allowed = match self.take_skills().await {
            Ok(()) => self.authorise().await,
            Err(refusal) => Err(refusal),
        };
        let allowed = allowed.and_then(|allowed| {
            self.executor.limit(self.offer, self.tool.entry.meta.cost)?;
            Ok(allowed)
        });
        let Authorised { left, built } = match allowed {
            Ok(allowed) => allowed,
            Err(refusal) => {
                args.discard();
                return Err(refusal);
            }
        };
        self.built = built;
        let Checked { args, notes } = self.validate(args, scrubber)?;
        let notes = notes.iter().map(|note| output::note(note, scrubber)).collect();
        let (judged, judgement) = self.weigh(&args, left).await?;
        let (verdict, reason, advice, setting) = match judgement {
            Judgement::Allow => (RehearsedVerdict::Allow, None, None, None),
            Judgement::Ask { reason } => (RehearsedVerdict::Ask, Some(reason), None, None),
            Judgement::Deny { reason, advice, setting } => {
                (RehearsedVerdict::Deny, Some(reason), advice, setting)
            }
        };
        let scrubbed = |text: String| scrubber.text(&text);
        let plan = scrubber.json(&serde_json::to_value(&judged.plan).unwrap_or_default());
        let (reason, advice, setting) = (reason.map(scrubbed), advice.map(scrubbed), setting.map(scrubbed));
        Ok(Rehearsal { verdict, reason, advice, setting, effects: judged.effects, plan, notes })
    }

    /// Steps 2 to 8.
    async fn go(
        mut self,
        args: Arguments,
        scrubber: &CallScrubber,
        notes: &mut Vec<String>,
    ) -> Result<Ended, Refusal> {
        let allowed = match self.take_skills().await {
            Ok(()) => self.authorise().await,
            Err(refusal) => Err(refusal),
        };
        let allowed = allowed.and_then(|allowed| {
            self.executor.limit(self.offer, self.tool.entry.meta.cost)?;
            Ok(allowed)
        });
        let left = match allowed {
            Ok(Authorised { left, built }) => {
                self.built = built;
                left
            }
            Err(refusal) => {
                args.discard();
                return Err(refusal);
            }
        };
        let Checked { args, notes: repairs } = self.validate(args, scrubber)?;
        notes.extend(repairs.iter().map(|note| output::note(note, scrubber)));
        let judged = self.judge(&args, left, scrubber).await?;
        self.record(&judged, &args, scrubber).await?;
        let effects = self.shown_effects(&judged);
        let ran = self.run(judged, args).await;
        let (result, took) = self.finish(ran, notes).await;
        Ok((result, took, effects))
    }

    /// The effects that the result can come from: those of the plan, and the network where a command of this call,
    /// or an earlier one whose output is shown, may have reached it.
    fn shown_effects(&self, judged: &Judged) -> Effects {
        let runs = judged.analysis.has_commands();
        let starts = judged.plan.asks.iter().any(|ask| matches!(ask, Ask::Script(_)));
        let shows_earlier = self.tool.entry.meta.needs.contains(&Need::Processes) && !starts;
        let is_open = runs && (judged.analysis.network || !judged.place.facts.sandboxed);
        match shows_earlier || is_open {
            true => judged.effects.and(Effects::of(&[Effect::Network])),
            false => judged.effects,
        }
    }

    /// Step 2: checks that the tool is in the offer and in the current decision, and which effects are left.
    ///
    /// A tool that was registered again with the same definition is the same tool, and the call goes to the
    /// one registered now.
    async fn authorise(&self) -> Result<Authorised, Refusal> {
        let meta = &self.tool.entry.meta;
        let name = &meta.name;
        let refuse = |reason: String| Refusal::at(Step::Authorise, reason);
        match self.tool.state() {
            State::Deferred => {
                let refusal = refuse(format!("`{name}` has not been looked up yet"));
                return Err(refusal.try_instead("find it with `tool_search` first, which makes it callable"));
            }
            State::Dormant => {
                let when = if meta.needs.contains(&Need::Catalogue) {
                    "it is there when tools were left out to save tokens"
                } else {
                    "it is there when a result was too long to be sent whole"
                };
                return Err(refuse(format!("there is nothing for `{name}` to do yet")).try_instead(when));
            }
            State::Listed | State::Withdrawn => {}
        }
        self.check_skill()?;
        let registry = self.executor.registry_for(self.offer.caller()).await;
        let unchanged = self.offer.0.made_from == self.executor.state(&registry);
        if unchanged && self.tool.state() == State::Listed {
            return Ok(Authorised { left: self.tool.effects, built: Arc::clone(&self.built) });
        }
        let replaced = || {
            let refusal = refuse(format!("`{name}` has been removed or replaced"));
            refusal.try_instead("look at the tools of the next turn")
        };
        let unavailable = |why: String| refuse(format!("`{name}` is unavailable: {why}"));
        let gone = || match registry.source_failure(&self.tool.entry) {
            Some(why) => unavailable(why),
            None => replaced(),
        };
        let now = registry.named(name.as_str()).ok_or_else(gone)?;
        if let Some(why) = registry.lacking(&now) {
            return Err(unavailable(why));
        }
        let built = self.offer.successor(self.tool, &now).map_err(|why| unavailable(why.0))?;
        if built.definition() != self.built.definition() {
            return Err(replaced());
        }
        let subject = Subject::from(self.offer.caller().as_ref());
        let verdict = self.executor.policy().judge(&registry.tool_set(), &subject, meta);
        if !verdict.allowed {
            let refusal = refuse(format!("`{name}` is not allowed here: {}", verdict.trace));
            let setting = format!("the rule that takes `{name}` away: `clawsmith policy explain` names it");
            return Err(Refusal { setting: Some(setting), ..refusal.try_instead("use another tool") });
        }
        Ok(Authorised { left: verdict.effects, built })
    }

    /// Step 4: validates the arguments. (Step 3, the rate limit, is the executor's.)
    fn validate(&self, args: Arguments, scrubber: &CallScrubber) -> Result<Checked, Refusal> {
        let limit = self.executor.0.limits.argument_bytes;
        let args = match args {
            Arguments::Json(args) => match validate::measure(&args, limit) {
                Ok(()) => Ok(args),
                Err(error) => {
                    validate::dismantle(args);
                    Err(error)
                }
            },
            Arguments::Text(text) => validate::parse(&text, limit),
        };
        let validator = self.built.validator().map_err(|why| Refusal::at(Step::Validate, why.0))?;
        let mut checked = args.and_then(|args| validator.check(args, &|args| scrubber.json(args)));
        if let Ok(checked) = &mut checked {
            shown::translate(self.offer.caller(), checked);
        }
        checked.map_err(|error| {
            let ToolError { message, advice, setting, details, .. } = error.into();
            Refusal { advice, setting, details, ..Refusal::at(Step::Validate, message) }
        })
    }

    /// Step 6: records the intent. A call id that was begun is never run again.
    async fn record(&self, judged: &Judged, args: &Value, scrubber: &CallScrubber) -> Result<(), Refusal> {
        if self.request.cancel.is_cancelled() {
            return Err(Refusal::at(Step::Record, "the call was cancelled before it began"));
        }
        let intent = EntryEvent::Intent {
            digest: judged.digest,
            effects: judged.effects,
            args: output::ledger_args(args, scrubber),
            approval: judged.approval,
        };
        self.executor.0.store.begin_call(self.line(intent)).await.map_err(|error| match error {
            StoreError::AlreadyBegun { .. } | StoreError::ApprovalState { .. } => {
                Refusal::at(Step::Record, error.to_string())
            }
            error @ StoreError::Damaged { .. } => {
                tracing::error!(%error, "the ledger is damaged");
                Refusal::at(Step::Record, format!("the call cannot be recorded, so it is not run: {error}"))
                    .try_instead("somebody has to look at the ledger (`clawsmith ledger verify`)")
            }
            error => {
                tracing::error!(%error, "an intent could not be written");
                Refusal::at(Step::Record, "the call cannot be recorded right now, so it is not run")
                    .try_instead("try again later")
            }
        })
    }

    /// Step 7: runs the tool, over guarded ports and within its time limit; a panic is an error.
    async fn run(&self, judged: Judged, args: Value) -> Ran {
        let meta = &self.tool.entry.meta;
        let (secrets, settings) = (Secrets::default(), judged.analysis.prints_settings());
        let cancel = self.request.cancel.child_token();
        let abandoned = Abandoned::watch(self.executor, self.offer, (self.request.call, meta), &cancel);
        let (progress, tail) =
            telling::scrubbed((self.executor, settings), self.offer, &self.request, &secrets);
        let Bounds { limit, grace } = self.bounds();
        let time = TimeLimit::new(limit);
        let grant = Arc::new(Grant {
            logins: programs::logins(&judged),
            settings,
            access: self.access(&judged.analysis),
            writes: judged.effects.has(Effect::Write),
            reads_only: self.with_approvals(claw_policy::approval::ApprovalConfig::denies_writing),
            asking: self.request.asking,
            narrowing: self.request.narrowing.clone(),
            inputs: self.request.inputs.clone(),
            time: time.clone(),
            plan: judged.plan,
            sights: judged.sights,
            effects: judged.left,
            scope: Arc::new(self.scope(&judged.place)),
            network: judged.analysis.network,
            cancel: cancel.clone(),
            progress: progress.clone(),
            secrets: secrets.clone(),
            run: self.request.run,
            changed: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let (executor, offer, call) = (self.executor, self.offer, self.request.call);
        let ports = guard::ports(&Site { executor, offer, call, meta, grant: &grant });
        let call = Call::new(CallParts {
            id: call,
            model_id: self.request.model_id.clone(),
            caller: Arc::clone(self.offer.caller()),
            facts: Arc::clone(&judged.place.facts),
            cancel: cancel.clone(),
            progress,
            ports,
        });
        self.emit(|| What::CallStarted { tool: meta.name.clone() });
        let begun = Instant::now();
        let work = async { judged.built.tool.run_erased(&call, args).await };
        let result = bounded(AssertUnwindSafe(work).catch_unwind(), (&time, grace), &cancel).await;
        let took = begun.elapsed();
        tail.end();
        Ran { result, secrets, grant, abandoned, took }
    }

    /// Step 8: scrubs, caps, records the outcome and tells the listener.
    async fn finish(&self, ran: Ran, notes: &mut Vec<String>) -> (Result<Output, ToolError>, Duration) {
        let (executor, call) = (self.executor, self.request.call);
        let tool = &self.tool.entry.meta.name;
        let goes_on = ran.result.as_ref().is_ok_and(|output| output.pending.is_some());
        if !goes_on {
            ran.grant.revoke();
        }
        let tenant = &self.offer.caller().tenant;
        let scrubber = executor.0.scrubbers.for_call(tenant, &ran.secrets).for_settings(ran.grant.settings);
        if scrubber.withholds() {
            notes.push(WITHHELD.into());
        }
        // The tool may have written its secrets somewhere, for a later call to read.
        for value in ran.secrets.reveal() {
            // A value too short to be scrubbed has already withheld the result of this call.
            let _ = executor.0.scrubbers.add_for(tenant, &value);
        }
        if let Err(error) = &ran.result {
            let cause = scrubber.text(&error.for_log());
            tracing::debug!(%tool, %call, error = cause, "a call failed");
        }
        let outcome = if ran.result.is_ok() { Outcome::Done } else { Outcome::Failed };
        let micros = u64::try_from(ran.took.as_micros()).unwrap_or(u64::MAX);
        let mut abandoned = ran.abandoned;
        abandoned.ended(outcome, micros);
        let capped = output::finish(executor, self.offer, call, ran.result, &scrubber).await;
        let (bytes, error) = (capped.bytes, capped.ledger_error);
        let changes = ran.grant.changed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let line = self.line(EntryEvent::Outcome { outcome, micros, bytes, error, changes });
        if let Err(error) = executor.0.store.finish_call(line).await {
            tracing::error!(%error, %call, "an outcome could not be written");
            let note = "the outcome of this call could not be recorded; the ledger shows it as unknown";
            notes.push(note.into());
        }
        abandoned.arrived();
        self.emit(|| What::CallFinished { tool: tool.clone(), outcome, micros });
        tracing::debug!(%tool, %call, micros, %outcome, "a call ended");
        (capped.result, ran.took)
    }

    fn bounds(&self) -> Bounds {
        let own = self.tool.entry.meta.timeout_secs.map(|seconds| Duration::from_secs(seconds.into()));
        let limits = &self.executor.0.limits;
        let limit = self.request.timeout.or(own).unwrap_or(limits.timeout);
        let limit = self.request.within.map_or(limit, |left| limit.min(left));
        Bounds { limit, grace: limits.grace }
    }

    fn line(&self, event: EntryEvent) -> Record {
        let name = self.tool.entry.meta.name.as_str();
        self.executor.line(self.offer, self.request.call, name, event)
    }

    fn emit(&self, what: impl FnOnce() -> What) {
        self.executor.emit(self.offer.caller(), self.request.call, what);
    }
}
