//! Settings of tools.

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{
    Layer, Settings, SettingsStore, StoreError, StoredSettings, ToolSettings, Topic, overlay,
};
use claw_core::{TenantId, ToolName};
use sqlx::{query, query_as};

use super::dialect::{Store, failed};
use crate::row;

const WRITE: &str = "could not write the settings of a tool";
const READ: &str = "could not read the settings of tools";

#[async_trait]
impl SettingsStore for Store {
    async fn settings_of(
        &self,
        layer: &Layer,
        tool: &ToolName,
    ) -> Result<Option<StoredSettings>, StoreError> {
        let found =
            query_as("SELECT tool, settings, updated FROM tool_settings WHERE tenant = $1 AND tool = $2")
                .bind(row::layer(layer))
                .bind(tool.as_str())
                .fetch_optional(self.reading())
                .await
                .map_err(failed(READ))?;
        found.as_ref().map(row::settings).transpose()
    }

    async fn settings(&self, layer: &Layer) -> Result<Vec<StoredSettings>, StoreError> {
        let rows =
            query_as("SELECT tool, settings, updated FROM tool_settings WHERE tenant = $1 ORDER BY tool")
                .bind(row::layer(layer))
                .fetch_all(self.reading())
                .await
                .map_err(failed(READ))?;
        rows.iter().map(row::settings).collect()
    }

    async fn put_settings(
        &self,
        layer: &Layer,
        tool: &ToolName,
        settings: Settings,
        at: UnixMillis,
    ) -> Result<(), StoreError> {
        query(
            "INSERT INTO tool_settings (tenant, tool, settings, updated) VALUES ($1, $2, $3, $4)
             ON CONFLICT (tenant, tool) DO UPDATE SET settings = excluded.settings, updated = excluded.updated",
        )
        .bind(row::layer(layer))
        .bind(tool.as_str())
        .bind(row::text(&settings)?)
        .bind(at.0)
        .execute(self.writing())
        .await
        .map_err(failed(WRITE))?;
        self.ring(Topic::Settings);
        Ok(())
    }

    async fn remove_settings(&self, layer: &Layer, tool: &ToolName) -> Result<bool, StoreError> {
        let removed = query("DELETE FROM tool_settings WHERE tenant = $1 AND tool = $2")
            .bind(row::layer(layer))
            .bind(tool.as_str())
            .execute(self.writing())
            .await
            .map_err(failed(WRITE))?;
        let removed = removed.rows_affected() > 0;
        if removed {
            self.ring(Topic::Settings);
        }
        Ok(removed)
    }

    async fn tool_settings(&self, tenant: &TenantId) -> Result<ToolSettings, StoreError> {
        // The lower layer comes first: its place is the empty one.
        let rows = query_as(
            "SELECT tool, settings, updated FROM tool_settings WHERE tenant IN ('', $1) ORDER BY tenant",
        )
        .bind(tenant.as_str())
        .fetch_all(self.reading())
        .await
        .map_err(failed(READ))?;
        let mut effective = ToolSettings::new();
        for stored in rows.iter().map(row::settings) {
            let StoredSettings { tool, settings, .. } = stored?;
            overlay(effective.entry(tool).or_default(), settings);
        }
        Ok(effective)
    }
}
