//! Entries of several callers, written in one transaction.
//!
//! Each transaction costs the same few statements and one sync, whatever it writes. While one is on its way to the
//! disk, the entries of other callers gather, and the next transaction writes them all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use claw_core::NodeId;
use claw_core::store::{Record, StoreError};
use sqlx::sqlite::SqliteConnection;
use tokio::sync::{mpsc, oneshot};

use super::super::batch::parts;
use super::super::connections::Connections;
use super::super::error::failed;
use super::{NewEntry, WRITE, insert, set_head, start};

/// The most entries of one transaction.
const MOST: usize = 256;

/// The way to the task that writes entries together.
#[derive(Debug)]
pub(in super::super) struct Together {
    waiting: mpsc::UnboundedSender<Waiting>,
    /// Callers that write an entry now.
    callers: AtomicUsize,
}

/// An entry that waits to be written.
struct Waiting {
    record: Arc<Record>,
    /// Told whether the entry was written; dropped if the caller has to write it by itself.
    told: oneshot::Sender<bool>,
}

/// A caller that writes an entry.
pub(super) struct Turn<'t> {
    callers: &'t AtomicUsize,
    before: usize,
}

impl Turn<'_> {
    /// Returns whether there was no other caller at its start: nobody could share a transaction with it.
    pub(super) fn is_alone(&self) -> bool {
        self.before == 0
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.callers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Together {
    /// Starts the task, which ends with this value.
    pub(in super::super) fn new(writer: Connections, node: NodeId) -> Self {
        let (waiting, received) = mpsc::unbounded_channel();
        tokio::spawn(write(writer, node, received));
        Self { waiting, callers: AtomicUsize::new(0) }
    }

    pub(super) fn enter(&self) -> Turn<'_> {
        Turn { callers: &self.callers, before: self.callers.fetch_add(1, Ordering::Relaxed) }
    }

    /// Writes an entry together with others; returns `false` and writes nothing if the call already has one of
    /// this kind, and `None` if the caller has to write it by itself, to learn why it failed.
    pub(super) async fn append(&self, record: &Arc<Record>) -> Option<bool> {
        let (told, written) = oneshot::channel();
        self.waiting.send(Waiting { record: Arc::clone(record), told }).ok()?;
        written.await.ok()
    }
}

async fn write(writer: Connections, node: NodeId, mut received: mpsc::UnboundedReceiver<Waiting>) {
    let mut waiting = Vec::new();
    while received.recv_many(&mut waiting, MOST).await > 0 {
        // A caller that is gone has not begun its call.
        waiting.retain(|one| !one.told.is_closed());
        if waiting.is_empty() {
            continue;
        }
        let records: Vec<&Record> = waiting.iter().map(|one| &*one.record).collect();
        let written = write_all(&writer, &node, &records).await;
        for Waiting { told, .. } in waiting.drain(..).filter(|_| matches!(written, Ok(true))) {
            // Nobody is there to learn it if the caller is gone.
            let _ = told.send(true);
        }
        if let Err(error) = written {
            tracing::debug!(%error, "entries could not be written together");
        }
    }
}

/// Writes the entries; returns `false` and writes none if a call already has one of the same kind.
async fn write_all(writer: &Connections, node: &NodeId, records: &[&Record]) -> Result<bool, StoreError> {
    let mut chains: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    for record in records {
        chains.entry(record.tenant.as_str()).or_default().push(record);
    }
    let mut transaction = writer.begin("BEGIN IMMEDIATE").await.map_err(failed(WRITE))?;
    for (tenant, records) in chains {
        if !write_chain(&mut transaction, tenant, node, &records).await? {
            transaction.rollback().await.map_err(failed(WRITE))?;
            return Ok(false);
        }
    }
    transaction.commit().await.map_err(failed(WRITE))?;
    Ok(true)
}

/// Writes the entries of one tenant; returns `false` if one is there already.
async fn write_chain(
    connection: &mut SqliteConnection,
    tenant: &str,
    node: &NodeId,
    records: &[&Record],
) -> Result<bool, StoreError> {
    let (mut head, mut entries) = (start(connection, tenant, node).await?, Vec::with_capacity(records.len()));
    for record in records {
        let (line, next) = head.next(node, record)?;
        entries.push(NewEntry { seq: next.count, record, line });
        head = next;
    }
    for part in parts(&entries) {
        if insert(connection, node, part).await? < part.len() as u64 {
            return Ok(false);
        }
    }
    set_head(connection, tenant, node, head).await?;
    Ok(true)
}
