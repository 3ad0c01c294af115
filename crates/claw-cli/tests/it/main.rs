//! The real binary, in an empty home.

mod bad_input;
mod config;
mod harness;
mod help;
mod ledger;
mod policy;
mod scrub;
mod tools;
mod tour;
