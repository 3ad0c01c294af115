//! The promise of docs/store.md, on every backend.

mod postgres;
mod sqlite;
