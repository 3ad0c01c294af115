//! MCP servers; the statements are in `crate::mcp`.

use claw_core::store::Topic;

use super::PostgresStore;

crate::mcp::mcp_store!(
    PostgresStore,
    read: pool,
    write: begin,
    failed: super::failure::failed,
    lock: " FOR UPDATE"
);

impl PostgresStore {
    async fn access(
        &self,
        tenant: &TenantId,
        server: &ServerName,
        subjects: [McpSubject; 2],
    ) -> Result<Option<McpAccess>, StoreError> {
        self.read_access(tenant, server, &subjects).await
    }

    #[expect(clippy::unnecessary_wraps, reason = "the other backend can fail here")]
    fn mcp_changed(&self) -> Result<(), StoreError> {
        self.listener.bells.ring(Topic::Mcp);
        Ok(())
    }
}
