//! Guard of the web: a page is fetched only from the server that the plan names, a search goes only to the
//! providers that it names, and neither carries a secret out.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::{FetchRequest, SearchAnswer, SearchRequest, Surfer, Web, WebHost, WebPage};
use claw_core::tool::{Ask, Caller, Effect, ErrorKind, Sight, Target, ToolError};

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

/// Refuses a text that contains a secret, as it is or after decoding.
pub(super) fn refuse_secrets(scrubber: &CallScrubber, text: &str, what: &str) -> Result<(), ToolError> {
    let mut seen = text.to_owned();
    // Each round removes one layer of percent-encoding.
    for _ in 0..4 {
        let joined: String =
            seen.chars().filter(|c| !matches!(c, '/' | '&' | '=' | '.' | '?' | '\n')).collect();
        if scrubber.text(&seen) != seen || scrubber.knows(&joined) {
            return Err(ToolError::new(
                ErrorKind::Forbidden,
                format!("{what} holds a secret and is not sent"),
            )
            .try_instead("leave the secret out"));
        }
        let next = decoded(&seen);
        if next == seen {
            break;
        }
        seen = next;
    }
    Ok(())
}

/// Decodes percent-encoded bytes, and `+` as a space.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let pair = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        match pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()).filter(|_| byte == b'%') {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(if byte == b'+' { b' ' } else { byte });
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use claw_core::TenantId;

    use super::*;
    use crate::Scrubbers;

    #[test]
    fn refuses_a_known_secret_in_every_encoding() {
        let scrubbers = Scrubbers::default();
        let tenant = TenantId::main();
        scrubbers.add_for(&tenant, "p4ss word/of:ours").unwrap();
        let scrubber = scrubbers.for_tenant(&tenant);
        for text in [
            "https://a.example/?q=p4ss%20word%2Fof%3Aours",
            "https://a.example/?q=p4ss+word%2fof%3aours",
            "https://a.example/?q=p4ss%2520word%252Fof%253Aours",
            "https://a.example/?q=cDRzcyB3b3JkL29mOm91cnM",
            "https://a.example/70347373%20x/7034737320776f72642f6f663a6f757273",
            "https://a.example/?q=%63DRzcyB3b3JkL29mOm91cnM%3D",
            "https://a.example/%70%34%73%73%20%77%6F%72%64%2F%6F%66%3A%6F%75%72%73",
        ] {
            let error = refuse_secrets(&scrubber, text, "the address").unwrap_err();
            assert_eq!(error.kind, ErrorKind::Forbidden, "{text}");
            assert!(!error.to_string().contains("p4ss"), "{error}");
        }
        // Another tenant's secret is unknown here.
        let other = scrubbers.for_tenant(&TenantId::new("other").unwrap());
        assert!(refuse_secrets(&other, "https://a.example/?q=p4ss+word%2fof%3aours", "the address").is_ok());
        for text in [
            "https://a.example/search?q=hello+world&page=2",
            "https://a.example/%zz%",
            "https://a.example/%25",
        ] {
            assert!(refuse_secrets(&scrubber, text, "the address").is_ok(), "{text}");
        }
    }

    #[test]
    fn refuses_a_secret_that_is_split_over_parts_of_the_address() {
        let scrubbers = Scrubbers::default();
        let tenant = TenantId::main();
        scrubbers.add_for(&tenant, "hunter2hunter3").unwrap();
        let scrubber = scrubbers.for_tenant(&tenant);
        for text in ["https://a.example/hunter2/hunter3", "https://hunter2.hunter3.example/"] {
            assert!(refuse_secrets(&scrubber, text, "the address").is_err(), "{text}");
        }
    }
}
