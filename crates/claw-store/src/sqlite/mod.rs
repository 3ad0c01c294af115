//! One SQLite file, or memory.

/// A store in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore;
