//! What Clawsmith remembers: SQLite embedded, PostgreSQL for many nodes, one behaviour.
//!
//! `docs/store.md` is the promise. Each aggregate is one file per backend, one pair of migrations and one
//! conformance function; nothing above the traits in `claw_core::store` knows which backend runs.

pub mod chain;
mod migrate;
pub mod postgres;
mod row;
pub mod sqlite;

pub use postgres::PostgresStore;
pub use sqlite::SqliteStore;
