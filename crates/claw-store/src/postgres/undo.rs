//! The index of the undo journal.

use std::collections::BTreeSet;

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{NewUndo, StoreError, Undo, UndoFilter, UndoIndex};
use claw_core::tool::Digest;
use claw_core::{TenantId, UndoId};
use sqlx::postgres::Postgres;
use sqlx::types::Json;
use sqlx::{QueryBuilder, query, query_as, query_scalar};
use uuid::Uuid;

use super::connections::Link;
use super::failure::failed;
use super::{PostgresStore, uuid};
use crate::row;

const WRITE: &str = "could not write the undo journal";
const READ: &str = "could not read the undo journal";

/// The change, and when it was undone.
type Row = (Json<NewUndo>, Option<i64>);

#[async_trait]
impl UndoIndex for PostgresStore {
    async fn record_undo(&self, new: NewUndo) -> Result<(), StoreError> {
        let (before, after) = (new.kept_before(), new.after.as_ref());
        query(
            "INSERT INTO undo (tenant, id, session, call, run, place, change,
                               before_blob, before_bytes, after_blob, after_bytes, at)
             VALUES ($1, $2, $3, $4, $5, $6, $7::json, $8, $9, $10, $11, $12)
             ON CONFLICT (tenant, id) DO NOTHING",
        )
        .bind(new.tenant.as_str())
        .bind(uuid(new.id.as_bytes()))
        .bind(new.session.as_str())
        .bind(uuid(new.call.as_bytes()))
        .bind(new.run.as_ref().map(|run| uuid(run.as_bytes())))
        .bind(row::place(&new.place))
        .bind(row::text(&new)?)
        .bind(before.map(|(blob, _)| blob.to_string()))
        .bind(before.map(|(_, bytes)| row::number(bytes)))
        .bind(after.map(|file| file.blob.to_string()))
        .bind(after.map(|file| row::number(file.bytes)))
        .bind(new.at.0)
        .execute(&self.pool)
        .await
        .map(drop)
        .map_err(failed(WRITE))
    }

    async fn withdraw_undo(&self, tenant: &TenantId, id: UndoId) -> Result<(), StoreError> {
        query("UPDATE undo SET withdrawn = TRUE WHERE tenant = $1 AND id = $2")
            .bind(tenant.as_str())
            .bind(uuid(id.as_bytes()))
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(failed(WRITE))
    }

    async fn undo(&self, tenant: &TenantId, id: UndoId) -> Result<Option<Undo>, StoreError> {
        let row: Option<Row> =
            query_as("SELECT change, undone FROM undo WHERE tenant = $1 AND id = $2 AND NOT withdrawn")
                .bind(tenant.as_str())
                .bind(uuid(id.as_bytes()))
                .fetch_optional(&self.pool)
                .await
                .map_err(failed(READ))?;
        Ok(row.map(undo))
    }

    async fn undos(
        &self,
        tenant: &TenantId,
        filter: &UndoFilter,
        limit: usize,
    ) -> Result<Vec<Undo>, StoreError> {
        let UndoFilter { session, call, run, place, before } = filter;
        let mut asked: QueryBuilder<Postgres> =
            QueryBuilder::new("SELECT change, undone FROM undo WHERE NOT withdrawn AND tenant = ");
        asked.push_bind(tenant.as_str());
        if let Some(session) = session {
            asked.push(" AND session = ").push_bind(session.as_str());
        }
        if let Some(call) = call {
            asked.push(" AND call = ").push_bind(uuid(call.as_bytes()));
        }
        if let Some(run) = run {
            asked.push(" AND run = ").push_bind(uuid(run.as_bytes()));
        }
        if let Some(place) = place {
            asked.push(" AND place = ").push_bind(row::place(place));
        }
        if let Some((at, id)) = before {
            asked
                .push(" AND (at, id) < (")
                .push_bind(at.0)
                .push(", ")
                .push_bind(uuid(id.as_bytes()))
                .push(")");
        }
        asked.push(" ORDER BY at DESC, id DESC LIMIT ").push_bind(row::number(limit));
        let rows: Vec<Row> = asked.build_query_as().fetch_all(&self.pool).await.map_err(failed(READ))?;
        Ok(rows.into_iter().map(undo).collect())
    }

    async fn mark_undone(&self, tenant: &TenantId, id: UndoId, at: UnixMillis) -> Result<bool, StoreError> {
        let marked = query(
            "UPDATE undo SET undone = $3
             WHERE tenant = $1 AND id = $2 AND undone IS NULL AND NOT withdrawn",
        )
        .bind(tenant.as_str())
        .bind(uuid(id.as_bytes()))
        .bind(at.0)
        .execute(&self.pool)
        .await
        .map_err(failed(WRITE))?;
        Ok(marked.rows_affected() > 0)
    }

    async fn prune_undo(&self, before: UnixMillis, bytes: u64) -> Result<Vec<Digest>, StoreError> {
        let mut transaction = self.begin(WRITE).await?;
        // One at a time, so that two neither wait for each other's rows nor see blobs that the other gives up.
        query("SELECT pg_advisory_xact_lock(hashtextextended('clawsmith: prune the undo journal', 0))")
            .execute(&mut *transaction)
            .await
            .map_err(failed(WRITE))?;
        let last = too_much(&mut transaction, bytes).await?;
        let pruned: Vec<(Option<String>, Option<String>)> = query_as(
            "DELETE FROM undo WHERE withdrawn OR at < $1 OR (at, id) <= ($2, $3)
             RETURNING before_blob, after_blob",
        )
        .bind(before.0)
        .bind(last.as_ref().map(|(at, _)| *at))
        .bind(last.as_ref().map(|(_, id)| *id))
        .fetch_all(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
        let named: BTreeSet<String> = pruned.into_iter().flat_map(<[_; 2]>::from).flatten().collect();
        let named: Vec<String> = named.into_iter().collect();
        let free: Vec<String> =
            query_scalar(UNNAMED).bind(named).fetch_all(&mut *transaction).await.map_err(failed(READ))?;
        transaction.commit().await.map_err(failed(WRITE))?;
        free.iter().map(|blob| row::word("a blob's digest", blob)).collect()
    }

    async fn unnamed_undo(&self, blobs: &[Digest]) -> Result<Vec<Digest>, StoreError> {
        let blobs: Vec<String> = blobs.iter().map(Digest::to_string).collect();
        let free: Vec<String> =
            query_scalar(UNNAMED).bind(blobs).fetch_all(&self.pool).await.map_err(failed(READ))?;
        free.iter().map(|blob| row::word("a blob's digest", blob)).collect()
    }
}

