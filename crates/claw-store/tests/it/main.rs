//! The promise of docs/store.md, on every backend.

#![expect(clippy::unwrap_used, reason = "tests, and what helps them")]

mod faults;
mod postgres;
mod sqlite;
