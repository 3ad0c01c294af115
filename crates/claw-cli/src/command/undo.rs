//! `clawsmith undo`: what tools changed in files, and taking it back.
//!
//! A file is put back only where it still is as the change left it. What is shown is scrubbed; what is put back
//! are the real bytes.

mod commands;
mod show;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::{Args, Subcommand};
use claw_core::port::{Clock as _, FsBridge, UnixMillis};
use claw_core::store::{
    EntryEvent, NewUndo, Outcome as CallOutcome, Record, StoreError, Undo as Change, UndoFilter,
};
use claw_core::tool::{Caller, Digest, Effect, Effects, ToolError};
use claw_core::{AgentId, CallId, JobId, SessionKey, ToolName, UndoId};
use claw_host::SystemClock;
use claw_host::files::{Restored, Restoring, Step, StoredUndo, Verdict};
use claw_registry::{CallScrubber, FileRules};
use claw_store::Backend;
use serde_json::{Value, json};

use super::ledger::time;
use crate::cli::Session;
use crate::compose;
use crate::config::Loaded;
use crate::failure::{Failure, Outcome};
use crate::output::{Cell, Table, tell};

/// What undoing is recorded as.
const TOOL: &str = "undo";
/// The most changes of one call.
const MOST: usize = 10_000;
/// How many changes that were passed over are named, and how many calls elsewhere are looked at.
const SKIPPED: usize = 5;

/// What to do with changes.
#[derive(Debug, Subcommand)]
pub(crate) enum Undo {
    /// List changes, newest first, and the commands that may have changed files.
    #[command(
        after_help = "Changes that commands made are not covered: only those of the file tools are. The \
commands are listed as such.

Examples:
  clawsmith undo list
  clawsmith undo list --session cli:me --last 100 --json"
    )]
    List(List),
    /// Show what a change did, as a unified diff without secrets.
    #[command(after_help = "Examples:
  clawsmith undo show --last
  clawsmith undo show 019b7611-3c00-7b4e-9b0a-52a4c3f1d7e8")]
    Show(Which),
    /// Put files back as they were before a change.
    #[command(
        after_help = "A file that somebody else changed since is left alone, and with it all the others of \
the same call: what it was, what the change made of it and what it is now are shown instead. The undoing is a \
change too and can be undone by its id.

Exit code 1 where nothing was undone.

Examples:
  clawsmith undo apply --last
  clawsmith undo apply 019b7611-3c00-7b4e-9b0a-52a4c3f1d7e8"
    )]
    Apply(Apply),
}

/// Which changes to list.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// How many of the last changes.
    #[arg(long, value_name = "N", default_value_t = 20)]
    last: usize,
    /// Only changes of this conversation.
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// Also who made each, in which call and run: those can be undone as a whole.
    #[arg(long)]
    wide: bool,
    /// Also commands that only read.
    #[arg(long)]
    all: bool,
}

/// Which change, or those of which call.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The id of a change, or of a call or an agent's run: then all changes that it made.
    #[arg(conflicts_with = "last")]
    id: Option<String>,
    /// The last call that changed something in the workspace of the current directory and can be undone.
    #[arg(long)]
    last: bool,
}

/// What to undo.
#[derive(Debug, Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    which: Which,
    /// Also where somebody else changed the file since; what it holds now is kept.
    #[arg(long)]
    force: bool,
}

/// What every subcommand works with.
struct Work {
    loaded: Loaded,
    store: Arc<dyn Backend>,
    journal: StoredUndo,
    bridge: Arc<dyn FsBridge>,
    rules: FileRules,
    scrubber: CallScrubber,
    /// Where the person is.
    directory: PathBuf,
}

impl Undo {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let loaded = session.load()?;
        let scrubber = compose::scrubbers(&loaded.config, &session.around)?.for_tenant(&loaded.config.tenant);
        super::tools::runtime()?.block_on(async {
            let Some(store) = compose::existing_store(&loaded, &session.around).await? else {
                return none(session, &self);
            };
            let work = Work {
                journal: compose::undo(&loaded, &session.around, &store)?,
                bridge: compose::bridge(&loaded, &session.around, &store)?,
                rules: compose::file_rules(&loaded, &session.around)?,
                loaded,
                store,
                scrubber,
                directory: compose::real(&session.around.directory),
            };
            let done = match &self {
                Self::List(list) => list.run(session, &work).await,
                Self::Show(which) => work.show(session, which).await,
                Self::Apply(apply) => apply.run(session, &work).await,
            };
            work.store.disconnect().await;
            done
        })
    }
}

