//! Takes runs from the queue and carries each to its end.
//!
//! A worker holds a run by a lease that it extends while the run goes on. If a worker dies, its lease expires
//! and another worker resumes the run from what is stored. A failed run is retried if that may help;
//! otherwise it is reported in its session: no run ends unreported.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use claw_core::JobId;
use claw_core::port::{Fault, UnixMillis};
use claw_core::store::{
    self, Claim, Failure, Job, JobEnd, Lease, Parking, RunEvent, SessionEventBody, StoreError, Topic,
};
use smol_str::SmolStr;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::run::{GivenUp, Run, Stopping, Went};
use crate::{Deployment, RunError};

/// The longest wait before a failed run is retried.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The settings of a worker.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// The node and boot of this worker.
    pub worker: store::Worker,
    /// The lanes that it takes runs from.
    pub lanes: Vec<SmolStr>,
    /// The most runs at a time.
    pub slots: usize,
    /// The duration of a lease without extension.
    pub lease: Duration,
    /// The interval at which it polls for work that was not announced.
    pub poll: Duration,
}

impl WorkerOptions {
    /// Returns the defaults for a worker of these lanes.
    pub fn new(worker: store::Worker, lanes: impl IntoIterator<Item = SmolStr>) -> Self {
        Self {
            worker,
            lanes: lanes.into_iter().collect(),
            slots: 8,
            lease: Duration::from_secs(60),
            poll: Duration::from_secs(1),
        }
    }
}

/// Takes runs from the queue. Cheap to clone; clones are the same worker.
#[derive(Clone)]
pub struct Worker(Arc<Inner>);

struct Inner {
    /// The parts that the next run is made with.
    deployment: RwLock<Deployment>,
    options: WorkerOptions,
    running: Mutex<HashMap<JobId, Stopping>>,
    /// The worker ends: runs that it drops are parked, so that another worker takes them at once.
    hands_over: AtomicBool,
}

impl Worker {
    /// Makes a worker that has not started.
    pub fn new(deployment: Deployment, options: WorkerOptions) -> Self {
        let (running, hands_over) = (Mutex::default(), AtomicBool::new(false));
        let deployment = RwLock::new(deployment);
        Self(Arc::new(Inner { deployment, options, running, hands_over }))
    }

    /// Makes the runs that begin from now on with these parts. Runs that go on keep theirs. Store, clock and chronicle must
    /// be the same.
    pub fn set_deployment(&self, deployment: Deployment) {
        *self.0.deployment.write().unwrap_or_else(PoisonError::into_inner) = deployment;
    }

