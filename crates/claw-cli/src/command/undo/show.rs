//! What changes did, as people read it: diffs without secrets.

use std::process::ExitCode;

use claw_core::store::{FileState, NewUndo};
use claw_core::text;
use claw_host::files::Step;
use claw_registry::unified_diff;
use serde_json::json;

use super::{Which, Work, as_json, failed, kind};
use crate::cli::Session;
use crate::command::ledger::time;
use crate::failure::{Failure, Outcome};
use crate::output::style;

/// Lines of a diff that are shown.
const SHOWN: usize = 2000;
/// Lines of each diff in a three-way view.
const SHORT: usize = 40;

impl Work {
    pub(super) async fn show(&self, session: &mut Session, which: &Which) -> Outcome {
        let changes = self.find(which).await?;
        let mut rows = Vec::new();
        for (nth, change) in changes.iter().enumerate() {
            let new = &change.new;
            let (before, after) =
                (self.seen(new.before.as_ref()).await?, self.seen(new.after.as_ref()).await?);
            let diff = self.diff(&new.shown, &before, &after, SHOWN);
            let state = self.state(change, nth == 0).await;
            if session.out.json {
                let mut row = as_json(change, state);
                row["diff"] = json!(diff);
                rows.push(row);
                continue;
            }
            let NewUndo { id, tool, agent, session: key, at, call, .. } = new;
            let shown = self.scrubber.text(&new.shown);
            session.out.foreign(&format!("{} `{shown}`, {state}", kind(new)))?;
            session.out.styled(
                style::QUIET,
                &format!("change {id}\nby {tool} of {agent} in {key}, {}\ncall {call}", time(*at)),
            )?;
            self.print(session, &diff)?;
        }
        if session.out.json {
            session.out.json(&self.scrubber.json(&json!(rows)))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// What a file was, what the change made of it, and what it is now.
    pub(super) async fn three_ways(&self, session: &mut Session, step: &Step) -> Result<(), Failure> {
        let Some(change) = step.changes.first() else { return Ok(()) };
        let shown = &change.new.shown;
        let before = self.seen(step.target.as_ref()).await?;
        let after = self.seen(step.left.as_ref()).await?;
        let now = step.now.as_ref().map_or(Seen::Absent, |now| self.seen_bytes(&now.bytes));
        session.out.heading(&format!("`{}`: what the change made of it", self.scrubber.text(shown)))?;
        self.print(session, &self.diff(shown, &before, &after, SHORT))?;
        session.out.heading("and what was made of it since")?;
        self.print(session, &self.diff(shown, &after, &now, SHORT))
    }

    fn print(&self, session: &mut Session, diff: &str) -> Result<(), Failure> {
        for line in diff.lines() {
            session.out.diff_line(line)?;
        }
        Ok(())
    }

    fn diff(&self, shown: &str, before: &Seen, after: &Seen, most: usize) -> String {
        let shown = self.scrubber.text(shown);
        let text = |seen: &Seen| match seen {
            Seen::Absent => Some(String::new()),
            Seen::Text(text) => Some(text.clone()),
            Seen::Binary(_) => None,
        };
        let mut told = match (before, after) {
            (Seen::Absent, Seen::Absent) => "(it is not there)\n".to_owned(),
            (Seen::Absent, _) => "(it was not there before)\n".to_owned(),
            (_, Seen::Absent) => "(it is not there after)\n".to_owned(),
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

    async fn seen(&self, state: Option<&FileState>) -> Result<Seen, Failure> {
        match state {
            None => Ok(Seen::Absent),
            Some(state) => {
                let bytes = self.journal.bytes(state).await.map_err(failed)?;
                Ok(self.seen_bytes(&bytes))
            }
        }
    }

    fn seen_bytes(&self, bytes: &[u8]) -> Seen {
        match text::decode(bytes) {
            Ok(text) => Seen::Text(self.scrubber.file_text(&text.text)),
            Err(mime) => Seen::Binary(format!("{} bytes of {mime}", bytes.len())),
        }
    }
}

/// What may be seen of a file.
enum Seen {
    Absent,
    Text(String),
    Binary(String),
}

impl Seen {
    fn size(&self) -> String {
        match self {
            Self::Absent => "nothing".to_owned(),
            Self::Text(text) => format!("{} characters", text.chars().count()),
            Self::Binary(what) => what.clone(),
        }
    }
}
