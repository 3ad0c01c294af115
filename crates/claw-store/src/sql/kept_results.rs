//! The index of kept results.

use async_trait::async_trait;
use claw_core::ArtifactId;
use claw_core::port::{Artifact, Owner, UnixMillis};
use claw_core::store::{ArtifactIndex, KeptArtifact, StoreError};
use sqlx::query;

use super::dialect::{Row, Store, column, failed, id_bytes, stored_id};
use crate::row;

const WRITE: &str = "could not write the index of kept results";
const READ: &str = "could not read the index of kept results";

#[async_trait]
impl ArtifactIndex for Store {
    async fn put_artifact(&self, kept: KeptArtifact) -> Result<(), StoreError> {
        query(
            "INSERT INTO artifacts (tenant, id, session, call, bytes, lines, at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (tenant, id) DO NOTHING",
        )
        .bind(kept.owner.tenant.as_str())
        .bind(stored_id(kept.artifact.id.as_bytes()))
        .bind(kept.owner.session.as_str())
        .bind(stored_id(kept.artifact.call.as_bytes()))
        .bind(row::number(kept.artifact.bytes))
        .bind(row::number(kept.artifact.lines))
        .bind(kept.at.0)
        .execute(self.writing())
        .await
        .map(drop)
        .map_err(failed(WRITE))
    }

    async fn artifact(&self, owner: &Owner, id: ArtifactId) -> Result<Option<KeptArtifact>, StoreError> {
        let found = query("SELECT * FROM artifacts WHERE tenant = $1 AND session = $2 AND id = $3")
            .bind(owner.tenant.as_str())
            .bind(owner.session.as_str())
            .bind(stored_id(id.as_bytes()))
            .fetch_optional(self.reading())
            .await
            .map_err(failed(READ))?;
        found.as_ref().map(kept).transpose()
    }

    async fn artifacts(&self, owner: &Owner, limit: usize) -> Result<Vec<KeptArtifact>, StoreError> {
        let found = query(
            "SELECT * FROM artifacts WHERE tenant = $1 AND session = $2 ORDER BY at DESC, id DESC LIMIT $3",
        )
        .bind(owner.tenant.as_str())
        .bind(owner.session.as_str())
        .bind(row::number(limit))
        .fetch_all(self.reading())
        .await
        .map_err(failed(READ))?;
        found.iter().map(kept).collect()
    }

    async fn prune_artifacts(&self, before: UnixMillis, bytes: u64) -> Result<Vec<KeptArtifact>, StoreError> {
        let pruned = query(
            "DELETE FROM artifacts WHERE (tenant, id) IN (
                 SELECT tenant, id FROM (
                     SELECT tenant, id, at,
                            sum(bytes) OVER (PARTITION BY tenant ORDER BY at DESC, id DESC) AS so_far
                     FROM artifacts) AS counted
                 WHERE at < $1 OR so_far > $2)
             RETURNING *",
        )
        .bind(before.0)
        .bind(row::number(bytes))
        .fetch_all(self.writing())
        .await
        .map_err(failed(WRITE))?;
        let mut pruned = pruned.iter().map(kept).collect::<Result<Vec<_>, _>>()?;
        pruned.sort_by_key(|kept| (kept.at, kept.artifact.id));
        Ok(pruned)
    }
}

fn kept(found: &Row) -> Result<KeptArtifact, StoreError> {
    let owner = Owner {
        tenant: row::word("a kept result's tenant", column(found, "tenant")?)?,
        session: row::word("a kept result's session", column(found, "session")?)?,
    };
    let artifact = Artifact {
        id: row::id("a kept result's id", id_bytes(&column(found, "id")?))?,
        call: row::id("a kept result's call", id_bytes(&column(found, "call")?))?,
        bytes: row::count(column(found, "bytes")?)?,
        lines: row::count(column(found, "lines")?)?,
    };
    Ok(KeptArtifact { owner, artifact, at: UnixMillis(column(found, "at")?) })
}
