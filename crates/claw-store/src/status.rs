//! How a store stands: its schema, its size and what it holds. Looking changes nothing.

use std::collections::BTreeSet;

use claw_core::InstallationId;
use claw_core::port::UnixMillis;
use serde::Serialize;

use crate::migrate::{self, Step};

/// How a store stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// `sqlite` or `postgres`.
    pub backend: &'static str,
    /// The version of SQLite or of the server.
    pub version: String,
    /// Which steps of the schema it has.
    pub schema: Schema,
    /// Whose it is; `None` where it was never opened by a Clawsmith that knows of installations.
    pub installation: Option<InstallationId>,
    /// Where an unfinished copy into it reads from: until it is finished, the store is not opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copying_from: Option<String>,
    /// SQLite: how the file is kept safe while it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<Journal>,
    /// PostgreSQL: what time it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<UnixMillis>,
    /// How many bytes it takes, indexes too.
    pub bytes: u64,
    /// What it holds, by name.
    pub tables: Vec<TableStatus>,
}

/// Which steps of the schema a store has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Schema {
    /// The newest that was applied; `None` where none was.
    pub applied: Option<i64>,
    /// The newest that this build knows.
    pub known: i64,
    /// Those that the next start applies.
    pub pending: Vec<Step>,
    /// Those that this build does not know: a newer Clawsmith made them, and this one does not open the store.
    pub newer: Vec<i64>,
}

/// How a SQLite file is kept safe while it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Journal {
    /// `wal`, unless somebody changed it.
    pub mode: String,
    /// How many bytes wait beside the file.
    pub bytes: u64,
}

/// One table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableStatus {
    /// Its name.
    pub name: String,
    /// How many rows it has.
    pub rows: u64,
}

impl Schema {
    /// What follows from the versions that were applied.
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
