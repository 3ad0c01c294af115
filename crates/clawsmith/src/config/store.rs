//! `[store]`: the store's location, and its use of resources.

use std::fmt;
use std::time::Duration;

use claw_core::store::{BlobLimits, StoreError};
use claw_store::{StoreLocation, StoreOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// The store of all state. The defaults fit a machine with one gigabyte of memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// `sqlite:PATH`, or `postgres://user@host/name` if several machines share it. Left out: the file
    /// `clawsmith.db` in the data directory. A password belongs into `CLAWSMITH_STORE__URL` or `~/.pgpass`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<StoreUrl>,
    /// SQLite: the number of connections that read, besides the one that writes.
    #[schemars(range(min = 1, max = 64))]
    pub readers: u32,
    /// SQLite: how many KiB of pages each connection keeps in memory.
    #[schemars(range(min = 64))]
    pub cache_kib: u32,
    /// SQLite: how many MiB of the file are mapped into memory; 0 maps nothing.
    pub mmap_mib: u32,
    /// PostgreSQL: the number of connections of one node, besides the one that listens for changes.
    #[schemars(range(min = 1, max = 1000))]
    pub connections: u32,
    /// PostgreSQL: how long a statement may take, in seconds.
    #[schemars(range(min = 1))]
    pub statement_timeout_secs: u32,
    /// The longest wait for a free connection, in seconds; with SQLite, the longest wait for earlier writes.
    #[schemars(range(min = 1))]
    pub acquire_timeout_secs: u32,
    /// The largest blob (an image, a result or an attachment), in MiB.
    #[schemars(range(min = 1, max = 512))]
    pub blob_mib: u32,
    /// The most that all blobs of one tenant may take together, in MiB.
    #[schemars(range(min = 1))]
    pub tenant_blobs_mib: u32,
}

/// A store's location. It may hold a password, which is left out wherever the location is shown or written.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct StoreUrl(String);

impl StoreUrl {
    /// Returns a store in memory, lost with the program.
    pub fn memory() -> Self {
        Self(StoreLocation::Memory.to_string())
    }

    /// The place that it names.
    pub fn place(&self) -> Result<StoreLocation, StoreError> {
        self.0.parse()
    }

    /// Returns whether it is empty, as from an empty variable.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place() {
            Ok(place) => place.fmt(f),
            Err(_) => f.write_str("(invalid URL)"),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

impl Serialize for StoreUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl StoreConfig {
    /// Converts the options for a store.
    pub fn options(&self) -> StoreOptions {
        StoreOptions {
            readers: self.readers,
            cache_kib: self.cache_kib,
            mmap_mib: self.mmap_mib,
            connections: self.connections,
            statement_timeout: Duration::from_secs(self.statement_timeout_secs.into()),
            acquire_timeout: Duration::from_secs(self.acquire_timeout_secs.into()),
            blobs: BlobLimits {
                blob: u64::from(self.blob_mib) << 20,
                tenant: u64::from(self.tenant_blobs_mib) << 20,
            },
            ..StoreOptions::default()
        }
    }
}

impl Default for StoreConfig {
    fn default() -> Self {
        let options = StoreOptions::default();
        let mebibytes = |bytes: u64| u32::try_from(bytes >> 20).unwrap_or(u32::MAX);
        let seconds = |time: Duration| u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
        Self {
            url: None,
            readers: options.readers,
            cache_kib: options.cache_kib,
            mmap_mib: options.mmap_mib,
            connections: options.connections,
            statement_timeout_secs: seconds(options.statement_timeout),
            acquire_timeout_secs: seconds(options.acquire_timeout),
            blob_mib: mebibytes(options.blobs.blob),
            tenant_blobs_mib: mebibytes(options.blobs.tenant),
        }
    }
}
