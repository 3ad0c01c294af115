//! Work and sessions in memory: the simplest implementation that passes the suites.

mod log;
mod runs;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use claw_core::port::{Owner, UnixMillis};
use claw_core::store::{
    Accepted, Bells, Changes, Claim, Failure, Job, JobFilter, JobState, LONGEST_LEASE, LaneCount, Lease,
    Message, NewJob, NewMessage, Queue, SessionBells, SessionEvent, SessionEventBody, StoreError, Summary,
    Topic, Worker,
};
use claw_core::{JobId, MessageId, SessionKey, TenantId, UserId};
use claw_store_memory::MemoryStore;
use tokio::sync::watch;

/// A queue, sessions and approvals that live as long as the process.
#[derive(Debug, Default)]
pub struct MemoryWork {
    state: Mutex<State>,
    bells: Bells,
    sessions: SessionBells,
    calls: MemoryStore,
}

#[derive(Debug, Default)]
struct State {
    /// The jobs in the order of acceptance.
    jobs: Vec<Job>,
    accepted: HashMap<(TenantId, MessageId), Accepted>,
    talks: HashMap<(TenantId, SessionKey), Talk>,
    /// Every event, in the order in which they came.
    feed: Vec<((TenantId, SessionKey), u64)>,
}

#[derive(Debug, Default)]
struct Talk {
    messages: Vec<Message>,
    events: Vec<SessionEvent>,
    summaries: Vec<Summary>,
}

impl MemoryWork {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Returns the calls and approvals beside the queue.
    pub fn calls(&self) -> &MemoryStore {
        &self.calls
    }

    fn ring_work(&self) {
        self.bells.ring(Topic::Work);
    }

    fn ring_session(&self, tenant: &TenantId, session: &SessionKey) {
        self.bells.ring(Topic::Sessions);
        self.sessions.ring(&Owner { tenant: tenant.clone(), session: session.clone() });
    }
}

impl State {
    fn accept(&mut self, new: NewJob) {
        if self.jobs.iter().any(|job| job.new.id == new.id) {
            return;
        }
        let is_parent = |job: &&Job| {
            job.new.tenant == new.tenant && new.lineage.is_some_and(|of| of.parent == job.new.id)
        };
        let cancel = self.jobs.iter().find(is_parent).and_then(|parent| parent.cancel.clone());
        let (state, error, lease) = (JobState::Pending, None, None);
        self.jobs.push(Job { new, state, attempts: 0, parks: 0, error, lease, cancel });
    }

    /// Returns whether an unfinished job of the same session was accepted before.
    fn is_behind(&self, place: usize) -> bool {
        let new = &self.jobs[place].new;
        let same = |other: &NewJob| other.tenant == new.tenant && other.session == new.session;
        new.session.is_some() && self.jobs[..place].iter().any(|job| !job.state.is_over() && same(&job.new))
    }

    /// Returns the index of the best job for this claim.
    fn best(&self, claim: &Claim) -> Option<usize> {
        let fits = |(place, job): &(usize, &Job)| {
            matches!(job.state, JobState::Pending | JobState::Parked)
                && job.new.visible <= claim.now
                && claim.lanes.contains(&job.new.lane)
                && !self.is_behind(*place)
        };
        let fitting = self.jobs.iter().enumerate().filter(fits);
        // Of equals, `min_by_key` gives the first.
        fitting.min_by_key(|(_, job)| -i32::from(job.new.priority)).map(|(place, _)| place)
    }

    fn held(&mut self, lease: &Lease) -> Result<&mut Job, StoreError> {
        let holds = |job: &&mut Job| {
            let held = job.lease.as_ref().filter(|_| job.new.id == lease.job);
            held.is_some_and(|held| held.worker == lease.worker && held.attempt == lease.attempt)
        };
        self.jobs.iter_mut().find(holds).ok_or(StoreError::LeaseLost { job: lease.job })
    }

