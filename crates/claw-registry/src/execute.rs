//! The road: every call takes these steps, in this order, and nothing else runs a tool.
//!
//! 1. [`find`] the tool  2. [`Trip::authorise`] the caller  3. [`Executor::limit`] the rate
//! 4. [`Trip::validate`] the arguments  5. [`Trip::judge`] what it would do, asking a person if need be
//! 6. [`Trip::record`] the intent  7. [`Trip::run`] it  8. [`Trip::finish`]: scrub, cap, record the outcome
//!
//! Nothing outside changes before step 6 is done, so a call that was refused, or whose program died while it
//! waited for an answer, can be repeated.

mod abandoned;
mod judge;
mod outside;
mod programs;
mod rehearse;
mod remembered;
mod request;
mod run;
mod scrub_progress;
mod skills;
pub(crate) mod summary;
mod timeout;
mod translate_paths;

use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use claw_core::did_you_mean::nearest;
use claw_core::event::What;
use claw_core::port::{ActiveSkills, Root, Scope};
use claw_core::store::{CallContext, EntryEvent, Outcome, Record, StoreError};
use claw_core::tool::{Ask, Caller, Cost, Effect, Effects, Need, Output, ToolError};
use claw_core::{CallId, RuleId, ToolName};
use claw_policy::pipeline::Subject;
use claw_schema::validate::{self, Checked};
use serde_json::Value;

use self::judge::Judged;
pub use self::rehearse::{Rehearsal, RehearsedVerdict};
pub use self::request::{Arguments, Asking, Request};
use self::run::Ran;
pub use self::timeout::{Paused, TimeLimit};
use self::translate_paths::translate_paths;
use crate::call_spans::CallTrace;
use crate::offer::{Offered, State};
use crate::registry::Built;
use crate::reply::{CallError, Refusal, Reply, Step};
use crate::scrub::CallScrubber;
use crate::{Executor, Offer, output};

impl Executor {
    /// Executes one call.
    pub async fn execute(&self, offer: &Offer, mut request: Request) -> Reply {
        // Before anything is decided: the decisions must be current when the call runs.
        self.wait_for_listener().await;
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
        let traces = self.0.traces.as_ref().filter(|_| request.run.is_none());
        let trace = traces.map(|traces| {
            CallTrace::begin(
                traces,
                offer.0.registry.world().clock.now(),
                &args,
                self.0.limits.argument_bytes,
            )
        });
        let mut name = request.tool.clone();
        let mut notes = Vec::new();
        let mut refused_args = None;
        let end = match self.set_out(offer, request, &mut name, &scrubber) {
            Ok(trip) => {
                trip.go(args, &scrubber, Told { notes: &mut notes, refused_args: &mut refused_args }).await
            }
            Err(refusal) => {
                refused_args = self.refused_args(args, &refusal, &scrubber);
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
                self.note_refusal(offer, call, &tool, (&refusal, refused_args)).await;
                (Err(CallError::Refused(refusal)), Duration::ZERO, Effects::NONE)
            }
        };
        let reply = Reply { call, tool, outcome, notes, took, effects };
        if let Some(trace) = trace {
            trace.end(offer.caller(), &reply, &scrubber);
        }
        reply
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
                    scope: OnceLock::new(),
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
        let limiter = &self.0.limiter;
        let of_session = limiter.check(&(&caller.tenant, &caller.session), cost, now);
        let of_user = || limiter.check_user(&(&caller.tenant, &caller.user), cost, now);
        of_session.and_then(|()| of_user()).map_err(|limited| Refusal {
            retry_after: Some(limited.retry_after),
            ..Refusal::at(Step::Limit, limited.to_string())
        })
    }

