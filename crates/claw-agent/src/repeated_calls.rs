//! Detecting runs that go in circles: first the model is warned, then the run ends.
//!
//! Four patterns are known: the same call with the same result, the same result whatever the arguments,
//! nothing but reading, and two alternating calls. A call that changes something makes earlier results
//! outdated: reading after it is no repetition.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use claw_core::message::{Args, ToolResult, Wanted};
use claw_core::tool::Block;

use crate::limits::{LoopLimits, Threshold};

/// The number of calls that are remembered.
const WINDOW: usize = 128;
/// The factor by which more may be read if most results are new.
const NEW: u32 = 3;

/// A detected loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The model is to be warned.
    Warn(String),
    /// The run is to be stopped: it goes on after the warning.
    Stop(String),
}

/// The recent calls of one run.
#[derive(Debug)]
pub struct Loops {
    limits: LoopLimits,
    seen: VecDeque<Seen>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    tool: String,
    args: u64,
    result: u64,
    reads: bool,
    failed: bool,
}

impl Seen {
    /// Returns whether earlier results are outdated after this call.
    fn changes(&self) -> bool {
        !self.reads && !self.failed
    }

    fn is_same(&self, other: &Self) -> bool {
        self.tool == other.tool && self.args == other.args && self.result == other.result
    }
}

impl Loops {
    /// Starts without calls.
    pub fn new(limits: LoopLimits) -> Self {
        Self { limits, seen: VecDeque::new() }
    }

    /// Takes a call and its result; `reads` is true if such a call can only read.
    pub fn observe(&mut self, wanted: &Wanted, told: &ToolResult, reads: bool) -> Option<Finding> {
        let seen = Seen {
            tool: wanted.tool.clone(),
            args: hash(&args(&wanted.args)),
            result: hash(&words(&told.content)),
            reads,
            failed: told.failed,
        };
        self.seen.push_front(seen);
        self.seen.truncate(WINDOW);
        let findings =
            [self.same_call(), self.same_result(), self.ping_pong(), self.reads()].into_iter().flatten();
        // A stop takes precedence over a warning; among equals, the first counts.
        findings.min_by_key(|finding| matches!(finding, Finding::Warn(_)))
    }

    fn newest(&self) -> Option<&Seen> {
        self.seen.front()
    }

    /// Returns the latest calls, back to the last one that changed something and is not like the newest.
    fn fresh<'a>(&'a self, newest: &'a Seen) -> impl Iterator<Item = &'a Seen> {
        self.seen.iter().take_while(|seen| !seen.changes() || seen.is_same(newest))
    }

    fn same_call(&self) -> Option<Finding> {
        let newest = self.newest()?;
        let count = self.fresh(newest).filter(|seen| seen.is_same(newest)).count();
        let tool = &newest.tool;
        judge(count, self.limits.same_call, || {
            format!(
                "`{tool}` was called {count} times with the same arguments and gave the same result each time"
            )
        })
    }

    fn same_result(&self) -> Option<Finding> {
        let newest = self.newest().filter(|newest| !newest.changes())?;
        let alike = |seen: &&Seen| seen.tool == newest.tool && seen.result == newest.result;
        let alike: Vec<&Seen> = self.fresh(newest).filter(alike).collect();
        let (count, tool) = (alike.len(), &newest.tool);
        let different = alike.iter().map(|seen| seen.args).collect::<HashSet<_>>().len();
        if different < 2 {
            return None;
        }
        judge(count, self.limits.same_result, || {
            format!("`{tool}` gave the same result {count} times in a row, whatever it was asked")
        })
    }

    fn reads(&self) -> Option<Finding> {
        let streak: Vec<&Seen> = self.seen.iter().take_while(|seen| seen.reads).collect();
        let different: HashSet<_> = streak.iter().map(|seen| (&seen.tool, seen.args)).collect();
        let count = streak.len();
        let mostly_new = different.len() * 5 > count * 3;
        let Threshold { warn, stop } = self.limits.reads;
        let factor = if mostly_new { NEW } else { 1 };
        let limit = Threshold { warn: warn.saturating_mul(factor), stop: stop.saturating_mul(factor) };
        judge(count, limit, || {
            let new = different.len();
            format!(
                "the last {count} calls only read, {new} of them something new, and nothing was done with it"
            )
        })
    }

    fn ping_pong(&self) -> Option<Finding> {
        let (first, second) = (self.newest()?, self.seen.get(1)?);
        if first.is_same(second) {
            return None;
        }
        let turns = self.seen.iter().zip([first, second].into_iter().cycle());
        let count = turns.take_while(|(seen, expected)| seen.is_same(expected)).count();
        if count % 2 == 1 {
            return None;
        }
        judge(count / 2, self.limits.ping_pong, || {
            let times = count / 2;
            format!("`{}` and `{}` took turns {times} times with the same results", second.tool, first.tool)
        })
    }
}

fn judge(count: usize, limit: Threshold, what: impl FnOnce() -> String) -> Option<Finding> {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    if limit.stop > 0 && count >= limit.stop {
        return Some(Finding::Stop(what()));
    }
    (limit.warn > 0 && count == limit.warn).then(|| Finding::Warn(what()))
}

fn args(args: &Args) -> String {
    match args {
        Args::Json(args) => args.to_string(),
        Args::Broken { text, .. } => text.clone(),
    }
}

/// Returns the text of a result, without the parts that differ in every result.
fn words(content: &[Block]) -> String {
    let words = content.iter().map(|block| match block {
        Block::Text { text } => crate::call_result::plain(text).to_owned(),
        other => serde_json::to_string(other).unwrap_or_default(),
    });
    words.collect()
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
