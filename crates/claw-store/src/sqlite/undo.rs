//! The index of the undo journal.

use std::collections::BTreeSet;

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{NewUndo, StoreError, Undo, UndoFilter, UndoIndex};
use claw_core::tool::Digest;
use claw_core::{TenantId, UndoId};
use sqlx::sqlite::{Sqlite, SqliteConnection};
use sqlx::{QueryBuilder, query, query_as, query_scalar};

use super::SqliteStore;
use super::error::failed;
use crate::row;

const WRITE: &str = "could not write the undo journal";
const READ: &str = "could not read the undo journal";

/// The change, and when it was undone.
type Row = (String, Option<i64>);

#[async_trait]
impl UndoIndex for SqliteStore {
    async fn record_undo(&self, new: NewUndo) -> Result<(), StoreError> {
        let (before, after) = (new.kept_before(), new.after.as_ref());
        query(
            "INSERT INTO undo (tenant, id, session, call, run, place, change,
                               before_blob, before_bytes, after_blob, after_bytes, at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
             ON CONFLICT (tenant, id) DO NOTHING",
        )
        .bind(new.tenant.as_str())
        .bind(&new.id.as_bytes()[..])
        .bind(new.session.as_str())
        .bind(&new.call.as_bytes()[..])
        .bind(new.run.as_ref().map(|run| &run.as_bytes()[..]))
        .bind(row::place(&new.place))
        .bind(row::text(&new)?)
        .bind(before.map(|(blob, _)| blob.to_string()))
        .bind(before.map(|(_, bytes)| row::number(bytes)))
        .bind(after.map(|file| file.blob.to_string()))
        .bind(after.map(|file| row::number(file.bytes)))
        .bind(new.at.0)
        .execute(&self.writer)
        .await
        .map(drop)
        .map_err(failed(WRITE))
    }

    async fn withdraw_undo(&self, tenant: &TenantId, id: UndoId) -> Result<(), StoreError> {
        query("UPDATE undo SET withdrawn = 1 WHERE tenant = $1 AND id = $2")
            .bind(tenant.as_str())
            .bind(&id.as_bytes()[..])
            .execute(&self.writer)
            .await
            .map(drop)
            .map_err(failed(WRITE))
    }

    async fn undo(&self, tenant: &TenantId, id: UndoId) -> Result<Option<Undo>, StoreError> {
        let row: Option<Row> =
            query_as("SELECT change, undone FROM undo WHERE tenant = $1 AND id = $2 AND withdrawn = 0")
                .bind(tenant.as_str())
                .bind(&id.as_bytes()[..])
                .fetch_optional(&self.readers)
                .await
                .map_err(failed(READ))?;
        row.map(undo).transpose()
    }

    async fn undos(
        &self,
        tenant: &TenantId,
        filter: &UndoFilter,
        limit: usize,
    ) -> Result<Vec<Undo>, StoreError> {
        let UndoFilter { session, call, run, place, before } = filter;
        let mut asked: QueryBuilder<Sqlite> =
            QueryBuilder::new("SELECT change, undone FROM undo WHERE withdrawn = 0 AND tenant = ");
        asked.push_bind(tenant.as_str());
        if let Some(session) = session {
            asked.push(" AND session = ").push_bind(session.as_str());
        }
        if let Some(call) = call {
            asked.push(" AND call = ").push_bind(&call.as_bytes()[..]);
        }
        if let Some(run) = run {
            asked.push(" AND run = ").push_bind(&run.as_bytes()[..]);
        }
        if let Some(place) = place {
            asked.push(" AND place = ").push_bind(row::place(place));
        }
        if let Some((at, id)) = before {
            asked
                .push(" AND (at, id) < (")
                .push_bind(at.0)
                .push(", ")
                .push_bind(&id.as_bytes()[..])
                .push(")");
        }
        asked.push(" ORDER BY at DESC, id DESC LIMIT ").push_bind(row::number(limit));
        let rows: Vec<Row> = asked.build_query_as().fetch_all(&self.readers).await.map_err(failed(READ))?;
        rows.into_iter().map(undo).collect()
    }

