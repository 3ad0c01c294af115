//! The store's promises: what must and what may be stored after the recorded steps.
//!
//! There is no order between players, so the model uses none: a job is ordered by its attempt, a message by
//! its number, a call by its single intent.

mod calls;
mod talk;
mod work;

use std::collections::HashMap;

use claw_core::store::{Approval, Entry, Job, Message, SessionEvent, StoreError};
use claw_core::{ApprovalId, JobId, SessionKey};

use super::{Operation, Played, Reply, Step, World};
use crate::fixture::NOW;

/// All steps of the players of a round.
#[derive(Debug)]
pub struct Model<'a> {
    world: &'a World,
    steps: Vec<Step>,
}

/// The content of a store after a round.
#[derive(Debug)]
pub struct Seen {
    jobs: HashMap<JobId, Job>,
    messages: HashMap<SessionKey, Vec<Message>>,
    events: HashMap<SessionKey, Vec<SessionEvent>>,
    entries: Vec<Entry>,
    approvals: HashMap<ApprovalId, Approval>,
}

impl<'a> Model<'a> {
    /// Creates a model of a world without steps.
    pub const fn new(world: &'a World) -> Self {
        Self { world, steps: Vec::new() }
    }

    /// Adds the steps of one player.
    pub fn add(&mut self, steps: impl IntoIterator<Item = Step>) {
        self.steps.extend(steps);
    }

    /// Returns the steps recorded so far.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Reads everything that the players may have left.
    pub async fn look(&self, store: &impl Played) -> Result<Seen, StoreError> {
        let World { tenant, sessions, .. } = self.world;
        let (mut jobs, mut messages, mut events) = (HashMap::new(), HashMap::new(), HashMap::new());
        for id in self.job_ids() {
            if let Some(job) = store.job(tenant, id).await? {
                jobs.insert(id, job);
            }
        }
        for session in sessions {
            messages.insert(session.clone(), store.messages(tenant, session, 0, usize::MAX).await?);
            events.insert(session.clone(), store.events(tenant, session, 0, usize::MAX).await?);
        }
        let mut approvals: HashMap<_, _> =
            store.pending(tenant, NOW).await?.into_iter().map(|approval| (approval.id, approval)).collect();
        for step in &self.steps {
            if let Some(Reply::Asked { approval, .. }) = step.reply
                && let Some(found) = store.approval(tenant, approval).await?
            {
                approvals.insert(approval, found);
            }
        }
        let entries = store.recent(tenant, usize::MAX).await?;
        Ok(Seen { jobs, messages, events, entries, approvals })
    }

    /// Returns the contradictions between steps and store, in words. Empty if there are none.
    pub fn check(&self, seen: &Seen) -> Vec<String> {
        let mut findings = Vec::new();
        for step in &self.steps {
            if let Some(Reply::Error { why, transient: false }) = &step.reply {
                findings.push(format!("an error that trying again would not help: {why}: {step:?}"));
            }
        }
        self.check_jobs(seen, &mut findings);
        self.check_talk(seen, &mut findings);
        self.check_calls(seen, &mut findings);
        findings
    }

    fn job_ids(&self) -> Vec<JobId> {
        let accepted = self.steps.iter().filter_map(|step| match &step.operation {
            Operation::Enqueue { job } | Operation::AcceptMessage { job, .. } => Some(job.id),
            _ => None,
        });
        let mut ids: Vec<_> = accepted.chain(self.world.jobs.iter().map(|job| job.id)).collect();
        ids.sort();
        ids.dedup();
        ids
    }
}