/// Takes back what the last call of a conversation changed.
pub(crate) async fn last_of(
    session: &mut Session,
    loaded: &Loaded,
    store: &Arc<dyn Backend>,
    key: &SessionKey,
) -> Result<(), Failure> {
    let scrubber = compose::scrubbers(&loaded.config, &session.around)?.for_tenant(&loaded.config.tenant);
    let work = Work {
        journal: compose::undo(loaded, &session.around, store)?,
        bridge: compose::bridge(loaded, &session.around, store)?,
        rules: compose::file_rules(loaded, &session.around)?,
        loaded: loaded.clone(),
        store: Arc::clone(store),
        scrubber,
        directory: compose::real(&session.around.directory),
    };
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
        let mut changes = work.changes(&filter, self.last).await?;
        let mut commands = work.commands(&filter, self.last, self.all).await?;
        commands::newest(&mut changes, &mut commands, self.last);
        let mut states = Vec::with_capacity(changes.len());
        let mut newest = std::collections::HashSet::new();
        for change in &changes {
            // Older changes of a file are covered by newer ones: what it holds says nothing about them.
            let is_newest = newest.insert(change.new.place.clone());
            states.push(work.state(change, is_newest).await);
        }
        if session.out.json {
            let rows = changes.iter().zip(&states).map(|(change, state)| as_json(change, state));
            let mut rows: Vec<Value> = rows.chain(commands.iter().map(commands::as_json)).collect();
            rows.sort_by_key(|row| std::cmp::Reverse(row["at"].as_i64()));
            session.out.json(&work.scrubber.json(&json!(rows)))?;
            return Ok(ExitCode::SUCCESS);
        }
        if changes.is_empty() && commands.is_empty() {
            session.out.line("no change of a file is kept")?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut rows = Vec::with_capacity(changes.len() + commands.len());
        for (Change { new, .. }, state) in changes.iter().zip(&states) {
            rows.push((
                new.at,
                Row {
                    id: Cell::strong(new.id),
                    at: new.at,
                    by: (&new.session, &new.agent, new.tool.as_str()),
                    call: new.call,
                    run: new.run,
                    change: kind(new),
                    state: if *state == "stands" { Cell::good(state) } else { Cell::warning(state) },
                    file: work.scrubber.text(&self.place_of(new, &work.directory)),
                },
            ));
        }
        rows.extend(commands.iter().map(|one| (one.record.at, commands::row(one, &work.scrubber))));
        rows.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        let mut table = match self.wide {
            true => Table::new([
                "id", "time", "change", "state", "file", "tool", "agent", "session", "call", "run",
            ]),
            false => Table::new(["id", "time", "change", "state", "file"]),
        };
        rows.into_iter().for_each(|(_, row)| row.put(&mut table, self.wide));
        session.out.table(&table)?;
        session.out.flush()?;
        tell("note: changes that commands made are not covered");
        Ok(ExitCode::SUCCESS)
    }
}

impl List {
    /// The file: as the tool named it where the person is in its workspace, else with the workspace.
    fn place_of(&self, new: &NewUndo, here: &Path) -> String {
        match here.starts_with(&new.workspace) || Path::new(&new.shown).is_absolute() {
            true => new.shown.clone(),
            false => Path::new(&new.workspace).join(&new.shown).display().to_string(),
        }
    }
}

/// One line of the list.
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

impl Row<'_> {
    fn put(self, table: &mut Table, wide: bool) {
        let (session, agent, tool) = self.by;
        let Self { id, at, call, run, change, state, file, .. } = self;
        let (at, change, file) = (Cell::quiet(time(at)), Cell::new(change), Cell::new(file));
        if !wide {
            return table.row([id, at, change, state, file]);
        }
        let (tool, agent, session) = (Cell::new(tool), Cell::new(agent), Cell::new(session));
        let run = run.map_or_else(|| Cell::quiet("-"), Cell::quiet);
        table.row([id, at, change, state, file, tool, agent, session, Cell::quiet(call), run]);
    }
}

impl Apply {
    async fn run(&self, session: &mut Session, work: &Work) -> Outcome {
        work.take_back(session, work.find(&self.which).await?, self.force).await
    }
}

