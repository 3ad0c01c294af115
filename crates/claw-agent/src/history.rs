//! A conversation as a model reads it, from what is stored of it.
//!
//! Messages that came while a run went on stand between those of the run; here each run stands by itself, in the
//! order in which the runs were asked for, and what waits for a later run is left out. Speakers take turns: words
//! of the system are read as the agent's own, in brackets.

use std::collections::{HashMap, HashSet};

use claw_core::message::{Part, Told, Turn, Wanted};
use claw_core::store::{Message, Role, SessionLog, StoreError};
use claw_core::{CallId, JobId, SessionKey, TenantId};
use serde::Deserialize as _;

use crate::result;

/// How many messages are read at a time.
const PAGE: usize = 500;

/// What was said until now.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    earlier: Vec<Turn>,
    /// Those of the run itself, its question first.
    run: Vec<Turn>,
}

impl History {
    /// Reads what was said before a run and in it.
    pub async fn read(
        store: &(impl SessionLog + ?Sized),
        (tenant, session): (&TenantId, &SessionKey),
        run: JobId,
    ) -> Result<Self, StoreError> {
        let mut messages: Vec<Message> = Vec::new();
        loop {
            let after = messages.last().map_or(0, |message| message.seq);
            let page = store.messages(tenant, session, after, PAGE).await?;
            let is_last = page.len() < PAGE;
            messages.extend(page);
            if is_last {
                return Ok(Self::of(messages, run));
            }
        }
    }

    /// What these messages come to for a run.
    pub fn of(messages: Vec<Message>, run: JobId) -> Self {
        let mut order: Vec<JobId> = Vec::new();
        let mut runs: HashMap<JobId, Vec<Message>> = HashMap::new();
        for message in messages {
            if !runs.contains_key(&message.run) {
                order.push(message.run);
            }
            runs.entry(message.run).or_default().push(message);
        }
        let mut history = Self::default();
        for id in order.into_iter().take_while(|id| *id != run) {
            let turns = turns(runs.remove(&id).unwrap_or_default());
            history.earlier.extend(settled(turns));
        }
        history.run = turns(runs.remove(&run).unwrap_or_default());
        history
    }

    /// As a model reads it.
    pub fn turns(&self) -> Vec<Turn> {
        let mut turns: Vec<Turn> = Vec::with_capacity(self.earlier.len() + self.run.len());
        for turn in self.earlier.iter().chain(&self.run) {
            match turns.last_mut() {
                Some(last) if last.role == turn.role => last.parts.extend(turn.parts.iter().cloned()),
                _ => turns.push(turn.clone()),
            }
        }
        // Providers want a person to speak first.
        if turns.first().is_some_and(|turn| turn.role != Role::User) {
            turns.insert(0, Turn::text(Role::User, "[earlier messages are left out]"));
        }
        turns
    }

    /// The turns of the run itself.
    pub(crate) fn of_run(&self) -> &[Turn] {
        &self.run
    }

    /// The calls of the run that have no result.
    pub(crate) fn open_calls(&self) -> Vec<Wanted> {
        open(&self.run)
    }

    /// Adds what was said in the run.
    pub(crate) fn say(&mut self, turn: Turn) {
        push(&mut self.run, turn);
    }
}

/// The turns of one run.
fn turns(messages: Vec<Message>) -> Vec<Turn> {
    let mut turns = Vec::with_capacity(messages.len());
    for message in messages {
        let parts = parts(&message);
        let turn = match message.new.role {
            Role::System => {
                let words = Turn { role: Role::System, parts }.words();
                Turn::text(Role::Assistant, format!("[{words}]"))
            }
            role => Turn { role, parts },
        };
        push(&mut turns, turn);
    }
    turns
}

fn push(turns: &mut Vec<Turn>, turn: Turn) {
    match turns.last_mut() {
        Some(last) if last.role == turn.role => last.parts.extend(turn.parts),
        _ => turns.push(turn),
    }
}

/// What a message is made of; what does not read is shown as it is.
fn parts(message: &Message) -> Vec<Part> {
    let content = &message.new.content;
    match Vec::<Part>::deserialize(content) {
        Ok(parts) => parts,
        Err(_) => vec![Part::text(content.as_str().map_or_else(|| content.to_string(), str::to_owned))],
    }
}

/// A run that is over: a call without a result, of a run that nobody could end, gets one here.
fn settled(mut turns: Vec<Turn>) -> Vec<Turn> {
    let open = open(&turns);
    if open.is_empty() {
        return turns;
    }
    let told = |wanted: &Wanted| Part::Result(result::not_made(wanted, "nobody knows what became of it"));
    let at = turns.iter().rposition(|turn| turn.calls().next().is_some()).map_or(turns.len(), |at| at + 1);
    let results: Vec<Part> = open.iter().map(told).collect();
    match turns.get_mut(at) {
        Some(turn) if turn.role == Role::Tool => turn.parts.extend(results),
        _ => turns.insert(at, Turn { role: Role::Tool, parts: results }),
    }
    turns
}

fn open(turns: &[Turn]) -> Vec<Wanted> {
    let told: HashSet<CallId> = turns.iter().flat_map(results).map(|told| told.call).collect();
    turns.iter().flat_map(Turn::calls).filter(|wanted| !told.contains(&wanted.call)).cloned().collect()
}

/// The results in a turn, in order.
pub(crate) fn results(turn: &Turn) -> impl Iterator<Item = &Told> {
    turn.parts.iter().filter_map(|part| match part {
        Part::Result(told) => Some(told),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
