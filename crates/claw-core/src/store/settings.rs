//! Settings of built-in tools: for the whole deployment, and for single tenants over that.
//!
//! Settings are an object; what else there is does not have the type. Where two layers say something, the
//! upper one's keys stand in place of the lower one's: see [`overlay`].

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

/// For whom settings hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// For everyone.
    Deployment,
    /// For one tenant, over what holds for everyone.
    Tenant(TenantId),
}

/// Settings as they were stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredSettings {
    /// Of which tool.
    pub tool: ToolName,
    /// What they say.
    pub settings: Settings,
    /// When they were written.
    pub updated: UnixMillis,
}

/// Puts the keys of `upper` in place of those of `lower`. A value is taken whole: what is inside of two objects
/// is not merged.
pub fn overlay(lower: &mut Settings, upper: Settings) {
    for (key, value) in upper {
        lower.insert(key, value);
    }
}

/// Keeps settings; a change is told as [`Topic::Settings`](super::Topic::Settings).
///
/// The settings of the configuration file are not here. They are the lowest layer, and whoever runs tools lays
/// these over them.
#[async_trait]
pub trait SettingsStore: Changes {
    /// What one layer says of a tool.
    async fn settings_of(&self, layer: &Layer, tool: &ToolName)
    -> Result<Option<StoredSettings>, StoreError>;
    /// All that one layer says, by tool.
    async fn settings(&self, layer: &Layer) -> Result<Vec<StoredSettings>, StoreError>;
    /// Writes what a layer says of a tool, in place of what it said before.
    async fn put_settings(
        &self,
        layer: &Layer,
        tool: &ToolName,
        settings: Settings,
        at: UnixMillis,
    ) -> Result<(), StoreError>;
    /// Takes back what a layer says of a tool; `false` where it said nothing.
    async fn remove_settings(&self, layer: &Layer, tool: &ToolName) -> Result<bool, StoreError>;
    /// What holds for a tenant: what it says itself over what is said for everyone.
    async fn tool_settings(&self, tenant: &TenantId) -> Result<ToolSettings, StoreError>;
}
