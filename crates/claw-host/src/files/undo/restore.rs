//! Undoing: files are put back as they were before a change, if they still are as the change left them.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use claw_core::port::{
    Change, Contents, Expect, FilePlace, FsBridge, Scope, Stat, UndoJournal as _, Version,
};
use claw_core::store::{CommandUndo, FileState, NewUndo, Undo};
use claw_core::tool::{Caller, Digest, ErrorKind, ToolError};
use claw_core::{CallId, ToolName, UndoId};

use super::StoredUndo;
use super::segments::{Segment, Touched, segments};
use crate::transaction::{AppliedTransaction, TransactionState};

/// The tool name under which undoing is recorded.
const TOOL: ToolName = ToolName::literal("undo");

/// Undoes changes through a bridge, within the scope of their caller.
pub struct Restoring<'a> {
    /// The journal of changes.
    pub journal: &'a StoredUndo,
    /// The bridge to the files.
    pub bridge: &'a dyn FsBridge,
    /// Returns the scope of the caller who made a change.
    pub scope: &'a (dyn Fn(&Caller) -> Scope + Sync),
}

/// The undoing of one file's changes.
#[derive(Debug)]
pub struct Step {
    /// The changes to undo, newest first.
    pub changes: Vec<Undo>,
    /// Says whether the file can be restored.
    pub verdict: Verdict,
    /// The current content; `None` if the file does not exist.
    pub now: Option<Now>,
    /// The state that the newest of the changes left.
    pub left: Option<FileState>,
    /// The state after undoing.
    pub target: Option<FileState>,
    /// Paths of a command's changes that somebody changed since, relative to its workspace.
    pub changed_since: Vec<PathBuf>,
    caller: Caller,
}

/// Says whether a file can be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The file is as the changes left it.
    Ready,
    /// The file is as it was before them: they were not made, or are undone.
    NotMade,
    /// The file is neither; somebody else changed it since.
    Changed,
}

/// The current content of a file.
#[derive(Clone)]
pub struct Now {
    /// The bytes, unredacted: they may hold secrets.
    pub bytes: Vec<u8>,
    mode: Option<u32>,
    version: Version,
}

impl std::fmt::Debug for Now {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Now({} bytes)", self.bytes.len())
    }
}

/// A file that was put back.
#[derive(Debug)]
pub struct Restored {
    /// The undoing itself, which can be undone.
    pub id: UndoId,
    /// The file's path, for display.
    pub shown: String,
    /// True if restoring removed the file.
    pub removed: bool,
    /// True if the changes of a command were reverted, not those of one file.
    pub command: bool,
}

