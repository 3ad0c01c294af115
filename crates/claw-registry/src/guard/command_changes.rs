//! Changes that a command made on its layer: checked as if file tools had made them, shown, and applied
//! together.

mod quota;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use claw_core::port::{
    Access, ApplyMode, ChangeKind, ChangedEntry, CommandChange, CommandChanges, FileChange, HeldChange,
    PendingChanges, WorkspaceGrowth, shown_path,
};
use claw_core::store::{ChangeRecord, NewApproval};
use claw_core::text;
use claw_core::tool::{Digest, Effect, Effects, ToolError};
use claw_core::{CallId, ToolName};
use claw_policy::approval::EffectRule;
use claw_policy::control_files::{Entry, control_reason};
use similar::{ChangeTag, TextDiff};

use self::quota::growth;
use super::{Grant, Site};
use crate::execute::summary;
use crate::scrub::CallScrubber;
use crate::unified_diff::unified_diff;
use crate::{Asking, Executor, Offer, approval};

/// Longest file that is compared line by line.
const COMPARED: u64 = 1 << 20;
/// Most bytes of all files that are compared.
const COMPARED_IN_ALL: u64 = 16 << 20;
/// Most lines of one file's diff.
const DIFF_LINES: usize = 60;
/// Most bytes of all diffs.
const DIFF_BYTES: usize = 12 * 1024;
/// Most files that a person is shown with their diffs.
const SHOWN_FILES: usize = 50;
/// Most paths that the ledger keeps of one command.
const RECORDED: usize = 100;
/// Most characters of a command in the undo journal.
const SHOWN: usize = 200;

/// The call whose commands make changes.
pub(super) struct ChangeSite {
    executor: Executor,
    offer: Offer,
    call: CallId,
    tool: ToolName,
}

/// A command that ran on a layer.
pub(super) struct RanCommand<'a> {
    /// The exit code; `None` if a signal ended it.
    pub(super) exit: Option<i32>,
    /// The command as the undo journal names it.
    pub(super) command: &'a str,
    /// The changes are reported and not applied.
    pub(super) dry_run: bool,
}

/// Changes that are not applied, and the text that a person reads about those that need approval.
#[derive(Default)]
struct Held {
    changes: Vec<HeldChange>,
    /// Paths of control files, which a person may approve.
    asked: Vec<(PathBuf, &'static str)>,
}

impl ChangeSite {
    pub(super) fn of(site: &Site<'_>) -> Self {
        Self {
            executor: site.executor.clone(),
            offer: site.offer.clone(),
            call: site.call,
            tool: site.meta.name.clone(),
        }
    }

