//! The resources that a store may use, and the installation that must own it.

use std::time::Duration;

use claw_core::InstallationId;
use claw_core::store::BlobLimits;

/// The options for opening a store. The defaults fit a machine with one gigabyte of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreOptions {
    /// SQLite: connections that read, beside the one that writes.
    pub readers: u32,
    /// SQLite: how many KiB of pages each connection keeps in memory.
    pub cache_kib: u32,
    /// SQLite: how many MiB of the file are mapped into memory; 0 maps nothing.
    pub mmap_mib: u32,
    /// PostgreSQL: connections, beside the one that listens for changes.
    pub connections: u32,
    /// PostgreSQL: how long a statement may take, and how long a transaction may stand idle.
    pub statement_timeout: Duration,
    /// SQLite: how long a process waits for another that writes to the same file, until it says that the store is busy.
    pub busy_timeout: Duration,
    /// The longest wait for a connection; on SQLite, the longest a write waits for those before it.
    pub acquire_timeout: Duration,
    /// The most bytes of a blob, and of all blobs of a tenant.
    pub blobs: BlobLimits,
    /// The installation that this node is part of, if it knows. The store of another is not opened, and none
    /// is made: what this installation had stored is elsewhere.
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
