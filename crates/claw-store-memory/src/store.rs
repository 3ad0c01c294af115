//! A store of calls and of the images they gave, in memory: the default of an embedder, and of most tests.
//!
//! Nothing here survives the process and nothing is chained; the stores of `claw-store` are for that. The
//! content is bounded by [`MemoryLimits`].

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{
    Answer, Approval, ApprovalState, Approvals, Blob, BlobCard, BlobLimits, Blobs, Changes, Entry,
    EntryEvent, EntryPage, Ledger, NewApproval, NewBlob, Outcome, Record, StoreError, Tally, Topic,
};
use claw_core::tool::Digest;
use claw_core::{ApprovalId, CallId, NodeId, SessionKey, TenantId};
use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::approvals::ApprovalTable;
use crate::blobs::BlobTable;
use crate::calls::{Calls, Known};

/// The limits of a [`MemoryStore`], for each tenant.
#[derive(Debug, Clone, Copy)]
pub struct MemoryLimits {
    /// Ledger entries; the oldest make room.
    pub entries: usize,
    /// The calls whose outcomes are known individually. Beyond it the oldest are forgotten, and a call as old
    /// as a forgotten one counts as begun: it is refused rather than run twice.
    pub calls: usize,
    /// The sessions whose figures are kept. Beyond it those without a running call start from zero again.
    pub sessions: usize,
    /// The approvals of all tenants together; the oldest that are over make room.
    pub approvals: usize,
    /// Blobs; the oldest make room.
    pub blobs: BlobLimits,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        let blobs = BlobLimits { tenant: 64 << 20, ..BlobLimits::default() };
        Self { entries: 10_000, calls: 1_000_000, sessions: 100_000, approvals: 10_000, blobs }
    }
}

/// A ledger, approvals and blobs that live as long as the process.
#[derive(Debug)]
pub struct MemoryStore {
    books: Mutex<HashMap<TenantId, Book>>,
    approvals: ApprovalTable,
    blobs: BlobTable,
    limits: MemoryLimits,
    node: NodeId,
    unchained: Digest,
}

/// The ledger of one tenant.
#[derive(Debug)]
struct Book {
    written: u64,
    entries: VecDeque<Entry>,
    calls: Calls,
    tallies: HashMap<SessionKey, Tally>,
    sessions: usize,
}

impl MemoryStore {
    /// An empty store with the default limits.
    pub fn new() -> Self {
        Self::with_limits(MemoryLimits::default())
    }

    /// An empty store with these limits.
    pub fn with_limits(limits: MemoryLimits) -> Self {
        Self {
            books: Mutex::default(),
            approvals: ApprovalTable::new(limits.approvals),
            blobs: BlobTable::new(limits.blobs),
            limits,
            node: NodeId::local(),
            unchained: Digest::of_bytes(b""),
        }
    }

    /// Lets `check` inspect the book of the record's tenant, then enters the record, in one critical section.
    fn enter(
        &self,
        record: Record,
        check: impl FnOnce(&mut Book, &Record) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut books = self.books();
        let book = books.entry(record.tenant.clone()).or_insert_with(|| Book::new(self.limits));
        check(book, &record)?;
        book.written += 1;
        let is_full = book.entries.len() >= self.limits.entries;
        let oldest = if is_full { book.entries.pop_front() } else { None };
        let (seq, node, prev) = (book.written, self.node.clone(), self.unchained);
        book.entries.push_back(Entry { seq, node, record, prev });
        // The oldest entry is freed without the lock: other callers wait for it.
        drop(books);
        drop(oldest);
        Ok(())
    }

    fn books(&self) -> MutexGuard<'_, HashMap<TenantId, Book>> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Ledger for MemoryStore {
    async fn refuse(&self, record: Record) -> Result<(), StoreError> {
        self.enter(record, |book, record| {
            book.tally(&record.session).refused += 1;
            Ok(())
        })
    }

    async fn begin_call(&self, record: Record) -> Result<(), StoreError> {
        self.enter(record, |book, record| {
            let call = record.call;
            match book.calls.known(call) {
                Known::Fresh => {}
                Known::Begun(outcome) => return Err(StoreError::AlreadyBegun { call, outcome }),
                Known::Forgotten => {
                    return Err(StoreError::AlreadyBegun { call, outcome: Outcome::Unknown });
                }
            }
            self.approvals.spend(record, || {
                book.calls.record(call, Outcome::Unknown);
                book.tally(&record.session).open += 1;
                Ok(())
            })
        })
    }

    async fn finish_call(&self, record: Record) -> Result<(), StoreError> {
        self.enter(record, |book, record| {
            if let EntryEvent::Outcome { outcome, .. } = record.event {
                book.finish(record, outcome);
            }
            Ok(())
        })
    }

