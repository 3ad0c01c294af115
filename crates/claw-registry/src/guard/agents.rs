//! The agents of the caller's own tenant.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::{AgentCard, AgentDirectory, Agents};
use claw_core::tool::{Caller, ToolError};

pub(super) fn guard(directory: Arc<dyn AgentDirectory>, caller: &Caller) -> Arc<dyn Agents> {
    Arc::new(OwnAgents { directory, tenant: caller.tenant.clone() })
}

struct OwnAgents {
    directory: Arc<dyn AgentDirectory>,
    tenant: TenantId,
}

#[async_trait]
impl Agents for OwnAgents {
    async fn list(&self) -> Result<Vec<AgentCard>, ToolError> {
        self.directory.list(&self.tenant).await
    }
}
