//! The settings of a call: the caller's, which come from the configuration file, overridden by those of the
//! store.
//!
//! Stored settings are cached until the store reports a change. A call never runs with settings known to be
//! stale, nor without settings because they could not be read.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use claw_core::TenantId;
use claw_core::store::{Settings, SettingsStore, StoreError, ToolSettings, Topic, overlay};
use claw_core::tool::Facts;
use serde_json::Value;
use tokio::sync::watch;

/// The stored settings of each tenant.
pub(crate) struct StoredLayers {
    source: Option<Source>,
    /// The settings of a tenant with nothing stored.
    nothing: Arc<ToolSettings>,
    known: ArcSwap<HashMap<TenantId, Known>>,
}

struct Source {
    store: Arc<dyn SettingsStore>,
    changes: watch::Receiver<u64>,
}

#[derive(Clone)]
struct Known {
    /// The number of changes before the settings were read.
    changes: u64,
    settings: Arc<ToolSettings>,
}

impl StoredLayers {
    pub(crate) fn new(store: Option<Arc<dyn SettingsStore>>) -> Self {
        let source = store.map(|store| Source { changes: store.changes(Topic::Settings), store });
        Self { source, nothing: Arc::default(), known: ArcSwap::default() }
    }

    /// The current settings of a tenant. Returns the same `Arc` as before if nothing changed.
    pub(crate) async fn of(&self, tenant: &TenantId) -> Result<Arc<ToolSettings>, StoreError> {
        let Some(source) = &self.source else { return Ok(Arc::clone(&self.nothing)) };
        // Read before the rows: a change in between makes them stale, and they are read again.
        let changes = *source.changes.borrow();
        let known = self.known.load().get(tenant).cloned();
        if let Some(known) = known.as_ref().filter(|known| known.changes == changes) {
            return Ok(Arc::clone(&known.settings));
        }
        let read = source.store.tool_settings(tenant).await?;
        let settings = match known {
            Some(known) if *known.settings == read => known.settings,
            _ => Arc::new(read),
        };
        let now = Known { changes, settings: Arc::clone(&settings) };
        self.known.rcu(|known| {
            let mut known = HashMap::clone(known);
            known.insert(tenant.clone(), now.clone());
            known
        });
        Ok(settings)
    }
}

/// Merges stored settings over those of the caller, key by key.
pub(crate) fn lay_over(mut facts: Facts, stored: Option<&Settings>) -> Facts {
    let Some(stored) = stored else { return facts };
    // Settings that are not an object have no keys to keep.
    let mut settings = match &*facts.settings {
        Value::Object(settings) => settings.clone(),
        _ => Settings::new(),
    };
    overlay(&mut settings, stored.clone());
    facts.settings = Arc::new(Value::Object(settings));
    facts
}
