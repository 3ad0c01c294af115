//! The model finds nothing on a store that keeps its promise, and something on each that lies.

use claw_core::port::{Owner, UnixMillis};
use claw_core::store::*;
use claw_core::{ApprovalId, CallId, JobId, SessionKey, TenantId, UserId};
use serde_json::{Map, Value};
use tokio::sync::watch;

use super::*;
use crate::{MemoryWork, fixture};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    None,
    ForgetsAJob,
    LosesTheJobOfAMessage,
    ForgetsWhatARunSaid,
    ForgetsWhatARunSays,
    SaysWithoutALease,
    DoesWhatItRefuses,
    FinishesWithoutALease,
    FinishesAndForgets,
    MovesAnEvent,
    ForgetsAnAnswer,
    AnswersTwice,
    AnswersLate,
    ForgetsALapse,
    BeginsTwice,
    BeginsWithoutUsing,
    ForgetsAnOutcome,
    ForgetsARefusal,
    ForgetsAPark,
    ForgetsACancel,
    CancelsInSilence,
}

struct Liar {
    work: MemoryWork,
    lie: Lie,
}

/// Rounds without processes: three players take turns.
async fn findings(lie: Lie) -> Vec<String> {
    let mut findings = Vec::new();
    for seed in 0..12 {
        let store = store(lie);
        let (round, world) = (Round::new(seed), World::new(seed));
        let player = |n: u64| {
            let worker = fixture::worker(&format!("node-{n}"));
            Player::new(&store, &world, worker, Random::part(seed, n))
        };
        let mut players = [player(1), player(2), player(3)];
        let mut model = Model::new(&world);
        for turn in 0..120 {
            let player = &mut players[turn % 3];
            let operation = player.pick().await;
            let reply = player.perform(&operation).await;
            model.add([Step { operation, reply: Some(reply) }]);
        }
        findings.extend(round.check(&store, &mut model).await);
    }
    findings
}

#[tokio::test]
async fn finds_nothing_where_the_promise_is_kept() {
    assert_eq!(findings(Lie::None).await, Vec::<String>::new());
}

#[tokio::test]
async fn finds_every_lie() {
    for (lie, expected) in [
        (Lie::ForgetsAJob, "was accepted and is not there"),
        (Lie::LosesTheJobOfAMessage, "has 0 jobs, not one"),
        (Lie::ForgetsWhatARunSaid, "was told"),
        (Lie::ForgetsWhatARunSays, "was told"),
        (Lie::SaysWithoutALease, "was told"),
        (Lie::DoesWhatItRefuses, "was refused, and what it said is there"),
        (Lie::FinishesWithoutALease, "finished 2 times"),
        (Lie::FinishesAndForgets, "finished in attempt 1 and now"),
        (Lie::MovesAnEvent, "told"),
        (Lie::ForgetsAnAnswer, "was answered true and is pending"),
        (Lie::AnswersTwice, "was answered 2 times"),
        (Lie::AnswersLate, "its time was over"),
        (Lie::ForgetsALapse, "was said to be expired and is"),
        (Lie::BeginsTwice, "Intent is there 1 times; 2 told"),
        (Lie::BeginsWithoutUsing, "a call began with it and does not name it"),
        (Lie::ForgetsAnOutcome, "Outcome is there 0 times; 1 told"),
        (Lie::ForgetsARefusal, "Refused is there 0 times; 1 told"),
        (Lie::ForgetsAPark, "was parked 0 times; 1 were told"),
        (Lie::ForgetsACancel, "was cancelled and is pending"),
        (Lie::CancelsInSilence, "has 0 notes of its cancel, not 1"),
    ] {
        let findings = findings(lie).await;
        assert!(findings.iter().any(|finding| finding.contains(expected)), "{lie:?}: {findings:#?}");
    }
}

