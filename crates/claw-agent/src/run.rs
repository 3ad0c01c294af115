//! One run: history, prompt, answers and calls, until the model stops.
//!
//! The order of steps matters. A message is stored before it is answered, a call before it is made, its
//! result before the model is asked again: after a crash, the next worker finds everything that was done, and
//! every call that may have been.

mod ask_model;
mod cached;
mod ended_commands;
mod fit_context_window;
mod give_up;
mod make_calls;
mod reached_limits;
mod resume;
mod save_memory;
mod summarise;
mod trace;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use claw_core::counted::counted;
use claw_core::message::{Part, Turn, Wanted};
use claw_core::port::{Choice, Fault, Model, Owner, Question, Stop, UnixMillis};
use claw_core::provenance::RunTrace;
use claw_core::store::{
    EndEvent, Finish, Job, JobFilter, JobState, Lease, NewMessage, NewUsage, Parking, Role, RunEnd as End,
    RunEvent, SessionEventBody,
};
use claw_core::tool::{Caller, CallingModel};
use claw_core::{JobId, MessageId, SessionKey, TenantId, UsageId};
use claw_registry::{Offer, OfferOptions};
use tokio_util::sync::CancellationToken;

use self::ask_model::Thought;
use self::cached::Known;
pub(crate) use self::give_up::{GivenUp, report};
use self::trace::Tracing;
use crate::history::results;
use crate::order::json;
use crate::prompt::{self, PromptFacts};
use crate::{Deployment, Finding, History, Loops, Meanwhile, Order, Profile, RunError};

/// The most times that messages are shortened because the model reports them as too long.
const SQUEEZES: u32 = 3;

/// The outcome of an attempt at a run.
pub(crate) enum Went {
    /// The run ended.
    Ended,
    /// The run waits for an approval.
    Parked(Parking),
}

/// The signals to end a run early.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stopping {
    /// Cancelled when the run is to end at once.
    pub(crate) now: CancellationToken,
    lost: Arc<AtomicBool>,
}

impl Stopping {
    /// Marks the lease as lost: the run ends, and stores nothing more.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
        self.now.cancel();
    }

    fn check(&self) -> Result<(), RunError> {
        if self.lost.load(Ordering::Acquire) { Err(RunError::Lost) } else { Ok(()) }
    }
}

/// A run in progress.
pub(crate) struct Run<'a> {
    deployment: &'a Deployment,
    lease: &'a Lease,
    stopping: Stopping,
    order: Order,
    /// The first run of its tree.
    root: JobId,
    caller: Caller,
    profile: Profile,
    model: Arc<dyn Model>,
    history: History,
    began: UnixMillis,
    accepted: UnixMillis,
    loops: Loops,
    /// The reason why the next answer is the last one; `None` if it is not.
    over: Option<String>,
    /// The number of times that the messages were too long for the model.
    squeezed: u32,
    /// Background commands whose end was reported.
    told: ended_commands::ReportedEnds,
    known: Known,
    /// The store knows that the session has read untrusted text.
    is_marked: bool,
    /// The place of its spans; `None` if no traces are wanted.
    tracing: Option<Tracing>,
}

impl<'a> Run<'a> {
    /// Reads the order of a job and the history so far.
    pub(crate) async fn read(
        deployment: &'a Deployment,
        job: &Job,
        lease: &'a Lease,
        stopping: Stopping,
    ) -> Result<Self, RunError> {
        let (order, session) = Order::of(job)?;
        let tenant = &job.new.tenant;
        let profile = deployment.profile(tenant, &order.agent).await?;
        let (provider, name) = (profile.provider.as_deref(), profile.model.as_deref());
        let model = deployment.models.model(tenant, provider, name).await?;
        let mut caller = order.caller(tenant, &session, &profile);
        caller.subagent.depth = u8::try_from(job.new.depth()).unwrap_or(u8::MAX);
        let card = model.card();
        caller.provider = Some(card.provider.clone());
        caller.model = Some(CallingModel { name: card.model.clone(), context: card.context });
        let is_marked = deployment.store.is_untrusted(tenant, &session).await?;
        caller.trace = RunTrace::of(lease.job, is_marked || order.untrusted);
        let history = History::read(&*deployment.store, tenant, &session, lease.job).await?;
        let (began, accepted) = (deployment.clock.now(), job.new.accepted);
        let loops = Loops::new(profile.limits.loops);
        let (over, squeezed) = (None, 0);
        Ok(Self {
            deployment,
            lease,
            stopping,
            order,
            root: job.new.root(),
            caller,
            profile,
            model,
            history,
            began,
            accepted,
            loops,
            over,
            squeezed,
            told: ended_commands::ReportedEnds::new(),
            known: Known::new(&*deployment.store),
            is_marked,
            tracing: Tracing::of(deployment, job, lease.attempt),
        })
    }