    /// Applies the permitted changes of a command and reports what became of all of them.
    pub(super) async fn settle(
        &self,
        grant: &Arc<Grant>,
        mut pending: Box<dyn PendingChanges>,
        RanCommand { exit, command, dry_run }: RanCommand<'_>,
    ) -> Result<CommandChanges, ToolError> {
        let scrubber = self.scrubber(grant);
        let mut changes = CommandChanges::default();
        (changes.lines, changes.diff) = compare(&*pending, &scrubber).await;
        let Held { changes: refused, asked } = self.check(grant, &*pending).await;
        changes.held = refused;
        if !dry_run {
            let mode = self.executor.0.commands.of(self.offer.caller()).apply;
            let failed = mode == ApplyMode::OnSuccess && exit != Some(0);
            let unasked = |why: &str, agreed: bool| match agreed {
                true => None,
                false => Some(format!("{why}, and nobody has approved it")),
            };
            if failed {
                let reason = "`shell.apply` is `on_success`, and the exit code is not 0";
                self.hold_all(&*pending, &mut changes, reason);
            } else if let Some(reason) = self.review(grant, mode).filter(|_| !pending.list().is_empty()) {
                let all: Vec<_> =
                    pending.list().iter().map(|change| (change.path.clone(), "changed")).collect();
                let denied = !grant.writes && self.rule_of_writing(grant) == Some(EffectRule::Deny);
                let agreed = !denied && self.let_pass(grant, &*pending, &all, reason).await?;
                if let Some(reason) = unasked(reason, agreed) {
                    self.hold_all(&*pending, &mut changes, &reason);
                }
            } else if !asked.is_empty() {
                let reason = "the command changed files that can make other programs run commands";
                let agreed = self.let_pass(grant, &*pending, &asked, reason).await?;
                for (path, why) in asked {
                    let held = unasked(why, agreed).map(|reason| HeldChange { path, reason });
                    changes.held.extend(held);
                }
            }
        }
        hold_with_directories(pending.list(), &mut changes.held);
        let paths: BTreeSet<&Path> = changes.held.iter().map(|held| held.path.as_path()).collect();
        let applied = pending.list().iter().filter(|change| !paths.contains(change.path.as_path()));
        changes.applied = applied.cloned().collect();
        if let Some(bridge) = &self.executor.registry().world().bridge {
            let caller = self.offer.caller();
            let paths = changes.applied.iter().map(|change| change.path.clone());
            changes.beside_documents = paths.filter(|path| bridge.document(caller, path).is_some()).collect();
        }
        if dry_run {
            self.note(grant, &CommandChanges::default(), pending.is_complete());
            return Ok(changes);
        }
        grant.live()?;
        let growth = growth(&changes.applied);
        if let Err(error) = self.reserve(grant, growth).await {
            for change in std::mem::take(&mut changes.applied) {
                changes.held.push(HeldChange { path: change.path, reason: error.message.clone() });
            }
            self.note(grant, &changes, pending.is_complete());
            return Ok(changes);
        }
        let applied = self.apply(grant, &mut *pending, &mut changes, command).await;
        if applied.is_err() && !pending.is_applied() {
            let unused = WorkspaceGrowth { bytes: -growth.bytes, entries: -growth.entries };
            // A workspace that shrinks exceeds no quota.
            let _ = self.reserve(grant, unused).await;
        }
        applied.map(|()| changes)
    }

    fn scrubber(&self, grant: &Grant) -> CallScrubber {
        self.executor.scrubbers().for_call(&self.offer.caller().tenant, &grant.secrets)
    }

    /// The reason why a person has to approve all changes; `None` if nobody has to.
    fn review(&self, grant: &Grant, mode: ApplyMode) -> Option<&'static str> {
        match (mode, grant.writes, self.rule_of_writing(grant)) {
            (ApplyMode::Review, ..) => Some("`shell.apply` is `review`"),
            // The text of the command did not show that it writes, so no rule about writing was applied
            // before it ran.
            (_, false, Some(EffectRule::Ask | EffectRule::Deny)) => {
                let is_configured = grant.approvals(&self.executor).narrowing.is_empty();
                Some(match is_configured {
                    true => {
                        "`approvals.effects.write` does not allow it, and the command's text did not show that it writes"
                    }
                    false => "the mode does not allow it, and the command's text did not show that it writes",
                })
            }
            _ => None,
        }
    }

    /// The approval rule for writing.
    fn rule_of_writing(&self, grant: &Grant) -> Option<EffectRule> {
        grant.approvals(&self.executor).of_effect(Effect::Write).map(|(rule, _)| rule)
    }

    fn hold_all(&self, pending: &dyn PendingChanges, changes: &mut CommandChanges, reason: &str) {
        let held = |change: &FileChange| HeldChange { path: change.path.clone(), reason: reason.to_owned() };
        changes.held.extend(pending.list().iter().map(held));
    }

