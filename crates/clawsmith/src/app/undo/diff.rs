//! Changes as diffs without secrets.

use claw_core::counted::counted;
use claw_core::port::{ChangeKind, ChangedEntry, FileChange, shown_path};
use claw_core::store::{CommandUndo, FileState, NewUndo};
use claw_core::text;
use claw_host::files::Step;
use claw_registry::unified_diff;

use super::{UndoLog, failed};
use crate::app::Error;

/// The part of a file that may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileView {
    /// There is no file.
    Absent,
    /// The text, scrubbed.
    Text(String),
    /// The size and type.
    Binary(String),
}

/// Largest file of a command's changes that is shown.
const SHOWN: u64 = 1 << 20;

const fn word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Created => "created",
        ChangeKind::Changed => "changed",
        ChangeKind::Deleted => "deleted",
    }
}

impl FileView {
    fn size(&self) -> String {
        match self {
            Self::Absent => "nothing".to_owned(),
            Self::Text(text) => counted(text.chars().count(), "character"),
            Self::Binary(what) => what.clone(),
        }
    }
}

impl UndoLog {
    /// The diff of a change, at most `most` lines.
    pub async fn diff(&self, new: &NewUndo, most: usize) -> Result<String, Error> {
        if let Some(command) = &new.command {
            return self.diff_of_command(command, most).await;
        }
        let (before, after) = (
            self.view(&new.shown, new.before.as_ref()).await?,
            self.view(&new.shown, new.after.as_ref()).await?,
        );
        Ok(self.diff_of(&new.shown, &before, &after, most))
    }

    /// The diffs of everything that a command changed, at most `most` lines.
    async fn diff_of_command(&self, command: &CommandUndo, most: usize) -> Result<String, Error> {
        let (transactions, id) = (self.journal.transactions().clone(), command.transaction);
        let read = tokio::task::spawn_blocking(move || {
            let transaction = transactions.open(id)?;
            let with_contents = |change: FileChange| {
                let contents = transaction.contents(&change.path, SHOWN);
                (change, contents)
            };
            Ok(transaction.changes().into_iter().map(with_contents).collect::<Vec<_>>())
        });
        let read = read.await.unwrap_or_else(|stopped| Err(std::io::Error::other(stopped)));
        let changes = read.map_err(|error| {
            Error::failed("the command's changes are no longer kept, or cannot be read").because(error)
        })?;
        let (mut shown, mut lines) = (String::new(), 0);
        for (change, [before, after]) in changes {
            let path = shown_path(&change.path);
            let diff = match change.entry {
                ChangedEntry::File => {
                    let view = |there: Option<u64>, bytes: Option<Vec<u8>>| match (there, bytes) {
                        (None, _) => FileView::Absent,
                        (Some(_), Some(bytes)) => self.view_bytes(&path, &bytes),
                        (Some(size), None) => FileView::Binary(counted(size, "byte")),
                    };
                    let (before, after) =
                        (view(change.bytes_before, before), view(change.bytes_after, after));
                    self.diff_of(&path, &before, &after, most.saturating_sub(lines))
                }
                ChangedEntry::Directory => format!("({} directory {path})\n", word(change.kind)),
                ChangedEntry::Link => format!("({} link {path})\n", word(change.kind)),
            };
            lines += diff.lines().count();
            shown.push_str(&self.scrubber.text(&diff));
            if lines >= most {
                shown.push_str("(more changes are left out)\n");
                break;
            }
        }
        Ok(shown)
    }

    /// Returns two diffs for a file that somebody else changed since: the original change, and the later one.
    pub async fn three_ways(&self, step: &Step, most: usize) -> Result<Option<(String, String)>, Error> {
        let Some(change) = step.changes.first() else { return Ok(None) };
        if let Some(command) = &change.new.command {
            let since = step.changed_since.iter().map(|path| format!("({} changed)\n", shown_path(path)));
            return Ok(Some((self.diff_of_command(command, most).await?, since.collect())));
        }
        let shown = &change.new.shown;
        let before = self.view(shown, step.target.as_ref()).await?;
        let after = self.view(shown, step.left.as_ref()).await?;
        let now = step.now.as_ref().map_or(FileView::Absent, |now| self.view_bytes(shown, &now.bytes));
        let change = self.diff_of(shown, &before, &after, most);
        Ok(Some((change, self.diff_of(shown, &after, &now, most))))
    }

    fn diff_of(&self, shown: &str, before: &FileView, after: &FileView, most: usize) -> String {
        let shown = self.scrubber.text(shown);
        let text = |view: &FileView| match view {
            FileView::Absent => Some(String::new()),
            FileView::Text(text) => Some(text.clone()),
            FileView::Binary(_) => None,
        };
        let mut told = match (before, after) {
            (FileView::Absent, FileView::Absent) => "(the file does not exist)\n".to_owned(),
            (FileView::Absent, _) => "(the file did not exist before)\n".to_owned(),
            (_, FileView::Absent) => "(the file was removed)\n".to_owned(),
            _ => String::new(),
        };
        match (text(before), text(after)) {
            (Some(old), Some(new)) if old == new && told.is_empty() => {
                told.push_str("(no visible difference)\n");
            }
            (Some(old), Some(new)) => told.push_str(&unified_diff(&shown, &old, &new, most)),
            _ => told.push_str(&format!("({} before, {} after)\n", before.size(), after.size())),
        }
        told
    }

    async fn view(&self, path: &str, state: Option<&FileState>) -> Result<FileView, Error> {
        match state {
            None => Ok(FileView::Absent),
            Some(state) => {
                let bytes = self.journal.bytes(state).await.map_err(failed)?;
                Ok(self.view_bytes(path, &bytes))
            }
        }
    }

    fn view_bytes(&self, path: &str, bytes: &[u8]) -> FileView {
        match text::decode(bytes) {
            Ok(text) => FileView::Text(self.scrubber.file_text(path, &text.text)),
            Err(mime) => FileView::Binary(format!("{} of {mime}", counted(bytes.len(), "byte"))),
        }
    }
}