    fn wake(&mut self, tenant: &TenantId, id: JobId) -> bool {
        let parked =
            |job: &&mut Job| job.new.id == id && job.new.tenant == *tenant && job.state == JobState::Parked;
        let Some(job) = self.jobs.iter_mut().find(parked) else { return false };
        job.state = JobState::Pending;
        job.new.visible = job.new.visible.min(job.new.accepted);
        true
    }

    /// Stores a message. A message with a known id is left as it is.
    fn say(&mut self, new: NewMessage, run: JobId) -> u64 {
        let key = (new.tenant.clone(), new.id);
        if let Some(accepted) = self.accepted.get(&key) {
            return accepted.seq;
        }
        let owner = (new.tenant.clone(), new.session.clone());
        let seq = self.talks.entry(owner.clone()).or_default().messages.len() as u64 + 1;
        self.tell(&owner, new.at, SessionEventBody::Message { id: new.id, seq, role: new.role, run });
        self.talks.entry(owner).or_default().messages.push(Message { new, seq, run });
        self.accepted.insert(key, Accepted { seq, job: run });
        seq
    }

    fn tell(&mut self, owner: &(TenantId, SessionKey), at: UnixMillis, what: SessionEventBody) -> u64 {
        let talk = self.talks.entry(owner.clone()).or_default();
        let seq = talk.events.len() as u64 + 1;
        talk.events.push(SessionEvent { seq, at, what });
        self.feed.push((owner.clone(), seq));
        seq
    }
}

#[async_trait]
impl Queue for MemoryWork {
    async fn enqueue(&self, job: NewJob) -> Result<(), StoreError> {
        self.state().accept(job);
        self.ring_work();
        Ok(())
    }

    async fn claim(&self, claim: Claim) -> Result<Option<(Job, Lease)>, StoreError> {
        let mut state = self.state();
        while let Some(place) = state.best(&claim) {
            let job = &mut state.jobs[place];
            if job.tries() >= job.new.max_attempts.into() {
                job.state = JobState::Dead;
                continue;
            }
            job.attempts += 1;
            job.state = JobState::Leased;
            let (worker, attempt, until) = (claim.worker, job.attempts, claim.until);
            let lease = Lease { job: job.new.id, worker, attempt, until };
            job.lease = Some(lease.clone());
            return Ok(Some((job.clone(), lease)));
        }
        Ok(None)
    }

    async fn extend(&self, lease: &Lease, until: UnixMillis) -> Result<Lease, StoreError> {
        let mut state = self.state();
        let extended = Lease { until, ..lease.clone() };
        state.held(lease)?.lease = Some(extended.clone());
        Ok(extended)
    }

    async fn finish_job(&self, lease: &Lease) -> Result<(), StoreError> {
        let mut state = self.state();
        let job = state.held(lease)?;
        (job.state, job.lease) = (JobState::Done, None);
        drop(state);
        self.ring_work();
        Ok(())
    }

    async fn fail_job(&self, lease: &Lease, failure: Failure) -> Result<JobState, StoreError> {
        let mut state = self.state();
        let job = state.held(lease)?;
        job.lease = None;
        job.error = Some(failure.error);
        job.state = match failure.retry {
            Some(visible) if job.tries() < job.new.max_attempts.into() => {
                job.new.visible = visible;
                JobState::Pending
            }
            _ => JobState::Dead,
        };
        let now = job.state;
        drop(state);
        self.ring_work();
        Ok(now)
    }

    async fn reclaim(&self, worker: &Worker, now: UnixMillis) -> Result<Vec<JobId>, StoreError> {
        let is_over = |lease: &Lease| {
            let earlier = lease.worker.node == worker.node && lease.worker.boot < worker.boot;
            lease.until <= now || lease.until > now.plus(LONGEST_LEASE) || earlier
        };
        let is_hidden =
            |job: &Job| job.state == JobState::Pending && job.new.visible > now.plus(LONGEST_LEASE);
        let mut ids = Vec::new();
        for job in &mut self.state().jobs {
            if job.lease.as_ref().is_some_and(is_over) || is_hidden(job) {
                (job.state, job.lease) = (JobState::Pending, None);
                job.new.visible = job.new.visible.min(now);
                ids.push(job.new.id);
            }
        }
        self.ring_work();
        Ok(ids)
    }