    fn deployment(&self) -> Deployment {
        self.0.deployment.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Works until `stop` is cancelled; runs in progress are then carried to their end. If the store is
    /// unavailable for a while, it is tried again.
    pub async fn work(&self, stop: CancellationToken) -> Result<(), StoreError> {
        let (deployment, options) = (self.deployment(), &self.0.options);
        let mut changes = deployment.store.changes(Topic::Work);
        let mut runs = JoinSet::new();
        let mut reclaimed = None;
        while !stop.is_cancelled() {
            changes.mark_unchanged();
            self.obey_cancels().await;
            match self.take(&mut runs, &mut reclaimed, &stop).await {
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, "runs could not be claimed from the queue; the claim is retried");
                }
                taken => taken?,
            }
            tokio::select! {
                () = stop.cancelled() => {}
                changed = changes.changed() => if changed.is_err() { break },
                Some(ended) = runs.join_next() => note_panic(ended),
                () = tokio::time::sleep(options.poll) => {}
            }
        }
        while !runs.is_empty() {
            changes.mark_unchanged();
            self.obey_cancels().await;
            tokio::select! {
                Some(ended) = runs.join_next() => note_panic(ended),
                _ = changes.changed() => {}
                () = tokio::time::sleep(options.poll) => {}
            }
        }
        Ok(())
    }

    /// Starts as many runs as there are slots for.
    async fn take(
        &self,
        runs: &mut JoinSet<()>,
        reclaimed: &mut Option<UnixMillis>,
        stop: &CancellationToken,
    ) -> Result<(), StoreError> {
        let (deployment, options) = (self.deployment(), &self.0.options);
        let now = deployment.clock.now();
        if reclaimed.is_none_or(|last| now.since(last) >= options.lease / 2) {
            deployment.store.reclaim(&options.worker, now).await?;
            *reclaimed = Some(now);
        }
        while runs.len() < options.slots
            && !stop.is_cancelled()
            && let Some((job, lease)) = self.claim().await?
        {
            let worker = self.clone();
            runs.spawn(async move { worker.carry(job, lease).await });
        }
        Ok(())
    }

    /// Carries out all claimable runs, one after the other; returns their number.
    pub async fn drain(&self) -> Result<usize, StoreError> {
        let (deployment, options) = (self.deployment(), &self.0.options);
        deployment.store.reclaim(&options.worker, deployment.clock.now()).await?;
        let mut count = 0;
        while let Some((job, lease)) = self.claim().await? {
            self.carry(job, lease).await;
            count += 1;
        }
        Ok(count)
    }

    /// Ends a run of this worker at once, with the model's stream and its tools. `false` if it has no such
    /// run.
    pub fn abort(&self, run: JobId) -> bool {
        let running = self.running();
        running.get(&run).inspect(|stopping| stopping.now.cancel()).is_some()
    }

    /// Drops every run of this worker where it stands, for another worker to take at once. What was stored stays; calls
    /// that were begun are not repeated. [`work`](Self::work) returns when all runs are handed over.
    pub fn hand_over(&self) {
        self.0.hands_over.store(true, Ordering::Release);
        self.running().values().for_each(Stopping::lose);
    }

    /// Stops the runs of this worker that were cancelled from any process. If the store is unavailable, it is
    /// asked again.
    async fn obey_cancels(&self) {
        let runs: Vec<JobId> = self.running().keys().copied().collect();
        if runs.is_empty() {
            return;
        }
        match self.deployment().store.cancel_requests(&runs).await {
            Ok(cancelled) => {
                for run in cancelled {
                    self.abort(run);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cancel requests could not be read; the read is retried");
            }
        }
    }

    async fn claim(&self) -> Result<Option<(Job, Lease)>, StoreError> {
        let (deployment, options) = (self.deployment(), &self.0.options);
        let now = deployment.clock.now();
        let (worker, lanes) = (options.worker.clone(), options.lanes.clone());
        deployment.store.claim(Claim { worker, lanes, now, until: now.plus(options.lease) }).await
    }

    /// Carries one run to its end, whatever that is.
    async fn carry(&self, job: Job, lease: Lease) {
        let deployment = self.deployment();
        let attempts = attempts(&deployment, &job).await;
        if job.tries() > attempts.into() {
            // The run has used all attempts, and its last worker died.
            let why = format!("the run was started {attempts} times and never finished");
            self.report(&job, &lease, &why).await;
            return deployment.chronicle.written().await;
        }
        if let Some(request) = &job.cancel {
            // The run's worker died before it could obey the cancel request.
            let by = request.by.clone();
            let why = format!("the run was stopped by {by}");
            let given_up = GivenUp { why: &why, end: JobEnd::Cancelled, event: RunEvent::Cancelled { by } };
            self.end(&job, &lease, given_up).await;
            return deployment.chronicle.written().await;
        }
        let stopping = Stopping::default();
        self.running().insert(lease.job, stopping.clone());
        if self.hands_over() {
            stopping.lose();
        }
        let attempt = lease.attempt;
        self.tell(
            &job,
            match job.tries() {
                1 if attempt == 1 => RunEvent::Began { attempt },
                1 => RunEvent::Woken,
                _ => RunEvent::Resumed { attempt },
            },
        );
        let ended = tokio::select! {
            ended = try_run(&deployment, &job, &lease, &stopping) => ended,
            never = self.keep(&lease, &stopping) => match never {},
        };
        self.running().remove(&lease.job);
        match ended {
            // Its end and the event of it are stored.
            Ok(Went::Ended) => {}
            Ok(Went::Parked(parking)) => self.park(&job, &lease, parking).await,
            Err(RunError::Lost) if self.hands_over() => {
                // Whoever takes it tells its session that it goes on.
                let now = deployment.clock.now();
                let parking = Parking { approvals: Vec::new(), at: now, until: now };
                if let Err(error) = deployment.store.park(&lease, parking).await {
                    tracing::warn!(run = %lease.job, %error, "a run could not be handed over");
                }
            }
            Err(RunError::Lost) => tracing::info!(run = %lease.job, "another worker has taken the run over"),
            Err(error) => self.failed(&job, &lease, error).await,
        }
        deployment.chronicle.written().await;
    }

    /// Parks a run: its slot is free until an approval is answered or expires.
    async fn park(&self, job: &Job, lease: &Lease, parking: Parking) {
        let until = parking.until;
        match self.deployment().store.park(lease, parking).await {
            Ok(_) => self.tell(job, RunEvent::Parked { until }),
            // The lease ends, and the run is resumed from what is stored.
            Err(error) => tracing::warn!(run = %lease.job, %error, "a run could not be parked"),
        }
    }

    /// Extends the lease while the run goes on. If the lease is lost, the run ends.
    async fn keep(&self, lease: &Lease, stopping: &Stopping) -> std::convert::Infallible {
        let (deployment, options) = (self.deployment(), &self.0.options);
        loop {
            tokio::time::sleep(options.lease / 3).await;
            let until = deployment.clock.now().plus(options.lease);
            match deployment.store.extend(lease, until).await {
                Ok(_) => {}
                Err(StoreError::LeaseLost { .. }) => stopping.lose(),
                // The lease may still hold; if not, storing fails.
                Err(error) => tracing::warn!(run = %lease.job, %error, "a lease could not be extended"),
            }
        }
    }

    /// Gives a run back to be retried, or reports it.
    async fn failed(&self, job: &Job, lease: &Lease, error: RunError) {
        let deployment = self.deployment();
        let scrubber = deployment.executor.scrubbers().for_tenant(&job.new.tenant);
        let why = scrubber.text(&error.to_string());
        tracing::warn!(run = %lease.job, attempt = lease.attempt, error = why, "a run failed");
        let attempts = attempts(&deployment, job).await;
        if error.is_transient() && job.tries() < attempts.into() {
            let retry = deployment.clock.now().plus(wait(&error, job.tries()));
            let failed = RunEvent::Failed { why: why.clone(), retry };
            let failure = Failure { error: why, retry: Some(retry) };
            match deployment.store.fail_job(lease, failure).await {
                Ok(_) => self.tell(job, failed),
                Err(error) => {
                    tracing::error!(run = %lease.job, %error, "a failed run could not be put back into the queue");
                }
            }
            return;
        }
        self.report(job, lease, &format!("the run failed: {why}")).await;
    }

    /// Gives up a run, with a note in its session.
    async fn report(&self, job: &Job, lease: &Lease, why: &str) {
        let event = RunEvent::Reported { why: why.to_owned() };
        self.end(job, lease, GivenUp { why, end: JobEnd::Done, event }).await;
    }

    /// Ends a run that is not continued, with a note in its session.
    async fn end(&self, job: &Job, lease: &Lease, given_up: GivenUp<'_>) {
        let deployment = self.deployment();
        let (why, event) = (given_up.why, given_up.event.clone());
        let reported = match crate::run::report(&deployment, job, lease, given_up).await {
            // Without a valid order, the run cannot be reported in its session.
            Err(RunError::Unreadable(_)) => {
                let failure = Failure { error: why.to_owned(), retry: None };
                let failed = deployment.store.fail_job(lease, failure).await;
                failed.map(|_| self.tell(job, event)).map_err(RunError::from)
            }
            reported => reported,
        };
        if let Err(error) = reported {
            // The lease ends, and the next worker reports the run.
            tracing::error!(run = %lease.job, %error, "a run could not be reported");
        }
    }

    fn tell(&self, job: &Job, state: RunEvent) {
        if let Some(session) = &job.new.session {
            let event = SessionEventBody::Run { run: job.new.id, state };
            self.deployment().chronicle.tell(&job.new.tenant, session, event);
        }
    }

    fn hands_over(&self) -> bool {
        self.0.hands_over.load(Ordering::Acquire)
    }

    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<JobId, Stopping>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Carries a run as far as it goes, with the parts that it began with.
async fn try_run(
    deployment: &Deployment,
    job: &Job,
    lease: &Lease,
    stopping: &Stopping,
) -> Result<Went, RunError> {
    Run::read(deployment, job, lease, stopping.clone()).await?.go().await
}

/// How often the run may be tried. Where the store is away, that is left to the job itself.
async fn attempts(deployment: &Deployment, job: &Job) -> u16 {
    let Ok((order, _)) = crate::Order::of(job) else { return 0 };
    match deployment.profile(&job.new.tenant, &order.agent).await {
        Ok(profile) => profile.limits.attempts,
        Err(error) if error.is_transient() => job.new.max_attempts,
        Err(_) => 1,
    }
}

fn note_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a run panicked; when its lease expires, it is resumed");
    }
}

/// Returns the wait before a failed run is retried.
fn wait(error: &RunError, attempt: u32) -> Duration {
    let doubled = Duration::from_secs(1u64 << attempt.min(6));
    let asked = match error {
        RunError::Model(error) => match error.fault {
            Fault::RateLimited { retry_after } => retry_after,
            _ => None,
        },
        _ => None,
    };
    asked.unwrap_or(doubled).min(LONGEST_WAIT)
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Worker").field(&self.0.options).finish()
    }
}