    async fn apply(
        &self,
        grant: &Grant,
        pending: &mut dyn PendingChanges,
        changes: &mut CommandChanges,
        command: &str,
    ) -> Result<(), ToolError> {
        let journal = self.executor.registry().world().undo.clone();
        let recorded = journal.filter(|_| !changes.applied.is_empty());
        if let Some(journal) = &recorded {
            let files = |change: &&FileChange| change.entry != ChangedEntry::Directory;
            let shown: String = command.chars().take(SHOWN).collect();
            let change = CommandChange {
                id: pending.id(),
                caller: self.offer.caller(),
                call: self.call,
                run: grant.run,
                tool: &self.tool,
                shown: &shown,
                files: changes.applied.iter().filter(files).count() as u64,
                lines: changes.lines,
                bytes: pending.kept_bytes(),
            };
            journal.record_command(&change).await?;
            changes.undo = Some(change.id);
        }
        let held: BTreeSet<PathBuf> = changes.held.iter().map(|held| held.path.clone()).collect();
        match pending.apply(&held.into_iter().collect::<Vec<_>>()).await {
            Ok(conflicts) => {
                changes
                    .applied
                    .retain(|change| conflicts.iter().all(|conflict| conflict.path != change.path));
                changes.conflicts = conflicts;
                self.note(grant, changes, pending.is_complete());
                Ok(())
            }
            Err(error) => {
                if let Some(journal) = recorded.as_ref().filter(|_| !pending.is_applied())
                    && let Err(error) = journal.withdraw(&self.offer.caller().tenant, pending.id()).await
                {
                    tracing::warn!(
                        error = error.for_log(),
                        "changes that were not made stay in the undo journal"
                    );
                }
                Err(error)
            }
        }
    }

