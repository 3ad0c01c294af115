//! Migrations, paired for both dialects, applied at start under a lock.
//!
//! An applied migration is never edited: its checksum is stored, and a store whose checksums differ from
//! ours, or that has newer migrations, is not opened.

use claw_core::store::StoreError;
use serde::Serialize;
use sqlx::SqlSafeStr as _;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};

/// A migration, as shown to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The migration's number.
    pub version: i64,
    /// The migration's name.
    pub name: &'static str,
}

/// A migration in both dialects.
struct Pair {
    version: i64,
    name: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

macro_rules! pair {
    ($version:literal, $name:literal, $file:literal) => {
        Pair {
            version: $version,
            name: $name,
            sqlite: include_str!(concat!("../migrations/sqlite/", $file)),
            postgres: include_str!(concat!("../migrations/postgres/", $file)),
        }
    };
}

const PAIRS: &[Pair] = &[
    pair!(1, "calls", "0001_calls.sql"),
    pair!(2, "queue", "0002_queue.sql"),
    pair!(3, "sessions", "0003_sessions.sql"),
    pair!(4, "access", "0004_access.sql"),
    pair!(5, "agents", "0005_agents.sql"),
    pair!(6, "documents", "0006_documents.sql"),
    pair!(7, "secrets", "0007_secrets.sql"),
    pair!(8, "usage", "0008_usage.sql"),
    pair!(9, "rules", "0009_rules.sql"),
    pair!(10, "processes", "0010_processes.sql"),
    pair!(11, "files", "0011_files.sql"),
    pair!(12, "installation", "0012_installation.sql"),
    pair!(13, "copy", "0013_copy.sql"),
    pair!(14, "told", "0014_told.sql"),
    pair!(15, "seen", "0015_seen.sql"),
    pair!(18, "summaries", "0018_summaries.sql"),
    pair!(19, "conversations", "0019_conversations.sql"),
    pair!(20, "workspace_files", "0020_workspace_files.sql"),
    pair!(21, "search", "0021_search.sql"),
    pair!(22, "runs", "0022_runs.sql"),
    pair!(23, "tenant_rules", "0023_tenant_rules.sql"),
    pair!(24, "blobs", "0024_blobs.sql"),
    pair!(25, "mcp", "0025_mcp.sql"),
    pair!(26, "custom_tools", "0026_custom_tools.sql"),
    pair!(27, "key_limits", "0027_key_limits.sql"),
    pair!(30, "skills", "0030_skills.sql"),
    pair!(31, "session_titles", "0031_session_titles.sql"),
    pair!(32, "memory", "0032_memory.sql"),
    pair!(33, "pgvector", "0033_pgvector.sql"),
    pair!(34, "graph", "0034_graph.sql"),
    pair!(37, "approval_reasons", "0037_approval_reasons.sql"),
    pair!(39, "feed", "0039_feed.sql"),
    pair!(40, "approval_inputs", "0040_approval_inputs.sql"),
    pair!(42, "provenance", "0042_provenance.sql"),
    pair!(43, "extracting_model", "0043_extracting_model.sql"),
    pair!(47, "ledger_pages", "0047_ledger_pages.sql"),
    pair!(50, "stems", "0050_stems.sql"),
    pair!(51, "sealed_marks", "0051_sealed_marks.sql"),
];

/// Every step, in order.
pub(crate) fn steps() -> Vec<Step> {
    PAIRS.iter().map(|pair| Step { version: pair.version, name: pair.name }).collect()
}

/// The number of the newest step.
pub(crate) fn newest() -> i64 {
    PAIRS.iter().map(|pair| pair.version).max().unwrap_or(0)
}

/// Returns the migrations applied between two states.
pub(crate) fn applied(before: &[i64], after: &[i64]) -> Vec<Step> {
    let is_new = |step: &Step| after.contains(&step.version) && !before.contains(&step.version);
    steps().into_iter().filter(is_new).collect()
}

/// The schema for SQLite.
pub(crate) fn sqlite() -> Migrator {
    migrator(|pair| pair.sqlite)
}

/// The schema for PostgreSQL.
pub(crate) fn postgres() -> Migrator {
    migrator(|pair| pair.postgres)
}

fn migrator(sql: fn(&Pair) -> &'static str) -> Migrator {
    let migration = |pair: &Pair| {
        let sql = sql(pair).into_sql_str();
        Migration::new(pair.version, pair.name.into(), MigrationType::Simple, sql, false)
    };
    Migrator::with_migrations(PAIRS.iter().map(migration).collect())
}

/// Converts the error of a failed migration; `other` converts the driver's errors.
pub(crate) fn failed(error: MigrateError, other: impl FnOnce(sqlx::Error) -> StoreError) -> StoreError {
    let newest = newest();
    let why = match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => return other(error),
        MigrateError::VersionMissing(version) if version > newest => format!(
            "it was created by a newer Clawsmith (its schema is {version}, the newest known here {newest}); \
             update this one"
        ),
        MigrateError::VersionMismatch(version) => format!(
            "migration {version} was applied with other contents; open it with the Clawsmith that made it"
        ),
        error => error.to_string(),
    };
    StoreError::Database { what: "could not open the store", why, transient: false }
}

#[cfg(test)]
mod tests;
