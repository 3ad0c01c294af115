//! Approvals beside the queue, and runs that wait for them.
//!
//! Approvals are in a table of their own, so nothing here is one transaction. Still no wake-up is lost: a run
//! is parked before its approvals are read, and an approval is answered before its run is woken.

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{
    Answer, Approval, ApprovalState, Approvals, Cancel, CancelRequest, Cancelled, JobState, Lease,
    NewApproval, NewMessage, Parking, Queue as _, Role, RunEvent, Runs, SessionEventBody, StoreError,
};
use claw_core::{ApprovalId, JobId, MessageId, TenantId};
use serde_json::{Map, Value};

use super::{MemoryWork, State};

#[async_trait]
impl Approvals for MemoryWork {
    async fn request(&self, new: NewApproval) -> Result<Approval, StoreError> {
        self.calls.request(new).await
    }

    async fn approval(&self, tenant: &TenantId, id: ApprovalId) -> Result<Option<Approval>, StoreError> {
        self.calls.approval(tenant, id).await
    }

    async fn pending(&self, tenant: &TenantId, now: UnixMillis) -> Result<Vec<Approval>, StoreError> {
        self.calls.pending(tenant, now).await
    }

    async fn answer(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        answer: Answer,
    ) -> Result<Approval, StoreError> {
        let answered = self.calls.answer(tenant, id, answer).await;
        self.wake_run_of(tenant, id).await?;
        answered
    }

    async fn take_values(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
    ) -> Result<Option<Map<String, Value>>, StoreError> {
        self.calls.take_values(tenant, id).await
    }

    async fn close(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        state: ApprovalState,
    ) -> Result<Approval, StoreError> {
        let closed = self.calls.close(tenant, id, state).await;
        self.wake_run_of(tenant, id).await?;
        closed
    }
}

impl MemoryWork {
    async fn wake_run_of(&self, tenant: &TenantId, id: ApprovalId) -> Result<(), StoreError> {
        if let Some(approval) = self.calls.approval(tenant, id).await?
            && approval.state != ApprovalState::Pending
            && let Some(run) = approval.request.run
        {
            self.wake(tenant, run).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Runs for MemoryWork {
    async fn park(&self, lease: &Lease, parking: Parking) -> Result<JobState, StoreError> {
        let (tenant, cancel) = {
            let mut state = self.state();
            let job = state.held(lease)?;
            (job.state, job.lease) = (JobState::Parked, None);
            job.parks += 1;
            job.new.visible = parking.until;
            (job.new.tenant.clone(), job.cancel.is_some())
        };
        let mut waits = !cancel;
        for id in parking.approvals {
            let found = self.calls.approval(&tenant, id).await?;
            waits &= found.is_some_and(|found| {
                let request = &found.request;
                let pending = found.state == ApprovalState::Pending && request.expires > parking.at;
                pending && request.run == Some(lease.job)
            });
        }
        if !waits {
            self.state().wake(&tenant, lease.job);
        }
        self.ring_work();
        Ok(if waits { JobState::Parked } else { JobState::Pending })
    }

    async fn cancel(&self, tenant: &TenantId, job: JobId, cancel: Cancel) -> Result<Cancelled, StoreError> {
        let (cancelled, open) = self.state().cancel(tenant, job, &cancel);
        for approval in self.calls.pending(tenant, UnixMillis(i64::MIN)).await? {
            if approval.request.run.is_some_and(|run| open.contains(&run)) {
                self.calls.close(tenant, approval.id, ApprovalState::Cancelled).await?;
            }
        }
        self.ring_work();
        for id in &cancelled.ended {
            if let Some(session) = self.job(tenant, *id).await?.and_then(|job| job.new.session) {
                self.ring_session(tenant, &session);
            }
        }
        Ok(cancelled)
    }
}

impl State {
    /// Cancels a tree; returns the result, and the runs that were not over.
    fn cancel(&mut self, tenant: &TenantId, root: JobId, cancel: &Cancel) -> (Cancelled, Vec<JobId>) {
        let (mut cancelled, mut tree) = (Cancelled::default(), vec![root]);
        let (mut notes, mut open) = (Vec::new(), Vec::new());
        // A child is accepted after its parent, so one pass finds all of them.
        for job in self.jobs.iter_mut().filter(|job| job.new.tenant == *tenant) {
            let id = job.new.id;
            if id != root && !job.new.lineage.is_some_and(|lineage| tree.contains(&lineage.parent)) {
                continue;
            }
            tree.push(id);
            match job.state {
                JobState::Pending | JobState::Parked => {
                    job.state = JobState::Cancelled;
                    cancelled.ended.push(id);
                    notes.extend(job.new.session.clone().map(|session| (id, session)));
                }
                JobState::Leased => cancelled.told.push(id),
                JobState::Done | JobState::Cancelled | JobState::Dead => {
                    cancelled.over.push(id);
                    continue;
                }
            }
            open.push(id);
            job.cancel.get_or_insert_with(|| CancelRequest { at: cancel.at, by: cancel.by.clone() });
        }
        for (run, session) in notes {
            let (tenant, role, content) = (tenant.clone(), Role::System, cancel.note.clone());
            let id = MessageId::new();
            let talk = (tenant.clone(), session.clone());
            self.say(NewMessage { id, tenant, session, role, content, at: cancel.at }, run);
            let event = SessionEventBody::Run { run, state: RunEvent::Cancelled { by: cancel.by.clone() } };
            self.tell(&talk, cancel.at, event);
        }
        (cancelled, open)
    }
}
