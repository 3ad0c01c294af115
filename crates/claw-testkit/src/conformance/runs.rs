//! The suite of [`Runs`]: a parked run misses no wake-up, a cancelled one never runs again, a child's end is
//! announced once.
//!
//! Run it on a runtime with several threads: the racing tests are worth little on one.

mod announcing;
mod cancelling;
mod parking;
mod racing;
mod whole;

use std::time::Duration;

use claw_core::port::UnixMillis;
use claw_core::store::{
    Answer, Approval, ApprovalState, Cancel, Claim, Job, JobState, Lease, Message, NewApproval, NewJob,
    Parking, Queue, Runs, SessionEvent, SessionLog, StoreError, Worker,
};
use claw_core::{ApprovalId, CallId, JobId, TenantId};
use serde_json::{Value, json};

use crate::fixture::{NOW, job_of, message, question, session, worker};

pub use whole::runs_in_store;

/// The duration of the suite's leases.
const LEASE: Duration = Duration::from_secs(60);
/// Until when its runs are parked.
const LATER: UnixMillis = UnixMillis(NOW.0 + 3_600_000);

/// Runs the suite; `make` creates an empty store.
pub async fn runs<S: Runs + 'static>(make: impl AsyncFn() -> S) {
    parking::suite(&make).await;
    cancelling::suite(&make).await;
    announcing::suite(&make).await;
    racing::suite(&make).await;
}

/// Accepts a message of this session, with its job.
async fn accept(store: &impl SessionLog, key: &str) -> NewJob {
    let new = job_of(key);
    store.accept_message(message(key, "hello"), new.clone()).await.unwrap();
    new
}

async fn take(store: &impl Queue, worker: &Worker, now: UnixMillis) -> Option<(Job, Lease)> {
    let claim = Claim { worker: worker.clone(), lanes: vec!["main".into()], now, until: now.plus(LEASE) };
    store.claim(claim).await.unwrap()
}

/// Claims at [`NOW`] and expects this job.
async fn take_this(store: &impl Queue, worker: &Worker, id: JobId) -> Lease {
    let (job, lease) = take(store, worker, NOW).await.expect("a job is claimable");
    assert_eq!(job.new.id, id);
    lease
}

/// Accepts a job and claims it.
async fn begin(store: &impl SessionLogAndQueue, key: &str) -> Lease {
    let new = accept(store, key).await;
    take_this(store, &worker("a"), new.id).await
}

/// The two traits that a run needs.
trait SessionLogAndQueue: SessionLog + Queue {}
impl<S: SessionLog + Queue> SessionLogAndQueue for S {}

/// Asks for an approval in the run of a lease.
async fn ask(store: &impl Runs, lease: &Lease) -> ApprovalId {
    ask_with(store, NewApproval { run: Some(lease.job), ..question(CallId::new(), "ls") }).await
}

async fn ask_with(store: &impl Runs, question: NewApproval) -> ApprovalId {
    store.request(question).await.unwrap().id
}

fn until_answered(approvals: &[ApprovalId]) -> Parking {
    Parking { approvals: approvals.to_vec(), at: NOW, until: LATER }
}

/// Begins a run in this session, asks in it and parks it.
async fn parked(store: &impl Runs, key: &str) -> (Lease, ApprovalId) {
    let lease = begin(store, key).await;
    let approval = ask(store, &lease).await;
    assert_eq!(store.park(&lease, until_answered(&[approval])).await.unwrap(), JobState::Parked);
    (lease, approval)
}

async fn answer(store: &impl Runs, id: ApprovalId, approve: bool) -> Result<Approval, StoreError> {
    store
        .answer(
            &TenantId::main(),
            id,
            Answer { approve, by: "ann".to_owned(), at: NOW, reason: None, values: None },
        )
        .await
}

fn by_ann() -> Cancel {
    Cancel { at: NOW, by: "ann".to_owned(), note: note() }
}

fn note() -> Value {
    json!([{ "type": "text", "text": "the run was cancelled" }])
}

async fn find(store: &impl Queue, id: JobId) -> Job {
    store.job(&TenantId::main(), id).await.unwrap().expect("the job is there")
}

async fn state(store: &impl Queue, id: JobId) -> JobState {
    find(store, id).await.state
}

async fn approval_state(store: &impl Runs, id: ApprovalId) -> ApprovalState {
    store.approval(&TenantId::main(), id).await.unwrap().expect("the approval is there").state
}

async fn messages(store: &impl SessionLog, key: &str) -> Vec<Message> {
    store.messages(&TenantId::main(), &session(key), 0, usize::MAX).await.unwrap()
}

async fn events(store: &impl SessionLog, key: &str) -> Vec<SessionEvent> {
    store.events(&TenantId::main(), &session(key), 0, usize::MAX).await.unwrap()
}

#[track_caller]
fn check_lost<T: std::fmt::Debug>(result: Result<T, StoreError>, lease: &Lease) {
    match result {
        Err(StoreError::LeaseLost { job }) => assert_eq!(job, lease.job),
        other => panic!("expected a lost lease, got {other:?}"),
    }
}