    async fn release(&self, tenant: &TenantId, id: JobId, now: UnixMillis) -> Result<bool, StoreError> {
        let mut state = self.state();
        let is_it = |job: &&mut Job| job.new.id == id && job.new.tenant == *tenant;
        let is_open = |job: &&mut Job| matches!(job.state, JobState::Leased | JobState::Pending);
        let Some(job) = state.jobs.iter_mut().find(is_it).filter(is_open) else { return Ok(false) };
        (job.state, job.lease) = (JobState::Pending, None);
        job.new.visible = job.new.visible.min(now);
        drop(state);
        self.ring_work();
        Ok(true)
    }

    async fn wake(&self, tenant: &TenantId, job: JobId) -> Result<bool, StoreError> {
        let woken = self.state().wake(tenant, job);
        if woken {
            self.ring_work();
        }
        Ok(woken)
    }

    async fn cancel_requests(&self, jobs: &[JobId]) -> Result<Vec<JobId>, StoreError> {
        let state = self.state();
        let asked = state.jobs.iter().filter(|job| job.cancel.is_some()).map(|job| job.new.id);
        Ok(asked.filter(|id| jobs.contains(id)).collect())
    }

    async fn job(&self, tenant: &TenantId, id: JobId) -> Result<Option<Job>, StoreError> {
        Ok(self.state().jobs.iter().find(|job| job.new.id == id && job.new.tenant == *tenant).cloned())
    }

    async fn jobs(&self, tenant: &TenantId, filter: &JobFilter) -> Result<Vec<Job>, StoreError> {
        let JobFilter { session, root, states, after, limit } = filter;
        let state = self.state();
        let known = state.jobs.iter().position(|job| Some(job.new.id) == *after && job.new.tenant == *tenant);
        let end = if after.is_some() { known.unwrap_or(0) } else { state.jobs.len() };
        let fits = |job: &&Job| {
            job.new.tenant == *tenant
                && (session.is_none() || job.new.session == *session)
                && root.is_none_or(|root| job.new.root() == root)
                && (states.is_empty() || states.contains(&job.state))
        };
        Ok(state.jobs[..end].iter().rev().filter(fits).take(*limit).cloned().collect())
    }

    async fn open_jobs_of(&self, tenant: &TenantId, user: Option<&UserId>) -> Result<u64, StoreError> {
        let state = self.state();
        let open = state.jobs.iter().filter(|job| job.new.tenant == *tenant && !job.state.is_over());
        let own = open.filter(|job| job.new.user() == user.map(UserId::as_str));
        Ok(own.count() as u64)
    }

    async fn lanes(&self, tenant: &TenantId) -> Result<Vec<LaneCount>, StoreError> {
        let mut lanes: Vec<LaneCount> = Vec::new();
        for job in self.state().jobs.iter().filter(|job| job.new.tenant == *tenant) {
            let lane = &job.new.lane;
            let place = lanes.iter().position(|count| count.lane == *lane).unwrap_or_else(|| {
                lanes.push(LaneCount { lane: lane.clone(), pending: 0, leased: 0, parked: 0, dead: 0 });
                lanes.len() - 1
            });
            match job.state {
                JobState::Pending => lanes[place].pending += 1,
                JobState::Leased => lanes[place].leased += 1,
                JobState::Parked => lanes[place].parked += 1,
                JobState::Dead => lanes[place].dead += 1,
                JobState::Done | JobState::Cancelled => {}
            }
        }
        Ok(lanes)
    }
}

impl Changes for MemoryWork {
    fn changes(&self, of: Topic) -> watch::Receiver<u64> {
        if of == Topic::Approvals { self.calls.changes(of) } else { self.bells.listen(of) }
    }
}

#[cfg(test)]
mod tests;
