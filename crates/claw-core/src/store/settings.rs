//! Settings of built-in tools: for the whole deployment, and for single tenants over that.
//!
//! Settings are a JSON object. If two layers set a key, the upper one's value replaces the lower one's: see
//! [`overlay`].

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Changes, StoreError};
use crate::id::{TenantId, ToolName};
use crate::port::UnixMillis;

/// The settings of one tool.
pub type Settings = Map<String, Value>;

/// The settings of tools that have some.
pub type ToolSettings = BTreeMap<ToolName, Settings>;

/// The layer of settings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// All tenants.
    Deployment,
    /// One tenant, over the deployment's settings.
    Tenant(TenantId),
}

/// Stored settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredSettings {
    /// The tool.
    pub tool: ToolName,
    /// The settings.
    pub settings: Settings,
    /// The time of the last change.
    pub updated: UnixMillis,
}

/// Replaces the keys of `lower` by those of `upper`. Values are replaced whole: nested objects are not
/// merged.
pub fn overlay(lower: &mut Settings, upper: Settings) {
    for (key, value) in upper {
        lower.insert(key, value);
    }
}

/// Stores settings; a change is announced as [`Topic::Settings`](super::Topic::Settings).
///
/// The settings of the configuration file are not stored here. They are the lowest layer, and the executor
/// lays these over them.
#[async_trait]
pub trait SettingsStore: Changes {
    /// Returns one layer's settings of a tool.
    async fn settings_of(&self, layer: &Layer, tool: &ToolName)
    -> Result<Option<StoredSettings>, StoreError>;
    /// Returns all settings of one layer, by tool.
    async fn settings(&self, layer: &Layer) -> Result<Vec<StoredSettings>, StoreError>;
    /// Writes a layer's settings of a tool, replacing the previous ones.
    async fn put_settings(
        &self,
        layer: &Layer,
        tool: &ToolName,
        settings: Settings,
        at: UnixMillis,
    ) -> Result<(), StoreError>;
    /// Removes a layer's settings of a tool; `false` if there are none.
    async fn remove_settings(&self, layer: &Layer, tool: &ToolName) -> Result<bool, StoreError>;
    /// Returns the effective settings of a tenant: its own over the deployment's.
    async fn tool_settings(&self, tenant: &TenantId) -> Result<ToolSettings, StoreError>;
}
