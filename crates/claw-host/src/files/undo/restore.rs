//! Undoing: a file is put back as it was before a change, if it still is as the change left it.

use claw_core::port::{Change, Contents, Expect, FsBridge, Place, Scope, Stat, UndoJournal as _, Version};
use claw_core::store::{FileState, Undo};
use claw_core::tool::{Caller, Digest, ErrorKind, ToolError};
use claw_core::{CallId, ToolName, UndoId};

use super::StoredUndo;

/// What undoing is recorded as.
const TOOL: ToolName = ToolName::literal("undo");

/// Undoes changes through a bridge, within the scope of who made them.
pub struct Restoring<'a> {
    /// Where changes are kept.
    pub journal: &'a StoredUndo,
    /// Where files are.
    pub bridge: &'a dyn FsBridge,
    /// What whoever changed a file may reach.
    pub scope: &'a (dyn Fn(&Caller) -> Scope + Sync),
}

/// What undoing means for one file.
#[derive(Debug)]
pub struct Step {
    /// Its changes that are to be undone, newest first.
    pub changes: Vec<Undo>,
    /// Whether that can be done.
    pub verdict: Verdict,
    /// What it holds now; `None` where it is not there.
    pub now: Option<Now>,
    /// As the newest of the changes left it.
    pub left: Option<FileState>,
    /// As it would be.
    pub target: Option<FileState>,
    caller: Caller,
}

/// Whether a file can be put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is as the changes left it.
    Ready,
    /// It is as it was before them: they were not made, or are undone.
    NotMade,
    /// It is neither; somebody else changed it since.
    Changed,
}

/// What a file holds now.
#[derive(Clone)]
pub struct Now {
    /// Its bytes. They are real: they may be secret.
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
    /// Its path, for people.
    pub shown: String,
    /// Whether it is gone now.
    pub removed: bool,
}

impl Restoring<'_> {
    /// Looks at the files that these changes, newest first, are about. Changes nothing.
    pub async fn look(&self, changes: Vec<Undo>) -> Result<Vec<Step>, ToolError> {
        let mut files: Vec<Vec<Undo>> = Vec::new();
        for change in changes {
            let same = |file: &&mut Vec<Undo>| file.first().is_some_and(|one| same_file(one, &change));
            match files.iter_mut().find(same) {
                Some(file) => file.push(change),
                None => files.push(vec![change]),
            }
        }
        let mut steps = Vec::with_capacity(files.len());
        for file in files {
            steps.push(self.look_at(file).await?);
        }
        Ok(steps)
    }

    async fn look_at(&self, changes: Vec<Undo>) -> Result<Step, ToolError> {
        let Some(newest) = changes.first() else { return Err(ToolError::internal("no change to undo")) };
        let caller = caller(newest);
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
        Ok(Step { verdict, now, left, target: at, caller, changes })
    }

    async fn now(&self, place: &Place<'_>, path: &str) -> Result<Option<Now>, ToolError> {
        if self.bridge.stat(place, path).await?.is_none() {
            return Ok(None);
        }
        match self.bridge.read(place, path).await {
            Ok((bytes, Stat { mode, version, .. })) => Ok(Some(Now { bytes, mode, version })),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts files back: all of them or, as far as that is possible, none. Those that somebody else changed are
    /// left alone unless `force`; what is overwritten is kept, so that this can be undone too.
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
        // What is to be written is read first: what is not kept any more undoes nothing.
        let mut work = Vec::new();
        for step in steps.into_iter().filter(wanted) {
            let bytes = match &step.target {
                Some(state) => Some(self.journal.bytes(state).await?),
                None => None,
            };
            work.push((step, bytes));
        }
        let mut done: Vec<(Restored, Step, Option<Version>)> = Vec::new();
        for (step, bytes) in work {
            match self.put(call, &step, bytes.as_deref()).await {
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
            tool: &TOOL,
            place: &new.place,
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
                let restored = Restored { id, shown: new.shown.clone(), removed: bytes.is_none() };
                Ok((restored, stat.map(|stat| stat.version)))
            }
            Err(error) => {
                self.journal.withdraw(&step.caller.tenant, id).await?;
                Err(error)
            }
        }
    }

    /// Puts what was put back to where it was, and says why.
    async fn roll_back(
        &self,
        done: Vec<(Restored, Step, Option<Version>)>,
        mut error: ToolError,
    ) -> ToolError {
        for (restored, step, version) in done.into_iter().rev() {
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
                        tracing::warn!(
                            error = error.for_log(),
                            "an undoing that was taken back stays listed"
                        );
                    }
                }
                Err(_) => error.message.push_str(&format!(
                    "; `{}` was undone before that and stays so (`{}`)",
                    new.shown, restored.id
                )),
            }
        }
        error
    }
}

impl Step {
    fn newest(&self) -> Result<&claw_core::store::NewUndo, ToolError> {
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

fn same_file(one: &Undo, other: &Undo) -> bool {
    let key = |undo: &Undo| {
        let new = &undo.new;
        (new.place.clone(), new.tenant.clone(), new.agent.clone(), new.user.clone())
    };
    key(one) == key(other)
}

/// Whether two states are the same, as far as both say.
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

/// Who made a change.
fn caller(undo: &Undo) -> Caller {
    let new = &undo.new;
    let mut caller = Caller::new(new.agent.clone(), new.session.clone(), &new.workspace);
    caller.tenant = new.tenant.clone();
    caller.user = new.user.clone();
    caller
}

fn place<'a>(caller: &'a Caller, scope: &'a Scope, expect: Expect<'a>) -> Place<'a> {
    Place { caller, directory: &caller.workspace, scope, expect }
}