/// An operation whose player died before the reply may be stored or not, but never in part.
#[tokio::test]
async fn lets_a_message_that_is_unclear_be_there_or_not_but_not_half() {
    let world = World::new(1);
    let (message, job) = (world.messages[0].clone(), world.job(&mut Random::new(1)));
    let unclear = [Operation::AcceptMessage { message: message.clone(), job: job.clone() }];
    let none = store(Lie::None);
    check_unclear(&none, &world, &unclear, None).await;
    none.enqueue(job.clone()).await.unwrap();
    check_unclear(&none, &world, &unclear, Some("is not there, and its job is")).await;
    let whole = store(Lie::None);
    whole.accept_message(message.clone(), job.clone()).await.unwrap();
    check_unclear(&whole, &world, &unclear, None).await;
    let half = store(Lie::LosesTheJobOfAMessage);
    half.accept_message(message, job).await.unwrap();
    check_unclear(&half, &world, &unclear, Some("has 0 jobs, not one")).await;
}

#[tokio::test]
async fn lets_a_run_that_is_unclear_have_ended_or_not_but_not_half() {
    let world = World::new(1);
    let (store, job) = (store(Lie::None), world.jobs[0].clone());
    store.enqueue(job.clone()).await.unwrap();
    let (worker, lanes, now) = (fixture::worker("a"), vec![world.lane.clone()], fixture::NOW);
    let (_, lease) = store.claim(Claim { worker, lanes, now, until: now }).await.unwrap().unwrap();
    let said = vec![world.message(Random::new(1).id(), world.sessions[0].clone(), Role::Assistant)];
    let run = Operation::FinishRun { right: Right::from(&lease), said: said.clone() };
    let unclear = [Operation::Enqueue { job }, Operation::Claim { now, until: now }, run];
    check_unclear(&store, &world, &unclear, None).await;
    store.finish_job(&lease).await.unwrap();
    check_unclear(&store, &world, &unclear, Some("what its run said is not there")).await;
    let message = said[0].clone();
    store.work.accept_message(message, world.job(&mut Random::new(2))).await.unwrap();
    check_unclear(&store, &world, &unclear, None).await;
}

/// Asserts that a store fits these operations without replies, or gives one finding.
async fn check_unclear(store: &Liar, world: &World, unclear: &[Operation], expected: Option<&str>) {
    let mut model = Model::new(world);
    model.add(unclear.iter().map(|operation| Step { operation: operation.clone(), reply: None }));
    let findings = model.check(&model.look(store).await.unwrap());
    assert_eq!(findings.len(), usize::from(expected.is_some()), "{findings:#?}");
    assert!(findings.iter().all(|finding| finding.contains(expected.unwrap_or_default())), "{findings:#?}");
}

fn store(lie: Lie) -> Liar {
    Liar { work: MemoryWork::new(), lie }
}

#[async_trait::async_trait]
impl Ledger for Liar {
    async fn refuse(&self, record: Record) -> Result<(), StoreError> {
        if self.lie == Lie::ForgetsARefusal { Ok(()) } else { self.work.calls().refuse(record).await }
    }
    async fn begin_call(&self, mut record: Record) -> Result<(), StoreError> {
        if let (Lie::BeginsWithoutUsing, EntryEvent::Intent { approval, .. }) = (self.lie, &mut record.event)
        {
            *approval = None;
        }
        match self.work.calls().begin_call(record).await {
            Err(StoreError::AlreadyBegun { .. }) if self.lie == Lie::BeginsTwice => Ok(()),
            answer => answer,
        }
    }
    async fn finish_call(&self, record: Record) -> Result<(), StoreError> {
        if self.lie == Lie::ForgetsAnOutcome { Ok(()) } else { self.work.calls().finish_call(record).await }
    }
    async fn fate(&self, tenant: &TenantId, call: CallId) -> Result<Option<Outcome>, StoreError> {
        self.work.calls().fate(tenant, call).await
    }
    async fn recent(&self, tenant: &TenantId, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.work.calls().recent(tenant, limit).await
    }
    async fn entries(&self, tenant: &TenantId, page: &EntryPage) -> Result<Vec<(u64, Entry)>, StoreError> {
        self.work.calls().entries(tenant, page).await
    }
    async fn tally(&self, tenant: &TenantId, session: &SessionKey) -> Result<Tally, StoreError> {
        self.work.calls().tally(tenant, session).await
    }
}

