//! The subcommands, one file each.

pub(crate) mod agent;
pub(crate) mod api_keys;
pub(crate) mod approvals;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod credentials;
pub(crate) mod db;
pub(crate) mod doctor;
pub(crate) mod ledger;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod onboard;
pub(crate) mod policy;
mod prompt;
pub(crate) mod runs;
pub(crate) mod sandbox;
pub(crate) mod scrub;
pub(crate) mod secrets;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod skills;
pub(crate) mod tools;
pub(crate) mod tour;
pub(crate) mod undo;
pub(crate) mod users;
pub(crate) mod web;
