//! `clawsmith runs`: agents that answer, wait or were stopped, in any process.

use clap::{Args, Subcommand};
use claw_core::SessionKey;
use claw_core::port::Clock as _;
use claw_core::store::{JobFilter, JobState};
use claw_host::SystemClock;
use claw_terminal::Cell;
use clawsmith::app::RunView;
use clawsmith::app::words::time;
use serde_json::json;

use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};

/// The operations on runs.
#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    /// List the runs that are not over, newest first.
    List(List),
    /// Show a run: its state, its worker, and its parent and child runs.
    Show(Which),
    /// Stop a run, and all runs that it started, in any process.
    Cancel(Which),
    /// Take a run away from an unresponsive worker, so that another worker can resume it at once.
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
    session: Option<SessionKey>,
    /// The number of last runs.
    #[arg(long, value_name = "N", default_value_t = 20)]
    last: usize,
}

/// A run.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The run's id. For an unfinished run, the first characters are enough if no other id begins with them.
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
    fn run(self, session: &mut Session) -> Outcome {
        let states = JobState::ALL.into_iter().filter(|state| self.all || !state.is_over()).collect();
        let filter = JobFilter { session: self.session, states, limit: self.last, ..JobFilter::default() };
        let runs = session.existing_app(async |app| app.runs(&filter).await)?.unwrap_or_default();
        let runs: Vec<RunView> = runs.iter().map(RunView::from).collect();
        session.list(
            &runs,
            if self.all { "no runs" } else { "no runs are waiting or running" },
            &[
                ("id", &|run| Cell::strong(run.id)),
                ("state", &state),
                ("since", &|run| Cell::quiet(time(run.accepted))),
                ("agent", &|run| Cell::new(run.agent.as_deref().unwrap_or("-"))),
                ("session", &|run| Cell::new(run.session.as_ref().map_or("-", |session| session.as_str()))),
                ("tries", &|run| Cell::quiet(run.tries)),
            ],
        )
    }
}

impl Which {
    fn show(&self, session: &mut Session) -> Outcome {
        let job = session.existing_app(async |app| app.find_run(&self.id).await)?;
        let run = RunView::from(&job.ok_or_else(|| self.unknown())?);
        let worker = run.worker.as_ref().zip(run.leased_until).map(|(worker, until)| {
            let left = until.since(SystemClock.now()).as_secs();
            format!("{}; its lease expires in {left} s unless it is extended", worker.node)
        });
        let waits =
            (run.state == JobState::Parked).then(|| format!("for an approval, until {}", time(run.visible)));
        let stopping =
            run.cancel.as_ref().map(|cancel| format!("requested by {}, {}", cancel.by, time(cancel.at)));
        session.shown(&run, |out| {
            Ok(out.fields([
                ("id", Some(run.id.to_string())),
                ("state", Some(run.state.name().to_owned())),
                ("waits", waits),
                ("stopping", stopping),
                ("agent", Some(run.agent.clone().unwrap_or_else(|| "-".to_owned()))),
                ("session", run.session.as_ref().map(ToString::to_string)),
                ("lane", Some(run.lane.to_string())),
                ("accepted", Some(time(run.accepted))),
                ("tries", Some(run.tries.to_string())),
                ("worker", worker),
                ("error", run.error.clone()),
                ("parent", run.parent.map(|parent| parent.to_string())),
                ("root", run.parent.map(|_| run.root.to_string())),
            ])?)
        })
    }

    fn cancel(&self, session: &mut Session) -> Outcome {
        let by = session.user(None)?;
        let cancelled = session.existing_app(async |app| {
            let run = app.find_run(&self.id).await?.new.id;
            app.cancel_run(run, by.as_str()).await.map(|cancelled| (run, cancelled))
        })?;
        let (run, cancelled) = cancelled.ok_or_else(|| self.unknown())?;
        session.shown(&json!({ "run": run, "cancelled": cancelled }), |out| {
            for run in &cancelled.ended {
                out.line(format_args!("run {run} is cancelled"))?;
            }
            for run in &cancelled.told {
                out.line(format_args!("run {run} is being stopped by its worker"))?;
            }
            if cancelled.ended.is_empty() && cancelled.told.is_empty() {
                let failure = Failure::failed(format!("run `{run}` had already ended; nothing was stopped"));
                return Err(failure.hint(format!("clawsmith runs show {run}")));
            }
            Ok(())
        })
    }

    fn release(&self, session: &mut Session) -> Outcome {
        let released = session.existing_app(async |app| {
            let run = app.find_run(&self.id).await?.new.id;
            app.release_run(run).await.map(|is_released| (run, is_released))
        })?;
        let (run, is_released) = released.ok_or_else(|| self.unknown())?;
        if !is_released {
            let why = "it has ended, or it waits for an approval";
            let failure = Failure::failed(format!("run `{run}` was not released: {why}"));
            return Err(failure.hint(format!("clawsmith runs show {run}")));
        }
        let value = json!({ "run": run, "released": true });
        session.told(&value, format_args!("any worker can resume run {run} now"))
    }

    fn unknown(&self) -> Failure {
        Failure::usage(format!("there is no run `{}`", self.id)).hint("clawsmith runs list --all")
    }
}

fn state(run: &RunView) -> Cell {
    let name = run.state.name();
    match run.state {
        _ if run.cancel.is_some() && !run.state.is_over() => Cell::warning("stopping"),
        JobState::Leased => Cell::good("running"),
        JobState::Parked => Cell::warning("waits for approval"),
        JobState::Dead => Cell::bad(name),
        JobState::Pending | JobState::Done | JobState::Cancelled => Cell::new(name),
    }
}
