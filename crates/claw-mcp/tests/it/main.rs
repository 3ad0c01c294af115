//! Tests of the MCP server with other people's clients.

mod conformance;
mod fixture;
