//! The resources that a store may use, and the installation that must own it.

use std::time::Duration;

use claw_core::InstallationId;
use claw_core::store::BlobLimits;

/// The options for opening a store. The defaults fit a machine with one gigabyte of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreOptions {
    /// SQLite: the number of reading connections, beside the writing one.
    pub readers: u32,
    /// SQLite: how many KiB of pages each connection keeps in memory.
    pub cache_kib: u32,
    /// SQLite: how many MiB of the file are mapped into memory; 0 maps nothing.
    pub mmap_mib: u32,
    /// PostgreSQL: the number of connections, beside the one that listens for changes.
    pub connections: u32,
    /// PostgreSQL: the timeout of a statement, and of an idle transaction.
    pub statement_timeout: Duration,
    /// SQLite: the longest a process waits for another that writes to the same file, before it reports the
    /// store as busy.
    pub busy_timeout: Duration,
    /// The longest wait for a connection; on SQLite, the longest a write waits for those before it.
    pub acquire_timeout: Duration,
    /// The most bytes of a blob, and of all blobs of a tenant.
    pub blobs: BlobLimits,
    /// The installation of this node, if it is known. The store of another is not opened, and none is
    /// created: this installation's data is elsewhere.
    pub installation: Option<InstallationId>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            readers: 4,
            cache_kib: 2048,
            mmap_mib: 0,
            connections: 16,
            statement_timeout: Duration::from_secs(30),
            busy_timeout: Duration::from_secs(5),
            acquire_timeout: Duration::from_secs(10),
            blobs: BlobLimits::default(),
            installation: None,
        }
    }
}