impl Restoring<'_> {
    /// Looks at the files that these changes, newest first, are about. Changes nothing.
    ///
    /// The steps must be taken in order. If a newer step changes a file, an older one is judged when its turn
    /// comes.
    pub async fn look(&self, changes: Vec<Undo>) -> Result<Vec<Step>, ToolError> {
        let mut steps: Vec<Step> = Vec::new();
        let mut touched = Touched::default();
        for segment in segments(changes) {
            let mut found = Vec::new();
            match segment {
                Segment::Files(files) => {
                    for file in files {
                        let mut step = self.look_at(file).await?;
                        if touched.has(step.newest()?) {
                            step.verdict = Verdict::Ready;
                        }
                        found.push(step);
                    }
                }
                Segment::Command(change) => {
                    found.push(self.look_at_command(*change, &touched.of_machine).await?);
                }
            }
            for step in &found {
                let new = step.newest()?;
                match &new.command {
                    None => touched.add(new),
                    Some(command) => touched.of_machine.extend(self.paths(new, command).await?),
                }
            }
            steps.extend(found);
        }
        Ok(steps)
    }

    /// Paths that a command changed.
    async fn paths(&self, new: &NewUndo, command: &CommandUndo) -> Result<Vec<PathBuf>, ToolError> {
        let (workspace, id) = (PathBuf::from(&new.workspace), command.transaction);
        self.with_transaction(id, move |transaction| {
            Ok(transaction.changes().into_iter().map(|change| workspace.join(change.path)).collect())
        })
        .await
    }

    async fn look_at_command(&self, change: Undo, touched: &HashSet<PathBuf>) -> Result<Step, ToolError> {
        let Some(command) = change.new.command.clone() else {
            return Err(ToolError::internal("no command to undo"));
        };
        let (workspace, touched) = (PathBuf::from(&change.new.workspace), touched.clone());
        let looked = self.with_transaction(command.transaction, move |transaction| {
            let state = transaction.state()?;
            let mut changed = transaction.changed()?;
            changed.retain(|path| !touched.contains(&workspace.join(path)));
            Ok((state, changed))
        });
        let (state, changed_since) = looked.await?;
        let verdict = match (state, command.reverts) {
            (TransactionState::Applied, false) | (TransactionState::Reverted, true) => Verdict::Ready,
            (TransactionState::Reverted, false) | (TransactionState::Applied, true) => Verdict::NotMade,
            (TransactionState::Changed, false) if changed_since.is_empty() => Verdict::Ready,
            (TransactionState::Changed, _) => Verdict::Changed,
        };
        let caller = caller(&change);
        Ok(Step {
            changes: vec![change],
            verdict,
            now: None,
            left: None,
            target: None,
            changed_since,
            caller,
        })
    }

    /// Works with the transaction of a command on a thread that may block.
    async fn with_transaction<T: Send + 'static>(
        &self,
        id: UndoId,
        work: impl FnOnce(&mut AppliedTransaction) -> io::Result<T> + Send + 'static,
    ) -> Result<T, ToolError> {
        let transactions = self.journal.transactions.clone();
        super::blocking(move || work(&mut transactions.open(id)?)).await.map_err(|error| {
            let message = match error.kind() {
                io::ErrorKind::NotFound => "the command's changes are no longer kept".to_owned(),
                _ => format!("the command's changes cannot be read or undone: {error}"),
            };
            ToolError::new(ErrorKind::Unavailable, message).because(error)
        })
    }

    async fn look_at(&self, changes: Vec<Undo>) -> Result<Step, ToolError> {
        let Some(newest) = changes.first() else { return Err(ToolError::internal("no change to undo")) };
        let caller = caller(newest);
        self.must_reach(&caller, &newest.new)?;
        let scope = (self.scope)(&caller);
        let now = self.now(&place(&caller, &scope, Expect::Anything), &newest.new.place).await?;
        let left = newest.new.after.clone();
        let mut verdict = Verdict::NotMade;
        let mut at = now.as_ref().map(Now::state);
        for Undo { new, .. } in &changes {
            if same(at.as_ref(), new.after.as_ref()) {
                (at, verdict) = (new.before.clone(), worse(verdict, Verdict::Ready));
            } else if !same(at.as_ref(), new.before.as_ref()) {
                (at, verdict) = (new.before.clone(), Verdict::Changed);
            }
        }
        let changed_since = Vec::new();
        Ok(Step { verdict, now, left, target: at, changed_since, caller, changes })
    }

    /// Refuses a change that was made in a sandbox's own workspace, if the files are elsewhere now.
    fn must_reach(&self, caller: &Caller, new: &NewUndo) -> Result<(), ToolError> {
        let Some(key) = &new.sandbox else { return Ok(()) };
        if self.bridge.sandbox(caller, Path::new(&new.place)).as_deref() == Some(key) {
            return Ok(());
        }
        let message = format!(
            "`{}` was changed in the workspace of the container `{key}`, which the configuration no longer uses",
            new.shown
        );
        let advice = "set `backend` and `workspace` of `sandbox` as they were at the change, and try again";
        Err(ToolError::new(ErrorKind::Unavailable, message).try_instead(advice))
    }

    async fn now(&self, place: &FilePlace<'_>, path: &str) -> Result<Option<Now>, ToolError> {
        if self.bridge.stat(place, path).await?.is_none() {
            return Ok(None);
        }
        match self.bridge.read(place, path).await {
            Ok((bytes, Stat { mode, version, .. })) => Ok(Some(Now { bytes, mode, version })),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Restores files: all of them or, as far as possible, none. Files that somebody else changed are left
    /// alone unless `force`; overwritten content is kept, so that this can be undone too.
    pub async fn restore(
        &self,
        call: CallId,
        steps: Vec<Step>,
        force: bool,
    ) -> Result<Vec<Restored>, ToolError> {
        let wanted = |step: &Step| match step.verdict {
            Verdict::Ready => true,
            Verdict::NotMade => false,
            Verdict::Changed => force,
        };
        if !force && steps.iter().any(|step| step.verdict == Verdict::Changed) {
            let message = "somebody else changed a file since; nothing was undone";
            return Err(ToolError::new(ErrorKind::Conflict, message));
        }
        // The bytes to write are read first: if some are no longer kept, nothing is undone.
        let mut work = Vec::new();
        for step in steps.into_iter().filter(wanted) {
            let bytes = match &step.target {
                Some(state) => Some(self.journal.bytes(state).await?),
                None => None,
            };
            work.push((step, bytes));
        }
        let mut done: Vec<(Restored, Step, Option<Version>)> = Vec::new();
        let mut touched = false;
        for (step, bytes) in work {
            let put = match step.newest()?.command.clone() {
                Some(command) => {
                    self.turn(call, &step, &command, force).await.map(|restored| (restored, None))
                }
                None if touched => self.put_again(call, &step, bytes.as_deref(), force).await,
                None => self.put(call, &step, bytes.as_deref()).await,
            };
            touched |= step.newest()?.command.is_some();
            match put {
                Ok((restored, version)) => done.push((restored, step, version)),
                Err(error) => return Err(self.roll_back(done, error).await),
            }
        }
        let at = self.journal.clock.now();
        for (_, step, _) in &done {
            for Undo { new, .. } in &step.changes {
                let marked = self.journal.index.mark_undone(&new.tenant, new.id, at).await;
                marked.map_err(ToolError::internal)?;
            }
        }
        Ok(done.into_iter().map(|(restored, ..)| restored).collect())
    }

    /// Reverts the changes of a command, or applies them again if they were reverted.
    async fn turn(
        &self,
        call: CallId,
        step: &Step,
        command: &CommandUndo,
        force: bool,
    ) -> Result<Restored, ToolError> {
        let (new, reverts) = (step.newest()?, command.reverts);
        let recorded = NewUndo {
            id: UndoId::new(),
            call,
            run: None,
            tool: TOOL,
            command: Some(CommandUndo { reverts: !reverts, ..command.clone() }),
            at: self.journal.clock.now(),
            ..new.clone()
        };
        let (id, tenant) = (recorded.id, recorded.tenant.clone());
        self.journal.index.record_undo(recorded).await.map_err(ToolError::internal)?;
        let turned = self.with_transaction(command.transaction, move |transaction| {
            if reverts {
                transaction.apply()?;
            } else if force || transaction.changed()?.is_empty() {
                transaction.revert(force)?;
            } else {
                return Ok(false);
            }
            Ok(true)
        });
        let error = match turned.await {
            Ok(true) => return Ok(Restored { id, shown: new.shown.clone(), removed: false, command: true }),
            Ok(false) => {
                let message = "somebody else changed a file of the command since; nothing was undone";
                ToolError::new(ErrorKind::Conflict, message)
            }
            Err(error) => error,
        };
        self.journal.withdraw(&tenant, id).await?;
        Err(error)
    }

    /// Restores a file that an earlier step may have changed: it is judged again.
    async fn put_again(
        &self,
        call: CallId,
        step: &Step,
        bytes: Option<&[u8]>,
        force: bool,
    ) -> Result<(Restored, Option<Version>), ToolError> {
        let again = self.look_at(step.changes.clone()).await?;
        match again.verdict {
            Verdict::Changed if !force => {
                let message =
                    format!("somebody else changed `{}` since; nothing was undone", step.newest()?.shown);
                Err(ToolError::new(ErrorKind::Conflict, message))
            }
            _ => self.put(call, &again, bytes).await,
        }
    }

    async fn put(
        &self,
        call: CallId,
        step: &Step,
        bytes: Option<&[u8]>,
    ) -> Result<(Restored, Option<Version>), ToolError> {
        let new = step.newest()?;
        let (scope, now) = ((self.scope)(&step.caller), step.now.as_ref());
        let expect = now.map_or(Expect::Absent, |now| Expect::Version(&now.version));
        let place = place(&step.caller, &scope, expect);
        let mode = step.target.as_ref().and_then(|state| state.mode);
        let change = Change {
            caller: &step.caller,
            call,
            run: None,
            tool: &TOOL,
            place: &new.place,
            sandbox: new.sandbox.as_deref(),
            shown: &new.shown,
            before: now.map(|now| Contents { bytes: &now.bytes, mode: now.mode }),
            after: bytes.map(|bytes| Contents { bytes, mode }),
        };
        let id = self.journal.record(&change).await?;
        let written = match bytes {
            Some(bytes) => self.bridge.restore(&place, &new.place, bytes, mode).await.map(Some),
            None if now.is_none() => Ok(None),
            None => self.bridge.remove(&place, &new.place).await.map(|()| None),
        };
        match written {
            Ok(stat) => {
                let restored =
                    Restored { id, shown: new.shown.clone(), removed: bytes.is_none(), command: false };
                Ok((restored, stat.map(|stat| stat.version)))
            }
            Err(error) => {
                self.journal.withdraw(&step.caller.tenant, id).await?;
                Err(error)
            }
        }
    }

    /// Undoes the restored files again, and returns the error.
    async fn roll_back(
        &self,
        done: Vec<(Restored, Step, Option<Version>)>,
        mut error: ToolError,
    ) -> ToolError {
        for (restored, step, version) in done.into_iter().rev() {
            if let Some(command) = step.changes.first().and_then(|change| change.new.command.clone()) {
                let back = self.with_transaction(command.transaction, move |transaction| {
                    if command.reverts {
                        transaction.revert(false).map(drop)
                    } else {
                        transaction.apply().map(drop)
                    }
                });
                if back.await.is_ok() {
                    let _ = self.journal.withdraw(&step.caller.tenant, restored.id).await;
                } else {
                    error
                        .message
                        .push_str(&format!("; `{}` had already been undone and stays undone", restored.id));
                }
                continue;
            }
            let scope = (self.scope)(&step.caller);
            let expect = version.as_ref().map_or(Expect::Absent, Expect::Version);
            let place = place(&step.caller, &scope, expect);
            let Ok(new) = step.newest() else { continue };
            let back = match &step.now {
                Some(now) => self.bridge.restore(&place, &new.place, &now.bytes, now.mode).await.map(drop),
                None => self.bridge.remove(&place, &new.place).await,
            };
            match back {
                Ok(()) => {
                    if let Err(error) = self.journal.withdraw(&step.caller.tenant, restored.id).await {
                        tracing::warn!(error = error.for_log(), "an undo that was reverted stays listed");
                    }
                }
                Err(_) => error.message.push_str(&format!(
                    "; `{}` had already been undone and stays undone (`{}`)",
                    new.shown, restored.id
                )),
            }
        }
        error
    }
}

impl Step {
    fn newest(&self) -> Result<&NewUndo, ToolError> {
        let newest = self.changes.first().ok_or_else(|| ToolError::internal("no change to undo"))?;
        Ok(&newest.new)
    }
}

impl Now {
    fn state(&self) -> FileState {
        let blob = Digest::of_bytes(&self.bytes);
        FileState { blob, bytes: self.bytes.len() as u64, mode: self.mode }
    }
}

/// Returns whether two states are equal. The modes count only if both have one.
fn same(one: Option<&FileState>, other: Option<&FileState>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            let modes = one.mode.zip(other.mode);
            one.blob == other.blob && modes.is_none_or(|(one, other)| one & 0o777 == other & 0o777)
        }
        _ => false,
    }
}

fn worse(one: Verdict, other: Verdict) -> Verdict {
    if one == Verdict::Changed { one } else { other }
}

/// Returns the caller who made a change, in the sandbox that holds its file.
fn caller(undo: &Undo) -> Caller {
    let new = &undo.new;
    let mut caller = Caller::new(new.agent.clone(), new.session.clone(), &new.workspace);
    caller.tenant = new.tenant.clone();
    caller.user = new.user.clone();
    caller.sandboxed = new.sandbox.is_some();
    if let Some(key) = &new.sandbox {
        caller.sandbox_key = key.into();
    }
    caller
}

fn place<'a>(caller: &'a Caller, scope: &'a Scope, expect: Expect<'a>) -> FilePlace<'a> {
    FilePlace { caller, directory: &caller.workspace, scope, expect }
}
