//! Guard of endpoints: a request goes only to the origin that the plan names.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::{EndpointAnswer, EndpointCard, EndpointHost, EndpointRequest, Endpoints};
use claw_core::tool::{Ask, Effect, ToolError};

use super::{Grant, Site, unplanned};

pub(super) fn guard(site: &Site<'_>) -> Option<Arc<dyn Endpoints>> {
    let host = site.world().endpoints.clone()?;
    Some(Arc::new(PlannedEndpoints { host, tenant: site.caller().tenant.clone(), grant: site.grant() }))
}

struct PlannedEndpoints {
    host: Arc<dyn EndpointHost>,
    tenant: TenantId,
    grant: Arc<Grant>,
}

#[async_trait]
impl Endpoints for PlannedEndpoints {
    async fn list(&self) -> Result<Vec<EndpointCard>, ToolError> {
        self.grant.live()?;
        Ok(self.host.list())
    }

    async fn send(&self, request: &EndpointRequest) -> Result<EndpointAnswer, ToolError> {
        self.grant.live()?;
        // The real origin counts, whatever the plan was computed from.
        let cards = self.host.list();
        let origin = cards.iter().find(|card| card.name == request.endpoint).map(|card| &card.origin);
        let named = |ask: &Ask| matches!(ask, Ask::Host { origin: named } if Some(named) == origin);
        if origin.is_some()
            && !(self.grant.effects.has(Effect::Network) && self.grant.plan.asks.iter().any(named))
        {
            return Err(unplanned(format!("sending something to endpoint `{}`", request.endpoint)));
        }
        let sent = self.host.send(&self.tenant, request, &self.grant.secrets);
        tokio::select! {
            answer = sent => answer,
            () = self.grant.cancel.cancelled() => Err(ToolError::new(
                claw_core::tool::ErrorKind::Cancelled,
                "the request was given up",
            )),
        }
    }
}
