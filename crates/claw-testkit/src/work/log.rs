//! Sessions in memory.

use async_trait::async_trait;
use claw_core::port::{Owner, UnixMillis};
use claw_core::store::{
    Accepted, Announce, EndEvent, FeedEvent, Finish, Finished, Job, JobEnd, JobState, Lease, Message,
    NewEvent, NewJob, NewMessage, SessionEvent, SessionEventBody, SessionLog, StoreError, Summary,
};
use claw_core::{SessionKey, TenantId};
use tokio::sync::watch;

use super::{MemoryWork, State};

impl State {
    fn check_announce(&self, tenant: &TenantId, announce: &Announce) -> Result<(), StoreError> {
        let Announce { parent, message, job, .. } = announce;
        let other = message.tenant != *tenant || job.tenant != *tenant;
        let is_parent = |job: &&Job| job.new.id == *parent && job.new.tenant == *tenant;
        let found = self.jobs.iter().find(is_parent);
        if other || found.is_some_and(|found| found.new.session.as_ref() != Some(&message.session)) {
            let why = "it is not for the parent's session".to_owned();
            return Err(StoreError::Refused { what: "could not notify the parent run", why });
        }
        Ok(())
    }

    fn announce(&mut self, announce: Announce) -> Accepted {
        let Announce { parent, message, job, .. } = announce;
        if let Some(accepted) = self.accepted.get(&(message.tenant.clone(), message.id)) {
            return accepted.clone();
        }
        if self.wake(&message.tenant, parent) {
            return Accepted { seq: self.say(message, parent), job: parent };
        }
        let accepted = Accepted { seq: self.say(message, job.id), job: job.id };
        self.accept(job);
        accepted
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
        let session = message.session.clone();
        let accepted = Accepted { seq: state.say(message, job.id), job: job.id };
        state.accept(job);
        drop(state);
        self.ring_work();
        self.ring_session(&key.0, &session);
        Ok(accepted)
    }

    async fn say_in_run(&self, lease: &Lease, said: Vec<NewMessage>) -> Result<Vec<u64>, StoreError> {
        let mut state = self.state();
        state.held(lease)?;
        let places = said.iter().map(|message| state.say(message.clone(), lease.job)).collect();
        drop(state);
        said.iter().for_each(|message| self.ring_session(&message.tenant, &message.session));
        Ok(places)
    }

    async fn take_waiting(&self, lease: &Lease, priority: i16) -> Result<usize, StoreError> {
        let mut state = self.state();
        let mine = state.held(lease)?.new.clone();
        let waits = |job: &Job| {
            job.state == JobState::Pending
                && job.attempts == 0
                && job.cancel.is_none()
                && job.new.priority >= priority
                && (&job.new.tenant, &job.new.lane) == (&mine.tenant, &mine.lane)
                && job.new.session.is_some()
                && job.new.session == mine.session
                && job.new.payload == mine.payload
        };
        let taken: Vec<&mut Job> = state.jobs.iter_mut().filter(|job| waits(job)).collect();
        let mut ids = Vec::new();
        for job in taken {
            job.state = JobState::Done;
            ids.push(job.new.id);
        }
        if let Some(session) = mine.session
            && let Some(talk) = state.talks.get_mut(&(mine.tenant, session))
        {
            for message in talk.messages.iter_mut().filter(|message| ids.contains(&message.run)) {
                message.run = mine.id;
            }
        }
        drop(state);
        self.ring_work();
        Ok(ids.len())
    }

    async fn summarise(
        &self,
        lease: &Lease,
        Owner { tenant, session }: &Owner,
        summary: Summary,
    ) -> Result<(), StoreError> {
        let mut state = self.state();
        state.held(lease)?;
        let talk = state.talks.entry((tenant.clone(), session.clone())).or_default();
        talk.summaries.retain(|kept| kept.upto != summary.upto);
        talk.summaries.push(summary);
        Ok(())
    }

    async fn summary(&self, tenant: &TenantId, session: &SessionKey) -> Result<Option<Summary>, StoreError> {
        let state = self.state();
        let talk = state.talks.get(&(tenant.clone(), session.clone()));
        Ok(talk.and_then(|talk| talk.summaries.iter().max_by_key(|summary| summary.upto)).cloned())
    }

    async fn finish_run(&self, lease: &Lease, finish: Finish) -> Result<Finished, StoreError> {
        let Finish { said, end, announce, event } = finish;
        let mut state = self.state();
        let tenant = state.held(lease)?.new.tenant.clone();
        if let Some(announce) = &announce {
            state.check_announce(&tenant, announce)?;
        }
        let job = state.held(lease)?;
        job.lease = None;
        job.state = match end {
            JobEnd::Done => JobState::Done,
            JobEnd::Cancelled => JobState::Cancelled,
        };
        let places = said.iter().map(|message| state.say(message.clone(), lease.job)).collect();
        let told = announce.as_ref().map(|announce| announce.message.clone());
        let announced = announce.map(|announce| state.announce(announce));
        let session = event.map(|EndEvent { session, at, body }| {
            state.tell(&(tenant.clone(), session.clone()), at, body);
            session
        });
        drop(state);
        session.iter().for_each(|session| self.ring_session(&tenant, session));
        self.ring_work();
        said.iter().chain(&told).for_each(|message| self.ring_session(&message.tenant, &message.session));
        Ok(Finished { places, announced })
    }

    async fn log_event(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        at: UnixMillis,
        event: SessionEventBody,
    ) -> Result<u64, StoreError> {
        let seq = self.state().tell(&(tenant.clone(), session.clone()), at, event);
        self.ring_session(tenant, session);
        Ok(seq)
    }

    async fn log_events(&self, events: Vec<NewEvent>) -> Result<(), StoreError> {
        for NewEvent { owner, at, body } in events {
            self.log_event(&owner.tenant, &owner.session, at, body).await?;
        }
        Ok(())
    }

    fn session_changes(&self, of: &Owner) -> watch::Receiver<u64> {
        self.sessions.listen(of)
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

    async fn feed(&self, tenant: &TenantId, after: u64, limit: usize) -> Result<Vec<FeedEvent>, StoreError> {
        let state = self.state();
        let fed = (1..).zip(&state.feed).filter(|(place, (owner, _))| *place > after && owner.0 == *tenant);
        let event = |(feed, (owner, seq)): (u64, &((TenantId, SessionKey), u64))| {
            let event = state.talks.get(owner)?.events.iter().find(|event| event.seq == *seq)?;
            Some(FeedEvent { feed, session: owner.1.clone(), event: event.clone() })
        };
        Ok(fed.filter_map(event).take(limit).collect())
    }

    async fn feed_end(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        let state = self.state();
        let fed = (1..).zip(&state.feed).filter(|(_, (owner, _))| owner.0 == *tenant);
        Ok(fed.map(|(place, _)| place).last().unwrap_or(0))
    }
}
