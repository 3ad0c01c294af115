//! Replaying a policy: which recorded calls other rules would decide differently.
//!
//! Both sets of rules judge each recorded call by the function that judges real calls, from what the ledger has of the
//! call. Where a verdict depends on something that the ledger lacks, the call is skipped and the reason counted. Answers
//! to approvals, remembered rules, modes of runs and the files of that time do not count.

mod judge;
mod proposal;
mod recorded;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use claw_core::port::{Clock as _, UnixMillis};
use claw_core::store::EntryPage;
use claw_host::SystemClock;
use serde::{Deserialize, Serialize};

use self::judge::{Decided, Judges};
pub use self::proposal::{Proposal, ProposedRules};
use self::recorded::{KnownTools, Recorded};
use super::{App, Error};

/// The most entries of the ledger that are replayed.
const MOST_ENTRIES: usize = 200_000;
/// The number of entries that are read at a time.
const READ: usize = 1_000;
/// The number of entries after which other tasks of the process have a turn.
const AT_ONCE: usize = 100;

/// The verdict on a recorded call.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ReplayVerdict {
    /// The call runs.
    Allow,
    /// A person is asked.
    Ask,
    /// The call is refused.
    Deny,
}

/// Recorded calls decided differently, in the same way and for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ReplayChange {
    /// The agent.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// The verdict of the current rules.
    pub before: ReplayVerdict,
    /// The verdict of the other rules.
    pub after: ReplayVerdict,
    /// The rule that decides otherwise.
    pub reason: String,
    /// The number of calls.
    pub calls: u64,
    /// The command or the arguments of one of them, scrubbed.
    pub example: String,
}

/// Recorded calls that were not judged, for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ReplaySkip {
    /// The reason.
    pub reason: String,
    /// The number of calls.
    pub calls: u64,
}

/// Outcome of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct Replay {
    /// The number of recorded calls in the range.
    pub calls: u64,
    /// The number of calls with the same verdict.
    pub same: u64,
    /// The number of calls not judged.
    pub skipped: u64,
    /// The reasons for not judging calls, the most frequent first.
    pub skips: Vec<ReplaySkip>,
    /// True if the ledger has more calls in the range: only its latest entries were read.
    pub truncated: bool,
    /// The calls decided differently, the most frequent first.
    pub changes: Vec<ReplayChange>,
}

/// The time range of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayRange {
    /// The first moment.
    pub since: UnixMillis,
    /// The last moment; `None` for now.
    pub until: Option<UnixMillis>,
}

impl ReplayRange {
    /// The range that begins and ends so long ago; `None` as its end is now.
    pub fn ago(since: Duration, until: Option<Duration>) -> Result<Self, Error> {
        if until.is_some_and(|until| until >= since) {
            return Err(Error::invalid("the range ends (`until`) before it begins (`since`)")
                .hint("`since` is the longer time ago: since `7d` until `1d`"));
        }
        let now = SystemClock.now();
        let ago = |duration: Duration| {
            let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
            UnixMillis(now.0.saturating_sub(millis))
        };
        Ok(Self { since: ago(since), until: until.map(ago) })
    }

    fn has(&self, at: UnixMillis) -> bool {
        at >= self.since && self.until.is_none_or(|until| at <= until)
    }
}

/// Reads how far back to look: days (`7d`) or hours (`12h`).
pub fn since(text: &str) -> Result<Duration, String> {
    let wrong = || "use days or hours, such as `7d` or `12h`".to_owned();
    let (number, seconds) = match (text.strip_suffix('d'), text.strip_suffix('h')) {
        (Some(days), _) => (days, 86_400),
        (None, Some(hours)) => (hours, 3_600),
        (None, None) => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

impl App {
    /// Judges the calls of this tenant in a range by the rules in force and by others, and returns the differences.
    pub async fn replay(&self, proposal: Proposal, range: ReplayRange) -> Result<Replay, Error> {
        self.replay_latest(proposal, range, MOST_ENTRIES).await
    }

    /// The same for at most so many entries of the ledger, the latest.
    async fn replay_latest(
        &self,
        proposal: Proposal,
        range: ReplayRange,
        most: usize,
    ) -> Result<Replay, Error> {
        let judges = Judges::new(self, proposal).await?;
        let mut tools = KnownTools::new(self)?;
        let mut tally = Tally::default();
        let (mut position, mut left) = (None, most);
        loop {
            if left == 0 {
                // One entry more tells whether there is any.
                let more = self.store.entries(self.tenant(), &EntryPage::all(position, 1)).await?;
                tally.replay.truncated = more.iter().any(|(_, entry)| entry.record.at >= range.since);
                break;
            }
            let wanted = READ.min(left);
            let page = self.store.entries(self.tenant(), &EntryPage::all(position, wanted)).await?;
            left -= wanted;
            let in_range = page.iter().filter(|(_, entry)| range.has(entry.record.at));
            for (number, (_, entry)) in in_range.enumerate() {
                if number % AT_ONCE == AT_ONCE - 1 {
                    tokio::task::yield_now().await;
                }
                if let Some(call) = Recorded::of(entry) {
                    let decided = judges.decide(tools.of(&call.caller).await?, &call);
                    tally.add(&call, decided);
                }
            }
            // Entries of several nodes are nearly in the order of their times: a whole page before the time ends it.
            let is_before = page.iter().all(|(_, entry)| entry.record.at < range.since);
            if page.len() < wanted || is_before {
                break;
            }
            position = page.last().map(|(at, _)| *at);
        }
        Ok(tally.end())
    }
}

/// The decided calls, counted.
#[derive(Default)]
struct Tally {
    replay: Replay,
    /// The place of each kind of change in the list.
    places: HashMap<(String, String, ReplayVerdict, ReplayVerdict, String), usize>,
    skips: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn add(&mut self, call: &Recorded<'_>, decided: Decided) {
        self.replay.calls += 1;
        match decided {
            Decided::Same => self.replay.same += 1,
            Decided::Skipped(reason) => {
                self.replay.skipped += 1;
                *self.skips.entry(reason).or_default() += 1;
            }
            Decided::Otherwise { before, after, reason } => {
                let (agent, tool) = (call.caller.agent.to_string(), call.tool.to_owned());
                let key = (agent.clone(), tool.clone(), before, after, reason.clone());
                let changes = &mut self.replay.changes;
                let place = *self.places.entry(key).or_insert_with(|| {
                    let example = call.example();
                    changes.push(ReplayChange { agent, tool, before, after, reason, calls: 0, example });
                    changes.len() - 1
                });
                if let Some(change) = changes.get_mut(place) {
                    change.calls += 1;
                }
            }
        }
    }

    fn end(self) -> Replay {
        let mut replay = self.replay;
        let skip = |(reason, calls): (&str, u64)| ReplaySkip { reason: reason.to_owned(), calls };
        replay.skips = self.skips.into_iter().map(skip).collect();
        replay.skips.sort_by_key(|skip| std::cmp::Reverse(skip.calls));
        replay.changes.sort_by_key(|change| std::cmp::Reverse(change.calls));
        replay
    }
}
