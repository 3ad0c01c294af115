//! The history of a session as a model reads it, built from the stored messages.
//!
//! Messages that arrive during a run are stored between those of the run. Here each run stands by itself, in
//! the order in which the runs were requested, and messages for a later run are left out. Authors take turns:
//! texts of the system appear as the agent's own, in brackets.

use std::collections::{HashMap, HashSet};

use claw_core::message::{Part, ToolResult, Turn, Wanted};
use claw_core::store::{Message, Role, SessionLog, StoreError};
use claw_core::{CallId, JobId, SessionKey, TenantId};
use serde::Deserialize as _;

use crate::{call_result, context_window};

/// The number of messages read at a time.
const PAGE: usize = 500;

/// The messages before a run and in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// The summary of the messages before all others; `None` if nothing was summarised.
    summary: Option<String>,
    /// The earlier runs, oldest first. A run that brought the results of another's calls stands with that one.
    earlier: Vec<Earlier>,
    /// Turns of the runs whose calls this run brings the results of.
    continued: Vec<Turn>,
    /// Turns of the run itself, beginning with the user's message.
    run: Vec<Turn>,
}

/// An earlier run.
#[derive(Debug, Clone, PartialEq)]
struct Earlier {
    turns: Vec<Turn>,
    /// The last message that a summary up to and including this run covers; `None` if messages of other runs
    /// lie between, or a run is not over.
    upto: Option<u64>,
}

/// Some earlier runs, to be summarised together.
#[derive(Debug, PartialEq)]
pub(crate) struct Chunk {
    /// Turns for the model: the previous summary, then the runs.
    pub(crate) turns: Vec<Turn>,
    /// The number of runs.
    pub(crate) runs: usize,
    /// The last message that their summary covers.
    pub(crate) upto: u64,
}

impl History {
    /// Reads the messages before a run and in it.
    pub async fn read(
        store: &(impl SessionLog + ?Sized),
        tenant: &TenantId,
        session: &SessionKey,
        run: JobId,
    ) -> Result<Self, StoreError> {
        if let Some(summary) = store.summary(tenant, session).await? {
            let messages = messages(store, tenant, session, summary.upto).await?;
            let first = messages.iter().find(|message| message.run == run);
            // A run that failed and was retried later may be older than the summary.
            if first.is_some_and(|first| first.new.role == Role::User) {
                return Ok(Self { summary: Some(summary.text), ..Self::of(messages, run) });
            }
        }
        Ok(Self::of(messages(store, tenant, session, 0).await?, run))
    }

    /// Builds the history of a run from messages.
    pub fn of(messages: Vec<Message>, run: JobId) -> Self {
        let mut order: Vec<JobId> = Vec::new();
        let mut runs: HashMap<JobId, Vec<Message>> = HashMap::new();
        for message in messages {
            if !runs.contains_key(&message.run) {
                order.push(message.run);
            }
            runs.entry(message.run).or_default().push(message);
        }
        let at = order.iter().position(|id| *id == run).unwrap_or(order.len());
        let first = |id: &JobId| runs.get(id).and_then(|messages| messages.first()).map(|first| first.seq);
        let begins: Vec<Option<u64>> = order.iter().map(first).collect();
        let mut history = Self::default();
        let (mut last, mut all_over) = (0, true);
        for (id, next) in order.iter().take(at).zip(begins.iter().skip(1).chain([&None])) {
            let messages = runs.remove(id).unwrap_or_default();
            let end = messages.last();
            last = end.map_or(last, |end| end.seq.max(last));
            all_over &= end.is_some_and(|end| end.new.role != Role::User);
            let upto = (all_over && next.is_none_or(|next| next > last)).then_some(last);
            let turns = turns(messages);
            match history.earlier.last_mut() {
                Some(before) if answers(&turns, &before.turns) => {
                    settle(&mut before.turns, &turns);
                    turns.into_iter().for_each(|turn| push(&mut before.turns, turn));
                    before.upto = upto;
                }
                _ => history.earlier.push(Earlier { turns, upto }),
            }
        }
        history.run = turns(runs.remove(&run).unwrap_or_default());
        let is_continued = |last: &mut Earlier| answers(&history.run, &last.turns);
        if let Some(last) = history.earlier.pop_if(is_continued) {
            history.continued = last.turns;
        }
        for run in &mut history.earlier {
            settle(&mut run.turns, &[]);
        }
        settle(&mut history.continued, &history.run);
        history
    }

