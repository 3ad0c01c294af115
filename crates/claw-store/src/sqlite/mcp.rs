//! MCP servers; the statements are in `crate::mcp`.

use super::SqliteStore;

crate::mcp::mcp_store!(SqliteStore, read: readers, write: write, bells: bells, failed: super::error::failed, lock: "");
