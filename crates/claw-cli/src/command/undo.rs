//! `clawsmith undo`: the changes that tools made in files, and reverting them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use claw_core::port::UnixMillis;
use claw_core::store::{CommandUndo, Entry, EntryEvent, NewUndo, Undo as Change, UndoFilter};
use claw_core::{AgentId, CallId, JobId, SessionKey};
use claw_host::files::Restored;
use claw_registry::CallScrubber;
use claw_terminal::{Cell, Table, style, tell};
use clawsmith::app::undo::{
    ChangeState, LastChanges, NOT_COVERED, UndoLog, Undone, change_json, change_kind, command_json,
};
use clawsmith::app::words::{in_short as shortened, time};
use clawsmith::app::{App, real};
use serde_json::{Value, json};

use crate::cli::Session;
use crate::failure::{Failure, Outcome};
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
    session: Option<String>,
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
    /// The id of a change, or of a call or a run for all its changes.
    #[arg(conflicts_with = "last")]
    id: Option<String>,
    /// The last call that changed something in the workspace of the current directory and can be undone.
    #[arg(long)]
    last: bool,
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
        match done {
            Some(code) => Ok(code),
            None => none(session, &self),
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

fn none(session: &mut Session, asked: &Undo) -> Outcome {
    match asked {
        Undo::List(_) if session.out.json => session.out.json(&json!([]))?,
        Undo::List(_) => session.out.line("nothing was changed yet")?,
        Undo::Show(_) | Undo::Apply(_) => return Err(Failure::failed("nothing was changed yet")),
    }
    Ok(ExitCode::SUCCESS)
}

impl List {
    async fn run(&self, session: &mut Session, work: &Work) -> Outcome {
        let key = self.session.as_ref().map(SessionKey::new).transpose();
        let key = key.map_err(|error| Failure::usage(format!("`--session`: {error}")))?;
        let filter = UndoFilter { session: key, ..UndoFilter::default() };
        let mut changes = work.log.changes(&filter, self.last).await?;
        let mut commands = work.log.commands(&filter, self.last, self.all).await?;
        keep_newest(&mut changes, &mut commands, self.last);
        let mut states = Vec::with_capacity(changes.len());
        let mut newest = std::collections::HashSet::new();
        for change in &changes {
            // A newer change of the same file covers an older one: the file says nothing about it.
            let is_newest = newest.insert(change.new.place.clone());
            states.push(work.log.state(change, is_newest).await);
        }
        let scrubber = work.log.scrubber();
        if session.out.json {
            let rows = changes.iter().zip(&states).map(|(change, state)| change_json(change, *state));
            let commands = commands.iter().map(|command| command_json(&command.record));
            let mut rows: Vec<Value> = rows.chain(commands).collect();
            rows.sort_by_key(|row| std::cmp::Reverse(row["at"].as_i64()));
            session.out.json(&scrubber.json(&json!(rows)))?;
            return Ok(ExitCode::SUCCESS);
        }
        if changes.is_empty() && commands.is_empty() {
            session.out.line("no change of a file is kept")?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut rows = Vec::with_capacity(changes.len() + commands.len());
        for (Change { new, .. }, state) in changes.iter().zip(&states) {
            let is_standing = *state == ChangeState::Stands;
            rows.push(Row {
                id: Cell::strong(new.id),
                at: new.at,
                by: (&new.session, &new.agent, new.tool.as_str()),
                call: new.call,
                run: new.run,
                change: change_kind(new),
                state: if is_standing { Cell::good(state) } else { Cell::warning(state) },
                file: scrubber.text(&place_of(new, &work.directory)),
            });
        }
        rows.extend(
            commands.iter().map(|command| Row {
                file: scrubber.text(&command_text(command)),
                ..Row::of_command(command)
            }),
        );
        rows.sort_by_key(|row| std::cmp::Reverse(row.at));
        let mut table = match self.wide {
            true => Table::new([
                "id", "time", "change", "state", "file", "tool", "agent", "session", "call", "run",
            ]),
            false => Table::new(["id", "time", "change", "state", "file"]),
        };
        rows.into_iter().for_each(|row| row.put(&mut table, self.wide, scrubber));
        session.out.table(&table)?;
        session.out.flush()?;
        if !commands.is_empty() {
            tell("note: changes of the commands marked `not covered` cannot be undone");
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Keeps the newest of both, `limit` in all. Both come newest first.
fn keep_newest(changes: &mut Vec<Change>, commands: &mut Vec<Entry>, limit: usize) {
    while changes.len() + commands.len() > limit {
        let older = match (changes.last(), commands.last()) {
            (Some(change), Some(command)) => command.record.at <= change.new.at,
            (_, command) => command.is_some(),
        };
        if older {
            commands.pop();
        } else {
            changes.pop();
        }
    }
}

/// The file as the tool named it if the person is in its workspace, else with the workspace.
fn place_of(new: &NewUndo, here: &Path) -> String {
    if let Some(CommandUndo { files, added, removed, .. }) = &new.command {
        let files = if *files == 1 { "1 file".to_owned() } else { format!("{files} files") };
        let place = match here.starts_with(&new.workspace) {
            true => String::new(),
            false => format!(" in {}", new.workspace),
        };
        return format!("{}{place} ({files}, +{added} -{removed})", shortened(&new.shown));
    }
    match here.starts_with(&new.workspace) || Path::new(&new.shown).is_absolute() {
        true => new.shown.clone(),
        false => Path::new(&new.workspace).join(&new.shown).display().to_string(),
    }
}

fn command_text(command: &Entry) -> String {
    match &command.record.event {
        EntryEvent::Intent { args, .. } => match args["command"].as_str() {
            Some(command) => shortened(command),
            None => shortened(&args.to_string()),
        },
        _ => String::new(),
    }
}

/// A row of the list.
struct Row<'a> {
    id: Cell,
    at: UnixMillis,
    by: (&'a SessionKey, &'a AgentId, &'a str),
    call: CallId,
    run: Option<JobId>,
    change: &'static str,
    state: Cell,
    file: String,
}

impl<'a> Row<'a> {
    fn of_command(command: &'a Entry) -> Self {
        let record = &command.record;
        Row {
            id: Cell::quiet("-"),
            at: record.at,
            by: (&record.session, &record.agent, &record.tool),
            call: record.call,
            run: None,
            change: "command",
            state: Cell::warning(NOT_COVERED),
            file: String::new(),
        }
    }

    fn put(self, table: &mut Table, wide: bool, scrubber: &CallScrubber) {
        let (session, agent, tool) = self.by;
        let Self { id, at, call, run, change, state, file, .. } = self;
        let (at, change, file) = (Cell::quiet(time(at)), Cell::new(change), Cell::new(file));
        if !wide {
            return table.row([id, at, change, state, file]);
        }
        // A name may be older than the secret that it holds.
        let scrubbed = |name: &str| Cell::new(scrubber.text(name));
        let (tool, agent, session) = (Cell::new(tool), scrubbed(agent.as_str()), scrubbed(session.as_str()));
        let run = run.map_or_else(|| Cell::quiet("-"), Cell::quiet);
        table.row([id, at, change, state, file, tool, agent, session, Cell::quiet(call), run]);
    }
}

impl Work {
    async fn find(&self, which: &Which) -> Result<Vec<Change>, Failure> {
        match &which.id {
            Some(id) => Ok(self.log.find(id).await?),
            None if which.last => self.last(&UndoFilter::default(), Some(&self.directory)).await,
            None => Err(Failure::usage("which change is not said")
                .hint("`--last` for the last one here, or an id of `clawsmith undo list`")),
        }
    }

    /// Returns the changes of the last call that can be undone; prints the skipped ones.
    async fn last(&self, filter: &UndoFilter, within: Option<&Path>) -> Result<Vec<Change>, Failure> {
        let LastChanges { changes, skipped } = self.log.last(filter, within).await?;
        for Change { new, .. } in skipped.iter().take(SKIPPED) {
            let file = self.log.scrubber().text(&new.shown);
            tell(format_args!("skipped `{file}` ({}): it is as before, there is nothing to undo", new.id));
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
        let (call, restored) = match self.log.apply(changes, force).await? {
            Undone::Done { call, restored } => (call, restored),
            Undone::Changed(steps) => {
                for step in &steps {
                    let Some((change, since)) = self.log.three_ways(step, SHORT_DIFF).await? else {
                        continue;
                    };
                    let shown = step.changes.first().map(|change| scrubber.text(&change.new.shown));
                    let shown = shown.unwrap_or_default();
                    session.out.heading(&format!("`{shown}`: what the change made of it"))?;
                    print(session, &change)?;
                    session.out.heading("and what was made of it since")?;
                    print(session, &since)?;
                }
                let failure = Failure::failed("somebody else changed a file since; nothing was undone");
                return Err(failure.hint("`--force` puts it back all the same, and keeps what it holds now"));
            }
        };
        if session.out.json {
            let row = |one: &Restored| json!({ "id": one.id, "file": one.shown, "removed": one.removed });
            let rows: Vec<Value> = restored.iter().map(row).collect();
            session.out.json(&scrubber.json(&json!({ "call": call, "undone": rows })))?;
            return Ok(ExitCode::SUCCESS);
        }
        for Restored { id, shown, removed, command } in &restored {
            let what = match (removed, command) {
                (true, _) => "removed",
                (_, true) => "took back the changes of",
                _ => "put back",
            };
            session.out.foreign(&scrubber.text(&format!("{what} `{shown}` ({id})")))?;
        }
        Ok(ExitCode::SUCCESS)
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
            print(session, &diff)?;
        }
        if session.out.json {
            session.out.json(&scrubber.json(&json!(rows)))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn print(session: &mut Session, diff: &str) -> Result<(), Failure> {
    Ok(diff.lines().try_for_each(|line| session.out.diff_line(line))?)
}
