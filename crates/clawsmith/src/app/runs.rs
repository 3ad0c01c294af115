//! Runs: agents that answer, wait or were stopped, on any node.

use claw_core::port::{Clock as _, UnixMillis};
use claw_core::store::{CancelRequest, Cancelled, Job, JobFilter, JobState, Store, Worker};
use claw_core::{JobId, SessionKey};
use claw_host::SystemClock;
use serde::Serialize;
use smol_str::SmolStr;

use super::sessions::cancel;
use super::{App, Error};

/// The effect of cancelling a run.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct CancelledRuns {
    /// Runs without a worker: they have ended.
    pub ended: Vec<JobId>,
    /// Runs that a worker ends as soon as it gets the request.
    pub told: Vec<JobId>,
    /// Runs that were over before.
    pub over: Vec<JobId>,
}

/// A run, for a person or a program that looks after it.
#[derive(Debug, Clone, Serialize)]
pub struct RunView {
    /// Id of the run.
    pub id: JobId,
    /// State of the run.
    pub state: JobState,
    /// The session that it answers in; `None` for work outside of sessions.
    pub session: Option<SessionKey>,
    /// The answering agent.
    pub agent: Option<String>,
    /// The user whose message it answers.
    pub user: Option<String>,
    /// The lane that workers take it from.
    pub lane: SmolStr,
    /// When it was accepted.
    pub accepted: UnixMillis,
    /// When it can be taken, or until when it waits for an approval.
    pub visible: UnixMillis,
    /// How often a worker took it.
    pub tries: u32,
    /// How often it waited for an approval.
    pub parks: u32,
    /// The request to stop it.
    pub cancel: Option<CancelRequest>,
    /// The worker that carries it.
    pub worker: Option<Worker>,
    /// The end of that worker's lease.
    #[serde(skip)]
    pub leased_until: Option<UnixMillis>,
    /// The last error.
    pub error: Option<String>,
    /// The run that started it.
    pub parent: Option<JobId>,
    /// The first run of its tree.
    pub root: JobId,
    /// The number of runs above it.
    pub depth: u16,
}

impl From<&Job> for RunView {
    fn from(job: &Job) -> Self {
        let text = |field: &str| job.new.payload[field].as_str().map(ToOwned::to_owned);
        Self {
            id: job.new.id,
            state: job.state,
            session: job.new.session.clone(),
            agent: text("agent"),
            user: text("user"),
            lane: job.new.lane.clone(),
            accepted: job.new.accepted,
            visible: job.new.visible,
            tries: job.tries(),
            parks: job.parks,
            cancel: job.cancel.clone(),
            worker: job.lease.as_ref().map(|lease| lease.worker.clone()),
            leased_until: job.lease.as_ref().map(|lease| lease.until),
            error: job.error.clone(),
            parent: job.new.lineage.map(|lineage| lineage.parent),
            root: job.new.root(),
            depth: job.new.depth(),
        }
    }
}

impl App {
    /// The runs of the tenant, newest first.
    pub async fn runs(&self, filter: &JobFilter) -> Result<Vec<Job>, Error> {
        let runs = self.store.jobs(self.tenant(), filter).await;
        runs.map_err(|error| Error::failed("the runs cannot be read").because(error))
    }

    /// Finds a run by its id, or by the beginning of one among unfinished runs.
    pub async fn find_run(&self, id: &str) -> Result<Job, Error> {
        let unknown =
            || Error::not_found(format!("there is no run `{id}`")).hint("clawsmith runs list --all");
        if let Ok(run) = id.parse::<JobId>() {
            let found = self.store.job(self.tenant(), run).await;
            let found = found.map_err(|error| Error::failed("the runs cannot be read").because(error))?;
            return found.ok_or_else(unknown);
        }
        let (beginning, mut runs) = (id.to_lowercase(), self.runs(&JobFilter::default()).await?);
        runs.retain(|job| !job.state.is_over() && job.new.id.to_string().starts_with(&beginning));
        match (beginning.is_empty(), runs.len()) {
            (false, 0 | 1) => runs.pop().ok_or_else(unknown),
            (true, _) => Err(unknown()),
            (false, count) => Err(Error::invalid(format!("`{id}` matches {count} runs"))
                .hint("clawsmith runs list, and give more of the id")),
        }
    }

    /// Cancels a run and all runs below it, on any node. A run keeps its results so far and reports the
    /// cancel in its session.
    pub async fn cancel_run(&self, run: JobId, by: &str) -> Result<CancelledRuns, Error> {
        let store: &dyn Store = &*self.store;
        let Cancelled { ended, told, over } = cancel(store, self.tenant(), run, by).await?;
        Ok(CancelledRuns { ended, told, over })
    }

    /// Takes a run from its worker, so that any worker can resume it now. Returns `false` if it is over, or
    /// waits for an approval.
    pub async fn release_run(&self, run: JobId) -> Result<bool, Error> {
        let released = self.store.release(self.tenant(), run, SystemClock.now()).await;
        released.map_err(|error| Error::failed("the run could not be released").because(error))
    }
}
