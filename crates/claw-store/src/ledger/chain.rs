//! The hash chain of the ledger, independent of its storage.
//!
//! An entry is one JSON line that holds the hash of the line before it. The columns that a backend keeps
//! beside the line ([`Columns`]) serve to find it; [`Walk`] checks that they agree with the line.

use std::fmt;

use claw_core::store::{Entry, EntryEvent, Outcome, Record, StoreError};
use claw_core::tool::Digest;
use claw_core::{NodeId, UserId};
use serde::Serialize;

use crate::row;

/// The end of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The number of entries.
    pub count: u64,
    /// The hash of the last entry's line.
    pub hash: Digest,
}

impl Head {
    /// The head of an empty chain.
    pub fn start() -> Self {
        Self { count: 0, hash: Digest::of_bytes(b"") }
    }

    /// Reads the head from its row.
    pub fn read(count: i64, hash: &str) -> Result<Self, StoreError> {
        Ok(Self { count: row::count(count)?, hash: row::word("a ledger's head", hash)? })
    }

    /// The line of the next entry, and the head after it.
    pub fn next(self, node: &NodeId, record: &Record) -> Result<(String, Self), StoreError> {
        let entry =
            Entry { seq: self.count + 1, node: node.clone(), record: record.clone(), prev: self.hash };
        let line = row::text(&entry)?;
        let head = self.after(&line);
        Ok((line, head))
    }

    fn after(self, line: &str) -> Self {
        Self { count: self.count + 1, hash: Digest::of_bytes(line.as_bytes()) }
    }
}

/// The columns stored beside an entry's line, to find it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns<'a> {
    /// The time, in milliseconds since the epoch.
    pub at: i64,
    /// The session.
    pub session: &'a str,
    /// The id of the call.
    pub call: &'a [u8],
    /// `refused`, `intent` or `outcome`.
    pub event: &'a str,
    /// `done`, `failed` or `unknown`, of an outcome.
    pub outcome: Option<&'a str>,
    /// The agent.
    pub agent: Option<&'a str>,
    /// The user; `None` if the call is for none.
    pub user: Option<&'a str>,
    /// The tool; `None` if its name is no plain word.
    pub tool: Option<&'a str>,
}

impl<'a> Columns<'a> {
    /// Returns the columns of a record.
    pub fn of(record: &'a Record) -> Self {
        let (event, outcome) = match &record.event {
            EntryEvent::Refused { .. } => ("refused", None),
            EntryEvent::Intent { .. } => ("intent", None),
            EntryEvent::Outcome { outcome, .. } => ("outcome", Some(name(*outcome))),
        };
        let (at, session, call) = (record.at.0, record.session.as_str(), record.call.as_bytes());
        let (agent, user) = (Some(record.agent.as_str()), record.user.as_ref().map(UserId::as_str));
        Self { at, session, call, event, outcome, agent, user, tool: record.plain_tool() }
    }
}

fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "done",
        Outcome::Failed => "failed",
        Outcome::Unknown => "unknown",
    }
}

/// The findings about one chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChainReport {
    /// The tenant that owns the chain.
    #[serde(skip)]
    pub tenant: String,
    /// Tenant and node.
    pub chain: String,
    /// The number of sound entries, counted from the first.
    pub entries: u64,
    /// The first fault found; `None` if the chain is sound.
    pub fault: Option<Fault>,
}

impl fmt::Display for ChainReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { chain, entries, fault, .. } = self;
        match fault {
            None => write!(f, "{chain}: sound, entries: {entries}"),
            Some(fault) => write!(f, "{chain}: {fault}; sound before that: {entries}"),
        }
    }
}

/// A fault of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// The entry was changed: its hash, or a column beside it, differs.
    #[error("entry {seq} was changed: its hash differs from the recorded one")]
    Changed {
        /// The number of the entry.
        seq: u64,
    },
    /// The entry cannot be parsed.
    #[error("entry {seq} cannot be read as an entry")]
    Unreadable {
        /// The number of the entry.
        seq: u64,
    },
    /// The entry is missing, though later ones exist.
    #[error("entry {seq} is missing: entry {found} follows the one before it")]
    Missing {
        /// The number of the entry.
        seq: u64,
        /// The number found in its place.
        found: u64,
    },
    /// The entry belongs to another chain.
    #[error("entry {seq} belongs to another tenant or node")]
    Foreign {
        /// The number of the entry.
        seq: u64,
    },
    /// The last entries are missing.
    #[error("the chain is cut off: its head counts {counted} entries, {found} are there")]
    CutOff {
        /// The number of entries according to the head.
        counted: u64,
        /// The number of entries that exist.
        found: u64,
    },
    /// There are entries but no head, so that it is unknown whether they are all.
    #[error("the head is missing, so entries may be missing at the end")]
    HeadMissing,
    /// The head cannot be parsed, or does not fit its own chain.
    #[error("the head is damaged, so entries may be missing at the end")]
    HeadDamaged,
}

/// A walk along a chain, from its first entry: every row in order of its number, then [`Walk::report`].
#[derive(Debug)]
pub struct Walk<'a> {
    tenant: &'a str,
    node: &'a str,
    /// The head; `Err` if it cannot be parsed.
    head: Result<Option<Head>, Fault>,
    at: Head,
    fault: Option<Fault>,
}

impl<'a> Walk<'a> {
    /// Begins a walk along the chain of a tenant and node, whose head was read with [`Head::read`].
    pub fn new(tenant: &'a str, node: &'a str, head: Option<Result<Head, StoreError>>) -> Self {
        let head = head.transpose().map_err(|_| Fault::HeadDamaged);
        Self { tenant, node, head, at: Head::start(), fault: None }
    }

    /// Checks the next row. Returns `false` at a fault: then no other row need be read.
    pub fn step(&mut self, columns: Columns<'_>, line: &str) -> bool {
        match self.check(columns, line) {
            Ok(next) => self.at = next,
            Err(fault) => self.fault = Some(fault),
        }
        self.fault.is_none()
    }

    /// Returns the findings.
    pub fn report(self) -> ChainReport {
        let found = self.at.count;
        let fault = self.fault.or(match self.head {
            Err(fault) => Some(fault),
            Ok(None) => (found > 0).then_some(Fault::HeadMissing),
            Ok(Some(head)) if found < head.count => Some(Fault::CutOff { counted: head.count, found }),
            Ok(Some(head)) => (found > head.count).then_some(Fault::HeadDamaged),
        });
        let chain = format!("{}@{}", self.tenant, self.node);
        ChainReport { tenant: self.tenant.to_owned(), chain, entries: found, fault }
    }

    fn check(&mut self, columns: Columns<'_>, line: &str) -> Result<Head, Fault> {
        let seq = self.at.count + 1;
        let entry: Entry = serde_json::from_str(line).map_err(|_| Fault::Unreadable { seq })?;
        if entry.seq != seq {
            return Err(Fault::Missing { seq, found: entry.seq });
        }
        if entry.prev != self.at.hash {
            // The entry before is what the hash is of; the first has none before it.
            self.at.count = self.at.count.saturating_sub(1);
            return Err(Fault::Changed { seq: seq.saturating_sub(1).max(1) });
        }
        if entry.record.tenant.as_str() != self.tenant || entry.node.as_str() != self.node {
            return Err(Fault::Foreign { seq });
        }
        let next = self.at.after(line);
        let ends_here = self.head.ok().flatten().filter(|head| head.count == seq);
        if Columns::of(&entry.record) != columns || ends_here.is_some_and(|head| head.hash != next.hash) {
            return Err(Fault::Changed { seq });
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests;