    async fn fate(&self, tenant: &TenantId, call: CallId) -> Result<Option<Outcome>, StoreError> {
        let books = self.books();
        let known = books.get(tenant).map_or(Known::Fresh, |book| book.calls.known(call));
        Ok(match known {
            Known::Fresh => None,
            Known::Begun(outcome) => Some(outcome),
            Known::Forgotten => Some(Outcome::Unknown),
        })
    }

    async fn recent(&self, tenant: &TenantId, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let books = self.books();
        let Some(book) = books.get(tenant) else { return Ok(Vec::new()) };
        let skip = book.entries.len().saturating_sub(limit);
        Ok(book.entries.iter().skip(skip).cloned().collect())
    }

    async fn entries(&self, tenant: &TenantId, page: &EntryPage) -> Result<Vec<(u64, Entry)>, StoreError> {
        let books = self.books();
        let Some(book) = books.get(tenant) else { return Ok(Vec::new()) };
        let is_before = |entry: &&Entry| page.before.is_none_or(|before| entry.seq < before);
        let found = book.entries.iter().rev().filter(is_before).filter(|entry| page.matches(&entry.record));
        Ok(found.take(page.limit).map(|entry| (entry.seq, entry.clone())).collect())
    }

    async fn tally(&self, tenant: &TenantId, session: &SessionKey) -> Result<Tally, StoreError> {
        let books = self.books();
        Ok(books.get(tenant).and_then(|book| book.tallies.get(session)).copied().unwrap_or_default())
    }
}

#[async_trait]
impl Approvals for MemoryStore {
    async fn request(&self, new: NewApproval) -> Result<Approval, StoreError> {
        Ok(self.approvals.request(new))
    }

    async fn approval(&self, tenant: &TenantId, id: ApprovalId) -> Result<Option<Approval>, StoreError> {
        Ok(self.approvals.get(tenant, id))
    }

    async fn pending(&self, tenant: &TenantId, now: UnixMillis) -> Result<Vec<Approval>, StoreError> {
        Ok(self.approvals.pending(tenant, now))
    }

    async fn answer(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        answer: Answer,
    ) -> Result<Approval, StoreError> {
        self.approvals.answer(tenant, id, answer)
    }

    async fn take_values(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
    ) -> Result<Option<Map<String, Value>>, StoreError> {
        Ok(self.approvals.take_values(tenant, id))
    }

    async fn close(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        state: ApprovalState,
    ) -> Result<Approval, StoreError> {
        self.approvals.close(tenant, id, state)
    }
}

#[async_trait]
impl Blobs for MemoryStore {
    async fn put_blob(&self, tenant: &TenantId, blob: &NewBlob, at: UnixMillis) -> Result<(), StoreError> {
        self.blobs.put(tenant, blob, at)
    }

    async fn blob(&self, tenant: &TenantId, digest: &Digest) -> Result<Option<Blob>, StoreError> {
        Ok(self.blobs.get(tenant, digest).map(|(blob, _)| blob))
    }

    async fn blob_card(&self, tenant: &TenantId, digest: &Digest) -> Result<Option<BlobCard>, StoreError> {
        let card = |(blob, at): (Blob, _)| BlobCard { bytes: blob.bytes.len() as u64, mime: blob.mime, at };
        Ok(self.blobs.get(tenant, digest).map(card))
    }
}

impl Changes for MemoryStore {
    fn changes(&self, of: Topic) -> watch::Receiver<u64> {
        self.approvals.bells.listen(of)
    }
}

impl Book {
    fn new(limits: MemoryLimits) -> Self {
        Self {
            written: 0,
            entries: VecDeque::new(),
            calls: Calls::new(limits.calls),
            tallies: HashMap::new(),
            sessions: limits.sessions,
        }
    }

    fn tally(&mut self, session: &SessionKey) -> &mut Tally {
        if self.tallies.len() >= self.sessions && !self.tallies.contains_key(session) {
            self.tallies.retain(|_, tally| tally.open > 0);
        }
        self.tallies.entry(session.clone()).or_default()
    }

    /// Counts a call under its new outcome instead of its old one.
    fn finish(&mut self, record: &Record, outcome: Outcome) {
        let Some(before) = self.calls.end(record.call, outcome) else { return };
        let tally = self.tally(&record.session);
        let old = count_of(tally, before);
        *old = old.saturating_sub(1);
        *count_of(tally, outcome) += 1;
    }
}

fn count_of(tally: &mut Tally, outcome: Outcome) -> &mut u64 {
    match outcome {
        Outcome::Done => &mut tally.done,
        Outcome::Failed => &mut tally.failed,
        Outcome::Unknown => &mut tally.open,
    }
}

#[cfg(test)]
mod tests;
