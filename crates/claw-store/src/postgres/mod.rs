//! One PostgreSQL database, for many nodes.

/// A store in a PostgreSQL database.
#[derive(Debug)]
pub struct PostgresStore;
