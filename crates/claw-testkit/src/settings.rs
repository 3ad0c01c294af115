//! Settings of tools in memory: the plainest thing that passes the suite.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{
    Bells, Changes, Layer, Settings, SettingsStore, StoreError, StoredSettings, ToolSettings, Topic, overlay,
};
use claw_core::{TenantId, ToolName};
use tokio::sync::watch;

type Layers = BTreeMap<Layer, BTreeMap<ToolName, StoredSettings>>;

/// Settings that live as long as the process.
#[derive(Debug, Default)]
pub struct MemorySettings {
    layers: Mutex<Layers>,
    bells: Bells,
    failing: AtomicBool,
    reads: AtomicU64,
}

impl MemorySettings {
    /// Creates a store without settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes all reads fail, or succeed again; wakes all waiters.
    pub fn fail(&self, failing: bool) {
        self.failing.store(failing, Ordering::SeqCst);
        self.bells.ring(Topic::Settings);
    }

    /// Returns how many times settings of a tenant were read.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }

    fn layers(&self) -> Result<MutexGuard<'_, Layers>, StoreError> {
        if self.failing.load(Ordering::SeqCst) {
            let source = io::Error::other("told to fail");
            return Err(StoreError::Io { what: "settings".to_owned(), source });
        }
        Ok(self.layers.lock().unwrap())
    }
}

#[async_trait]
impl SettingsStore for MemorySettings {
    async fn settings_of(
        &self,
        layer: &Layer,
        tool: &ToolName,
    ) -> Result<Option<StoredSettings>, StoreError> {
        Ok(self.layers()?.get(layer).and_then(|tools| tools.get(tool)).cloned())
    }

    async fn settings(&self, layer: &Layer) -> Result<Vec<StoredSettings>, StoreError> {
        Ok(self.layers()?.get(layer).into_iter().flat_map(BTreeMap::values).cloned().collect())
    }

    async fn put_settings(
        &self,
        layer: &Layer,
        tool: &ToolName,
        settings: Settings,
        at: UnixMillis,
    ) -> Result<(), StoreError> {
        let stored = StoredSettings { tool: tool.clone(), settings, updated: at };
        self.layers()?.entry(layer.clone()).or_default().insert(tool.clone(), stored);
        self.bells.ring(Topic::Settings);
        Ok(())
    }

    async fn remove_settings(&self, layer: &Layer, tool: &ToolName) -> Result<bool, StoreError> {
        let removed = self.layers()?.entry(layer.clone()).or_default().remove(tool);
        if removed.is_some() {
            self.bells.ring(Topic::Settings);
        }
        Ok(removed.is_some())
    }

    async fn tool_settings(&self, tenant: &TenantId) -> Result<ToolSettings, StoreError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        let layers = self.layers()?;
        let mut effective = ToolSettings::new();
        for layer in [Layer::Deployment, Layer::Tenant(tenant.clone())] {
            for stored in layers.get(&layer).into_iter().flat_map(BTreeMap::values) {
                overlay(effective.entry(stored.tool.clone()).or_default(), stored.settings.clone());
            }
        }
        Ok(effective)
    }
}

impl Changes for MemorySettings {
    fn changes(&self, of: Topic) -> watch::Receiver<u64> {
        self.bells.listen(of)
    }
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn passes_the_suite() {
        crate::conformance::settings(async || super::MemorySettings::new()).await;
    }
}
