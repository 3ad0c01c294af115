//! MCP servers; the statements are in `crate::mcp`.

use super::PostgresStore;

crate::mcp::mcp_store!(
    PostgresStore,
    read: pool,
    write: begin,
    bells: listener.bells,
    failed: super::failure::failed,
    lock: " FOR UPDATE"
);
