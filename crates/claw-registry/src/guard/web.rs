//! Guard of the web: a page is fetched only from the server that the plan names, a search goes only to the
//! providers that it names, and neither carries a secret out.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::{FetchRequest, SearchAnswer, SearchRequest, Surfer, Web, WebHost, WebPage};
use claw_core::tool::{Ask, Caller, Effect, ErrorKind, Sight, Target, ToolError};

use super::refuse_secrets::refuse_secrets;
use super::{Grant, Site, unplanned};
use crate::Offer;
use crate::scrub::CallScrubber;

pub(super) fn guard(site: &Site<'_>) -> Option<Arc<dyn Web>> {
    let host = site.world().web.clone()?;
    let scrubber = site.executor.0.scrubbers.for_tenant(&site.caller().tenant);
    Some(Arc::new(PlannedWeb { host, surfer: surfer(site.caller()), scrubber, grant: site.grant() }))
}

/// Tells which hosts the caller's session knows.
pub(crate) fn look_at_hosts(offer: &Offer, targets: Vec<Target>) -> Vec<Sight> {
    let surfer = surfer(offer.caller());
    let web = offer.0.registry.world().web.clone();
    let look = |target: Target| {
        let is_known = match (&target, &web) {
            (Target::Host { host }, Some(web)) => web.knows(&surfer, host),
            _ => false,
        };
        let identity = is_known.then(|| "known".to_owned());
        Sight { target, path: None, identity, credential: None, writable: false }
    };
    targets.into_iter().map(look).collect()
}

fn surfer(caller: &Caller) -> Surfer {
    let Caller { tenant, agent, session, .. } = caller;
    Surfer { tenant: tenant.clone(), agent: agent.clone(), session: session.clone() }
}

struct PlannedWeb {
    host: Arc<dyn WebHost>,
    surfer: Surfer,
    scrubber: CallScrubber,
    grant: Arc<Grant>,
}

impl PlannedWeb {
    fn has_network(&self) -> bool {
        self.grant.effects.has(Effect::Network)
    }

    /// Ends a request when its caller gives up.
    async fn bounded<T>(&self, work: impl Future<Output = Result<T, ToolError>>) -> Result<T, ToolError> {
        tokio::select! {
            done = work => done,
            () = self.grant.cancel.cancelled() => {
                Err(ToolError::new(ErrorKind::Cancelled, "the request was given up"))
            }
        }
    }
}

#[async_trait]
impl Web for PlannedWeb {
    async fn fetch(&self, request: &FetchRequest) -> Result<WebPage, ToolError> {
        self.grant.live()?;
        let wanted = request.address.as_str();
        let named = |ask: &Ask| matches!(ask, Ask::Fetch { url, .. } if url == wanted);
        if !(self.has_network() && self.grant.plan.asks.iter().any(named)) {
            return Err(unplanned(format!("fetching from `{}`", request.address.host())));
        }
        refuse_secrets(&self.scrubber, wanted, "the address")?;
        self.bounded(self.host.fetch(&self.surfer, request)).await
    }

    async fn search(&self, request: &SearchRequest) -> Result<SearchAnswer, ToolError> {
        self.grant.live()?;
        let asks = &self.grant.plan.asks;
        let named =
            |origin| asks.iter().any(|ask| matches!(ask, Ask::Host { origin: named } if named == origin));
        if !(self.has_network() && self.host.search_origins().iter().all(named)) {
            return Err(unplanned("searching the web with the configured providers".to_owned()));
        }
        refuse_secrets(&self.scrubber, &request.query, "the query")?;
        self.bounded(self.host.search(&self.surfer, request, &self.grant.secrets)).await
    }
}