    /// Returns the turns for the model.
    pub fn turns(&self) -> Vec<Turn> {
        let earlier = self.earlier.iter().flat_map(|run| &run.turns);
        joined(self.before().iter().chain(earlier).chain(&self.continued).chain(&self.run))
    }

    /// Returns the turns for a model with room for this many tokens: the oldest runs are left out.
    pub(crate) fn turns_within(&self, tokens: usize) -> Vec<Turn> {
        let own = context_window::tokens(&self.run)
            + context_window::tokens(&self.continued)
            + self.before().map_or(0, |before| context_window::tokens(&[before]));
        let mut left = tokens.saturating_sub(own);
        let fits = |run: &&Earlier| {
            let size = context_window::tokens(&run.turns);
            let fits = size <= left;
            left = left.saturating_sub(size);
            fits
        };
        let kept = self.earlier.iter().rev().take_while(fits).count();
        let out = self.earlier.len() - kept;
        let note = (out > 0 && self.summary.is_none())
            .then(|| Turn::text(Role::User, format!("[{out} earlier questions and answers are left out]")));
        let earlier = self.earlier.iter().skip(out).flat_map(|run| &run.turns);
        joined(self.before().iter().chain(&note).chain(earlier).chain(&self.continued).chain(&self.run))
    }

    /// Counts the tokens that a summary could replace.
    pub(crate) fn coverable(&self) -> usize {
        let count = self.earlier.iter().rposition(|run| run.upto.is_some()).map_or(0, |last| last + 1);
        self.earlier.iter().take(count).map(|run| context_window::tokens(&run.turns)).sum()
    }

    /// Returns the oldest runs of about this many tokens that one summary can replace; `None` if there are
    /// none.
    pub(crate) fn chunk(&self, tokens: usize) -> Option<Chunk> {
        let (mut size, mut chunk) = (0, None);
        for (at, run) in self.earlier.iter().enumerate() {
            size += context_window::tokens(&run.turns);
            if size > tokens && chunk.is_some() {
                break;
            }
            chunk = run.upto.map(|upto| (at + 1, upto)).or(chunk);
        }
        let (runs, upto) = chunk?;
        let turns = self.earlier.iter().take(runs).flat_map(|run| &run.turns);
        Some(Chunk { turns: joined(self.before().iter().chain(turns)), runs, upto })
    }

    /// Replaces the oldest runs by a summary.
    pub(crate) fn summarised(&mut self, runs: usize, text: String) {
        self.summary = Some(text);
        self.earlier.drain(..runs.min(self.earlier.len()));
    }

    /// Drops the oldest runs without a summary, as long as more than `tokens` could be summarised; returns
    /// their number.
    pub(crate) fn leave_out(&mut self, tokens: usize) -> usize {
        let mut size = self.coverable();
        let mut out = 0;
        for (at, run) in self.earlier.iter().enumerate() {
            if size <= tokens {
                break;
            }
            size = size.saturating_sub(context_window::tokens(&run.turns));
            out = if run.upto.is_some() { at + 1 } else { out };
        }
        self.earlier.drain(..out);
        out
    }

    fn before(&self) -> Option<Turn> {
        let summary = self.summary.as_ref()?;
        Some(Turn::text(Role::User, format!("[what was said before, in short]\n{summary}")))
    }

    /// Returns the turns of the run itself.
    pub(crate) fn of_run(&self) -> &[Turn] {
        &self.run
    }

    /// Returns whether the run begins with results of an earlier run's calls: the client made them.
    pub(crate) fn brings_results(&self) -> bool {
        self.run.first().is_some_and(|first| first.role == Role::Tool)
    }

    /// Returns the calls of the run that have no result.
    pub fn open_calls(&self) -> Vec<Wanted> {
        open(&self.run)
    }

