//! The versions of files that sessions have seen.

use async_trait::async_trait;
use claw_core::port::{Owner, UnixMillis, Version};
use claw_core::store::{SEEN_FILES, SeenIndex, StoreError};
use claw_core::tool::Digest;
use sqlx::{query, query_scalar};

use super::PostgresStore;
use super::failure::failed;
use crate::row;

const WRITE: &str = "could not keep what was seen of a file";
const READ: &str = "could not read what was seen of a file";

#[async_trait]
impl SeenIndex for PostgresStore {
    async fn seen_file(&self, owner: &Owner, place: &Digest) -> Result<Option<Version>, StoreError> {
        let version: Option<Vec<u8>> =
            query_scalar("SELECT version FROM seen WHERE tenant = $1 AND session = $2 AND place = $3")
                .bind(owner.tenant.as_str())
                .bind(owner.session.as_str())
                .bind(place.to_string())
                .fetch_optional(&self.pool)
                .await
                .map_err(failed(READ))?;
        version.map(row::version).transpose()
    }

    async fn saw_file(
        &self,
        owner: &Owner,
        place: &Digest,
        version: &Version,
        at: UnixMillis,
    ) -> Result<(), StoreError> {
        let (tenant, session) = (owner.tenant.as_str(), owner.session.as_str());
        let mut transaction = self.begin(WRITE).await?;
        // One at a time, so that two do not wait for each other's rows.
        query("SELECT pg_advisory_xact_lock(hashtextextended('clawsmith: seen ' || $1 || chr(10) || $2, 0))")
            .bind(tenant)
            .bind(session)
            .execute(&mut *transaction)
            .await
            .map_err(failed(WRITE))?;
        query(
            "INSERT INTO seen (tenant, session, place, version, at) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (tenant, session, place) DO UPDATE SET version = excluded.version, at = excluded.at",
        )
        .bind(tenant)
        .bind(session)
        .bind(place.to_string())
        .bind(version.0.as_bytes())
        .bind(at.0)
        .execute(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
        query(
            "DELETE FROM seen WHERE tenant = $1 AND session = $2 AND place IN (
                 SELECT place FROM seen WHERE tenant = $1 AND session = $2
                 ORDER BY at DESC, place DESC OFFSET $3
             )",
        )
        .bind(tenant)
        .bind(session)
        .bind(row::number(SEEN_FILES))
        .execute(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
        transaction.commit().await.map_err(failed(WRITE))
    }
}
