//! The persistent state of Clawsmith: SQLite embedded, PostgreSQL for many nodes, one behaviour.
//!
//! `docs/store.md` is the promise. Each aggregate has one pair of migrations and one conformance function. Simple
//! aggregates are one file in `sql/`, which both backends compile over their own `dialect`; those whose locking or
//! search differs have a file in each backend. Nothing above the traits in `claw_core::store` knows which backend runs.

#![expect(clippy::duplicate_mod, reason = "the files in `sql/` are compiled once for each backend")]

mod backend;
pub mod backup;
pub mod copy;
mod document_rules;
pub mod encryption;
mod graph;
mod installation;
mod ledger;
mod live_streams;
mod location;
mod mcp;
mod migrate;
mod options;
pub mod postgres;
pub mod progress;
mod query_words;
mod row;
mod runs;
mod session_owners;
mod skills;
pub mod sqlite;
mod status;
mod stem;
mod usage;
pub mod vault;
pub mod vectors;
mod words;
mod workspace_file_rules;

use std::sync::Arc;

use claw_core::NodeId;
use claw_core::store::StoreError;

pub use backend::Backend;
pub use installation::Installation;
pub use ledger::chain;
pub use location::{PostgresUrl, StoreLocation};
pub use migrate::Step;
pub use options::StoreOptions;
pub use postgres::PostgresStore;
pub use sqlite::SqliteStore;
pub use status::{Journal, Schema, Status, TableStatus};
pub use vault::Vault;

/// Opens the store at `place` for this node, creating it if it does not exist and migrating its schema.
pub async fn open(
    place: &StoreLocation,
    node: NodeId,
    options: &StoreOptions,
) -> Result<Arc<dyn Backend>, StoreError> {
    Ok(match place {
        StoreLocation::Memory => Arc::new(SqliteStore::memory(node).await?),
        StoreLocation::File(path) => Arc::new(SqliteStore::open_with(path, node, options).await?),
        StoreLocation::Postgres(url) => {
            Arc::new(PostgresStore::connect_with(url.expose(), node, options).await?)
        }
    })
}

/// Creates the store at `place` if it is missing and migrates its schema, as [`open`] does; returns the
/// applied migrations.
pub async fn migrate(place: &StoreLocation, options: &StoreOptions) -> Result<Vec<Step>, StoreError> {
    match place {
        StoreLocation::Memory => Ok(Vec::new()),
        StoreLocation::File(path) => sqlite::migrate(path, options).await,
        StoreLocation::Postgres(url) => postgres::migrate(url.expose(), options).await,
    }
}

/// Returns the status of the store at `place`; `None` if there is none yet. Changes nothing.
pub async fn status(place: &StoreLocation) -> Result<Option<Status>, StoreError> {
    match place {
        StoreLocation::Memory => Ok(None),
        StoreLocation::File(path) => sqlite::status(path).await,
        StoreLocation::Postgres(url) => postgres::status(url.expose()).await,
    }
}

/// Returns whether there is a store at `place` yet. Changes nothing.
pub async fn exists(place: &StoreLocation) -> Result<bool, StoreError> {
    match place {
        StoreLocation::Memory => Ok(false),
        StoreLocation::File(path) => Ok(path.exists()),
        StoreLocation::Postgres(url) => postgres::exists(url.expose()).await,
    }
}
