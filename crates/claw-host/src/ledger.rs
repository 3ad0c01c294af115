//! The ledger in files: one chain of lines per tenant and node, each line holding the hash of the one before.
//!
//! What is acknowledged is on the disk: a line is synced before the call that wrote it returns. Several
//! processes may append at once. A program that was killed half way leaves at most a line that its head does
//! not know, or a torn one; the next append takes in the first and moves the second aside. Whatever else does
//! not fit is not repaired: the ledger then refuses to append, and [`verify`] says what is wrong.
//!
//! Questions to people are kept in memory here, so they end with the process; the ledger's own promise, that
//! a call with an intent never runs again, holds across restarts.

mod chain;
mod head;
mod lines;
mod verify;

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use claw_core::port::{Clock, UnixMillis};
use claw_core::store::{Entry, Ledger, Outcome, Record, StoreError, Tally};
use claw_core::{CallId, NodeId, SessionKey, TenantId};

use self::chain::Chain;
use self::head::Head;
pub use self::verify::{ChainReport, Fault, Note, verify};
use crate::SystemClock;
use crate::approvals::{ApprovalTable, delegate_approvals};

const MOST_APPROVALS: usize = 10_000;

/// A ledger in a directory, with approvals that live as long as the process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FileLedger(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    directory: PathBuf,
    node: NodeId,
    opened: UnixMillis,
    /// Where each chain ended then, by the path of its head. What came later is read before it is added to.
    ends: HashMap<PathBuf, Head>,
    chains: Mutex<HashMap<TenantId, Arc<Chain>>>,
    approvals: ApprovalTable,
}

impl FileLedger {
    /// Opens the ledger below `data`, in a [`directory`] of its own that is made if it is not there. Reads none
    /// of the entries.
    pub fn open(data: impl AsRef<Path>, node: NodeId) -> Result<Self, StoreError> {
        let directory = directory(data);
        let opened = SystemClock.now();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(failed("make", &directory))?;
        let ends = ends(&directory).map_err(failed("read", &directory))?;
        Ok(Self(Arc::new(Inner {
            directory,
            node,
            opened,
            ends,
            chains: Mutex::default(),
            approvals: ApprovalTable::new(MOST_APPROVALS),
        })))
    }

    fn table(&self) -> &ApprovalTable {
        &self.0.approvals
    }

    /// Does `work` on the tenant's chain where blocking is allowed.
    async fn on_chain<T: Send + 'static>(
        &self,
        tenant: &TenantId,
        work: impl FnOnce(&Inner, &Chain) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (inner, chain) = (Arc::clone(&self.0), self.0.chain(tenant));
        tokio::task::spawn_blocking(move || work(&inner, &chain)).await.unwrap_or_else(|stopped| {
            Err(StoreError::Io { what: "work on the ledger".to_owned(), source: io::Error::other(stopped) })
        })
    }
}

impl Inner {
    fn chain(&self, tenant: &TenantId) -> Arc<Chain> {
        let mut chains = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
        let chain = chains.entry(tenant.clone()).or_insert_with(|| {
            let path = self.directory.join(format!("{}.jsonl", chain_name(tenant, &self.node)));
            let end = self.ends.get(&path.with_extension("head")).copied().unwrap_or_else(Head::start);
            Arc::new(Chain::new(path, self.node.clone(), self.opened, end))
        });
        Arc::clone(chain)
    }
}

#[async_trait]
impl Ledger for FileLedger {
    async fn refuse(&self, record: Record) -> Result<(), StoreError> {
        let tenant = record.tenant.clone();
        self.on_chain(&tenant, |_, chain| chain.append(record)).await
    }

    async fn begin_call(&self, record: Record) -> Result<(), StoreError> {
        let tenant = record.tenant.clone();
        self.on_chain(&tenant, |inner, chain| {
            let old = chain.old_fate(record.call)?;
            chain.begin(record, old, &inner.approvals)
        })
        .await
    }

    async fn finish_call(&self, record: Record) -> Result<(), StoreError> {
        let tenant = record.tenant.clone();
        self.on_chain(&tenant, |_, chain| chain.append(record)).await
    }

    /// The last lines that this node wrote.
    async fn recent(&self, tenant: &TenantId, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.on_chain(tenant, move |_, chain| chain.recent(limit)).await
    }

    /// Reads the whole chain.
    async fn tally(&self, tenant: &TenantId, session: &SessionKey) -> Result<Tally, StoreError> {
        let session = session.clone();
        self.on_chain(tenant, move |_, chain| chain.tally(&session)).await
    }
}

delegate_approvals!(FileLedger);

/// Where the ledger of a data directory is: apart from all else that is kept there, so that nothing else can
/// take the name of one of its files.
pub fn directory(data: impl AsRef<Path>) -> PathBuf {
    data.as_ref().join("ledger")
}

/// What the files of a chain are called. A tenant may hold `@`; written otherwise, no two chains share a name.
fn chain_name(tenant: &TenantId, node: &NodeId) -> String {
    format!("{}@{node}", tenant.as_str().replace('@', "%40"))
}

/// Where each chain of the directory ends, by the path of its head. One that does not read is left out, so
/// that all of its chain counts as new.
fn ends(directory: &Path) -> io::Result<HashMap<PathBuf, Head>> {
    let mut ends = HashMap::new();
    for file in fs::read_dir(directory)? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "head") {
            let file = File::open(&path)?;
            file.lock_shared()?;
            if let Ok(Some(head)) = Head::read(&file) {
                ends.insert(path, head);
            }
        }
    }
    Ok(ends)
}

/// When an id was made; `None` where it does not say.
fn made(call: CallId) -> Option<UnixMillis> {
    let [a, b, c, d, e, f, version, ..] = *call.as_bytes();
    (version >> 4 == 7).then(|| UnixMillis(i64::from_be_bytes([0, 0, a, b, c, d, e, f])))
}

fn already_begun(call: CallId, outcome: Outcome) -> StoreError {
    StoreError::AlreadyBegun { call, outcome }
}

/// Says what could not be done, and where.
fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let what = format!("could not {what} `{}`", path.display());
    move |source| StoreError::Io { what, source }
}

fn damaged(path: &Path, why: impl Into<String>) -> StoreError {
    StoreError::Damaged { what: format!("`{}`", path.display()), why: why.into() }
}

#[cfg(test)]
mod tests;
