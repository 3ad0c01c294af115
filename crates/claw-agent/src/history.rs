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
    /// What stands for what was said before all else.
    summary: Option<String>,
    earlier: Vec<Turn>,
    /// How many of the earlier turns a new summary can stand for, and their last message.
    coverable: (usize, u64),
    /// Those of the run itself, its question first.
    run: Vec<Turn>,
}

impl History {
    /// Reads what was said before a run and in it.
    pub async fn read(
        store: &(impl SessionLog + ?Sized),
        owner: (&TenantId, &SessionKey),
        run: JobId,
    ) -> Result<Self, StoreError> {
        if let Some(summary) = store.summary(owner.0, owner.1).await? {
            let messages = messages(store, owner, summary.upto).await?;
            let first = messages.iter().find(|message| message.run == run);
            // A run that failed and was tried again later may be older than the summary.
            if first.is_some_and(|first| first.new.role == Role::User) {
                return Ok(Self { summary: Some(summary.text), ..Self::of(messages, run) });
            }
        }
        Ok(Self::of(messages(store, owner, 0).await?, run))
    }

    /// What these messages come to for a run.
    pub fn of(messages: Vec<Message>, run: JobId) -> Self {
        let mut order: Vec<JobId> = Vec::new();
        let mut runs: HashMap<JobId, Vec<Message>> = HashMap::new();
        let seqs: Vec<(u64, JobId)> = messages.iter().map(|message| (message.seq, message.run)).collect();
        for message in messages {
            if !runs.contains_key(&message.run) {
                order.push(message.run);
            }
            runs.entry(message.run).or_default().push(message);
        }
        order.truncate(order.iter().position(|id| *id == run).unwrap_or(order.len()));
        let upto = reach(&seqs, &order, &runs);
        let mut history = Self::default();
        for id in order {
            let messages = runs.remove(&id).unwrap_or_default();
            let is_covered = messages.iter().all(|message| message.seq <= upto);
            history.earlier.extend(settled(turns(messages)));
            if is_covered {
                history.coverable = (history.earlier.len(), upto);
            }
        }
        history.run = turns(runs.remove(&run).unwrap_or_default());
        history
    }

    /// As a model reads it.
    pub fn turns(&self) -> Vec<Turn> {
        joined(self.before().iter().chain(&self.earlier).chain(&self.run))
    }

    /// What a new summary can stand for, and its last message; `None` where there is nothing.
    pub(crate) fn coverable(&self) -> Option<(Vec<Turn>, u64)> {
        let (count, upto) = self.coverable;
        let turns = self.before().into_iter().chain(self.earlier.iter().take(count).cloned());
        let turns: Vec<Turn> = turns.collect();
        (count > 0).then(|| (joined(turns.iter()), upto))
    }

    /// Puts a summary in the place of what it stands for.
    pub(crate) fn summarised(&mut self, text: String) {
        self.summary = Some(text);
        self.earlier.drain(..self.coverable.0.min(self.earlier.len()));
        self.coverable = (0, 0);
    }

    fn before(&self) -> Option<Turn> {
        let summary = self.summary.as_ref()?;
        Some(Turn::text(Role::User, format!("[what was said before, in short]\n{summary}")))
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

/// How far runs that are over reach from the beginning, with nothing of others between them.
fn reach(seqs: &[(u64, JobId)], earlier: &[JobId], runs: &HashMap<JobId, Vec<Message>>) -> u64 {
    let earlier: HashSet<&JobId> = earlier.iter().collect();
    let is_over = |run: &JobId| {
        let last = runs.get(run).and_then(|messages| messages.last());
        earlier.contains(run) && last.is_some_and(|last| last.new.role != Role::User)
    };
    let (mut open, mut upto) = (HashMap::new(), 0);
    for (seq, run) in seqs {
        if !is_over(run) {
            break;
        }
        let left = open.entry(*run).or_insert_with(|| runs.get(run).map_or(0, Vec::len));
        *left = left.saturating_sub(1);
        if *left == 0 {
            open.remove(run);
        }
        if open.is_empty() {
            upto = *seq;
        }
    }
    upto
}

/// All messages of a conversation after one.
async fn messages(
    store: &(impl SessionLog + ?Sized),
    (tenant, session): (&TenantId, &SessionKey),
    after: u64,
) -> Result<Vec<Message>, StoreError> {
    let mut messages: Vec<Message> = Vec::new();
    loop {
        let after = messages.last().map_or(after, |message| message.seq);
        let page = store.messages(tenant, session, after, PAGE).await?;
        let is_last = page.len() < PAGE;
        messages.extend(page);
        if is_last {
            return Ok(messages);
        }
    }
}

/// Turns of which no two in a row are of the same speaker.
fn joined<'a>(turns: impl Iterator<Item = &'a Turn>) -> Vec<Turn> {
    let mut joined: Vec<Turn> = Vec::new();
    for turn in turns {
        push(&mut joined, turn.clone());
    }
    // Providers want a person to speak first.
    if joined.first().is_some_and(|turn| turn.role != Role::User) {
        joined.insert(0, Turn::text(Role::User, "[earlier messages are left out]"));
    }
    joined
}

/// The turns of one run. What a person said while calls were made stands after their results.
fn turns(messages: Vec<Message>) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::with_capacity(messages.len());
    let mut meanwhile: Vec<Turn> = Vec::new();
    // The calls that have no result so far.
    let mut open: HashSet<CallId> = HashSet::new();
    for message in messages {
        let parts = parts(&message);
        let turn = match message.new.role {
            Role::System => {
                let words = Turn { role: Role::System, parts }.words();
                Turn::text(Role::Assistant, format!("[{words}]"))
            }
            role => Turn { role, parts },
        };
        if turn.role == Role::User && !open.is_empty() {
            meanwhile.push(turn);
            continue;
        }
        open.extend(turn.calls().map(|wanted| wanted.call));
        for told in results(&turn) {
            open.remove(&told.call);
        }
        if turn.role != Role::Tool {
            meanwhile.drain(..).for_each(|turn| push(&mut turns, turn));
        }
        push(&mut turns, turn);
    }
    meanwhile.into_iter().for_each(|turn| push(&mut turns, turn));
    turns
}

fn push(turns: &mut Vec<Turn>, turn: Turn) {
    match turns.last_mut() {
        Some(last) if last.role == turn.role => last.parts.extend(turn.parts),
        _ => turns.push(turn),
    }
}

/// What a message is made of; what does not read is shown as it is.
pub(crate) fn parts(message: &Message) -> Vec<Part> {
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
