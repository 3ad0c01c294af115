//! Commands among the changes: what they did to files is not kept, and that is said.

use claw_core::store::{Entry, EntryEvent, Undo as Change, UndoFilter};
use claw_core::tool::Effect;
use claw_registry::CallScrubber;
use serde_json::{Value, json};

use super::{Row, Work, unreadable};
use crate::command::ledger::shortened;
use crate::failure::Failure;
use crate::output::Cell;

/// How many of the ledger's last lines are looked through.
const LOOKED_AT: usize = 100_000;
const STATE: &str = "not covered";

impl Work {
    /// The last calls that ran programs which may have changed files, as their intents; where `all` is set, those that
    /// only read too.
    pub(super) async fn commands(
        &self,
        filter: &UndoFilter,
        limit: usize,
        all: bool,
    ) -> Result<Vec<Entry>, Failure> {
        let entries = self.store.recent(&self.loaded.config.tenant, LOOKED_AT).await.map_err(unreadable)?;
        let wanted = |entry: &Entry| {
            let executes = match &entry.record.event {
                EntryEvent::Intent { effects, .. } => {
                    effects.has(Effect::Execute) && (all || effects.has(Effect::Write))
                }
                _ => false,
            };
            executes && filter.session.as_ref().is_none_or(|session| *session == entry.record.session)
        };
        Ok(entries.into_iter().rev().filter(wanted).take(limit).collect())
    }
}

/// Keeps the newest of both, so many in all. Both come newest first.
pub(super) fn newest(changes: &mut Vec<Change>, commands: &mut Vec<Entry>, limit: usize) {
    while changes.len() + commands.len() > limit {
        let (change, command) = (changes.last(), commands.last());
        let older = match (change, command) {
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

/// A command as a row among changes.
pub(super) fn row<'a>(command: &'a Entry, scrubber: &CallScrubber) -> Row<'a> {
    let record = &command.record;
    let args = match &record.event {
        EntryEvent::Intent { args, .. } => match args["command"].as_str() {
            Some(command) => shortened(command),
            None => shortened(&args.to_string()),
        },
        _ => String::new(),
    };
    Row {
        id: Cell::quiet("-"),
        at: record.at,
        by: (&record.session, &record.agent, &record.tool),
        call: record.call,
        run: None,
        change: "command",
        state: Cell::warning(STATE),
        file: scrubber.text(&args),
    }
}

pub(super) fn as_json(command: &Entry) -> Value {
    let record = &command.record;
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
        "state": STATE,
    })
}
