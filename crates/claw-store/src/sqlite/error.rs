//! Converts errors of SQLite into messages that say what to do.

use std::io;
use std::path::Path;

use claw_core::store::StoreError;
use sqlx::sqlite::{Sqlite, SqliteRow};
use sqlx::{Decode, Row as _, Type};

// The primary result codes that we tell apart: <https://sqlite.org/rescode.html>.
const BUSY: u32 = 5;
const LOCKED: u32 = 6;
const READONLY: u32 = 8;
const IOERR: u32 = 10;
const CORRUPT: u32 = 11;
const FULL: u32 = 13;
const CANTOPEN: u32 = 14;
const NOTADB: u32 = 26;

/// Converts an error of the operation `what`.
pub(crate) fn failed(what: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |error| match error {
        sqlx::Error::Io(source) => StoreError::Io { what: what.to_owned(), source },
        sqlx::Error::PoolTimedOut => {
            let why = "it is busy with earlier requests; try again later".to_owned();
            StoreError::Database { what, why, transient: true }
        }
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => damaged(format!("{what}: {error}")),
        error => by_code(what, &error),
    }
}

/// Adds the path of the file to an error about it.
pub(crate) fn at(path: &Path, error: StoreError) -> StoreError {
    let path = path.display();
    match error {
        StoreError::Damaged { why, .. } => StoreError::Damaged { what: format!("`{path}`"), why },
        StoreError::Io { what, source } => StoreError::Io { what: format!("{what} in `{path}`"), source },
        StoreError::Database { what, why, transient } => {
            StoreError::Database { what, why: format!("`{path}`: {why}"), transient }
        }
        other => other,
    }
}

/// Returns whether another program holds a needed lock.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(code(error), Some(BUSY | LOCKED))
}

/// Returns whether a row was rejected because a unique index already has its key.
pub(crate) fn is_taken(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}

/// Returns whether a row references another one that does not exist.
pub(super) fn is_unreferenced(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_foreign_key_violation)
}

/// Returns a column of a row.
pub(crate) fn column<'r, T>(row: &'r SqliteRow, name: &'static str) -> Result<T, StoreError>
where
    T: Decode<'r, Sqlite> + Type<Sqlite>,
{
    row.try_get(name).map_err(failed("could not read a row"))
}

fn by_code(what: &'static str, error: &sqlx::Error) -> StoreError {
    let (why, transient) = match code(error) {
        Some(BUSY | LOCKED) => ("another program is writing to the file; try again".to_owned(), true),
        Some(FULL) => ("the disk is full; free some space".to_owned(), true),
        Some(READONLY) => ("the file or its directory is read-only; make it writable".to_owned(), false),
        Some(CORRUPT) => return damaged("pages of the file are corrupt; restore a backup"),
        Some(NOTADB) => return damaged("the file is not a SQLite database; name another one"),
        Some(IOERR | CANTOPEN) => {
            return StoreError::Io { what: what.to_owned(), source: io::Error::other(error.to_string()) };
        }
        _ => (error.to_string(), false),
    };
    StoreError::Database { what, why, transient }
}

fn damaged(why: impl Into<String>) -> StoreError {
    StoreError::Damaged { what: "the SQLite file".to_owned(), why: why.into() }
}

/// Returns the primary result code, without the extended code in the upper bytes.
fn code(error: &sqlx::Error) -> Option<u32> {
    let code: u32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}
