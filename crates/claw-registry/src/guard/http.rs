//! Guard of HTTP: a request goes only to a server that the plan names, and its address carries no secret out.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::{Http, HttpAnswer, HttpHost, HttpRequest};
use claw_core::tool::{Ask, Effect, ErrorKind, ToolError};

use super::refuse_secrets::refuse_secrets;
use super::{Grant, Site, unplanned};
use crate::scrub::CallScrubber;

pub(super) fn guard(site: &Site<'_>) -> Option<Arc<dyn Http>> {
    let host = site.world().http.clone()?;
    let tenant = site.caller().tenant.clone();
    let scrubber = site.executor.0.scrubbers.for_tenant(&tenant);
    Some(Arc::new(PlannedHttp { host, tenant, scrubber, grant: site.grant() }))
}

struct PlannedHttp {
    host: Arc<dyn HttpHost>,
    tenant: TenantId,
    scrubber: CallScrubber,
    grant: Arc<Grant>,
}

#[async_trait]
impl Http for PlannedHttp {
    async fn send(&self, request: &HttpRequest) -> Result<HttpAnswer, ToolError> {
        self.grant.live()?;
        let named = |ask: &Ask| matches!(ask, Ask::Host { origin } if *origin == request.origin);
        if !(self.grant.effects.has(Effect::Network) && self.grant.plan.asks.iter().any(named)) {
            return Err(unplanned(format!("sending something to {}", request.origin)));
        }
        refuse_secrets(&self.scrubber, &request.url, "the address")?;
        for (_, value) in request.headers.reveal() {
            self.grant.secrets.add(value.clone());
        }
        tokio::select! {
            answer = self.host.send(&self.tenant, request, &self.grant.secrets) => answer,
            () = self.grant.cancel.cancelled() => {
                Err(ToolError::new(ErrorKind::Cancelled, "the request was given up"))
            }
        }
    }
}
