//! Converts errors of the database: says whether a retry may help, and never shows a value of a row.

use std::io::ErrorKind;

use claw_core::store::StoreError;
use sqlx::Error;
use sqlx::error::DatabaseError;

use crate::row;

/// Converts an error of the operation `what`.
pub(crate) fn failed(what: &'static str) -> impl Fn(Error) -> StoreError {
    move |error| {
        let (why, transient) = match error {
            Error::Database(error) => said(&*error),
            Error::Io(error) if error.kind() == ErrorKind::TimedOut => {
                (format!("{error}; check that it is running and reachable"), true)
            }
            Error::Io(error) => (format!("the connection was lost ({})", error.kind()), true),
            Error::Protocol(_) | Error::WorkerCrashed | Error::PoolClosed => {
                ("the connection was lost".to_owned(), true)
            }
            Error::PoolTimedOut => (
                "no connection became free in time; check that the server is running and not overloaded"
                    .to_owned(),
                true,
            ),
            Error::Tls(error) => (format!("no encrypted connection could be established: {error}"), false),
            Error::ColumnDecode { index, .. } => {
                return row::damaged("a row", format!("{index} cannot be read"));
            }
            Error::ColumnNotFound(column) => return row::damaged("a row", format!("it has no {column}")),
            _ => ("the database driver rejected the request".to_owned(), false),
        };
        StoreError::Database { what, why, transient }
    }
}

/// Returns a permanent error caused by the caller.
pub(crate) fn refused(what: &'static str, why: &str) -> StoreError {
    StoreError::Database { what, why: why.to_owned(), transient: false }
}

/// Returns whether a row was rejected because this unique index already has its key.
pub(crate) fn is_taken(error: &Error, index: &str) -> bool {
    let Error::Database(error) = error else { return false };
    error.is_unique_violation() && error.constraint() == Some(index)
}

/// Returns whether a row references another one that does not exist.
pub(super) fn is_unreferenced(error: &Error) -> bool {
    error.as_database_error().is_some_and(DatabaseError::is_foreign_key_violation)
}

/// Returns the server's message, and whether the error is transient.
fn said(error: &dyn DatabaseError) -> (String, bool) {
    let code = error.code().unwrap_or_default();
    let why = match code.get(..2).unwrap_or_default() {
        // These name what is in the row.
        "22" => format!("a value cannot be stored (code {code})"),
        "23" => {
            format!("the constraint `{}` is violated (code {code})", error.constraint().unwrap_or("not null"))
        }
        _ => format!("{} (code {code})", error.message()),
    };
    (why, is_transient(&code))
}

fn is_transient(code: &str) -> bool {
    // A connection lost, a transaction to be repeated, a resource used up: memory, disk, connections.
    let class = matches!(code.get(..2), Some("08" | "40" | "53"));
    class
        || matches!(
            code,
            "25006"        // read-only: the server was demoted
                | "25P03"  // idle in a transaction for too long
                | "55P03"  // a lock was not to be had
                | "57014"  // the statement took too long
                | "57P01"  // the server shuts down
                | "57P02"  // it crashed
                | "57P03"  // it starts
                | "57P05" // idle for too long
        )
}

#[cfg(test)]
mod tests;