/// Selects the blobs of a list that no row references.
const UNNAMED: &str = "SELECT blob FROM unnest($1::text[]) AS named (blob)
     WHERE NOT EXISTS (SELECT 1 FROM undo WHERE before_blob = blob)
       AND NOT EXISTS (SELECT 1 FROM undo WHERE after_blob = blob)";

/// Returns the newest change that, with all newer ones, references more than `bytes`, each blob counted once.
async fn too_much(connection: &mut Link<'_>, bytes: u64) -> Result<Option<(i64, Uuid)>, StoreError> {
    query_as(
        "WITH named (blob, bytes, at, id) AS (
             SELECT before_blob, before_bytes, at, id FROM undo
             WHERE before_blob IS NOT NULL AND NOT withdrawn
             UNION ALL
             SELECT after_blob, after_bytes, at, id FROM undo
             WHERE after_blob IS NOT NULL AND NOT withdrawn
         ), ranked AS (
             SELECT bytes, at, id, row_number() OVER (PARTITION BY blob ORDER BY at DESC, id DESC) AS nth
             FROM named
         ), counted AS (
             SELECT at, id, sum(bytes) OVER (ORDER BY at DESC, id DESC) AS so_far
             FROM ranked WHERE nth = 1
         )
         SELECT at, id FROM counted WHERE so_far > $1 ORDER BY at DESC, id DESC LIMIT 1",
    )
    .bind(row::number(bytes))
    .fetch_optional(connection)
    .await
    .map_err(failed(READ))
}

fn undo((Json(new), undone): Row) -> Undo {
    Undo { new, undone: undone.map(UnixMillis) }
}