    /// Adds a turn to the run.
    pub(crate) fn say(&mut self, turn: Turn) {
        push(&mut self.run, turn);
    }
}

/// Reads all messages of a session after one.
async fn messages(
    store: &(impl SessionLog + ?Sized),
    tenant: &TenantId,
    session: &SessionKey,
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

/// Joins turns, so that no two in a row have the same author.
fn joined<'a>(turns: impl Iterator<Item = &'a Turn>) -> Vec<Turn> {
    let mut joined: Vec<Turn> = Vec::new();
    for turn in turns {
        push(&mut joined, turn.clone());
    }
    // Providers require the user's message to be first.
    if joined.first().is_some_and(|turn| turn.role != Role::User) {
        joined.insert(0, Turn::text(Role::User, "[earlier messages are left out]"));
    }
    joined
}

/// Returns the turns of one run. Messages of the user that arrived during calls follow the results of the
/// calls.
fn turns(messages: Vec<Message>) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::with_capacity(messages.len());
    let mut meanwhile: Vec<Turn> = Vec::new();
    // The calls without a result so far.
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
        // A message of a client may bring the results of calls that it made.
        let turn = match bring(turn) {
            (Some(results), rest) => {
                push(&mut turns, results);
                match rest {
                    Some(rest) => rest,
                    None => continue,
                }
            }
            (None, Some(turn)) => turn,
            (None, None) => continue,
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

/// Returns the parts of a message; invalid content becomes a text.
pub(crate) fn parts(message: &Message) -> Vec<Part> {
    let content = &message.new.content;
    match Vec::<Part>::deserialize(content) {
        Ok(parts) => parts,
        Err(_) => vec![Part::text(content.as_str().map_or_else(|| content.to_string(), str::to_owned))],
    }
}

/// Splits a client's message into the results that it brings and the rest.
fn bring(turn: Turn) -> (Option<Turn>, Option<Turn>) {
    let is_result = |part: &Part| matches!(part, Part::Result(_));
    if turn.role != Role::User || !turn.parts.iter().any(is_result) {
        return (None, Some(turn));
    }
    let (results, rest): (Vec<Part>, Vec<Part>) = turn.parts.into_iter().partition(is_result);
    let rest = (!rest.is_empty()).then_some(Turn { role: Role::User, parts: rest });
    (Some(Turn { role: Role::Tool, parts: results }), rest)
}

/// Returns whether these turns begin with the result of a call that is open in those before.
fn answers(turns: &[Turn], before: &[Turn]) -> bool {
    let Some(first) = turns.first().filter(|first| first.role == Role::Tool) else { return false };
    let open = open(before);
    results(first).any(|told| open.iter().any(|wanted| wanted.call == told.call))
}

/// Settles runs that are over: a call without a result, there or in the turns after, gets one that says so.
fn settle(turns: &mut Vec<Turn>, after: &[Turn]) {
    let told: HashSet<CallId> = after.iter().flat_map(results).map(|told| told.call).collect();
    let mut open = open(turns);
    open.retain(|wanted| !told.contains(&wanted.call));
    if open.is_empty() {
        return;
    }
    let told = |wanted: &Wanted| Part::Result(call_result::not_made(wanted, "its outcome is unknown"));
    let at = turns.iter().rposition(|turn| turn.calls().next().is_some()).map_or(turns.len(), |at| at + 1);
    let results: Vec<Part> = open.iter().map(told).collect();
    match turns.get_mut(at) {
        Some(turn) if turn.role == Role::Tool => turn.parts.extend(results),
        _ => turns.insert(at, Turn { role: Role::Tool, parts: results }),
    }
}

fn open(turns: &[Turn]) -> Vec<Wanted> {
    let told: HashSet<CallId> = turns.iter().flat_map(results).map(|told| told.call).collect();
    turns.iter().flat_map(Turn::calls).filter(|wanted| !told.contains(&wanted.call)).cloned().collect()
}

/// Returns the results in a turn, in order.
pub(crate) fn results(turn: &Turn) -> impl Iterator<Item = &ToolResult> {
    turn.parts.iter().filter_map(|part| match part {
        Part::Result(told) => Some(told),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
