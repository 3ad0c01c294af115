//! Secrets, sealed.

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::UnixMillis;
use claw_core::store::{Sealed, SecretCard, SecretPlace, Secrets, StoreError, Topic};
use sqlx::{query, query_as, query_scalar};

use super::dialect::{Store, failed};
use crate::row;

const WRITE: &str = "could not write the secret";
const READ: &str = "could not read secrets";

#[async_trait]
impl Secrets for Store {
    async fn secret(&self, place: &SecretPlace) -> Result<Option<Sealed>, StoreError> {
        let value: Option<Vec<u8>> =
            query_scalar("SELECT value FROM secrets WHERE tenant = $1 AND agent = $2 AND name = $3")
                .bind(place.tenant.as_str())
                .bind(row::agent_text(place.agent.as_ref()))
                .bind(place.name.as_str())
                .fetch_optional(self.reading())
                .await
                .map_err(failed(READ))?;
        value.map(|value| row::sealed(&place.into(), value)).transpose()
    }

    async fn put_secret(
        &self,
        place: &SecretPlace,
        value: &Sealed,
        at: UnixMillis,
    ) -> Result<(), StoreError> {
        let mut transaction = self.write(WRITE).await?;
        query(
            "INSERT INTO secrets (tenant, agent, name, value, made, at) VALUES ($1, $2, $3, $4, $5, $5)
             ON CONFLICT (tenant, agent, name) DO UPDATE SET value = excluded.value, at = excluded.at",
        )
        .bind(place.tenant.as_str())
        .bind(row::agent_text(place.agent.as_ref()))
        .bind(place.name.as_str())
        .bind(value.as_bytes())
        .bind(at.0)
        .execute(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring(Topic::Secrets);
        Ok(())
    }

    async fn remove_secret(&self, place: &SecretPlace) -> Result<bool, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let removed = query("DELETE FROM secrets WHERE tenant = $1 AND agent = $2 AND name = $3")
            .bind(place.tenant.as_str())
            .bind(row::agent_text(place.agent.as_ref()))
            .bind(place.name.as_str())
            .execute(&mut *transaction)
            .await
            .map_err(failed(WRITE))?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring(Topic::Secrets);
        Ok(removed.rows_affected() > 0)
    }

    async fn secrets(&self, tenant: &TenantId) -> Result<Vec<SecretCard>, StoreError> {
        let rows: Vec<(String, String, i64, i64)> =
            query_as("SELECT agent, name, made, at FROM secrets WHERE tenant = $1 ORDER BY agent, name")
                .bind(tenant.as_str())
                .fetch_all(self.reading())
                .await
                .map_err(failed(READ))?;
        rows.iter().map(|(agent, name, made, at)| row::secret(tenant, agent, name, *made, *at)).collect()
    }
}
