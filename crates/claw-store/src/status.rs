//! The status of a store: its schema, its size and its content. Reading it changes nothing.

use std::collections::BTreeSet;

use claw_core::InstallationId;
use claw_core::port::UnixMillis;
use serde::Serialize;

use crate::migrate::{self, Step};

/// The status of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// `sqlite` or `postgres`.
    pub backend: &'static str,
    /// The version of SQLite or of the server.
    pub version: String,
    /// The migrations it has.
    pub schema: Schema,
    /// The installation that owns it; `None` if it was never opened by a Clawsmith that knows of
    /// installations.
    pub installation: Option<InstallationId>,
    /// The source of an unfinished copy into it: until that is finished, the store cannot be opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copying_from: Option<String>,
    /// SQLite: the journal of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<Journal>,
    /// PostgreSQL: the server's time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<UnixMillis>,
    /// The size in bytes, with indexes.
    pub bytes: u64,
    /// The tables, by name.
    pub tables: Vec<TableStatus>,
}

/// The migrations that a store has and lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Schema {
    /// The newest applied migration; `None` if there is none.
    pub applied: Option<i64>,
    /// The newest that this build knows.
    pub known: i64,
    /// The migrations that the next start applies.
    pub pending: Vec<Step>,
    /// The migrations that this build does not know: a newer Clawsmith applied them, and this one does not
    /// open the store.
    pub newer: Vec<i64>,
}

/// The journal that protects a SQLite file while it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Journal {
    /// The journal mode: `wal`, unless somebody changed it.
    pub mode: String,
    /// The size of the journal beside the file, in bytes.
    pub bytes: u64,
}

/// The status of one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableStatus {
    /// The table's name.
    pub name: String,
    /// The number of rows.
    pub rows: u64,
}

impl Schema {
    /// Computes the status from the versions that were applied.
    pub(crate) fn of(applied: &[i64]) -> Self {
        let applied: BTreeSet<i64> = applied.iter().copied().collect();
        let steps = migrate::steps();
        let newer = applied.iter().filter(|version| !steps.iter().any(|step| step.version == **version));
        Self {
            applied: applied.last().copied(),
            known: migrate::newest(),
            newer: newer.copied().collect(),
            pending: steps.into_iter().filter(|step| !applied.contains(&step.version)).collect(),
        }
    }
}