impl Work {
    /// Undoes these changes, all or none.
    async fn take_back(&self, session: &mut Session, changes: Vec<Change>, force: bool) -> Outcome {
        let scope = self.scope();
        let restoring = self.restoring(&scope);
        let steps = restoring.look(changes).await.map_err(failed)?;
        let all = |verdict| steps.iter().all(|step: &Step| step.verdict == verdict);
        if all(Verdict::NotMade) {
            return Err(Failure::failed(
                "the files are as they were before the change: there is nothing to undo",
            ));
        }
        if !force && steps.iter().any(|step| step.verdict == Verdict::Changed) {
            for step in steps.iter().filter(|step| step.verdict == Verdict::Changed) {
                self.three_ways(session, step).await?;
            }
            let failure = Failure::failed("somebody else changed a file since; nothing was undone");
            return Err(failure.hint("`--force` puts it back all the same, and keeps what it holds now"));
        }
        let call = CallId::new();
        let restored = self.recorded(call, steps, &restoring, force).await?;
        if session.out.json {
            let row = |one: &Restored| json!({ "id": one.id, "file": one.shown, "removed": one.removed });
            let rows: Vec<Value> = restored.iter().map(row).collect();
            session.out.json(&self.scrubber.json(&json!({ "call": call, "undone": rows })))?;
            return Ok(ExitCode::SUCCESS);
        }
        for Restored { id, shown, removed } in &restored {
            let what = if *removed { "removed" } else { "put back" };
            session.out.foreign(&self.scrubber.text(&format!("{what} `{shown}` ({id})")))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn changes(&self, filter: &UndoFilter, limit: usize) -> Result<Vec<Change>, Failure> {
        self.store.undos(&self.loaded.config.tenant, filter, limit).await.map_err(unreadable)
    }

    /// What a caller may reach; undoing is no tool of its own, and denies what every tool is denied.
    fn scope(&self) -> impl Fn(&Caller) -> claw_core::port::Scope + Sync {
        |caller: &Caller| self.rules.scope(caller, &ToolName::literal("undo"))
    }

    fn restoring<'a>(
        &'a self,
        scope: &'a (impl Fn(&Caller) -> claw_core::port::Scope + Sync),
    ) -> Restoring<'a> {
        Restoring { journal: &self.journal, bridge: self.bridge.as_ref(), scope }
    }

    /// The changes of the last call that can be undone, newest first; where a directory is given, of a call in a
    /// workspace that it is in. Those whose files are as before are passed over, and that is said.
    async fn last(&self, filter: &UndoFilter, within: Option<&Path>) -> Result<Vec<Change>, Failure> {
        let mut left = self.changes(filter, MOST).await?;
        left.retain(|change| change.undone.is_none() && change.new.tool.as_str() != TOOL);
        let is_here = |change: &Change| within.is_none_or(|within| within.starts_with(&change.new.workspace));
        let (here, elsewhere): (Vec<Change>, Vec<Change>) = left.into_iter().partition(is_here);
        let (mut skipped, mut last) = (Vec::new(), None);
        for call in calls(&here) {
            let changes = self.of_call(call).await?;
            // What is not known to be gone is not passed over: nobody means the change before it.
            let named =
                |failure: Failure| failure.hint("clawsmith undo list, and name another change by its id");
            if self.is_made(&changes).await.map_err(named)? {
                last = Some(changes);
                break;
            }
            skipped.extend(changes);
        }
        for Change { new, .. } in skipped.iter().take(SKIPPED) {
            let file = self.scrubber.text(&new.shown);
            tell(format_args!("skipped `{file}` ({}): it is as before, there is nothing to undo", new.id));
        }
        match skipped.len().saturating_sub(SKIPPED) {
            0 => {}
            more => tell(format_args!("skipped {more} more")),
        }
        match last {
            Some(changes) => Ok(changes),
            None => Err(self.none_left(&elsewhere).await),
        }
    }

    /// What to say where nothing is left to undo here: what there is elsewhere.
    async fn none_left(&self, elsewhere: &[Change]) -> Failure {
        let none = "no change is left to undo here; what commands changed is not kept";
        for call in calls(elsewhere).into_iter().take(SKIPPED) {
            // One that cannot be looked at from here is nothing to point to.
            let Ok(changes) = self.of_call(call).await else { continue };
            if let Some(Change { new, .. }) = changes.first()
                && let Ok(true) = self.is_made(&changes).await
            {
                let (file, workspace) = (self.scrubber.text(&new.shown), self.scrubber.text(&new.workspace));
                return Failure::failed(format!(
                    "{none}. The last one elsewhere is of `{file}` in `{workspace}`"
                ))
                .hint(format!("clawsmith undo apply {}", new.call));
            }
        }
        Failure::failed(none).hint("clawsmith undo list")
    }

    /// Whether anything of this is there to be undone.
    async fn is_made(&self, changes: &[Change]) -> Result<bool, Failure> {
        let scope = self.scope();
        let steps = self.restoring(&scope).look(changes.to_vec()).await.map_err(failed)?;
        Ok(steps.iter().any(|step| step.verdict != Verdict::NotMade))
    }

