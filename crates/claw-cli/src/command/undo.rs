//! `clawsmith undo`: the changes that tools made in files, and reverting them.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use claw_core::SessionKey;
use claw_core::store::{NewUndo, Undo as Change, UndoFilter};
use claw_host::files::Restored;
use claw_terminal::{Cell, Column, Table, style, tell};
use clawsmith::app::undo::{
    ChangeState, LastChanges, ListedChange, NOT_COVERED, UndoLog, Undone, change_json, change_kind,
};
use clawsmith::app::words::time;
use clawsmith::app::{App, real};
use serde_json::{Value, json};

use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};
use crate::opened::with_existing_app;

/// The number of skipped changes that are named.
const SKIPPED: usize = 5;
/// Lines of a diff that are shown.
const DIFF: usize = 2000;
/// Lines of each diff in a three-way view.
const SHORT_DIFF: usize = 40;

/// The operations on changes.
#[derive(Debug, Subcommand)]
pub(crate) enum Undo {
    /// List changes, newest first, and the commands that may have changed files.
    List(List),
    /// Show a change as a unified diff, without secrets.
    Show(Which),
    /// Put files back as they were before a change.
    Apply(Apply),
}

/// The changes to list.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// The number of last changes.
    #[arg(long, value_name = "N", default_value_t = 20)]
    last: usize,
    /// Only changes of this session.
    #[arg(long, value_name = "KEY")]
    session: Option<SessionKey>,
    /// Show the agent, call and run of each: a call or run can be undone as a whole.
    #[arg(long)]
    wide: bool,
    /// Also commands that only read.
    #[arg(long)]
    all: bool,
}

/// A change, or the changes of a call.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The id of a change. The id of a call or a run selects all its changes.
    #[arg(conflicts_with = "last")]
    id: Option<String>,
    /// The last call that changed something in the workspace of the current directory and can be undone.
    #[arg(long)]
    last: bool,
    /// All changes of this session that are not undone; with `--last`, its last call.
    #[arg(long, value_name = "KEY", conflicts_with = "id")]
    session: Option<SessionKey>,
}

/// The changes to undo.
#[derive(Debug, Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    which: Which,
    /// Also undo if somebody else changed the file since; its current content is kept.
    #[arg(long)]
    force: bool,
}

/// The journal, and the person's directory.
struct Work {
    log: UndoLog,
    directory: PathBuf,
}

impl Work {
    async fn new(session: &Session, app: &App) -> Result<Self, Failure> {
        Ok(Self { log: app.undo().await?, directory: real(&session.around.directory) })
    }
}

impl Undo {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let done = with_existing_app(&setup, async |app| {
            let work = Work::new(session, app).await?;
            match &self {
                Self::List(list) => list.run(session, &work).await,
                Self::Show(which) => work.show(session, which).await,
                Self::Apply(apply) => {
                    let changes = work.find(&apply.which).await?;
                    work.take_back(session, changes, apply.force).await
                }
            }
        })?;
        match (done, self) {
            (Some(code), _) => Ok(code),
            (None, Self::List(_)) => session.told(&json!([]), "no changes are recorded yet"),
            (None, _) => Err(Failure::failed("no changes are recorded yet")),
        }
    }
}

/// Undoes the changes of the last call of a session.
pub(crate) async fn last_of(session: &mut Session, app: &App, key: &SessionKey) -> Result<(), Failure> {
    let work = Work::new(session, app).await?;
    let filter = UndoFilter { session: Some(key.clone()), ..UndoFilter::default() };
    let changes = work.last(&filter, None).await?;
    work.take_back(session, changes, false).await.map(drop)
}

impl List {
    async fn run(&self, session: &mut Session, work: &Work) -> Outcome {
        let filter = UndoFilter { session: self.session.clone(), ..UndoFilter::default() };
        let listed = work.log.list(&filter, self.last, self.all).await?;
        let scrubber = work.log.scrubber();
        let value: Value = listed.iter().map(ListedChange::json).collect();
        session.shown(&scrubber.json(&value), |out| {
            if listed.is_empty() {
                return Ok(out.line("no changes of files are recorded")?);
            }
            let file = |one: &ListedChange| Cell::new(scrubber.text(&one.what(&work.directory)));
            // A name may be older than the secret that it holds.
            let agent = |one: &ListedChange| Cell::new(scrubber.text(one.by().1.as_str()));
            let key = |one: &ListedChange| Cell::new(scrubber.text(one.by().0.as_str()));
            let columns: [Column<'_, ListedChange>; 10] = [
                ("id", &|one| match one {
                    ListedChange::Change(change, _) => Cell::strong(change.new.id),
                    ListedChange::Command(_) => Cell::quiet("-"),
                }),
                ("time", &|one| Cell::quiet(time(one.at()))),
                ("change", &|one| match one {
                    ListedChange::Change(change, _) => Cell::new(change_kind(&change.new)),
                    ListedChange::Command(_) => Cell::new("command"),
                }),
                ("state", &|one| match one {
                    ListedChange::Change(_, state @ ChangeState::Stands) => Cell::good(state),
                    ListedChange::Change(_, state) => Cell::warning(state),
                    ListedChange::Command(_) => Cell::warning(NOT_COVERED),
                }),
                ("file", &file),
                ("tool", &|one| Cell::new(one.call().0)),
                ("agent", &agent),
                ("session", &key),
                ("call", &|one| Cell::quiet(one.call().1)),
                ("run", &|one| one.call().2.map_or_else(|| Cell::quiet("-"), Cell::quiet)),
            ];
            out.table(&Table::of(&listed, if self.wide { &columns } else { &columns[..5] }))?;
            out.flush()?;
            if listed.iter().any(|one| matches!(one, ListedChange::Command(_))) {
                tell("note: changes of the commands marked `not covered` cannot be undone");
            }
            Ok(())
        })
    }
}