    /// Stores the list of changes for the ledger. Nothing is stored of a command that changed nothing here but
    /// could change something elsewhere.
    fn note(&self, grant: &Grant, changes: &CommandChanges, is_complete: bool) {
        if changes.undo.is_none() && !is_complete {
            return;
        }
        let scrubber = self.scrubber(grant);
        let paths = changes.applied.iter().take(RECORDED);
        let record = ChangeRecord {
            undo: changes.undo,
            count: changes.applied.len() as u64,
            digest: Digest::of(&changes.applied),
            paths: paths.map(|change| scrubber.text(&shown_path(&change.path))).collect(),
        };
        *grant.changed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(record));
    }

    /// Finds the changes that the caller may not make, and those of control files.
    async fn check(&self, grant: &Grant, pending: &dyn PendingChanges) -> Held {
        let mut held = Held::default();
        for path in pending.refused() {
            let reason = "tools may not write it, or it cannot be read".to_owned();
            held.changes.push(HeldChange { path: path.clone(), reason });
        }
        let repositories = repositories(pending).await;
        for repository in &repositories {
            held.asked.extend(completing(pending, repository).await);
        }
        for change in pending.list() {
            let workspace = &self.offer.caller().workspace;
            let path = change.path.to_string_lossy();
            if let Err(error) = grant.scope.resolve_text(workspace, &path, Access::Write) {
                held.changes.push(HeldChange { path: change.path.clone(), reason: error.message });
                continue;
            }
            if change.kind == ChangeKind::Deleted || change.entry == ChangedEntry::Directory {
                continue;
            }
            let repository = repositories.iter().any(|repository| change.path.starts_with(repository));
            let entry = Entry { repository, link: change.entry == ChangedEntry::Link };
            // Most files are ordinary whatever they contain, and are not read for this.
            if control_reason(&change.path, None, None, entry).is_none() {
                continue;
            }
            let [before, after] = pending.contents(&change.path, COMPARED).await;
            let reason = control_reason(&change.path, before.as_deref(), after.as_deref(), entry);
            held.asked.extend(reason.map(|reason| (change.path.clone(), reason)));
        }
        held
    }

    /// Asks a person to approve changes of these files. If nobody can be asked, they are refused.
    async fn let_pass(
        &self,
        grant: &Grant,
        pending: &dyn PendingChanges,
        asked: &[(PathBuf, &'static str)],
        reason: &str,
    ) -> Result<bool, ToolError> {
        // A running call cannot be parked: unless somebody watches, the changes are held back.
        if matches!(grant.asking, Asking::Impossible | Asking::Unwatched) {
            return Ok(false);
        }
        let scrubber = self.scrubber(grant);
        let mut lines = vec![
            "the command has run; its changes are held back. Approving applies them to these files:"
                .to_owned(),
        ];
        let mut bound = Vec::new();
        for (path, why) in asked.iter().take(SHOWN_FILES) {
            let [before, after] = pending.contents(path, COMPARED).await;
            let change = pending.list().iter().find(|change| change.path == *path);
            let path = shown_path(path);
            lines.push(format!("{path}: {why}{}", change.map(described).unwrap_or_default()));
            let shown = diff(&path, before.as_deref(), after.as_deref(), DIFF_LINES);
            lines.push(summary::block(&shown, &scrubber));
            bound.push((path, after.map(|bytes| Digest::of_bytes(&bytes))));
        }
        if asked.len() > SHOWN_FILES {
            lines.push(format!("and {} more files", asked.len() - SHOWN_FILES));
        }
        // The approval covers files that do not fit, too.
        bound.push((format!("{asked:?}"), None));
        let (caller, now) = (self.offer.caller(), self.offer.0.registry.world().clock.now());
        let wait = Duration::from_secs(self.executor.0.approvals.load().wait_secs.into());
        let request = NewApproval {
            tenant: caller.tenant.clone(),
            session: caller.session.clone(),
            agent: caller.agent.clone(),
            user: caller.user.clone(),
            call: self.call,
            run: None,
            digest: Digest::of(&bound),
            tool: self.tool.clone(),
            effects: Effects::of(&[Effect::Write]),
            summary: lines.join("\n"),
            reason: reason.to_owned(),
            asked: now,
            expires: now.plus(wait),
            remember: None,
            directories: Vec::new(),
            input: None,
        };
        let _paused = grant.time.pause();
        match approval::ask(&self.executor, &self.offer, request, &grant.cancel).await {
            Ok(_) => Ok(true),
            Err(_) if grant.cancel.is_cancelled() => {
                Err(ToolError::new(claw_core::tool::ErrorKind::Cancelled, "the call was cancelled"))
            }
            Err(_) => Ok(false),
        }
    }
}

/// Holds back the deletion of a whole directory if the deletion of something in it is held back.
fn hold_with_directories(list: &[FileChange], held: &mut Vec<HeldChange>) {
    let is_deleted = |change: &&FileChange| change.kind == ChangeKind::Deleted;
    let holds = |change: &&FileChange| {
        change.entry == ChangedEntry::Directory && held.iter().any(|held| held.path.starts_with(&change.path))
    };
    let kept: Vec<&Path> =
        list.iter().filter(is_deleted).filter(holds).map(|change| change.path.as_path()).collect();
    let below = |change: &&FileChange| kept.iter().any(|kept| change.path.starts_with(kept));
    let reason = "its directory contains something that may not be deleted";
    let more: Vec<HeldChange> = list
        .iter()
        .filter(below)
        .filter(|change| held.iter().all(|held| held.path != change.path))
        .map(|change| HeldChange { path: change.path.clone(), reason: reason.to_owned() })
        .collect();
    held.extend(more);
}

/// The parts of a change that a diff may not show: kind, size and mode.
fn described(change: &FileChange) -> String {
    let what = match (change.kind, change.entry) {
        (ChangeKind::Deleted, _) => return " (deleted)".to_owned(),
        (_, ChangedEntry::Directory) => "directory",
        (_, ChangedEntry::Link) => "symbolic link",
        (_, ChangedEntry::File) => "file",
    };
    let size = change.bytes_after.map(|bytes| format!(", {bytes} bytes")).unwrap_or_default();
    let mode = change.mode.map(|mode| format!(", mode {mode:o}")).unwrap_or_default();
    let large = if change.bytes_after > Some(COMPARED) { ", too large to be shown" } else { "" };
    format!(" ({what}{size}{mode}{large})")
}

/// Entries that turn a directory into a repository whose existing configuration or hooks make git run
/// programs.
async fn completing(pending: &dyn PendingChanges, repository: &Path) -> Vec<(PathBuf, &'static str)> {
    let is_created = |path: &Path| {
        let is_it = |change: &FileChange| change.path == path && change.kind == ChangeKind::Created;
        pending.list().iter().any(is_it)
    };
    let config = repository.join("config");
    let [before, after] = pending.contents(&config, COMPARED).await;
    let entry = Entry { repository: true, link: false };
    let runs = pending.exists(&config).await
        && control_reason(&config, None, after.or(before).as_deref(), entry).is_some();
    let hooks = repository.join("hooks");
    let hooked = pending.exists(&hooks).await && !is_created(&hooks);
    let parts = ["HEAD", "objects", "refs"].map(|part| repository.join(part));
    let created = parts.into_iter().filter(|part| (runs || hooked) && is_created(part));
    created.map(|part| (part, "it makes the directory a git repository")).collect()
}

/// Directories that the changes turn into git repositories not called `.git`, or in which they change one.
async fn repositories(pending: &dyn PendingChanges) -> Vec<PathBuf> {
    const PARTS: [&str; 4] = ["HEAD", "config", "objects", "refs"];
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for change in pending.list().iter().filter(|change| change.kind != ChangeKind::Deleted) {
        for directory in change.path.ancestors().skip(1).take(3) {
            if directory.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git")) {
                continue;
            }
            let is_part = PARTS.iter().any(|part| change.path.starts_with(directory.join(part)));
            let is_hook = change.path.starts_with(directory.join("hooks"));
            if !(is_part || is_hook) || !seen.insert(directory.to_owned()) {
                continue;
            }
            let mut complete = true;
            for part in ["HEAD", "objects", "refs"] {
                complete = complete && pending.exists(&directory.join(part)).await;
            }
            if complete {
                found.insert(directory.to_owned());
            }
        }
    }
    found.into_iter().collect()
}

