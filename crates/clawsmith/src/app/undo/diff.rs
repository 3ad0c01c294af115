//! Changes as diffs without secrets.

use claw_core::store::{FileState, NewUndo};
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
    /// Its text, scrubbed.
    Text(String),
    /// Its size and type.
    Binary(String),
}

impl FileView {
    fn size(&self) -> String {
        match self {
            Self::Absent => "nothing".to_owned(),
            Self::Text(text) => format!("{} characters", text.chars().count()),
            Self::Binary(what) => what.clone(),
        }
    }
}

impl UndoLog {
    /// The diff of a change, at most `most` lines.
    pub async fn diff(&self, new: &NewUndo, most: usize) -> Result<String, Error> {
        let (before, after) = (self.view(new.before.as_ref()).await?, self.view(new.after.as_ref()).await?);
        Ok(self.diff_of(&new.shown, &before, &after, most))
    }

    /// Two diffs for a file that somebody else changed since: what the change made of it, and what was made of it
    /// afterwards.
    pub async fn three_ways(&self, step: &Step, most: usize) -> Result<Option<(String, String)>, Error> {
        let Some(change) = step.changes.first() else { return Ok(None) };
        let shown = &change.new.shown;
        let before = self.view(step.target.as_ref()).await?;
        let after = self.view(step.left.as_ref()).await?;
        let now = step.now.as_ref().map_or(FileView::Absent, |now| self.view_bytes(&now.bytes));
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
            (FileView::Absent, FileView::Absent) => "(it is not there)\n".to_owned(),
            (FileView::Absent, _) => "(it was not there before)\n".to_owned(),
            (_, FileView::Absent) => "(it is not there after)\n".to_owned(),
            _ => String::new(),
        };
        match (text(before), text(after)) {
            (Some(old), Some(new)) if old == new && told.is_empty() => {
                told.push_str("(nothing that may be seen differs)\n");
            }
            (Some(old), Some(new)) => told.push_str(&unified_diff(&shown, &old, &new, most)),
            _ => told.push_str(&format!("({} before, {} after)\n", before.size(), after.size())),
        }
        told
    }

    async fn view(&self, state: Option<&FileState>) -> Result<FileView, Error> {
        match state {
            None => Ok(FileView::Absent),
            Some(state) => {
                let bytes = self.journal.bytes(state).await.map_err(failed)?;
                Ok(self.view_bytes(&bytes))
            }
        }
    }

    fn view_bytes(&self, bytes: &[u8]) -> FileView {
        match text::decode(bytes) {
            Ok(text) => FileView::Text(self.scrubber.file_text(&text.text)),
            Err(mime) => FileView::Binary(format!("{} bytes of {mime}", bytes.len())),
        }
    }
}
