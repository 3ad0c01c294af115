//! `clawsmith runs`: agents that answer, wait or were stopped, in any process.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use claw_core::SessionKey;
use claw_core::port::{Clock as _, UnixMillis};
use claw_core::store::{Job, JobFilter, JobState};
use claw_host::SystemClock;
use serde_json::{Value, json};

use super::ledger::time;
use crate::caller;
use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::with_existing_app;
use crate::output::{Cell, Table};

/// The operations on runs.
#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    /// List the runs that are not over, newest first.
    #[command(after_help = "Examples:
  clawsmith runs list
  clawsmith runs list --all --last 100
  clawsmith runs list --session agent:default:cli:direct:me:notes --json")]
    List(List),
    /// Show a run: its state, its worker, and its parent and child runs.
    #[command(after_help = "Examples:
  clawsmith runs show 019b7611")]
    Show(Which),
    /// Stop a run, and all runs that it started, in any process.
    #[command(
        after_help = "What was said until then is kept, and the session says that the run was stopped. A run that \
waits for an approval or for its turn is over at once; a run that a worker carries ends as soon as the worker hears of it.

Examples:
  clawsmith runs cancel 019b7611"
    )]
    Cancel(Which),
    /// Take a run from an unresponsive worker, so that another resumes it at once.
    #[command(
        after_help = "The worker that had it can store nothing more of it. A run that waits to be tried \
again waits no longer. What was done is not done again.

Examples:
  clawsmith runs release 019b7611"
    )]
    Release(Which),
}

/// The runs to list.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Also runs that are over.
    #[arg(long)]
    all: bool,
    /// Only runs of this session.
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// The number of last runs.
    #[arg(long, value_name = "N", default_value_t = 20)]
    last: usize,
}

/// A run.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The run's id, or an unambiguous beginning of one that is not over.
    id: String,
}

impl Runs {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::List(list) => list.run(session),
            Self::Show(which) => which.show(session),
            Self::Cancel(which) => which.cancel(session),
            Self::Release(which) => which.release(session),
        }
    }
}

