//! Custom tools.

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::UnixMillis;
use claw_core::store::{
    CustomToolCard, CustomToolDefinition, CustomToolPlace, CustomTools, StoreError, StoredCustomTool, Topic,
};
use sqlx::{query, query_scalar};

use super::dialect::{Connection, Row, Store, column, failed};
use crate::row;

const WRITE: &str = "could not write the custom tool";
const READ: &str = "could not read custom tools";

#[async_trait]
impl CustomTools for Store {
    async fn custom_tool(&self, place: &CustomToolPlace) -> Result<Option<StoredCustomTool>, StoreError> {
        let found = query(
            "SELECT agent, name, definition, variables, enabled, env, version, at FROM custom_tools
             WHERE tenant = $1 AND agent = $2 AND name = $3",
        )
        .bind(place.tenant.as_str())
        .bind(row::agent_text(place.agent.as_ref()))
        .bind(place.name.as_str())
        .fetch_optional(self.reading())
        .await
        .map_err(failed(READ))?;
        found.map(|found| tool(&place.tenant, &found)).transpose()
    }

    async fn put_custom_tool(&self, tool: &StoredCustomTool, seen: Option<u64>) -> Result<u64, StoreError> {
        let StoredCustomTool { card, env } = tool;
        let mut transaction = self.write(WRITE).await?;
        let written = query_scalar(match seen {
            None => {
                "INSERT INTO custom_tools (tenant, agent, name, definition, variables, enabled, env, version, at)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $8)
                 ON CONFLICT (tenant, agent, name) DO NOTHING RETURNING version"
            }
            Some(_) => {
                "UPDATE custom_tools SET definition = $4, variables = $5, enabled = $6, env = $7,
                     version = version + 1, at = $8
                 WHERE tenant = $1 AND agent = $2 AND name = $3 AND version = $9 RETURNING version"
            }
        })
        .bind(card.place.tenant.as_str())
        .bind(row::agent_text(card.place.agent.as_ref()))
        .bind(card.place.name.as_str())
        .bind(row::text(&card.definition)?)
        .bind(row::text(&card.variables)?)
        .bind(card.definition.enabled)
        .bind(env.as_bytes())
        .bind(card.at.0);
        let written = match seen {
            None => written,
            Some(seen) => written.bind(row::number(seen)),
        };
        let written: Option<i64> = written.fetch_optional(&mut *transaction).await.map_err(failed(WRITE))?;
        let Some(version) = written else {
            return Err(stale(&mut transaction, &card.place).await?);
        };
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring(Topic::Tools);
        row::count(version)
    }

    async fn enable_custom_tool(
        &self,
        place: &CustomToolPlace,
        enabled: bool,
        at: UnixMillis,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let changed = query(
            "UPDATE custom_tools SET enabled = $4, version = version + 1, at = $5
             WHERE tenant = $1 AND agent = $2 AND name = $3",
        )
        .bind(place.tenant.as_str())
        .bind(row::agent_text(place.agent.as_ref()))
        .bind(place.name.as_str())
        .bind(enabled)
        .bind(at.0)
        .execute(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring(Topic::Tools);
        Ok(changed.rows_affected() > 0)
    }

    async fn remove_custom_tool(
        &self,
        place: &CustomToolPlace,
        seen: Option<u64>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let removed = query(
            "DELETE FROM custom_tools
             WHERE tenant = $1 AND agent = $2 AND name = $3 AND ($4 < 0 OR version = $4)",
        )
        .bind(place.tenant.as_str())
        .bind(row::agent_text(place.agent.as_ref()))
        .bind(place.name.as_str())
        .bind(seen.map_or(-1, row::number))
        .execute(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
        if removed.rows_affected() == 0 {
            let left = stale(&mut transaction, place).await?;
            return match left {
                StoreError::Stale { now: Some(_), .. } => Err(left),
                _ => Ok(false),
            };
        }
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring(Topic::Tools);
        Ok(true)
    }

    async fn custom_tools(&self, tenant: &TenantId) -> Result<Vec<StoredCustomTool>, StoreError> {
        let rows = query(
            "SELECT agent, name, definition, variables, enabled, env, version, at FROM custom_tools
             WHERE tenant = $1 ORDER BY agent, name",
        )
        .bind(tenant.as_str())
        .fetch_all(self.reading())
        .await
        .map_err(failed(READ))?;
        rows.iter().map(|found| tool(tenant, found)).collect()
    }
}

/// Returns the error for an outdated write, with the tool's current version.
async fn stale(connection: &mut Connection, place: &CustomToolPlace) -> Result<StoreError, StoreError> {
    let now: Option<i64> =
        query_scalar("SELECT version FROM custom_tools WHERE tenant = $1 AND agent = $2 AND name = $3")
            .bind(place.tenant.as_str())
            .bind(row::agent_text(place.agent.as_ref()))
            .bind(place.name.as_str())
            .fetch_optional(connection)
            .await
            .map_err(failed(READ))?;
    let now = now.map(row::count).transpose()?;
    Ok(StoreError::Stale { path: place.name.to_string(), now })
}

fn tool(tenant: &TenantId, found: &Row) -> Result<StoredCustomTool, StoreError> {
    let place = CustomToolPlace {
        tenant: tenant.clone(),
        agent: row::agent_of("a custom tool's agent", column(found, "agent")?)?,
        name: row::word("a custom tool's name", column(found, "name")?)?,
    };
    let mut definition: CustomToolDefinition =
        row::json("a custom tool's definition", column(found, "definition")?)?;
    definition.enabled = column(found, "enabled")?;
    let variables = row::json("the names of a custom tool's variables", column(found, "variables")?)?;
    let env = row::sealed(&(&place).into(), column(found, "env")?)?;
    let (version, at) = (row::count(column::<i64>(found, "version")?)?, UnixMillis(column(found, "at")?));
    Ok(StoredCustomTool { card: CustomToolCard { place, definition, variables, version, at }, env })
}
