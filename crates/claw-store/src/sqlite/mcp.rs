//! MCP servers; the statements are in `crate::mcp`.
//!
//! Each call of an MCP tool asks for its grants. They are kept in memory and used while the store's [`Mark`] says that no
//! process has changed any.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use claw_core::store::Topic;

use super::SqliteStore;
use super::mark::{Mark, MarkValue};

crate::mcp::mcp_store!(SqliteStore, read: readers, write: write, failed: super::error::failed, lock: "");

/// The most servers and subjects whose grants are kept.
const MOST: usize = 10_000;

/// The grants that were read since the last change.
#[derive(Debug)]
pub(super) struct KeptGrants {
    mark: Mark,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The state of the store in which the grants were read; `None` before the first.
    state: Option<GrantState>,
    grants: HashMap<GrantKey, Option<McpAccess>>,
}

/// A state of the store's grants: the announced changes of this process, and the mark.
type GrantState = (u64, MarkValue);
type GrantKey = (TenantId, ServerName, [McpSubject; 2]);

impl KeptGrants {
    pub(super) fn new(mark: Mark) -> Self {
        Self { mark, kept: Mutex::default() }
    }

    /// Returns the kept grants of a key, if they were read in this state.
    fn get(&self, state: GrantState, key: &GrantKey) -> Option<Option<McpAccess>> {
        let kept = self.lock();
        (kept.state == Some(state)).then(|| kept.grants.get(key).cloned())?
    }

    fn keep(&self, state: GrantState, key: GrantKey, access: Option<McpAccess>) {
        let mut kept = self.lock();
        if kept.state != Some(state) || kept.grants.len() >= MOST {
            *kept = Kept { state: Some(state), grants: HashMap::new() };
        }
        kept.grants.insert(key, access);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SqliteStore {
    async fn access(
        &self,
        tenant: &TenantId,
        server: &ServerName,
        subjects: [McpSubject; 2],
    ) -> Result<Option<McpAccess>, StoreError> {
        let Some(mark) = self.grants.mark.read() else {
            return self.read_access(tenant, server, &subjects).await;
        };
        // Taken before the grants are read: a change that comes between the two makes them outdated.
        let state = (self.bells.count(Topic::Mcp), mark);
        let key = (tenant.clone(), server.clone(), subjects);
        if let Some(access) = self.grants.get(state, &key) {
            return Ok(access);
        }
        let access = self.read_access(tenant, server, &key.2).await?;
        self.grants.keep(state, key, access.clone());
        Ok(access)
    }

    fn mcp_changed(&self) -> Result<(), StoreError> {
        let replaced = self.grants.mark.replace();
        self.bells.ring(Topic::Mcp);
        replaced.map_err(|source| {
            let what = "the change is stored, but other processes notice it later".to_owned();
            StoreError::Io { what, source }
        })
    }
}
