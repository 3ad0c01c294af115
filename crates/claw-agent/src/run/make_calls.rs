//! Makes the calls that a model requests, and returns their results to it.
//!
//! Calls that only read run together; every other call runs alone. Results are stored as they arrive, so that
//! a crash loses as few of them as possible.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use claw_core::message::{Args, Part, ToolResult, Turn, Wanted};
use claw_core::store::{Finish, Parking, Role, RunEnd};
use claw_core::tool::Progress;
use claw_core::{CallId, MessageId, ToolName};
use claw_registry::{Arguments, Offer, Reply, Request, Waiting};

use super::{Run, Went};
use crate::{Finding, RunError, call_result};

/// The shortest timeout of a call, even if the run has less time left.
const SHORTEST_CALL: Duration = Duration::from_secs(1);

/// The approvals that calls of a run wait for.
pub(super) type Waits = Vec<Waiting>;

impl Run<'_> {
    /// Makes the calls, in order; each gets one result. Stops at a call that waits for an approval: that call
    /// and those after it stay open until the run is resumed. Calls of the client's tools stay open too.
    pub(super) async fn act(&mut self, offer: &Offer, calls: Vec<Wanted>) -> Result<Waits, RunError> {
        let (within, beyond) = self.within_limit(calls);
        let (_, within) = self.order.client.split(within);
        let waits = self.make(offer, within).await?;
        // A waiting call keeps those after it open.
        if waits.is_empty() {
            self.tell_beyond(&beyond).await?;
        }
        Ok(waits)
    }

    /// Ends or parks the run if its calls say so: some wait for an approval, or are the client's to make.
    pub(super) async fn after_calls(&self, waits: &[Waiting]) -> Result<Option<Went>, RunError> {
        if let Some(parking) = self.parking(waits) {
            return Ok(Some(Went::Parked(parking)));
        }
        // Every other call has its result by now.
        let is_handed = waits.is_empty() && !self.history.open_calls().is_empty();
        if !is_handed || self.stopping.now.is_cancelled() {
            return Ok(None);
        }
        self.finish(MessageId::new(), Finish::done(Vec::new()), RunEnd::Called).await?;
        Ok(Some(Went::Ended))
    }

    /// Returns the wait for these approvals; `None` if there are none, or if the run is to end.
    fn parking(&self, waits: &[Waiting]) -> Option<Parking> {
        let until = waits.iter().map(|waiting| waiting.expires).min()?;
        let approvals = waits.iter().map(|waiting| waiting.approval).collect();
        let is_over = self.stopping.now.is_cancelled();
        (!is_over).then(|| Parking { approvals, at: self.deployment.clock.now(), until })
    }

    /// Splits calls into those that the run may make and those beyond its limit.
    pub(super) fn within_limit(&self, calls: Vec<Wanted>) -> (Vec<Wanted>, Vec<Wanted>) {
        let most = usize::try_from(self.profile.limits.calls).unwrap_or(usize::MAX);
        let turns = self.history.of_run();
        let first: HashSet<CallId> =
            turns.iter().flat_map(Turn::calls).take(most).map(|wanted| wanted.call).collect();
        calls.into_iter().partition(|wanted| first.contains(&wanted.call))
    }

    pub(super) async fn tell_beyond(&mut self, beyond: &[Wanted]) -> Result<(), RunError> {
        if beyond.is_empty() {
            return Ok(());
        }
        let why = format!("the limit of {} calls in one run is reached", self.profile.limits.calls);
        self.tell(beyond.iter().map(|wanted| call_result::not_made(wanted, &why)).collect()).await
    }

    pub(super) async fn make(&mut self, offer: &Offer, calls: Vec<Wanted>) -> Result<Waits, RunError> {
        let mut calls = calls.into_iter().peekable();
        while let Some(first) = calls.next() {
            self.stopping.check()?;
            let mut together = vec![first];
            let reads = |wanted: &Wanted| offer.only_reads(&wanted.tool);
            while reads(&together[0]) && calls.peek().is_some_and(reads) {
                together.extend(calls.next());
            }
            let (made, waits) = self.made(offer, &together).await;
            self.keep_offered(offer).await?;
            let told = self.watched(offer, made);
            if !told.is_empty() {
                self.tell(told).await?;
            }
            if !waits.is_empty() {
                return Ok(waits);
            }
        }
        Ok(Waits::new())
    }

    /// Executes calls; those that cannot be made get a result that says so. Returns the finished calls with
    /// their results, and the approvals that the others wait for.
    async fn made(&mut self, offer: &Offer, calls: &[Wanted]) -> (Vec<(Wanted, ToolResult)>, Waits) {
        let stopped = self.stopping.now.is_cancelled();
        let early = |wanted: &Wanted| match stopped {
            true => Some(call_result::not_made(wanted, "the run had been stopped")),
            false => call_result::broken(wanted),
        };
        let early: Vec<Option<ToolResult>> = calls.iter().map(early).collect();
        let requests = calls.iter().zip(&early).filter(|(_, early)| early.is_none());
        let requests: Vec<Request> = requests.map(|(wanted, _)| self.request(wanted)).collect();
        let begun = self.begin();
        let mut replies = self.deployment.executor.execute_batch(offer, requests).await.into_iter();
        self.count_uses(offer, replies.as_slice());
        // Followers get the events of calls before their results.
        self.deployment.chronicle.written().await;
        let (mut made, mut waits) = (Vec::with_capacity(calls.len()), Waits::new());
        for (wanted, early) in calls.iter().zip(early) {
            let reply = if early.is_none() { replies.next() } else { None };
            if let Some(waiting) = reply.as_ref().and_then(Reply::waiting) {
                waits.push(waiting);
                continue;
            }
            if let (Some(begun), Some(reply)) = (&begun, &reply) {
                self.trace_call(begun, wanted, reply);
            }
            let told = match (early, reply) {
                (Some(told), _) => told,
                (None, Some(reply)) => self.told_of(wanted, &reply, offer),
                (None, None) => call_result::not_made(wanted, "something went wrong inside Clawsmith"),
            };
            made.push((wanted.clone(), told));
        }
        (made, waits)
    }

    /// The result of a call for the model; text of others in it is noted of the run.
    pub(super) fn told_of(&self, wanted: &Wanted, reply: &Reply, offer: &Offer) -> ToolResult {
        let meta = offer.meta(&wanted.tool).map(|meta| &**meta);
        if call_result::is_untrusted(reply, meta) {
            self.caller.trace.read_untrusted();
        }
        call_result::of(wanted, reply, meta)
    }

    /// Stores that the session has read untrusted text, before its model reads it.
    pub(super) async fn write_trace(&mut self) -> Result<(), RunError> {
        if self.is_marked || !self.caller.trace.is_untrusted() {
            return Ok(());
        }
        let (tenant, session) = (&self.caller.tenant, &self.caller.session);
        self.deployment.store.mark_untrusted(tenant, session, self.deployment.clock.now()).await?;
        self.is_marked = true;
        Ok(())
    }

    pub(super) fn request(&self, wanted: &Wanted) -> Request {
        let args = match &wanted.args {
            Args::Json(args) => Arguments::Json(args.clone()),
            Args::Broken { text, .. } => Arguments::Text(text.clone()),
        };
        Request {
            tool: wanted.tool.clone(),
            args,
            call: wanted.call,
            model_id: Some(wanted.model_id.clone()),
            run: Some(self.lease.job),
            cancel: self.stopping.now.child_token(),
            progress: Progress::silent(),
            timeout: None,
            within: Some(self.time_left().max(SHORTEST_CALL)),
            asking: self.order.asking,
            narrowing: self.order.narrowing.clone().map(Arc::new),
            inputs: None,
        }
    }

    /// Checks whether the run goes in circles: the model is warned first, then the run ends.
    fn watched(&mut self, offer: &Offer, made: Vec<(Wanted, ToolResult)>) -> Vec<ToolResult> {
        let watched = made.into_iter().map(|(wanted, mut told)| {
            match self.loops.observe(&wanted, &told, offer.only_reads(&wanted.tool)) {
                Some(Finding::Warn(what)) => {
                    call_result::note(
                        &mut told,
                        &format!("{what}; try something else, or say what is in the way"),
                    );
                }
                Some(Finding::Stop(what)) => self.over = Some(what),
                None => {}
            }
            told
        });
        watched.collect()
    }

    /// Stores results, and adds them to the history.
    pub(super) async fn tell(&mut self, told: Vec<ToolResult>) -> Result<(), RunError> {
        self.write_trace().await?;
        let parts = told.into_iter().map(Part::Result).collect();
        self.say(MessageId::new(), Turn { role: Role::Tool, parts }).await
    }

    /// Counts the used tools: those stay in the offer when tokens are short.
    fn count_uses(&mut self, offer: &Offer, replies: &[Reply]) {
        let ran = replies.iter().filter(|reply| reply.refusal().is_none() && reply.waiting().is_none());
        for meta in ran.filter_map(|reply| offer.meta(&reply.tool)) {
            *self.known.used.entry(meta.name.clone()).or_default() += 1;
        }
    }

    /// Stores how often this run used each tool. A lost count does no harm.
    pub(super) async fn write_uses(&mut self) {
        let uses: Vec<(ToolName, u64)> = self.known.used.drain().collect();
        if uses.is_empty() {
            return;
        }
        let (tenant, agent) = (&self.caller.tenant, &self.caller.agent);
        if let Err(error) = self.deployment.store.count_tool_uses(tenant, agent, &uses).await {
            tracing::warn!(%error, "the uses of tools could not be counted");
        }
    }
}
