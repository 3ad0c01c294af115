//! Keeps in the store which versions of files each session has seen.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::{Clock, Owner, SeenFiles, Version};
use claw_core::store::SeenIndex;
use claw_core::tool::{Digest, ToolError};

/// Stores seen versions, so that one process may read a file and the next one write it.
pub struct StoredSeen {
    store: Arc<dyn SeenIndex>,
    clock: Arc<dyn Clock>,
}

impl StoredSeen {
    /// Creates one over this store.
    pub fn new(store: Arc<dyn SeenIndex>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }
}

#[async_trait]
impl SeenFiles for StoredSeen {
    async fn seen(&self, owner: &Owner, path: &Path) -> Result<Option<Version>, ToolError> {
        self.store.seen_file(owner, &place(path)).await.map_err(ToolError::internal)
    }

    async fn saw(&self, owner: &Owner, path: &Path, version: &Version) -> Result<(), ToolError> {
        let now = self.clock.now();
        self.store.saw_file(owner, &place(path), version, now).await.map_err(ToolError::internal)
    }
}

fn place(path: &Path) -> Digest {
    Digest::of_bytes(path.as_os_str().as_bytes())
}
