//! The file versions that sessions have seen. Writers of one session take turns, so that none waits for another's rows.

use async_trait::async_trait;
use claw_core::port::{Owner, UnixMillis, Version};
use claw_core::store::{SEEN_FILES, SeenIndex, StoreError};
use claw_core::tool::Digest;
use sqlx::{query, query_scalar};

use super::dialect::{Store, failed, hold};
use crate::row;

const WRITE: &str = "could not record which version of a file was read";
const READ: &str = "could not read which version of a file was read";

#[async_trait]
impl SeenIndex for Store {
    async fn seen_file(&self, owner: &Owner, place: &Digest) -> Result<Option<Version>, StoreError> {
        let version: Option<Vec<u8>> =
            query_scalar("SELECT version FROM seen WHERE tenant = $1 AND session = $2 AND place = $3")
                .bind(owner.tenant.as_str())
                .bind(owner.session.as_str())
                .bind(place.to_string())
                .fetch_optional(self.reading())
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
        let mut transaction = self.write(WRITE).await?;
        hold(&mut transaction, &format!("seen {tenant}\n{session}")).await?;
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
                 ORDER BY at DESC, place DESC LIMIT 9223372036854775807 OFFSET $3
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
