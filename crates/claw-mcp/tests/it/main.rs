//! Tests of the MCP server with third-party clients.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test that cannot be set up fails loudly"
)]

mod conformance;
mod fixture;
mod sessions;
