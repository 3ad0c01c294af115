//! This crate over the real machine: its stores, its files, and the attacks on them.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails loudly")]

mod attack;
mod files;
mod skills;
mod store_files;
mod stores;
mod trees;
