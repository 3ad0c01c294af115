//! Agents, each with its version.

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{Agent, AgentStore, AgentWrite, StoreError, Topic};
use claw_core::{AgentId, TenantId};
use sqlx::{query_as, query_scalar};

use super::dialect::{Connection, Store, failed};
use crate::row::{self, AgentColumns};

const WRITE: &str = "could not write the agent";
const READ: &str = "could not read agents";

#[async_trait]
impl AgentStore for Store {
    async fn agent(&self, tenant: &TenantId, id: &AgentId) -> Result<Option<Agent>, StoreError> {
        let found: Option<(i64, String, i64, i64)> = query_as(
            "SELECT version, setup, created, updated FROM agents
             WHERE tenant = $1 AND id = $2 AND setup IS NOT NULL",
        )
        .bind(tenant.as_str())
        .bind(id.as_str())
        .fetch_optional(self.reading())
        .await
        .map_err(failed(READ))?;
        found
            .map(|(version, setup, created, updated)| {
                let columns = AgentColumns { version, setup: &setup, created, updated };
                row::agent(tenant, id.clone(), columns)
            })
            .transpose()
    }

    async fn agents(&self, tenant: &TenantId) -> Result<Vec<Agent>, StoreError> {
        let rows: Vec<(String, i64, String, i64, i64)> = query_as(
            "SELECT id, version, setup, created, updated FROM agents
             WHERE tenant = $1 AND setup IS NOT NULL ORDER BY id",
        )
        .bind(tenant.as_str())
        .fetch_all(self.reading())
        .await
        .map_err(failed(READ))?;
        let agent = |(id, version, setup, created, updated): &(String, i64, String, i64, i64)| {
            let columns = AgentColumns { version: *version, setup, created: *created, updated: *updated };
            row::agent(tenant, row::word("an agent's id", id)?, columns)
        };
        rows.iter().map(agent).collect()
    }

    async fn put_agent(
        &self,
        tenant: &TenantId,
        id: &AgentId,
        AgentWrite { setup, seen }: AgentWrite,
        at: UnixMillis,
    ) -> Result<Agent, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        // One that was removed has a version and is not there.
        let written = query_as(match seen {
            None => {
                "INSERT INTO agents AS old (tenant, id, version, setup, created, updated)
                 VALUES ($1, $2, 1, $3, $4, $4)
                 ON CONFLICT (tenant, id) DO UPDATE SET
                     version = old.version + 1, setup = excluded.setup, created = excluded.created,
                     updated = excluded.updated
                 WHERE old.setup IS NULL
                 RETURNING version, created"
            }
            Some(_) => {
                "UPDATE agents SET version = version + 1, setup = $3, updated = $4
                 WHERE tenant = $1 AND id = $2 AND version = $5 AND setup IS NOT NULL
                 RETURNING version, created"
            }
        })
        .bind(tenant.as_str())
        .bind(id.as_str())
        .bind(row::text(&setup)?)
        .bind(at.0);
        let written = match seen {
            None => written,
            Some(seen) => written.bind(row::number(seen)),
        };
        let written: Vec<(i64, i64)> = written.fetch_all(&mut *transaction).await.map_err(failed(WRITE))?;
        let Some((version, created)) = written.first() else {
            return Err(stale(&mut transaction, tenant, id).await?);
        };
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring(Topic::Agents);
        let (tenant, id, version) = (tenant.clone(), id.clone(), row::count(*version)?);
        Ok(Agent { tenant, id, setup, version, created: UnixMillis(*created), updated: at })
    }

    async fn remove_agent(
        &self,
        tenant: &TenantId,
        id: &AgentId,
        seen: u64,
        at: UnixMillis,
    ) -> Result<(), StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let removed: Vec<i64> = query_scalar(
            "UPDATE agents SET version = version + 1, setup = NULL, updated = $4
             WHERE tenant = $1 AND id = $2 AND version = $3 AND setup IS NOT NULL RETURNING version",
        )
        .bind(tenant.as_str())
        .bind(id.as_str())
        .bind(row::number(seen))
        .bind(at.0)
        .fetch_all(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
        if removed.is_empty() {
            return Err(stale(&mut transaction, tenant, id).await?);
        }
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring(Topic::Agents);
        Ok(())
    }
}

/// Returns the error for an outdated write, with the agent's current version.
async fn stale(
    connection: &mut Connection,
    tenant: &TenantId,
    id: &AgentId,
) -> Result<StoreError, StoreError> {
    let now = query_scalar("SELECT version FROM agents WHERE tenant = $1 AND id = $2 AND setup IS NOT NULL")
        .bind(tenant.as_str())
        .bind(id.as_str())
        .fetch_optional(connection)
        .await
        .map_err(failed(READ))?;
    row::stale_agent(id, now)
}
