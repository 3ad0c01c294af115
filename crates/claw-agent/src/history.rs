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

use crate::{fit, result};

/// How many messages are read at a time.
const PAGE: usize = 500;

/// What was said until now.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// What stands for what was said before all else.
    summary: Option<String>,
    /// The runs before, the oldest first.
    earlier: Vec<Earlier>,
    /// Turns of the run itself, its question first.
    run: Vec<Turn>,
}

/// A run that was asked for before.
#[derive(Debug, Clone, PartialEq)]
struct Earlier {
    turns: Vec<Turn>,
    /// The last message that a summary of this run and all before it stands for; `None` where messages of others are
    /// between theirs, or one of them is not over.
    upto: Option<u64>,
}

/// Some earlier runs, to be summed up in one go.
#[derive(Debug, PartialEq)]
pub(crate) struct Chunk {
    /// Turns for the model: the summary before, then the runs.
    pub(crate) turns: Vec<Turn>,
    /// How many runs these are.
    pub(crate) runs: usize,
    /// The last message that their summary stands for.
    pub(crate) upto: u64,
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
            history.earlier.push(Earlier { turns: settled(turns(messages)), upto });
        }
        history.run = turns(runs.remove(&run).unwrap_or_default());
        history
    }

    /// As a model reads it.
    pub fn turns(&self) -> Vec<Turn> {
        let earlier = self.earlier.iter().flat_map(|run| &run.turns);
        joined(self.before().iter().chain(earlier).chain(&self.run))
    }

    /// As a model reads it that can read so many tokens: the oldest runs are left out.
    pub(crate) fn turns_within(&self, tokens: usize) -> Vec<Turn> {
        let own = fit::tokens(&self.run) + self.before().map_or(0, |before| fit::tokens(&[before]));
        let mut left = tokens.saturating_sub(own);
        let fits = |run: &&Earlier| {
            let size = fit::tokens(&run.turns);
            let fits = size <= left;
            left = left.saturating_sub(size);
            fits
        };
        let kept = self.earlier.iter().rev().take_while(fits).count();
        let out = self.earlier.len() - kept;
        let note = (out > 0 && self.summary.is_none())
            .then(|| Turn::text(Role::User, format!("[{out} earlier questions and answers are left out]")));
        let earlier = self.earlier.iter().skip(out).flat_map(|run| &run.turns);
        joined(self.before().iter().chain(&note).chain(earlier).chain(&self.run))
    }

    /// How many tokens a summary could stand for.
    pub(crate) fn coverable(&self) -> usize {
        let count = self.earlier.iter().rposition(|run| run.upto.is_some()).map_or(0, |last| last + 1);
        self.earlier.iter().take(count).map(|run| fit::tokens(&run.turns)).sum()
    }

    /// The oldest runs of about so many tokens that one summary can stand for; `None` where there are none.
    pub(crate) fn chunk(&self, tokens: usize) -> Option<Chunk> {
        let (mut size, mut chunk) = (0, None);
        for (at, run) in self.earlier.iter().enumerate() {
            size += fit::tokens(&run.turns);
            if size > tokens && chunk.is_some() {
                break;
            }
            chunk = run.upto.map(|upto| (at + 1, upto)).or(chunk);
        }
        let (runs, upto) = chunk?;
        let turns = self.earlier.iter().take(runs).flat_map(|run| &run.turns);
        Some(Chunk { turns: joined(self.before().iter().chain(turns)), runs, upto })
    }

    /// Puts a summary in the place of the oldest runs.
    pub(crate) fn summarised(&mut self, runs: usize, text: String) {
        self.summary = Some(text);
        self.earlier.drain(..runs.min(self.earlier.len()));
    }

    /// Leaves out the oldest runs without a summary, as long as more than `tokens` could be summed up; returns how
    /// many.
    pub(crate) fn leave_out(&mut self, tokens: usize) -> usize {
        let mut size = self.coverable();
        let mut out = 0;
        for (at, run) in self.earlier.iter().enumerate() {
            if size <= tokens {
                break;
            }
            size = size.saturating_sub(fit::tokens(&run.turns));
            out = if run.upto.is_some() { at + 1 } else { out };
        }
        self.earlier.drain(..out);
        out
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