    /// Carries the run to its end, or to a call that waits for an approval.
    pub(crate) async fn go(mut self) -> Result<Went, RunError> {
        let begun = self.begin();
        let went = self.carry().await;
        self.trace_run(begun, &went);
        self.write_uses().await;
        went
    }

    async fn carry(&mut self) -> Result<Went, RunError> {
        let offer = self.offer().await?;
        self.look_back(&offer);
        if self.history.brings_results() {
            self.caller.trace.read_untrusted();
            self.write_trace().await?;
        }
        let open = self.history.open_calls();
        if !open.is_empty() {
            let waits = self.take_up(&offer, open).await?;
            if let Some(went) = self.after_calls(&waits).await? {
                return Ok(went);
            }
        }
        let mut is_first = true;
        loop {
            self.stopping.check()?;
            if self.stopping.now.is_cancelled() {
                return self.stopped(None).await.map(|()| Went::Ended);
            }
            self.listen(is_first).await?;
            self.report_ended_commands().await?;
            is_first = false;
            let offer = self.offer().await?;
            let question = self.question(&offer).await?;
            let last = question.choice == Choice::None;
            let (id, answer) = match self.think(question).await {
                Ok(Thought::Answered(id, answer)) => (id, answer),
                Ok(Thought::Cut(id, text)) => {
                    return self.stopped(Some((id, text))).await.map(|()| Went::Ended);
                }
                Ok(Thought::Late(id, text)) => return self.late(id, text).await.map(|()| Went::Ended),
                Err(RunError::Model(error)) if error.fault == Fault::TooLong && self.squeezed < SQUEEZES => {
                    tracing::info!(run = %self.lease.job, %error, "the history is shortened");
                    self.squeezed += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.pay(&answer).await;
            let mut parts = self.scrubbed(answer.parts);
            if last {
                parts.retain(|part| !matches!(part, Part::Call(_)));
            }
            let turn = Turn { role: Role::Assistant, parts };
            let calls: Vec<Wanted> = turn.calls().cloned().collect();
            if calls.is_empty() {
                return self.answered(id, turn, &answer.stop, last).await.map(|()| Went::Ended);
            }
            self.say(id, turn).await?;
            let waits = self.act(&offer, calls).await?;
            if let Some(went) = self.after_calls(&waits).await? {
                return Ok(went);
            }
        }
    }

    /// Takes up what was injected meanwhile, and what was said if the agent does that now.
    async fn listen(&mut self, is_first: bool) -> Result<(), RunError> {
        if !self.known.must_look_for_messages(self.deployment.clock.now()) {
            return Ok(());
        }
        let listens = match self.profile.limits.meanwhile {
            Meanwhile::Queue => false,
            Meanwhile::Merge => is_first,
            Meanwhile::Steer => true,
        };
        let store = &self.deployment.store;
        if !listens && !self.is_told().await? {
            return Ok(());
        }
        let least = if listens { i16::MIN } else { Order::INJECTED };
        if store.take_waiting(self.lease, least).await? > 0 {
            let (tenant, session) = (&self.caller.tenant, &self.caller.session);
            self.history = History::read(&**store, tenant, session, self.lease.job).await?;
        }
        Ok(())
    }

    /// Whether a message was injected that waits.
    async fn is_told(&self) -> Result<bool, RunError> {
        let session = Some(self.caller.session.clone());
        let filter = JobFilter { session, states: vec![JobState::Pending], ..JobFilter::default() };
        let waiting = self.deployment.store.jobs(&self.caller.tenant, &filter).await?;
        Ok(waiting.iter().any(|job| job.new.priority >= Order::INJECTED))
    }

    /// Returns the present offer of tools; those that the session was offered before come first.
    async fn offer(&mut self) -> Result<Offer, RunError> {
        if let Some(offer) = &self.known.offer
            && self.deployment.executor.is_current(offer).await
        {
            return Ok(offer.clone());
        }
        let (store, caller) = (&self.deployment.store, &self.caller);
        let previous = match &self.known.offered {
            Some(offered) => offered.clone(),
            None => store.offered(&caller.tenant, &caller.session).await?,
        };
        let mut uses = match &self.known.uses {
            Some(uses) => uses.clone(),
            None => store.tool_uses(&caller.tenant, &caller.agent).await?,
        };
        self.known.uses.get_or_insert_with(|| uses.clone());
        for (tool, count) in &self.known.used {
            *uses.entry(tool.clone()).or_default() += count;
        }
        let token_budget = self.profile.tool_tokens;
        let options = OfferOptions { previous: previous.clone(), uses, token_budget };
        let offer = self.deployment.executor.offer_with(caller.clone(), options).await;
        self.known.offered = Some(previous);
        self.keep_offered(&offer).await?;
        self.known.offer = Some(offer.clone());
        Ok(offer)
    }

    /// Stores the listed tools, with those that were found by searching: they stay in the offers of the session.
    async fn keep_offered(&mut self, offer: &Offer) -> Result<(), RunError> {
        let names = offer.names();
        if self.known.offered.as_ref() != Some(&names) {
            let (store, caller) = (&self.deployment.store, &self.caller);
            store.set_offered(&caller.tenant, &caller.session, &names).await?;
            self.known.offered = Some(names);
        }
        Ok(())
    }

    /// Counts calls of this run from before a crash, too.
    fn look_back(&mut self, offer: &Offer) {
        let turns = self.history.of_run();
        let told: Vec<_> = turns.iter().flat_map(results).collect();
        let calls = turns.iter().flat_map(Turn::calls);
        for wanted in calls {
            let Some(told) = told.iter().find(|told| told.call == wanted.call) else { continue };
            if let Some(Finding::Stop(why)) = self.loops.observe(wanted, told, offer.only_reads(&wanted.tool))
            {
                self.over = Some(why);
            }
        }
    }

    async fn question(&mut self, offer: &Offer) -> Result<Question, RunError> {
        let limits = &self.profile.limits;
        let (asked, made) = self.counts();
        let mut reminders = Vec::new();
        if self.over.is_none() {
            self.over = self.reached(asked, made).await?;
        }
        let choice = match &self.over {
            Some(why) => {
                let end = "Call no more tools: say now what was done, what was found and what is left to do.";
                reminders.push(format!("This run has to end: {why}. {end}"));
                Choice::None
            }
            None => {
                let (turns, calls) =
                    (limits.iterations.saturating_sub(asked), limits.calls.saturating_sub(made));
                if turns <= limits.iterations / 5 + 1 || calls <= limits.calls / 5 {
                    let (turns, calls) = (counted(turns, "more answer"), counted(calls, "more call"));
                    reminders
                        .push(format!("This run is near its limits: {turns} and {calls}. Come to an end."));
                }
                self.order.client.choice()
            }
        };
        let mut is_whole = true;
        let mut tools = offer.specs(|meta, error| {
            is_whole = false;
            tracing::warn!(tool = %meta.name, %error, "a tool cannot be made");
        });
        if !is_whole {
            // The next offer tries to make it again.
            self.known.offer = None;
        }
        self.order.client.add_to(&mut tools);
        let now = self.deployment.clock.now();
        let programs = self.deployment.executor.programs(offer).await?;
        let files = self.context_files().await?;
        let facts = PromptFacts { now, reminders: reminders.as_slice(), programs: &programs };
        let bridge = &self.deployment.executor.registry().world().bridge;
        let caller = &self.caller;
        let is_reached = |path: &str| {
            bridge.as_ref().is_none_or(|bridge| bridge.document(caller, path.as_ref()).is_some())
        };
        let mut system = prompt::compose(files, &self.caller, &self.profile, facts, is_reached);
        system.stable.push_str(&self.project().await);
        system.stable.push_str(&self.skills(offer).await);
        let turns = self.fitting(offer, &system, &tools).await?;
        Ok(Question {
            system,
            turns,
            tools,
            choice,
            output: self.profile.limits.output_tokens,
            thinking: self.profile.limits.thinking_tokens,
            temperature: None,
        })
    }

    /// Returns the section about skills. It stays the same for the whole run, so that a provider's cache
    /// holds.
    async fn skills(&mut self, offer: &Offer) -> String {
        if let Some(section) = &self.known.skills {
            return section.clone();
        }
        let section = match self.deployment.executor.skills(offer).await {
            Ok(skills) => prompt::skills::section(&skills, self.profile.skill_tokens),
            // A run without its skills is better than none.
            Err(error) => {
                tracing::warn!(%error, "the skills cannot be read");
                String::new()
            }
        };
        self.known.skills.insert(section).clone()
    }

    /// Returns the section with the project's files. It stays the same for the whole run.
    async fn project(&mut self) -> String {
        if let Some(section) = &self.known.project {
            return section.clone();
        }
        let mut section = String::new();
        if let Some(project) = self.profile.project {
            let workspace = self.caller.workspace.clone();
            let files = tokio::task::spawn_blocking(move || (project.read)(&workspace)).await;
            let scrubber = self.deployment.executor.scrubbers().for_tenant(&self.caller.tenant);
            let scrubbed = |(path, text): (String, String)| (path, scrubber.said(&text));
            let files: Vec<(String, String)> = files.unwrap_or_default().into_iter().map(scrubbed).collect();
            section = prompt::project_instructions::section(&files, project.bytes);
        }
        self.known.project.insert(section).clone()
    }

    async fn context_files(&mut self) -> Result<Vec<(String, String)>, RunError> {
        self.known.forget_changed_files();
        if let Some(files) = &self.known.files {
            return Ok(files.clone());
        }
        let store = &*self.deployment.store;
        let files = prompt::context_files(store, &self.caller, &self.profile).await?;
        self.known.files = Some(files.clone());
        self.write_trace().await?;
        Ok(files)
    }

    /// Records the cost of an answer. A failure to do so does not end the run.
    async fn pay(&self, answer: &claw_core::port::Answer) {
        let usage = NewUsage {
            id: UsageId::new(),
            tenant: self.caller.tenant.clone(),
            agent: self.caller.agent.clone(),
            user: self.caller.user.clone(),
            session: self.caller.session.clone(),
            run: Some(self.lease.job),
            provider: answer.provider.clone(),
            model: answer.model.clone(),
            tokens: answer.tokens,
            cost: answer.cost,
            at: self.deployment.clock.now(),
        };
        if let Err(error) = self.deployment.store.record_usage(usage).await {
            tracing::error!(run = %self.lease.job, %error, "the cost of an answer could not be recorded");
        }
    }

    fn scrubbed(&self, parts: Vec<Part>) -> Vec<Part> {
        let scrubber = self.deployment.executor.scrubbers().for_tenant(&self.caller.tenant);
        // Texts are joined first, since a secret may be split over two parts.
        let mut joined: Vec<Part> = Vec::with_capacity(parts.len());
        for part in parts {
            match (joined.last_mut(), part) {
                (Some(Part::Text { text: before }), Part::Text { text }) => before.push_str(&text),
                (_, part) => joined.push(part),
            }
        }
        let part = |part| match part {
            Part::Text { text } => Part::Text { text: scrubber.said(&text) },
            other => other,
        };
        let empty = |part: &Part| matches!(part, Part::Text { text } if text.is_empty());
        joined.into_iter().map(part).filter(|part| !empty(part)).collect()
    }

    /// Stores a turn of the run and adds it to the history.
    async fn say(&mut self, id: MessageId, turn: Turn) -> Result<(), RunError> {
        self.stopping.check()?;
        let message = self.message(id, &turn)?;
        self.deployment.store.say_in_run(self.lease, vec![message]).await?;
        self.deployment.store.said(&self.owner(), id.into());
        self.history.say(turn);
        Ok(())
    }

    /// Ends the run with the model's last answer.
    async fn answered(&self, id: MessageId, turn: Turn, stop: &Stop, last: bool) -> Result<(), RunError> {
        let mut said = Vec::new();
        let has_words = turn.parts.iter().any(|part| matches!(part, Part::Text { .. }));
        if !turn.parts.is_empty() {
            said.push(self.message(id, &turn)?);
        }
        let note = match stop {
            Stop::Length => Some("the answer reached the length limit and ends here"),
            Stop::Refused => Some("the model's provider ended the answer (refusal or content filter)"),
            Stop::Done | Stop::Calls if has_words => None,
            Stop::Done | Stop::Calls => Some("the model said nothing"),
        };
        if let Some(note) = note {
            said.push(self.note(note)?);
        }
        let end = if last { End::Limited } else { End::Answered };
        self.finish(id, Finish::done(said), end).await
    }

    /// Ends a run that someone stopped; the partial answer is stored and marked.
    async fn stopped(&self, partial: Option<(MessageId, String)>) -> Result<(), RunError> {
        let (id, text) = partial.unwrap_or_else(|| (MessageId::new(), String::new()));
        let said = self.cut(id, text, "the run was stopped here")?;
        self.finish(id, Finish::cancelled(said), End::Stopped).await
    }

    /// Ends a run whose time is up; the partial answer is stored and marked.
    async fn late(&self, id: MessageId, text: String) -> Result<(), RunError> {
        let seconds = self.profile.limits.seconds;
        let said = self.cut(
            id,
            text,
            &format!("the run ends here: it reached its time limit of {seconds} seconds"),
        )?;
        self.finish(id, Finish::done(said), End::Limited).await
    }

    /// Returns the messages for a partial answer, if there is one, and the reason.
    fn cut(&self, id: MessageId, text: String, why: &str) -> Result<Vec<NewMessage>, RunError> {
        let mut said = Vec::new();
        if !text.is_empty() {
            said.push(self.message(id, &Turn::text(Role::Assistant, text))?);
        }
        said.push(self.note(why)?);
        Ok(said)
    }

    /// Ends the run. Its last messages and the event of its end are stored as one, after the events before it.
    async fn finish(&self, id: MessageId, finish: Finish, end: End) -> Result<(), RunError> {
        self.stopping.check()?;
        self.deployment.chronicle.written().await;
        let body = SessionEventBody::Run { run: self.lease.job, state: RunEvent::Ended { end } };
        let event = EndEvent { session: self.owner().session, at: self.deployment.clock.now(), body };
        self.deployment.store.finish_run(self.lease, finish.telling(Some(event))).await?;
        self.deployment.store.said(&self.owner(), id.into());
        Ok(())
    }

    /// Makes a message of the system.
    fn note(&self, text: &str) -> Result<NewMessage, RunError> {
        let scrubber = self.deployment.executor.scrubbers().for_tenant(&self.caller.tenant);
        self.message(MessageId::new(), &Turn::text(Role::System, scrubber.said(text)))
    }

    fn message(&self, id: MessageId, turn: &Turn) -> Result<NewMessage, RunError> {
        let Caller { tenant, session, .. } = &self.caller;
        message(tenant, session, id, turn, self.deployment.clock.now())
    }

    fn owner(&self) -> Owner {
        Owner { tenant: self.caller.tenant.clone(), session: self.caller.session.clone() }
    }
}

/// Makes a stored message of a turn.
fn message(
    tenant: &TenantId,
    session: &SessionKey,
    id: MessageId,
    turn: &Turn,
    at: UnixMillis,
) -> Result<NewMessage, RunError> {
    let (tenant, session, role) = (tenant.clone(), session.clone(), turn.role);
    Ok(NewMessage { id, tenant, session, role, content: json(&turn.parts)?, at })
}
