//! The tools that sessions were offered, and the tools that agents use.

use std::collections::HashMap;

use async_trait::async_trait;
use claw_core::store::{Offers, StoreError};
use claw_core::{AgentId, SessionKey, TenantId, ToolName};
use sqlx::{query, query_as, query_scalar};

use super::dialect::{COUNT_TOOL_USES, Store, failed};
use crate::row;

const WRITE: &str = "could not record offered tools and their uses";
const READ: &str = "could not read offered tools and their uses";

#[async_trait]
impl Offers for Store {
    async fn offered(&self, tenant: &TenantId, session: &SessionKey) -> Result<Vec<ToolName>, StoreError> {
        let tools: Option<String> =
            query_scalar("SELECT tools FROM offered WHERE tenant = $1 AND session = $2")
                .bind(tenant.as_str())
                .bind(session.as_str())
                .fetch_optional(self.reading())
                .await
                .map_err(failed(READ))?;
        tools.map_or(Ok(Vec::new()), |tools| row::json("a session's offered tools", &tools))
    }

    async fn set_offered(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        tools: &[ToolName],
    ) -> Result<(), StoreError> {
        query(
            "INSERT INTO offered (tenant, session, tools) VALUES ($1, $2, $3)
             ON CONFLICT (tenant, session) DO UPDATE SET tools = excluded.tools",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .bind(row::text(&tools)?)
        .execute(self.writing())
        .await
        .map(drop)
        .map_err(failed(WRITE))
    }

    async fn count_tool_uses(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
        uses: &[(ToolName, u64)],
    ) -> Result<(), StoreError> {
        let counts = row::counts(uses);
        if counts.is_empty() {
            return Ok(());
        }
        query(COUNT_TOOL_USES)
            .bind(tenant.as_str())
            .bind(agent.as_str())
            .bind(row::text(&counts)?)
            .execute(self.writing())
            .await
            .map(drop)
            .map_err(failed(WRITE))
    }

    async fn tool_uses(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
    ) -> Result<HashMap<ToolName, u64>, StoreError> {
        let rows: Vec<(String, i64)> =
            query_as("SELECT tool, uses FROM tool_uses WHERE tenant = $1 AND agent = $2")
                .bind(tenant.as_str())
                .bind(agent.as_str())
                .fetch_all(self.reading())
                .await
                .map_err(failed(READ))?;
        let uses = |(tool, uses): (String, i64)| Ok((row::word("a tool's name", &tool)?, row::count(uses)?));
        rows.into_iter().map(uses).collect()
    }
}