impl List {
    fn run(&self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let key = self.session.as_ref().map(SessionKey::new).transpose();
        let key = key.map_err(|error| Failure::usage(format!("`--session`: {error}")))?;
        let states = JobState::ALL.into_iter().filter(|state| self.all || !state.is_over()).collect();
        let filter = JobFilter { session: key, states, limit: self.last, ..JobFilter::default() };
        let runs = with_existing_app(&setup, async |app| Ok(app.runs(&filter).await?))?.unwrap_or_default();
        if session.out.json {
            session.out.json(&runs.iter().map(as_json).collect::<Vec<_>>())?;
            return Ok(ExitCode::SUCCESS);
        }
        if runs.is_empty() {
            session.out.line(if self.all { "no runs" } else { "no runs are waiting or running" })?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut table = Table::new(["id", "state", "since", "agent", "session", "tries"]);
        for job in &runs {
            table.row([
                Cell::strong(job.new.id),
                state(job),
                Cell::quiet(time(job.new.accepted)),
                Cell::new(agent(job)),
                Cell::new(job.new.session.as_ref().map_or("-", |session| session.as_str())),
                Cell::quiet(job.tries()),
            ]);
        }
        session.out.table(&table)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Which {
    fn show(&self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let job = with_existing_app(&setup, async |app| Ok(app.find_run(&self.id).await?))?;
        let job = job.ok_or_else(|| self.unknown())?;
        if session.out.json {
            session.out.json(&as_json(&job))?;
            return Ok(ExitCode::SUCCESS);
        }
        let worker = job.lease.as_ref().map(|lease| {
            let left = lease.until.since(SystemClock.now()).as_secs();
            format!("{}, its lease lasts {left} s more unless it is extended", lease.worker.node)
        });
        let waits = (job.state == JobState::Parked).then(|| until(job.new.visible));
        let cancel =
            job.cancel.as_ref().map(|cancel| format!("asked for by {}, {}", cancel.by, time(cancel.at)));
        let lineage = job.new.lineage;
        let lines = [
            ("id", Some(job.new.id.to_string())),
            ("state", Some(job.state.name().to_owned())),
            ("waits", waits),
            ("stopping", cancel),
            ("agent", Some(agent(&job).to_owned())),
            ("session", job.new.session.as_ref().map(ToString::to_string)),
            ("lane", Some(job.new.lane.to_string())),
            ("accepted", Some(time(job.new.accepted))),
            ("tries", Some(job.tries().to_string())),
            ("worker", worker),
            ("error", job.error.clone()),
            ("parent", lineage.map(|lineage| lineage.parent.to_string())),
            ("root", lineage.map(|lineage| lineage.root.to_string())),
        ];
        for (name, value) in lines {
            if let Some(value) = value {
                session.out.field(name, &value)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn cancel(&self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let by = caller::user_of(&session.around).map_err(|error| Failure::usage(error.to_string()))?;
        let cancelled = with_existing_app(&setup, async |app| {
            let job = app.find_run(&self.id).await?;
            Ok((job.new.id, app.cancel_run(job.new.id, by.as_str()).await?))
        })?;
        let (run, cancelled) = cancelled.ok_or_else(|| self.unknown())?;
        if session.out.json {
            session.out.json(&json!({ "run": run, "cancelled": cancelled }))?;
            return Ok(ExitCode::SUCCESS);
        }
        for run in &cancelled.ended {
            session.out.line(format_args!("run {run} is cancelled"))?;
        }
        for run in &cancelled.told {
            session.out.line(format_args!("run {run} is being stopped by its worker"))?;
        }
        if cancelled.ended.is_empty() && cancelled.told.is_empty() {
            let failure = Failure::failed(format!("run `{run}` was over already; nothing was stopped"));
            return Err(failure.hint(format!("clawsmith runs show {run}")));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn release(&self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let released = with_existing_app(&setup, async |app| {
            let run = app.find_run(&self.id).await?.new.id;
            Ok((run, app.release_run(run).await?))
        })?;
        let (run, is_released) = released.ok_or_else(|| self.unknown())?;
        if !is_released {
            let why = "it is over, or waits for an approval";
            let failure = Failure::failed(format!("run `{run}` was not released: {why}"));
            return Err(failure.hint(format!("clawsmith runs show {run}")));
        }
        if session.out.json {
            session.out.json(&json!({ "run": run, "released": true }))?;
        } else {
            session.out.line(format_args!("run {run} can be taken up by any worker now"))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn unknown(&self) -> Failure {
        Failure::usage(format!("there is no run `{}`", self.id)).hint("clawsmith runs list --all")
    }
}

fn state(job: &Job) -> Cell {
    let name = job.state.name();
    match job.state {
        _ if job.cancel.is_some() && !job.state.is_over() => Cell::warning("stopping"),
        JobState::Leased => Cell::good("running"),
        JobState::Parked => Cell::warning("waits for approval"),
        JobState::Dead => Cell::bad(name),
        JobState::Pending | JobState::Done | JobState::Cancelled => Cell::new(name),
    }
}

fn agent(job: &Job) -> &str {
    job.new.payload["agent"].as_str().unwrap_or("-")
}

fn until(at: UnixMillis) -> String {
    format!("for an approval, until {}", time(at))
}

fn as_json(job: &Job) -> Value {
    json!({
        "id": job.new.id,
        "state": job.state,
        "session": job.new.session,
        "agent": job.new.payload["agent"],
        "user": job.new.payload["user"],
        "lane": job.new.lane,
        "accepted": job.new.accepted,
        "visible": job.new.visible,
        "tries": job.tries(),
        "parks": job.parks,
        "cancel": job.cancel,
        "worker": job.lease.as_ref().map(|lease| &lease.worker),
        "error": job.error,
        "parent": job.new.lineage.map(|lineage| lineage.parent),
        "root": job.new.root(),
        "depth": job.new.depth(),
    })
}
