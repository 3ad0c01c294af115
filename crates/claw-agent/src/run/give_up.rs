//! Giving up a run: its session gets the reason, and calls with an unknown outcome are reported as such.

use claw_core::MessageId;
use claw_core::message::{Part, Turn};
use claw_core::store::{EndEvent, Finish, Job, JobEnd, Lease, Role, RunEvent, SessionEventBody};

use super::message;
use crate::{Deployment, History, Order, RunError, call_result};

/// The end of a run that is given up.
pub(crate) struct GivenUp<'a> {
    /// The note in its session.
    pub(crate) why: &'a str,
    pub(crate) end: JobEnd,
    /// The event that tells it.
    pub(crate) event: RunEvent,
}

/// Ends a run that nobody will continue. This needs no model.
pub(crate) async fn report(
    deployment: &Deployment,
    job: &Job,
    lease: &Lease,
    given_up: GivenUp<'_>,
) -> Result<(), RunError> {
    let (_, session) = Order::of(job)?;
    let (tenant, store) = (&job.new.tenant, &deployment.store);
    let history = History::read(&**store, tenant, &session, lease.job).await?;
    let mut results = Vec::new();
    for wanted in history.open_calls() {
        let told = match store.fate(tenant, wanted.call).await? {
            Some(outcome) => call_result::after_a_crash(&wanted, outcome),
            None => call_result::not_made(&wanted, "the run had been given up"),
        };
        results.push(Part::Result(told));
    }
    let mut turns = Vec::new();
    if !results.is_empty() {
        turns.push(Turn { role: Role::Tool, parts: results });
    }
    let scrubber = deployment.executor.scrubbers().for_tenant(tenant);
    turns.push(Turn::text(Role::System, scrubber.said(given_up.why)));
    let now = deployment.clock.now();
    let said = turns.iter().map(|turn| message(tenant, &session, MessageId::new(), turn, now));
    let said = said.collect::<Result<_, _>>()?;
    deployment.chronicle.written().await;
    let body = SessionEventBody::Run { run: job.new.id, state: given_up.event };
    let event = Some(EndEvent { session, at: now, body });
    store.finish_run(lease, Finish { said, end: given_up.end, announce: None, event }).await?;
    Ok(())
}
