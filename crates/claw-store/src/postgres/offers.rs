//! The tools that sessions were offered, and the tools that agents use.

use std::collections::HashMap;

use async_trait::async_trait;
use claw_core::store::{Offers, StoreError};
use claw_core::{AgentId, SessionKey, TenantId, ToolName};
use sqlx::types::Json;
use sqlx::{query, query_as, query_scalar};

use super::PostgresStore;
use super::failure::failed;
use crate::row;

const WRITE: &str = "could not write what was offered and used";
const READ: &str = "could not read what was offered and used";

#[async_trait]
impl Offers for PostgresStore {
    async fn offered(&self, tenant: &TenantId, session: &SessionKey) -> Result<Vec<ToolName>, StoreError> {
        let tools: Option<Json<Vec<ToolName>>> =
            query_scalar("SELECT tools FROM offered WHERE tenant = $1 AND session = $2")
                .bind(tenant.as_str())
                .bind(session.as_str())
                .fetch_optional(&self.pool)
                .await
                .map_err(failed(READ))?;
        Ok(tools.map(|Json(tools)| tools).unwrap_or_default())
    }

    async fn set_offered(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
        tools: &[ToolName],
    ) -> Result<(), StoreError> {
        query(
            "INSERT INTO offered (tenant, session, tools) VALUES ($1, $2, $3::json)
             ON CONFLICT (tenant, session) DO UPDATE SET tools = excluded.tools",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .bind(row::text(&tools)?)
        .execute(&self.pool)
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
        let (tools, uses): (Vec<&str>, Vec<i64>) = counts.into_iter().unzip();
        // Always in one order, so that two who count the same tools do not wait for each other for ever.
        query(
            "INSERT INTO tool_uses AS known (tenant, agent, tool, uses)
             SELECT $1, $2, tool, uses FROM unnest($3::text[], $4::bigint[]) AS counted (tool, uses)
             ORDER BY tool COLLATE \"C\"
             ON CONFLICT (tenant, agent, tool)
             DO UPDATE SET uses = known.uses + least(excluded.uses, 9223372036854775807 - known.uses)",
        )
        .bind(tenant.as_str())
        .bind(agent.as_str())
        .bind(tools)
        .bind(uses)
        .execute(&self.pool)
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
                .fetch_all(&self.pool)
                .await
                .map_err(failed(READ))?;
        let uses = |(tool, uses): (String, i64)| Ok((row::word("a tool's name", &tool)?, row::count(uses)?));
        rows.into_iter().map(uses).collect()
    }
}
