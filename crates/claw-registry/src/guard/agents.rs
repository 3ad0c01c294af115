//! Guard of agents: those of the caller's own tenant.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::{AgentCard, AgentDirectory, Agents, ResolvedAgent};
use claw_core::tool::ToolError;

use super::{Grant, Site};

pub(super) fn guard(site: &Site<'_>) -> Option<Arc<dyn Agents>> {
    let directory = site.world().agents.clone()?;
    Some(Arc::new(OwnAgents { directory, tenant: site.caller().tenant.clone(), grant: site.grant() }))
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
