//! The built-in tools of Clawsmith: one folder per group, one file per tool.
//!
//! A tool never opens a file, a socket or a process, reads no clock and no environment: it asks a port of its
//! [`Call`](claw_core::tool::Call). `clippy.toml` in this crate bans the ways around that.
//!
//! - [`builtin`] lists the tools of this build. Listing builds nothing.
//! - [`catalogue`] lists every tool, built or planned, [`absent`] those that this build lacks.
//!
//! Adding a tool: its file, its `mod` line, one line in its group's `TOOLS`; take it out of `absent`.

mod agents;
mod ai;
mod automation;
mod builtin;
mod catalogue;
pub mod custom;
mod format;
mod fs;
mod knowledge;
mod memory;
mod runtime;
mod sessions;
mod skills;
mod tokens;
mod tools;
mod web;
mod workspace;

pub use builtin::{Builtin, builtin};
pub use catalogue::{absent, catalogue, sections};
pub use tokens::{TOKENS, tokens};

#[cfg(test)]
mod fixture;
