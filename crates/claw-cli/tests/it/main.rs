//! The real binary, in an empty home.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails loudly")]

mod agent;
mod approvals;
mod bad_input;
mod chat;
mod config;
mod credentials;
mod db;
mod db_copy;
mod docker;
mod doctor;
mod embedding;
mod exec;
mod files;
mod harness;
mod help;
mod ledger;
mod policy;
mod routing;
mod rules;
mod sandbox;
mod scrub;
mod secrets;
mod shell;
mod terminal;
mod tools;
mod tour;
mod undo;