#[async_trait::async_trait]
impl Approvals for Liar {
    async fn request(&self, new: NewApproval) -> Result<Approval, StoreError> {
        self.work.request(new).await
    }
    async fn approval(&self, tenant: &TenantId, id: ApprovalId) -> Result<Option<Approval>, StoreError> {
        self.work.approval(tenant, id).await
    }
    async fn pending(&self, tenant: &TenantId, now: UnixMillis) -> Result<Vec<Approval>, StoreError> {
        self.work.pending(tenant, now).await
    }
    async fn answer(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        mut answer: Answer,
    ) -> Result<Approval, StoreError> {
        if self.lie == Lie::AnswersLate {
            answer.at = fixture::NOW;
        }
        let before = self.work.approval(tenant, id).await?.unwrap();
        match (self.lie, before.state) {
            (Lie::ForgetsAnAnswer, ApprovalState::Pending) | (Lie::AnswersTwice, ApprovalState::Approved) => {
                Ok(before)
            }
            (Lie::ForgetsALapse, ApprovalState::Pending) if answer.at >= EXPIRY => {
                Err(StoreError::ApprovalState { id, state: "expired" })
            }
            _ => self.work.answer(tenant, id, answer).await,
        }
    }
    async fn take_values(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
    ) -> Result<Option<Map<String, Value>>, StoreError> {
        self.work.take_values(tenant, id).await
    }
    async fn close(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        state: ApprovalState,
    ) -> Result<Approval, StoreError> {
        self.work.close(tenant, id, state).await
    }
}

impl Changes for Liar {
    fn changes(&self, of: Topic) -> watch::Receiver<u64> {
        self.work.changes(of)
    }
}

#[async_trait::async_trait]
impl Queue for Liar {
    async fn enqueue(&self, job: NewJob) -> Result<(), StoreError> {
        if self.lie == Lie::ForgetsAJob { Ok(()) } else { self.work.enqueue(job).await }
    }
    async fn claim(&self, claim: Claim) -> Result<Option<(Job, Lease)>, StoreError> {
        self.work.claim(claim).await
    }
    async fn extend(&self, lease: &Lease, until: UnixMillis) -> Result<Lease, StoreError> {
        self.work.extend(lease, until).await
    }
    async fn finish_job(&self, lease: &Lease) -> Result<(), StoreError> {
        if self.lie == Lie::FinishesAndForgets {
            return self.work.extend(lease, lease.until).await.map(drop);
        }
        match (self.lie, self.work.finish_job(lease).await) {
            (Lie::FinishesWithoutALease, Err(_)) => Ok(()),
            (_, answer) => answer,
        }
    }
    async fn fail_job(&self, lease: &Lease, failure: Failure) -> Result<JobState, StoreError> {
        self.work.fail_job(lease, failure).await
    }
    async fn reclaim(&self, worker: &Worker, now: UnixMillis) -> Result<Vec<JobId>, StoreError> {
        self.work.reclaim(worker, now).await
    }
    async fn release(&self, tenant: &TenantId, job: JobId, now: UnixMillis) -> Result<bool, StoreError> {
        self.work.release(tenant, job, now).await
    }
    async fn wake(&self, tenant: &TenantId, job: JobId) -> Result<bool, StoreError> {
        self.work.wake(tenant, job).await
    }
    async fn cancel_requests(&self, jobs: &[JobId]) -> Result<Vec<JobId>, StoreError> {
        self.work.cancel_requests(jobs).await
    }
    async fn jobs(&self, tenant: &TenantId, filter: &JobFilter) -> Result<Vec<Job>, StoreError> {
        self.work.jobs(tenant, filter).await
    }
    async fn job(&self, tenant: &TenantId, id: JobId) -> Result<Option<Job>, StoreError> {
        self.work.job(tenant, id).await
    }
    async fn open_jobs_of(&self, tenant: &TenantId, user: Option<&UserId>) -> Result<u64, StoreError> {
        self.work.open_jobs_of(tenant, user).await
    }
    async fn lanes(&self, tenant: &TenantId) -> Result<Vec<LaneCount>, StoreError> {
        self.work.lanes(tenant).await
    }
}

