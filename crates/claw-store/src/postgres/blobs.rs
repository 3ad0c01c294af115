//! Blobs: bytes by their digest. Nodes that put blobs of one tenant take turns, so that together they keep to
//! the tenant's limit.

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::UnixMillis;
use claw_core::store::{Blob, BlobCard, Blobs, NewBlob, StoreError};
use claw_core::tool::Digest;
use sqlx::{query, query_as, query_scalar};

use super::PostgresStore;
use super::failure::failed;
use crate::row;

const WRITE: &str = "could not store the blob";
const READ: &str = "could not read the blob";

#[async_trait]
impl Blobs for PostgresStore {
    async fn put_blob(&self, tenant: &TenantId, blob: &NewBlob, at: UnixMillis) -> Result<(), StoreError> {
        self.blob_limits.check_blob(blob)?;
        let mut transaction = self.begin(WRITE).await?;
        query("SELECT pg_advisory_xact_lock(hashtextextended('clawsmith: blobs ' || $1, 0))")
            .bind(tenant.as_str())
            .execute(&mut *transaction)
            .await
            .map_err(failed(WRITE))?;
        let is_there: bool =
            query_scalar("SELECT EXISTS (SELECT 1 FROM blobs WHERE tenant = $1 AND digest = $2)")
                .bind(tenant.as_str())
                .bind(&blob.digest().as_bytes()[..])
                .fetch_one(&mut *transaction)
                .await
                .map_err(failed(WRITE))?;
        if is_there {
            return Ok(());
        }
        let held: i64 = query_scalar("SELECT coalesce(sum(size), 0)::bigint FROM blobs WHERE tenant = $1")
            .bind(tenant.as_str())
            .fetch_one(&mut *transaction)
            .await
            .map_err(failed(WRITE))?;
        self.blob_limits.check_room(row::count(held)?, blob)?;
        query("INSERT INTO blobs (tenant, digest, mime, size, at, bytes) VALUES ($1, $2, $3, $4, $5, $6)")
            .bind(tenant.as_str())
            .bind(&blob.digest().as_bytes()[..])
            .bind(blob.mime())
            .bind(row::number(blob.bytes().len()))
            .bind(at.0)
            .bind(&blob.bytes()[..])
            .execute(&mut *transaction)
            .await
            .map_err(failed(WRITE))?;
        transaction.commit().await.map_err(failed(WRITE))
    }

    async fn blob(&self, tenant: &TenantId, digest: &Digest) -> Result<Option<Blob>, StoreError> {
        let found = query_as("SELECT mime, bytes FROM blobs WHERE tenant = $1 AND digest = $2")
            .bind(tenant.as_str())
            .bind(&digest.as_bytes()[..])
            .fetch_optional(&self.pool)
            .await
            .map_err(failed(READ))?;
        found.map(|found| row::blob(digest, found)).transpose()
    }

    async fn blob_card(&self, tenant: &TenantId, digest: &Digest) -> Result<Option<BlobCard>, StoreError> {
        let found = query_as("SELECT mime, size, at FROM blobs WHERE tenant = $1 AND digest = $2")
            .bind(tenant.as_str())
            .bind(&digest.as_bytes()[..])
            .fetch_optional(&self.pool)
            .await
            .map_err(failed(READ))?;
        found.map(row::blob_card).transpose()
    }
}
