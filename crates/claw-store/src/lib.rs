//! What Clawsmith remembers: SQLite embedded, PostgreSQL for many nodes, one behaviour.
//!
//! `docs/store.md` is the promise. Each aggregate is one file per backend, one pair of migrations and one
//! conformance function; nothing above the traits in `claw_core::store` knows which backend runs.

pub mod backup;
pub mod chain;
pub mod copy;
mod migrate;
mod place;
pub mod postgres;
pub mod progress;
mod row;
pub mod sqlite;

use std::sync::Arc;

use claw_core::NodeId;
use claw_core::store::{Store, StoreError};
pub use postgres::PostgresStore;
pub use sqlite::SqliteStore;

use crate::place::Place;

/// Opens the store that `url` names for this node: `sqlite:PATH`, `sqlite::memory:` or
/// `postgres://user@host/name`. What is missing of it is made, and its schema brought up to date.
pub async fn open(url: &str, node: NodeId) -> Result<Arc<dyn Store>, StoreError> {
    Ok(match Place::of(url)? {
        Place::Memory => Arc::new(SqliteStore::memory(node).await?),
        Place::File(path) => Arc::new(SqliteStore::open(path, node).await?),
        Place::Postgres(url) => Arc::new(PostgresStore::connect(url, node).await?),
    })
}
