//! The agents of the caller's own tenant.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::{AgentCard, AgentDirectory, Agents, ResolvedAgent};
use claw_core::tool::{Caller, ToolError};

use super::Grant;

pub(super) fn guard(
    directory: Arc<dyn AgentDirectory>,
    caller: &Caller,
    grant: &Arc<Grant>,
) -> Arc<dyn Agents> {
    Arc::new(OwnAgents { directory, tenant: caller.tenant.clone(), grant: Arc::clone(grant) })
}

struct OwnAgents {
    directory: Arc<dyn AgentDirectory>,
    tenant: TenantId,
    grant: Arc<Grant>,
}

#[async_trait]
impl Agents for OwnAgents {
    async fn list(&self) -> Result<Vec<AgentCard>, ToolError> {
        self.grant.live()?;
        let agents = self.directory.list(&self.tenant).await?;
        Ok(agents.into_iter().map(ResolvedAgent::card).collect())
    }
}