impl Work {
    async fn find(&self, which: &Which) -> Result<Vec<Change>, Failure> {
        match (&which.id, &which.session) {
            (Some(id), _) => Ok(self.log.find(id).await?),
            (None, session) if which.last => {
                let filter = UndoFilter { session: session.clone(), ..UndoFilter::default() };
                self.last(&filter, session.is_none().then_some(self.directory.as_path())).await
            }
            (None, Some(session)) => Ok(self.log.of_session(session).await?),
            (None, None) => Err(Failure::usage("no change is named")
                .hint("use `--last` for the last change here, or an id of `clawsmith undo list`")),
        }
    }

    /// Returns the changes of the last call that can be undone; prints the skipped ones.
    async fn last(&self, filter: &UndoFilter, within: Option<&Path>) -> Result<Vec<Change>, Failure> {
        let LastChanges { changes, skipped } = self.log.last(filter, within).await?;
        for Change { new, .. } in skipped.iter().take(SKIPPED) {
            let file = self.log.scrubber().text(&new.shown);
            tell(format_args!("skipped `{file}` ({}): the file is as it was before the change", new.id));
        }
        match skipped.len().saturating_sub(SKIPPED) {
            0 => {}
            more => tell(format_args!("skipped {more} more")),
        }
        Ok(changes?)
    }

    /// Undoes these changes, all or none.
    async fn take_back(&self, session: &mut Session, changes: Vec<Change>, force: bool) -> Outcome {
        let scrubber = self.log.scrubber();
        let by = session.user(None)?;
        let (call, restored) = match self.log.apply(changes, force, by.as_str()).await? {
            Undone::Done { call, restored } => (call, restored),
            Undone::Changed(steps) => {
                for step in &steps {
                    let Some((change, since)) = self.log.three_ways(step, SHORT_DIFF).await? else {
                        continue;
                    };
                    let shown = step.changes.first().map(|change| scrubber.text(&change.new.shown));
                    let shown = shown.unwrap_or_default();
                    session.out.heading(&format!("`{shown}`: the change to be undone"))?;
                    session.out.diff(&change)?;
                    session.out.heading("Changes since then")?;
                    session.out.diff(&since)?;
                }
                let failure = Failure::failed("somebody else changed a file since; nothing was undone");
                return Err(failure
                    .hint("`--force` undoes the change anyway, and keeps the current content for undo"));
            }
        };
        let row = |one: &Restored| json!({ "id": one.id, "file": one.shown, "removed": one.removed });
        let rows: Vec<Value> = restored.iter().map(row).collect();
        session.shown(&scrubber.json(&json!({ "call": call, "undone": rows })), |out| {
            for Restored { id, shown, removed, command } in &restored {
                let what = match (removed, command) {
                    (true, _) => "removed",
                    (_, true) => "undid the changes of",
                    _ => "put back",
                };
                out.foreign(&scrubber.text(&format!("{what} `{shown}` ({id})")))?;
            }
            Ok(())
        })
    }

    async fn show(&self, session: &mut Session, which: &Which) -> Outcome {
        let changes = self.find(which).await?;
        let scrubber = self.log.scrubber();
        let mut rows = Vec::new();
        for (nth, change) in changes.iter().enumerate() {
            let new = &change.new;
            let diff = self.log.diff(new, DIFF).await?;
            let state = self.log.state(change, nth == 0).await;
            if session.out.json {
                let mut row = change_json(change, state);
                row["diff"] = json!(diff);
                rows.push(row);
                continue;
            }
            let NewUndo { id, tool, agent, session: key, at, call, .. } = new;
            let shown = scrubber.text(&new.shown);
            session.out.foreign(&format!("{} `{shown}`, {state}", change_kind(new)))?;
            session.out.styled(
                style::QUIET,
                &scrubber
                    .text(&format!("change {id}\nby {tool} of {agent} in {key}, {}\ncall {call}", time(*at))),
            )?;
            session.out.diff(&diff)?;
        }
        session.shown(&scrubber.json(&json!(rows)), |_| Ok(()))
    }
}
