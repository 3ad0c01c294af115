//! SQLite's side of the aggregates in `crate::sql`: the same names as in `postgres::dialect`.

use claw_core::store::{StoreError, Topic};
pub(super) use sqlx::sqlite::{SqliteConnection as Connection, SqliteRow as Row};

pub(super) use super::SqliteStore as Store;
use super::connections::Connections;
pub(super) use super::error::{column, failed, is_unreferenced};

/// An id as it is stored.
pub(super) type Id = Vec<u8>;

/// Adds the counts of a JSON object `$3` to the uses of tools; sums stop at the largest number.
pub(super) const COUNT_TOOL_USES: &str = "INSERT INTO tool_uses (tenant, agent, tool, uses)
     SELECT $1, $2, key, value FROM json_each($3) WHERE true
     ON CONFLICT (tenant, agent, tool)
     DO UPDATE SET uses = uses + min(excluded.uses, 9223372036854775807 - uses)";

/// Makes a `SELECT` lock its rows: nothing to add, since SQLite has one writer.
macro_rules! locking {
    ($select:literal) => {
        $select
    };
}

pub(super) use locking;

/// Sorts by the bytes of a column, as SQLite does.
macro_rules! by_bytes {
    ($column:literal) => {
        $column
    };
}

pub(super) use by_bytes;

/// An id as it is stored, from its bytes.
pub(super) fn stored_id(bytes: &[u8; 16]) -> Id {
    bytes.to_vec()
}

/// The bytes of a stored id.
pub(super) fn id_bytes(id: &Id) -> &[u8] {
    id
}

/// Free text as it is stored: SQLite keeps every character.
pub(super) fn free_text(text: &str) -> &str {
    text
}

/// Waits until no other transaction holds `lock`: at once, since SQLite has one writer.
pub(super) async fn hold(_: &mut Connection, _lock: &str) -> Result<(), StoreError> {
    Ok(())
}

impl Store {
    pub(super) fn reading(&self) -> &Connections {
        &self.readers
    }

    pub(super) fn writing(&self) -> &Connections {
        &self.writer
    }

    pub(super) fn ring(&self, topic: Topic) {
        self.bells.ring(topic);
    }
}
