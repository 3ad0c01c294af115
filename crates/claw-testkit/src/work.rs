//! Work and conversations in memory: the plainest thing that passes the suites.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{
    Accepted, Bells, Changes, Claim, Failure, Job, JobState, LaneCount, Lease, Message, NewJob, NewMessage,
    Queue, SessionEvent, SessionLog, StoreError, Topic, Worker,
};
use claw_core::{JobId, MessageId, SessionKey, TenantId};
use serde_json::{Value, json};
use smol_str::SmolStr;
use tokio::sync::watch;

/// A queue and conversations that live as long as the process.
#[derive(Debug, Default)]
pub struct MemoryWork {
    state: Mutex<State>,
    bells: Bells,
}

#[derive(Debug, Default)]
struct State {
    /// In the order they were accepted.
    jobs: Vec<Job>,
    accepted: HashMap<(TenantId, MessageId), Accepted>,
    talks: HashMap<(TenantId, SessionKey), Talk>,
}

#[derive(Debug, Default)]
struct Talk {
    messages: Vec<Message>,
    events: Vec<SessionEvent>,
}

impl MemoryWork {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn wake(&self) {
        self.bells.ring(Topic::Work);
    }
}

impl State {
    fn accept(&mut self, new: NewJob) {
        if !self.jobs.iter().any(|job| job.new.id == new.id) {
            self.jobs.push(Job { new, state: JobState::Pending, attempts: 0, error: None, lease: None });
        }
    }

    fn is_busy(&self, new: &NewJob) -> bool {
        let same = |other: &NewJob| other.tenant == new.tenant && other.session == new.session;
        new.session.is_some() && self.jobs.iter().any(|job| job.state == JobState::Leased && same(&job.new))
    }

    /// Where the best job is that this claim may have.
    fn best(&self, claim: &Claim) -> Option<usize> {
        let fits = |job: &Job| {
            job.state == JobState::Pending
                && job.new.visible <= claim.now
                && claim.lanes.contains(&job.new.lane)
                && !self.is_busy(&job.new)
        };
        let fitting = self.jobs.iter().enumerate().filter(|(_, job)| fits(job));
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

    /// What was said of this id before stays as it is.
    fn say(&mut self, new: NewMessage, run: JobId) -> u64 {
        let key = (new.tenant.clone(), new.id);
        if let Some(accepted) = self.accepted.get(&key) {
            return accepted.seq;
        }
        let talk = self.talks.entry((new.tenant.clone(), new.session.clone())).or_default();
        let seq = talk.messages.len() as u64 + 1;
        let body = json!({ "id": new.id, "seq": seq, "role": new.role });
        talk.tell(new.at, "message".into(), body);
        talk.messages.push(Message { new, seq, run });
        self.accepted.insert(key, Accepted { seq, job: run });
        seq
    }
}

impl Talk {
    fn tell(&mut self, at: UnixMillis, kind: SmolStr, body: Value) -> u64 {
        let seq = self.events.len() as u64 + 1;
        self.events.push(SessionEvent { seq, at, kind, body });
        seq
    }
}

#[async_trait]
impl Queue for MemoryWork {
    async fn enqueue(&self, job: NewJob) -> Result<(), StoreError> {
        self.state().accept(job);
        self.wake();
        Ok(())
    }

