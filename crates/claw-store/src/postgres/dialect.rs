//! PostgreSQL's side of the aggregates in `crate::sql`: the same names as in `sqlite::dialect`.

use claw_core::store::{StoreError, Topic};
pub(super) use sqlx::postgres::PgRow as Row;
use sqlx::query;
pub(super) use uuid::Uuid as Id;

pub(super) use super::PostgresStore as Store;
use super::connections::{Connections, Link, Transaction};
pub(super) use super::failure::{failed, is_unreferenced};
pub(super) use super::{get as column, uuid as stored_id, without_nul as free_text};

/// A connection in a transaction.
pub(super) type Connection = Link<'static>;

/// Adds the counts of a JSON object `$3` to the uses of tools; sums stop at the largest number. Rows are always taken
/// in one order, so that two writers cannot deadlock.
pub(super) const COUNT_TOOL_USES: &str = "INSERT INTO tool_uses AS known (tenant, agent, tool, uses)
     SELECT $1, $2, key, value::bigint FROM json_each_text($3::json) ORDER BY key COLLATE \"C\"
     ON CONFLICT (tenant, agent, tool)
     DO UPDATE SET uses = known.uses + least(excluded.uses, 9223372036854775807 - known.uses)";

/// Makes a `SELECT` lock its rows until the transaction ends.
macro_rules! locking {
    ($select:literal) => {
        concat!($select, " FOR UPDATE")
    };
}

pub(super) use locking;

/// Sorts by the bytes of a column, regardless of the database's collation.
macro_rules! by_bytes {
    ($column:literal) => {
        concat!($column, " COLLATE \"C\"")
    };
}

pub(super) use by_bytes;

/// The bytes of a stored id.
pub(super) fn id_bytes(id: &Id) -> &[u8] {
    id.as_bytes()
}

/// Waits until no other transaction holds `lock`, and holds it until this one ends.
pub(super) async fn hold(connection: &mut Connection, lock: &str) -> Result<(), StoreError> {
    query("SELECT pg_advisory_xact_lock(hashtextextended('clawsmith: ' || $1, 0))")
        .bind(lock)
        .execute(connection)
        .await
        .map(drop)
        .map_err(failed("could not wait for other writers"))
}

impl Store {
    pub(super) fn reading(&self) -> &Connections {
        &self.pool
    }

    pub(super) fn writing(&self) -> &Connections {
        &self.pool
    }

    pub(super) fn ring(&self, topic: Topic) {
        self.listener.bells.ring(topic);
    }

    pub(super) async fn write(&self, what: &'static str) -> Result<Transaction, StoreError> {
        self.begin(what).await
    }
}
