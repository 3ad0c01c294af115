//! Undo: the changes that tools made in files, and reverting them.
//!
//! A file is restored only if it still is as the change left it. Everything shown is scrubbed; the restored
//! bytes are the original ones.

mod diff;
mod list;

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use claw_core::port::{FsBridge, Scope};
use claw_core::store::{
    Entry, EntryEvent, EntryPage, NewUndo, Record, StoreError, Undo as Change, UndoFilter,
};
use claw_core::tool::{Caller, Effect, Effects, ToolError};
use claw_core::{CallId, JobId, SessionKey, ToolName, UndoId};
use claw_host::SystemClock;
use claw_host::files::{Restored, Restoring, Step, StoredUndo, Verdict};
use claw_registry::{CallScrubber, FileRules, Operation, Recorder};
use serde::Serialize;
use serde_json::{Value, json};

pub use self::diff::FileView;
pub use self::list::ListedChange;
use super::{App, Error};

/// The name that undoing is recorded under.
const TOOL: &str = "undo";
/// The most changes of one call.
const MOST: usize = 10_000;
/// The number of calls in other workspaces checked for one that can be undone.
const ELSEWHERE: usize = 5;
/// The number of the ledger's last entries searched for commands.
const SEARCHED: usize = 100_000;
/// How many of them are read at a time.
const READ: usize = 500;

/// The undo journal of the deployment's tenant.
pub struct UndoLog {
    app: App,
    journal: StoredUndo,
    bridge: Arc<dyn FsBridge>,
    rules: FileRules,
    scrubber: CallScrubber,
}

/// The state of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ChangeState {
    /// The file is as the change left it, or a newer change covers it.
    #[serde(rename = "in place")]
    Stands,
    /// The change was reverted.
    #[serde(rename = "undone")]
    Undone,
    /// The file is as it was before the change.
    #[serde(rename = "already reverted")]
    NotMade,
    /// Somebody else changed the file after the change.
    #[serde(rename = "changed since")]
    ChangedSince,
    /// The file is not accessible from here.
    #[serde(rename = "not accessible")]
    OutOfReach,
}

impl ChangeState {
    /// Returns the state in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stands => "in place",
            Self::Undone => "undone",
            Self::NotMade => "already reverted",
            Self::ChangedSince => "changed since",
            Self::OutOfReach => "not accessible",
        }
    }
}

impl fmt::Display for ChangeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The last call that can be undone, if there is one.
#[derive(Debug)]
pub struct LastChanges {
    /// The call's changes, newest first; an error if nothing is left to undo.
    pub changes: Result<Vec<Change>, Error>,
    /// Newer changes whose files are already as they were before: there is nothing to undo.
    pub skipped: Vec<Change>,
}

/// The result of an attempt to undo changes.
#[derive(Debug)]
pub enum Undone {
    /// Every file was put back.
    Done {
        /// The call under which the undoing is recorded; it can be undone itself.
        call: CallId,
        /// The files.
        restored: Vec<Restored>,
    },
    /// Somebody else changed these files since; nothing was undone.
    Changed(Vec<Step>),
}

impl App {
    /// The undo journal.
    pub async fn undo(&self) -> Result<UndoLog, Error> {
        Ok(UndoLog {
            journal: self.undo_journal()?,
            bridge: self.bridge()?,
            rules: self.setup.file_rules()?,
            scrubber: self.scrubber(self.tenant()).await?,
            app: self.clone(),
        })
    }
}

impl UndoLog {
    /// The scrubber for everything that is shown of changes.
    pub fn scrubber(&self) -> &CallScrubber {
        &self.scrubber
    }

    /// Changes, newest first.
    pub async fn changes(&self, filter: &UndoFilter, limit: usize) -> Result<Vec<Change>, Error> {
        self.app.store.undos(self.app.tenant(), filter, limit).await.map_err(unreadable)
    }