    async fn mark_undone(&self, tenant: &TenantId, id: UndoId, at: UnixMillis) -> Result<bool, StoreError> {
        let marked = query(
            "UPDATE undo SET undone = $3
             WHERE tenant = $1 AND id = $2 AND undone IS NULL AND withdrawn = 0",
        )
        .bind(tenant.as_str())
        .bind(&id.as_bytes()[..])
        .bind(at.0)
        .execute(&self.writer)
        .await
        .map_err(failed(WRITE))?;
        Ok(marked.rows_affected() > 0)
    }

    async fn prune_undo(&self, before: UnixMillis, bytes: u64) -> Result<Vec<Digest>, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let last = too_much(&mut transaction, bytes).await?;
        let pruned: Vec<(Option<String>, Option<String>)> = query_as(
            "DELETE FROM undo WHERE withdrawn = 1 OR at < $1 OR (at, id) <= ($2, $3)
             RETURNING before_blob, after_blob",
        )
        .bind(before.0)
        .bind(last.as_ref().map(|(at, _)| *at))
        .bind(last.as_ref().map(|(_, id)| &id[..]))
        .fetch_all(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
        let named: BTreeSet<String> = pruned.into_iter().flat_map(<[_; 2]>::from).flatten().collect();
        let free: Vec<String> = query_scalar(UNNAMED)
            .bind(row::text(&named)?)
            .fetch_all(&mut *transaction)
            .await
            .map_err(failed(READ))?;
        transaction.commit().await.map_err(failed(WRITE))?;
        free.iter().map(|blob| row::word("a blob's digest", blob)).collect()
    }

    async fn unnamed_undo(&self, blobs: &[Digest]) -> Result<Vec<Digest>, StoreError> {
        let free: Vec<String> = query_scalar(UNNAMED)
            .bind(row::text(&blobs)?)
            .fetch_all(&self.readers)
            .await
            .map_err(failed(READ))?;
        free.iter().map(|blob| row::word("a blob's digest", blob)).collect()
    }
}

/// Selects the blobs of a list that no row references.
const UNNAMED: &str = "SELECT value FROM json_each($1)
     WHERE NOT EXISTS (SELECT 1 FROM undo WHERE before_blob = value)
       AND NOT EXISTS (SELECT 1 FROM undo WHERE after_blob = value)";

/// Returns the newest change that, with all newer ones, references more than `bytes`, each blob counted once.
async fn too_much(
    connection: &mut SqliteConnection,
    bytes: u64,
) -> Result<Option<(i64, Vec<u8>)>, StoreError> {
    query_as(
        "WITH named (blob, bytes, at, id) AS (
             SELECT before_blob, before_bytes, at, id FROM undo
             WHERE before_blob IS NOT NULL AND withdrawn = 0
             UNION ALL
             SELECT after_blob, after_bytes, at, id FROM undo
             WHERE after_blob IS NOT NULL AND withdrawn = 0
         ), ranked AS (
             SELECT bytes, at, id, row_number() OVER (PARTITION BY blob ORDER BY at DESC, id DESC) AS nth
             FROM named
         ), counted AS (
             SELECT at, id, total(bytes) OVER (ORDER BY at DESC, id DESC) AS so_far
             FROM ranked WHERE nth = 1
         )
         SELECT at, id FROM counted WHERE so_far > $1 ORDER BY at DESC, id DESC LIMIT 1",
    )
    .bind(row::number(bytes))
    .fetch_optional(connection)
    .await
    .map_err(failed(READ))
}

fn undo((change, undone): Row) -> Result<Undo, StoreError> {
    Ok(Undo { new: row::json("a change", &change)?, undone: undone.map(UnixMillis) })
}