#[async_trait::async_trait]
impl SessionLog for Liar {
    async fn accept_message(&self, message: NewMessage, mut job: NewJob) -> Result<Accepted, StoreError> {
        if self.lie == Lie::LosesTheJobOfAMessage {
            job.id = JobId::new();
        }
        self.work.accept_message(message, job).await
    }
    async fn say_in_run(&self, lease: &Lease, said: Vec<NewMessage>) -> Result<Vec<u64>, StoreError> {
        match self.lie {
            Lie::ForgetsWhatARunSays => {
                self.work.extend(lease, lease.until).await?;
                Ok(said.iter().zip(1..).map(|(_, seq)| seq).collect())
            }
            Lie::SaysWithoutALease => match self.work.say_in_run(lease, said.clone()).await {
                Err(_) => Ok(said.iter().zip(1..).map(|(_, seq)| seq).collect()),
                said => said,
            },
            _ => self.work.say_in_run(lease, said).await,
        }
    }
    async fn take_waiting(&self, lease: &Lease, priority: i16) -> Result<usize, StoreError> {
        self.work.take_waiting(lease, priority).await
    }
    async fn summarise(&self, lease: &Lease, of: &Owner, summary: Summary) -> Result<(), StoreError> {
        self.work.summarise(lease, of, summary).await
    }
    async fn summary(&self, tenant: &TenantId, session: &SessionKey) -> Result<Option<Summary>, StoreError> {
        self.work.summary(tenant, session).await
    }
    async fn finish_run(&self, lease: &Lease, finish: Finish) -> Result<Finished, StoreError> {
        match self.lie {
            Lie::ForgetsWhatARunSaid => {
                self.work.finish_job(lease).await?;
                let places = finish.said.iter().zip(1..).map(|(_, seq)| seq).collect();
                Ok(Finished { places, announced: None })
            }
            Lie::DoesWhatItRefuses => {
                self.work.finish_run(lease, finish).await?;
                Err(StoreError::LeaseLost { job: lease.job })
            }
            _ => self.work.finish_run(lease, finish).await,
        }
    }
    async fn log_event(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        at: UnixMillis,
        event: SessionEventBody,
    ) -> Result<u64, StoreError> {
        let seq = self.work.log_event(tenant, session, at, event).await?;
        Ok(if self.lie == Lie::MovesAnEvent { seq + 1 } else { seq })
    }
    async fn log_events(&self, events: Vec<NewEvent>) -> Result<(), StoreError> {
        self.work.log_events(events).await
    }
    fn session_changes(&self, of: &Owner) -> watch::Receiver<u64> {
        self.work.session_changes(of)
    }
    async fn messages(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError> {
        let mut messages = self.work.messages(tenant, session, after, limit).await?;
        messages.retain(|message| self.lie != Lie::CancelsInSilence || message.new.role != Role::System);
        Ok(messages)
    }
    async fn events(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<SessionEvent>, StoreError> {
        self.work.events(tenant, session, after, limit).await
    }
    async fn feed(&self, tenant: &TenantId, after: u64, limit: usize) -> Result<Vec<FeedEvent>, StoreError> {
        self.work.feed(tenant, after, limit).await
    }
    async fn feed_end(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        self.work.feed_end(tenant).await
    }
}

#[async_trait::async_trait]
impl Runs for Liar {
    async fn park(&self, lease: &Lease, parking: Parking) -> Result<JobState, StoreError> {
        if self.lie == Lie::ForgetsAPark {
            return self.work.extend(lease, parking.until).await.map(|_| JobState::Parked);
        }
        self.work.park(lease, parking).await
    }
    async fn cancel(&self, tenant: &TenantId, job: JobId, cancel: Cancel) -> Result<Cancelled, StoreError> {
        if self.lie == Lie::ForgetsACancel {
            let found = self.work.job(tenant, job).await?;
            let ended = found.filter(|found| found.state == JobState::Pending).map(|_| job);
            return Ok(Cancelled { ended: ended.into_iter().collect(), ..Cancelled::default() });
        }
        self.work.cancel(tenant, job, cancel).await
    }
}