    async fn of_call(&self, call: CallId) -> Result<Vec<Change>, Failure> {
        self.changes(&UndoFilter { call: Some(call), ..UndoFilter::default() }, MOST).await
    }

    /// The changes that are meant, newest first.
    async fn find(&self, which: &Which) -> Result<Vec<Change>, Failure> {
        let tenant = &self.loaded.config.tenant;
        let Some(id) = &which.id else {
            if !which.last {
                return Err(Failure::usage("which change is not said")
                    .hint("`--last` for the last one here, or an id of `clawsmith undo list`"));
            }
            return self.last(&UndoFilter::default(), Some(&self.directory)).await;
        };
        if let Ok(id) = id.parse::<UndoId>()
            && let Some(change) = self.store.undo(tenant, id).await.map_err(unreadable)?
        {
            return Ok(vec![change]);
        }
        let mut changes = match id.parse::<CallId>() {
            Ok(call) => self.of_call(call).await?,
            Err(_) => Vec::new(),
        };
        if changes.is_empty()
            && let Ok(run) = id.parse::<JobId>()
        {
            let filter = UndoFilter { run: Some(run), ..UndoFilter::default() };
            changes = self.changes(&filter, MOST).await?;
        }
        match changes.is_empty() {
            true => {
                Err(Failure::usage(format!("no change, call or run `{id}` is kept"))
                    .hint("clawsmith undo list"))
            }
            false => Ok(changes),
        }
    }

    /// How a change stands, in a word or two.
    async fn state(&self, change: &Change, newest: bool) -> &'static str {
        if change.undone.is_some() {
            return "undone";
        }
        if !newest {
            return "stands";
        }
        let scope = self.scope();
        match self.restoring(&scope).look(vec![change.clone()]).await.as_deref() {
            Ok([Step { verdict: Verdict::NotMade, .. }]) => "not made",
            Ok([Step { verdict: Verdict::Changed, .. }]) => "changed since",
            Ok(_) => "stands",
            Err(_) => "out of reach",
        }
    }

    /// Undoes, with an intent and an outcome in the ledger.
    async fn recorded(
        &self,
        call: CallId,
        steps: Vec<Step>,
        restoring: &Restoring<'_>,
        force: bool,
    ) -> Result<Vec<Restored>, Failure> {
        let Some(NewUndo { tenant, session, agent, user, .. }) =
            steps.iter().find_map(|step| step.changes.first()).map(|change| change.new.clone())
        else {
            return Ok(Vec::new());
        };
        let ids: Vec<UndoId> =
            steps.iter().flat_map(|step| &step.changes).map(|change| change.new.id).collect();
        let args = json!({ "changes": ids, "force": force });
        let record = |event| Record {
            at: SystemClock.now(),
            tenant: tenant.clone(),
            session: session.clone(),
            agent: agent.clone(),
            user: user.clone(),
            call,
            tool: TOOL.to_owned(),
            event,
        };
        let effects: Effects = [Effect::Write].into_iter().collect();
        let intent = EntryEvent::Intent { digest: Digest::of(&args), effects, args, approval: None };
        let unrecorded = |error: StoreError| Failure::failed("the undoing cannot be recorded").because(error);
        self.store.begin_call(record(intent)).await.map_err(unrecorded)?;
        let began = Instant::now();
        let done = restoring.restore(call, steps, force).await;
        let outcome = EntryEvent::Outcome {
            outcome: if done.is_ok() { CallOutcome::Done } else { CallOutcome::Failed },
            micros: u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX),
            bytes: 0,
            error: done.as_ref().err().map(|error| self.scrubber.text(&error.message)),
        };
        self.store.finish_call(record(outcome)).await.map_err(unrecorded)?;
        done.map_err(failed)
    }
}

/// The calls that made these changes, each once and in their order.
fn calls(changes: &[Change]) -> Vec<CallId> {
    let mut seen = std::collections::HashSet::new();
    changes.iter().map(|change| change.new.call).filter(|call| seen.insert(*call)).collect()
}

/// What a change did to its file; one that took another back is no ordinary change.
fn kind(new: &NewUndo) -> &'static str {
    match (&new.before, &new.after) {
        _ if new.tool.as_str() == TOOL => "undoing",
        (None, Some(_)) => "created",
        (Some(_), None) => "removed",
        _ => "changed",
    }
}

fn as_json(change: &Change, state: &str) -> Value {
    let mut row = json!(change);
    row["state"] = json!(state);
    row["change"] = json!(kind(&change.new));
    row
}

fn failed(error: ToolError) -> Failure {
    Failure::failed(error.for_model())
}

fn unreadable(error: StoreError) -> Failure {
    Failure::failed("the undo journal cannot be read").because(error).hint("clawsmith db status")
}
