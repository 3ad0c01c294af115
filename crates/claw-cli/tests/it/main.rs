//! The real binary, in an empty home.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails loudly")]

mod agent;
mod api;
mod approvals;
mod background;
mod bad_input;
mod builds;
mod chat;
mod client_tools;
mod config;
mod connect;
mod connections;
mod credentialed_exec;
mod credentials;
mod custom_tools;
mod db;
mod db_copy;
mod deploy;
mod docker;
mod docs;
mod doctor;
mod embedding;
mod endpoints;
mod exec;
mod files;
mod following;
mod foreign_ids;
mod gateway;
mod graph;
mod harness;
mod help;
mod invoke;
mod ledger;
mod limited_keys;
mod logs;
mod mcp;
mod mcp_access;
mod mcp_conformance;
mod mcp_faults;
mod mcp_inputs;
mod mcp_protocol;
mod mcp_users;
mod memory;
mod minimal;
mod onboard;
mod outside;
mod own_address;
mod policy;
mod processes;
mod proxies;
mod reload;
mod resources;
mod restart;
mod routing;
mod rules;
mod runs;
mod sandbox;
mod scrub;
mod secrets;
mod session_routes;
mod sessions;
mod shell;
mod skills;
mod soak;
mod tables;
mod terminal;
mod toolchains;
mod tools;
mod tour;
mod traces;
mod transactions;
mod trust;
mod undo;
mod web;
mod websocket;
mod without_namespaces;

/// Runs before the test harness does: this binary is also its own sandbox helper, which must have one thread.
#[expect(unsafe_code, reason = "the only way to run before the harness's `main`; it takes nothing")]
#[used]
#[unsafe(link_section = ".init_array")]
static FIRST: extern "C" fn() = {
    extern "C" fn first() {
        clawsmith::app::enter_if_asked();
    }
    first
};
