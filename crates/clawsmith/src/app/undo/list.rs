//! The list of changes and of the commands that may have changed files, newest first.

use std::collections::HashSet;
use std::path::Path;

use claw_core::counted::counted;
use claw_core::port::UnixMillis;
use claw_core::store::{CommandUndo, Entry, EntryEvent, NewUndo, Undo as Change, UndoFilter};
use claw_core::{AgentId, CallId, JobId, SessionKey};
use serde_json::Value;

use super::{ChangeState, UndoLog, change_json, command_json};
use crate::app::Error;
use crate::app::words::in_short;

/// An entry of the list.
#[derive(Debug)]
pub enum ListedChange {
    /// A change that the journal keeps.
    Change(Box<Change>, ChangeState),
    /// The intent of a command whose changes the journal does not know.
    Command(Box<Entry>),
}

impl UndoLog {
    /// Lists the last changes, and the commands that may have changed files; with `all`, also those that only read.
    pub async fn list(
        &self,
        filter: &UndoFilter,
        limit: usize,
        all: bool,
    ) -> Result<Vec<ListedChange>, Error> {
        let mut listed = Vec::new();
        let mut newest = HashSet::new();
        for change in self.changes(filter, limit).await? {
            // A newer change of the same file covers an older one: the file says nothing about it.
            let is_newest = newest.insert(change.new.place.clone());
            let state = self.state(&change, is_newest).await;
            listed.push(ListedChange::Change(Box::new(change), state));
        }
        let commands = self.commands(filter, limit, all).await?;
        listed.extend(commands.into_iter().map(|command| ListedChange::Command(Box::new(command))));
        listed.sort_by_key(|one| std::cmp::Reverse(one.at()));
        listed.truncate(limit);
        Ok(listed)
    }
}

impl ListedChange {
    /// The time of the change or command.
    pub fn at(&self) -> UnixMillis {
        match self {
            Self::Change(change, _) => change.new.at,
            Self::Command(command) => command.record.at,
        }
    }

    /// The session and the agent.
    pub fn by(&self) -> (&SessionKey, &AgentId) {
        match self {
            Self::Change(change, _) => (&change.new.session, &change.new.agent),
            Self::Command(command) => (&command.record.session, &command.record.agent),
        }
    }

    /// The tool, its call and its run.
    pub fn call(&self) -> (&str, CallId, Option<JobId>) {
        match self {
            Self::Change(change, _) => (change.new.tool.as_str(), change.new.call, change.new.run),
            Self::Command(command) => (&command.record.tool, command.record.call, None),
        }
    }

    /// The file that was changed, or the command, as a person in this directory names it. It is not scrubbed.
    pub fn what(&self, here: &Path) -> String {
        match self {
            Self::Change(change, _) => place_of(&change.new, here),
            Self::Command(command) => match &command.record.event {
                EntryEvent::Intent { args, .. } => match args["command"].as_str() {
                    Some(command) => in_short(command),
                    None => in_short(&args.to_string()),
                },
                _ => String::new(),
            },
        }
    }

    /// The entry as JSON.
    pub fn json(&self) -> Value {
        match self {
            Self::Change(change, state) => change_json(change, *state),
            Self::Command(command) => command_json(&command.record),
        }
    }
}

/// The file as the tool named it if the person is in its workspace, else with the workspace.
fn place_of(new: &NewUndo, here: &Path) -> String {
    if let Some(CommandUndo { files, added, removed, .. }) = &new.command {
        let files = counted(*files, "file");
        let place = match here.starts_with(&new.workspace) {
            true => String::new(),
            false => format!(" in {}", new.workspace),
        };
        return format!("{}{place} ({files}, +{added} -{removed})", in_short(&new.shown));
    }
    match here.starts_with(&new.workspace) || Path::new(&new.shown).is_absolute() {
        true => new.shown.clone(),
        false => Path::new(&new.workspace).join(&new.shown).display().to_string(),
    }
}