/// Counts the changed lines and shows as many as fit.
async fn compare(pending: &dyn PendingChanges, scrubber: &CallScrubber) -> ((u64, u64), String) {
    let (mut lines, mut shown, mut left) = ((0, 0), String::new(), COMPARED_IN_ALL);
    let mut omitted = 0;
    for change in pending.list().iter().filter(|change| change.entry == ChangedEntry::File) {
        let size = change.bytes_before.unwrap_or(0).saturating_add(change.bytes_after.unwrap_or(0));
        if size > COMPARED * 2 || size > left {
            omitted += 1;
            continue;
        }
        left -= size;
        let [before, after] = pending.contents(&change.path, COMPARED).await;
        let (Some(old), Some(new)) = (as_text(before.as_deref()), as_text(after.as_deref())) else {
            omitted += 1;
            continue;
        };
        for part in TextDiff::from_lines(old.as_str(), new.as_str()).iter_all_changes() {
            match part.tag() {
                ChangeTag::Insert => lines.0 += 1,
                ChangeTag::Delete => lines.1 += 1,
                ChangeTag::Equal => {}
            }
        }
        // A repository's own files are many, and nobody reads them.
        let is_of_git = change.path.components().any(|part| part.as_os_str() == ".git");
        if shown.len() < DIFF_BYTES && !is_of_git {
            let path = shown_path(&change.path);
            let (old, new) = (scrubber.file_text(&path, &old), scrubber.file_text(&path, &new));
            shown.push_str(&unified_diff(&path, &old, &new, DIFF_LINES));
        } else if !is_of_git {
            omitted += 1;
        }
    }
    if omitted > 0 && !shown.is_empty() {
        shown.push_str(&format!("(the diffs of {omitted} more files are left out)\n"));
    }
    (lines, shown)
}

/// The text of a file; empty if there is no file, `None` if it is not text.
fn as_text(bytes: Option<&[u8]>) -> Option<String> {
    match bytes {
        None => Some(String::new()),
        Some(bytes) => text::decode(bytes).ok().map(|text| text.text),
    }
}

fn diff(path: &str, before: Option<&[u8]>, after: Option<&[u8]>, most: usize) -> String {
    match (as_text(before), as_text(after)) {
        (Some(old), Some(new)) => unified_diff(path, &old, &new, most),
        _ => "(it is not text)\n".to_owned(),
    }
}

#[cfg(test)]
mod tests;
