//! The promise of docs/store.md, on every backend.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests, and what helps them")]

mod backup;
mod copy;
mod faults;
mod filled;
mod grants;
mod kill;
mod kill_memory;
mod ledger_pages;
mod operator;
mod pgvector;
mod postgres;
mod recall;
mod rotation;
mod sqlite;
mod together;
mod vault;