    /// Records a refusal and tells the listener.
    async fn note_refusal(
        &self,
        offer: &Offer,
        call: CallId,
        tool: &str,
        (refusal, args): (&Refusal, Option<Value>),
    ) {
        let (step, reason) = (refusal.step.name(), refusal.reason.clone());
        let setting = refusal.setting.clone();
        let event = EntryEvent::Refused { step: step.to_owned(), reason: reason.clone(), args };
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

    /// The arguments that the ledger keeps of a call that step 2 refused. They were not validated: they are dropped at other
    /// steps, and if they are too large, too deep or no JSON.
    fn refused_args(&self, args: Arguments, refusal: &Refusal, scrubber: &CallScrubber) -> Option<Value> {
        let limit = self.0.limits.argument_bytes;
        let args = match args {
            Arguments::Text(text) if refusal.step == Step::Authorise => validate::parse(&text, limit).ok()?,
            Arguments::Json(args)
                if refusal.step == Step::Authorise && validate::measure(&args, limit).is_ok() =>
            {
                args
            }
            args => {
                args.discard();
                return None;
            }
        };
        Some(output::ledger_args(&args, scrubber))
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
const WITHHELD: &str = "the output of this call is withheld: one of its credentials is too short to be told from \
                        ordinary text; a person has to set a longer one";

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
    /// The files that the call may reach; taken where the directories or the rules may have changed.
    scope: OnceLock<Arc<Scope>>,
}

/// A tool that the caller may use now.
struct Authorised {
    /// The tool's effects that the policy allows.
    left: Effects,
    /// The tool as registered now.
    built: Arc<Built>,
}

type Ended = (Result<Output, ToolError>, Duration, Effects);

/// Out-parameters of a call: facts told besides its end.
struct Told<'a> {
    /// For the model.
    notes: &'a mut Vec<String>,
    /// The arguments of a refused call, for the ledger.
    refused_args: &'a mut Option<Value>,
}

impl Trip<'_> {
    /// Steps 2 to 8.
    async fn go(
        mut self,
        args: Arguments,
        scrubber: &CallScrubber,
        Told { notes, refused_args }: Told<'_>,
    ) -> Result<Ended, Refusal> {
        let (Checked { args, notes: repairs }, left) = self.enter(args, scrubber, refused_args).await?;
        notes.extend(repairs.iter().map(|note| output::note(note, scrubber)));
        let judged = self.judge(&args, left, scrubber).await.inspect_err(|refusal| {
            // A call that waits for its approval is not recorded yet.
            *refused_args = refusal.waiting.is_none().then(|| output::ledger_args(&args, scrubber));
        })?;
        self.record(&judged, &args, scrubber).await?;
        let effects = self.shown_effects(&judged);
        let ran = self.run(judged, args).await;
        let (result, took) = self.finish(ran, notes).await;
        Ok((result, took, effects))
    }

    /// Steps 2 to 4: returns the arguments, their repairs, and the effects that are left to the tool.
    async fn enter(
        &mut self,
        args: Arguments,
        scrubber: &CallScrubber,
        refused_args: &mut Option<Value>,
    ) -> Result<(Checked, Effects), Refusal> {
        let allowed = match self.take_skills().await {
            Ok(()) => self.authorise().await,
            Err(refusal) => Err(refusal),
        };
        // A refused call leaves an entry with its arguments, so it counts in the rate limit too.
        let cost = if allowed.is_ok() { self.tool.entry.meta.cost } else { Cost::Light };
        let allowed = self.executor.limit(self.offer, cost).and(allowed);
        let Authorised { left, built } = match allowed {
            Ok(allowed) => allowed,
            Err(refusal) => {
                *refused_args = self.executor.refused_args(args, &refusal, scrubber);
                return Err(refusal);
            }
        };
        self.built = built;
        Ok((self.validate(args, scrubber)?, left))
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
                    "it can be called once tools were left out to save tokens"
                } else {
                    "it can be called once a result was too long to be sent whole"
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
            refusal.try_instead("use the tools that are offered in the next turn")
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
            let setting =
                format!("change the rule that removes `{name}`; `clawsmith policy explain` names it");
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
            translate_paths(self.offer.caller(), checked);
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
                    .try_instead("a person has to check the ledger with `clawsmith ledger verify`")
            }
            error => {
                tracing::error!(%error, "an intent could not be written");
                Refusal::at(Step::Record, "the call cannot be recorded right now, so it is not run")
                    .try_instead("try again later")
            }
        })
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

    fn line(&self, event: EntryEvent) -> Record {
        let name = self.tool.entry.meta.name.as_str();
        self.executor.line(self.offer, self.request.call, name, event)
    }

    fn emit(&self, what: impl FnOnce() -> What) {
        self.executor.emit(self.offer.caller(), self.request.call, what);
    }
}