    /// Returns the last calls that ran programs which may have changed files outside the journal, as their
    /// intents, newest first; with `all`, including those that only read.
    async fn commands(&self, filter: &UndoFilter, limit: usize, all: bool) -> Result<Vec<Entry>, Error> {
        let covered = self.changes(filter, MOST).await?;
        let covered: HashSet<CallId> = covered
            .iter()
            .filter(|change| change.new.command.is_some())
            .map(|change| change.new.call)
            .collect();
        let mut unchanged = HashSet::new();
        let mut wanted = |entry: &Entry| {
            // The outcome of a call comes before its intent, since the newest is first.
            if let EntryEvent::Outcome { changes: Some(changes), .. } = &entry.record.event
                && changes.undo.is_none()
            {
                unchanged.insert(entry.record.call);
            }
            let executes = match &entry.record.event {
                EntryEvent::Intent { effects, .. } => {
                    effects.has(Effect::Execute) && (all || effects.has(Effect::Write))
                }
                _ => false,
            };
            executes
                && !covered.contains(&entry.record.call)
                && (all || !unchanged.contains(&entry.record.call))
                && filter.session.as_ref().is_none_or(|session| *session == entry.record.session)
        };
        let (mut found, mut position, mut searched) = (Vec::new(), None, 0);
        while searched < SEARCHED && found.len() < limit {
            let page = self.app.store.entries(self.app.tenant(), &EntryPage::all(position, READ)).await;
            let page = page.map_err(unreadable)?;
            searched += READ;
            let is_last = page.len() < READ;
            position = page.last().map(|(at, _)| *at);
            found.extend(page.into_iter().map(|(_, entry)| entry).filter(&mut wanted));
            if is_last {
                break;
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    /// Returns the changes that an id names, newest first: one change, or all of a call or a run.
    pub async fn find(&self, id: &str) -> Result<Vec<Change>, Error> {
        if let Ok(id) = id.parse::<UndoId>()
            && let Some(change) = self.app.store.undo(self.app.tenant(), id).await.map_err(unreadable)?
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
            true => Err(Error::invalid(format!("there is no saved change, call or run `{id}`"))
                .hint("clawsmith undo list")),
            false => Ok(changes),
        }
    }

    /// Returns all changes of a session that are not undone, newest first.
    pub async fn of_session(&self, session: &SessionKey) -> Result<Vec<Change>, Error> {
        let filter = UndoFilter { session: Some(session.clone()), ..UndoFilter::default() };
        let mut changes = self.changes(&filter, MOST).await?;
        changes.retain(|change| change.undone.is_none() && change.new.tool.as_str() != TOOL);
        match changes.is_empty() {
            true => Err(Error::failed(format!("session `{session}` has no change that can be undone"))
                .hint("clawsmith undo list")),
            false => Ok(changes),
        }
    }

    /// Finds the last call that can be undone; `within` limits it to workspaces that contain this directory.
    pub async fn last(&self, filter: &UndoFilter, within: Option<&Path>) -> Result<LastChanges, Error> {
        let mut left = self.changes(filter, MOST).await?;
        left.retain(|change| change.undone.is_none() && change.new.tool.as_str() != TOOL);
        let is_here = |change: &Change| within.is_none_or(|within| within.starts_with(&change.new.workspace));
        let (here, elsewhere): (Vec<Change>, Vec<Change>) = left.into_iter().partition(is_here);
        let mut skipped = Vec::new();
        for call in calls(&here) {
            let changes = self.of_call(call).await?;
            // A change that cannot be looked at is not passed over: nobody means the one before it.
            let named = |error: Error| {
                error.hint(
                    "find the change's id with `clawsmith undo list`, then run `clawsmith undo apply ID`",
                )
            };
            if self.is_made(&changes).await.map_err(named)? {
                return Ok(LastChanges { changes: Ok(changes), skipped });
            }
            skipped.extend(changes);
        }
        Ok(LastChanges { changes: Err(self.none_left(&elsewhere).await), skipped })
    }

    async fn none_left(&self, elsewhere: &[Change]) -> Error {
        let none = "no change is left to undo here";
        for call in calls(elsewhere).into_iter().take(ELSEWHERE) {
            // One that cannot be looked at from here is nothing to point to.
            let Ok(changes) = self.of_call(call).await else { continue };
            if let Some(Change { new, .. }) = changes.first()
                && let Ok(true) = self.is_made(&changes).await
            {
                let (file, workspace) = (self.scrubber.text(&new.shown), self.scrubber.text(&new.workspace));
                return Error::failed(format!(
                    "{none}; the latest one in another workspace is to `{file}` in `{workspace}`"
                ))
                .hint(format!("clawsmith undo apply {}", new.call));
            }
        }
        Error::failed(none).hint("clawsmith undo list")
    }

    /// Returns the state of a change; `newest` means that no newer change of its file is listed.
    pub async fn state(&self, change: &Change, newest: bool) -> ChangeState {
        if change.undone.is_some() {
            return ChangeState::Undone;
        }
        if !newest {
            return ChangeState::Stands;
        }
        match self.look(vec![change.clone()]).await.as_deref() {
            Ok([Step { verdict: Verdict::NotMade, .. }]) => ChangeState::NotMade,
            Ok([Step { verdict: Verdict::Changed, .. }]) => ChangeState::ChangedSince,
            Ok(_) => ChangeState::Stands,
            Err(_) => ChangeState::OutOfReach,
        }
    }

    /// Undoes these changes, all or none; the ledger names `by` as the person who asked for it. `force` also restores files
    /// that somebody else changed since.
    pub async fn apply(&self, changes: Vec<Change>, force: bool, by: &str) -> Result<Undone, Error> {
        let steps = self.look(changes).await?;
        if steps.iter().all(|step| step.verdict == Verdict::NotMade) {
            return Err(Error::failed(
                "the files are as they were before the change: there is nothing to undo",
            ));
        }
        if !force && steps.iter().any(|step| step.verdict == Verdict::Changed) {
            let changed = steps.into_iter().filter(|step| step.verdict == Verdict::Changed);
            return Ok(Undone::Changed(changed.collect()));
        }
        let call = CallId::new();
        let Some(first) = steps.iter().find_map(|step| step.changes.first()) else {
            return Ok(Undone::Done { call, restored: Vec::new() });
        };
        let ids: Vec<UndoId> =
            steps.iter().flat_map(|step| &step.changes).map(|change| change.new.id).collect();
        let NewUndo { tenant, session, agent, user, .. } = first.new.clone();
        let operation = Operation {
            tenant,
            session,
            agent,
            user,
            call,
            name: TOOL,
            effects: Effects::of(&[Effect::Write]),
            args: json!({ "changes": ids, "force": force, "by": by }),
        };
        let recorder = Recorder { store: &*self.app.store, scrubber: &self.scrubber, clock: &SystemClock };
        let scope = self.scope();
        let restore = async { self.restoring(&scope).restore(call, steps, force).await };
        let unrecorded =
            |error: StoreError| Error::failed("the undo cannot be recorded in the ledger").because(error);
        let restored = recorder.perform(operation, restore).await.map_err(unrecorded)?.map_err(failed)?;
        Ok(Undone::Done { call, restored })
    }

    async fn of_call(&self, call: CallId) -> Result<Vec<Change>, Error> {
        self.changes(&UndoFilter { call: Some(call), ..UndoFilter::default() }, MOST).await
    }

    async fn is_made(&self, changes: &[Change]) -> Result<bool, Error> {
        let steps = self.look(changes.to_vec()).await?;
        Ok(steps.iter().any(|step| step.verdict != Verdict::NotMade))
    }

    async fn look(&self, changes: Vec<Change>) -> Result<Vec<Step>, Error> {
        let scope = self.scope();
        self.restoring(&scope).look(changes).await.map_err(failed)
    }

    /// Returns the scope of undoing: files denied to every tool are denied here too.
    fn scope(&self) -> impl Fn(&Caller) -> Scope + Sync {
        |caller: &Caller| self.rules.scope(caller, &ToolName::literal(TOOL))
    }

    fn restoring<'a>(&'a self, scope: &'a (impl Fn(&Caller) -> Scope + Sync)) -> Restoring<'a> {
        Restoring { journal: &self.journal, bridge: self.bridge.as_ref(), scope }
    }
}

/// Returns the kind of a change, in a word; a change that reverted another is an "undo".
pub fn change_kind(new: &NewUndo) -> &'static str {
    match (&new.before, &new.after) {
        _ if new.tool.as_str() == TOOL => "undo",
        _ if new.command.is_some() => "command",
        (None, Some(_)) => "created",
        (Some(_), None) => "removed",
        _ => "changed",
    }
}

/// A change as JSON.
pub fn change_json(change: &Change, state: ChangeState) -> Value {
    let mut row = json!(change);
    row["state"] = json!(state);
    row["change"] = json!(change_kind(&change.new));
    row
}

/// A command as JSON among changes.
fn command_json(record: &Record) -> Value {
    let args = match &record.event {
        EntryEvent::Intent { args, .. } => args.clone(),
        _ => Value::Null,
    };
    json!({
        "call": record.call,
        "session": record.session,
        "agent": record.agent,
        "user": record.user,
        "tool": record.tool,
        "at": record.at,
        "args": args,
        "change": "command",
        "state": NOT_COVERED,
    })
}

/// The state of a command whose changes the journal does not know.
pub const NOT_COVERED: &str = "not covered";

/// Returns the calls that made these changes, each once and in order.
fn calls(changes: &[Change]) -> Vec<CallId> {
    let mut seen = HashSet::new();
    changes.iter().map(|change| change.new.call).filter(|call| seen.insert(*call)).collect()
}

fn failed(error: ToolError) -> Error {
    Error::failed(error.for_model())
}

fn unreadable(error: StoreError) -> Error {
    Error::failed("the undo journal cannot be read").because(error).hint("clawsmith db status")
}