    async fn claim(&self, claim: Claim) -> Result<Option<(Job, Lease)>, StoreError> {
        let mut state = self.state();
        while let Some(place) = state.best(&claim) {
            let job = &mut state.jobs[place];
            if job.attempts >= job.new.max_attempts {
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
        self.wake();
        Ok(())
    }

    async fn fail_job(&self, lease: &Lease, failure: Failure) -> Result<JobState, StoreError> {
        let mut state = self.state();
        let job = state.held(lease)?;
        job.lease = None;
        job.error = Some(failure.error);
        job.state = match failure.retry {
            Some(visible) if job.attempts < job.new.max_attempts => {
                job.new.visible = visible;
                JobState::Pending
            }
            _ => JobState::Dead,
        };
        let now = job.state;
        drop(state);
        self.wake();
        Ok(now)
    }

    async fn reclaim(&self, worker: &Worker, now: UnixMillis) -> Result<Vec<JobId>, StoreError> {
        let is_over = |lease: &Lease| {
            let earlier = lease.worker.node == worker.node && lease.worker.boot < worker.boot;
            lease.until <= now || earlier
        };
        let mut ids = Vec::new();
        for job in &mut self.state().jobs {
            if job.lease.as_ref().is_some_and(is_over) {
                (job.state, job.lease) = (JobState::Pending, None);
                ids.push(job.new.id);
            }
        }
        self.wake();
        Ok(ids)
    }

    async fn job(&self, tenant: &TenantId, id: JobId) -> Result<Option<Job>, StoreError> {
        Ok(self.state().jobs.iter().find(|job| job.new.id == id && job.new.tenant == *tenant).cloned())
    }

    async fn lanes(&self, tenant: &TenantId) -> Result<Vec<LaneCount>, StoreError> {
        let mut lanes: Vec<LaneCount> = Vec::new();
        for job in self.state().jobs.iter().filter(|job| job.new.tenant == *tenant) {
            let lane = &job.new.lane;
            let place = lanes.iter().position(|count| count.lane == *lane).unwrap_or_else(|| {
                lanes.push(LaneCount { lane: lane.clone(), pending: 0, leased: 0, dead: 0 });
                lanes.len() - 1
            });
            match job.state {
                JobState::Pending => lanes[place].pending += 1,
                JobState::Leased => lanes[place].leased += 1,
                JobState::Dead => lanes[place].dead += 1,
                JobState::Done => {}
            }
        }
        Ok(lanes)
    }
}

impl Changes for MemoryWork {
    fn changes(&self, of: Topic) -> watch::Receiver<u64> {
        self.bells.listen(of)
    }
}

#[async_trait]
impl SessionLog for MemoryWork {
    async fn accept_message(&self, message: NewMessage, job: NewJob) -> Result<Accepted, StoreError> {
        let mut state = self.state();
        let key = (message.tenant.clone(), message.id);
        if let Some(accepted) = state.accepted.get(&key) {
            return Ok(accepted.clone());
        }
        let accepted = Accepted { seq: state.say(message, job.id), job: job.id };
        state.accept(job);
        drop(state);
        self.wake();
        self.bells.ring(Topic::Sessions);
        Ok(accepted)
    }

    async fn say_in_run(&self, lease: &Lease, said: Vec<NewMessage>) -> Result<Vec<u64>, StoreError> {
        let mut state = self.state();
        state.held(lease)?;
        let places = said.into_iter().map(|message| state.say(message, lease.job)).collect();
        drop(state);
        self.bells.ring(Topic::Sessions);
        Ok(places)
    }

    async fn finish_run(&self, lease: &Lease, said: Vec<NewMessage>) -> Result<Vec<u64>, StoreError> {
        let mut state = self.state();
        let job = state.held(lease)?;
        (job.state, job.lease) = (JobState::Done, None);
        let places = said.into_iter().map(|message| state.say(message, lease.job)).collect();
        drop(state);
        self.wake();
        self.bells.ring(Topic::Sessions);
        Ok(places)
    }

    async fn log_event(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        (at, kind, body): (UnixMillis, SmolStr, Value),
    ) -> Result<u64, StoreError> {
        let mut state = self.state();
        let talk = state.talks.entry((tenant.clone(), session.clone())).or_default();
        let seq = talk.tell(at, kind, body);
        drop(state);
        self.bells.ring(Topic::Sessions);
        Ok(seq)
    }

    async fn messages(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError> {
        let state = self.state();
        let talk = state.talks.get(&(tenant.clone(), session.clone()));
        let messages = talk.into_iter().flat_map(|talk| &talk.messages);
        Ok(messages.filter(|message| message.seq > after).take(limit).cloned().collect())
    }

    async fn events(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<SessionEvent>, StoreError> {
        let state = self.state();
        let talk = state.talks.get(&(tenant.clone(), session.clone()));
        let events = talk.into_iter().flat_map(|talk| &talk.events);
        Ok(events.filter(|event| event.seq > after).take(limit).cloned().collect())
    }
}

#[cfg(test)]
mod tests;
