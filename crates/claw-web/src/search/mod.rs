//! Search providers, asked one after another until enough of them have answered.

mod merge;
mod providers;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use claw_core::TenantId;
use claw_core::port::{SearchAnswer, SearchRequest, SearchResult};
use claw_core::tool::{ErrorKind, Origin, Secrets, ToolError, Usage};
use claw_net::{Client, Lookup, NetError, Options, Times, Url, is_public};
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use tokio::time::Instant;

use crate::config::{SearchConfig, SearchProviderConfig};
use crate::error::WebConfigError;
use crate::web_access::SearchKeys;

/// Longest response, in bytes.
const MOST_BYTES: u64 = 4 * 1024 * 1024;
/// Pause for a provider that answered that its rate limit is exceeded.
const REST: Duration = Duration::from_secs(60);

/// A search provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SearchProvider {
    /// Brave Search, with a key.
    Brave,
    /// Exa, with a key.
    Exa,
    /// Tavily, with a key.
    Tavily,
    /// A self-hosted SearXNG, at `base_url`.
    Searxng,
    /// DuckDuckGo's HTML page, without a key.
    Duckduckgo,
}

impl SearchProvider {
    /// All providers, in the usual order.
    pub const ALL: [Self; 5] = [Self::Brave, Self::Exa, Self::Tavily, Self::Searxng, Self::Duckduckgo];

    /// The name in configuration and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Brave => "brave",
            Self::Exa => "exa",
            Self::Tavily => "tavily",
            Self::Searxng => "searxng",
            Self::Duckduckgo => "duckduckgo",
        }
    }

    /// The usual address.
    const fn address(self) -> Option<&'static str> {
        match self {
            Self::Brave => Some("https://api.search.brave.com"),
            Self::Exa => Some("https://api.exa.ai"),
            Self::Tavily => Some("https://api.tavily.com"),
            Self::Searxng => None,
            Self::Duckduckgo => Some("https://html.duckduckgo.com"),
        }
    }

    /// The usual variable of the key; `None` if no key is needed.
    const fn variable(self) -> Option<&'static str> {
        match self {
            Self::Brave => Some("BRAVE_API_KEY"),
            Self::Exa => Some("EXA_API_KEY"),
            Self::Tavily => Some("TAVILY_API_KEY"),
            Self::Searxng | Self::Duckduckgo => None,
        }
    }
}

/// A configured provider.
pub(crate) struct Link {
    provider: SearchProvider,
    base: Url,
    /// The configuration names its address, which may then be private.
    is_named: bool,
    secrets: Vec<String>,
    /// The secrets are configured, not the default ones.
    names_secrets: bool,
    variables: Vec<String>,
    cost_micros: u64,
}

/// The reason why a provider gave no results.
enum Miss {
    /// It has no key.
    NoKey,
    /// It failed; the text says how.
    Failed(String),
    /// It refused because its rate limit is exceeded.
    Limited(String),
}

/// The providers of a deployment, in their order.
pub(crate) struct Chain {
    links: Vec<Link>,
    merge: usize,
    times: Times,
    client: Client,
    keys: Arc<dyn SearchKeys>,
    resting: Mutex<HashMap<(TenantId, SearchProvider), Instant>>,
}

impl Chain {
    pub(crate) fn new(
        config: &SearchConfig,
        keys: Arc<dyn SearchKeys>,
        lookup: Lookup,
    ) -> Result<Self, WebConfigError> {
        let links = links(config)?;
        let named: BTreeSet<_> = links
            .iter()
            .filter(|link| link.is_named)
            .filter_map(|link| claw_net::Origin::of(&link.base))
            .collect();
        let wait = Duration::from_secs(u64::from(config.seconds.max(1)));
        let times = Times { first_byte: wait, idle: wait, whole: Some(wait) };
        let client = Client::new(Options { named, lookup, ..Options::default() });
        let merge = usize::try_from(config.merge.max(1)).unwrap_or(1);
        Ok(Self { links, merge, times, client, keys, resting: Mutex::default() })
    }

    pub(crate) fn providers(&self) -> Vec<SearchProvider> {
        self.links.iter().map(|link| link.provider).collect()
    }

    pub(crate) fn origins(&self) -> Vec<Origin> {
        self.links.iter().map(|link| link.origin()).collect()
    }

    /// Asks the providers in order. If one fails, that is noted and the next is asked.
    pub(crate) async fn search(
        &self,
        tenant: &TenantId,
        request: &SearchRequest,
        secrets: &Secrets,
    ) -> Result<SearchAnswer, ToolError> {
        let mut lists: Vec<(SmolStr, Vec<SearchResult>)> = Vec::new();
        let (mut failed, mut without_key) = (BTreeMap::new(), Vec::new());
        // Providers that charge for their answers, also for an empty one.
        let (mut charged, mut cost) = (Vec::new(), 0);
        for link in self.wanted(request)? {
            if lists.len() >= self.merge {
                break;
            }
            let name = SmolStr::new(link.provider.name());
            match self.ask(tenant, link, request, secrets).await {
                Ok(results) => {
                    if link.cost_micros > 0 {
                        charged.push(link.provider.name());
                        cost += link.cost_micros;
                    }
                    if results.is_empty() {
                        failed.insert(name, "found nothing".to_owned());
                    } else {
                        lists.push((name, results));
                    }
                }
                Err(Miss::NoKey) => without_key.push(name),
                Err(Miss::Failed(why)) => {
                    failed.insert(name, why);
                }
                Err(Miss::Limited(why)) => {
                    self.rest(tenant, link.provider);
                    failed.insert(name, why);
                }
            }
        }
        let nothing_found = failed.values().any(|why| why == "found nothing");
        if lists.is_empty() && !nothing_found {
            return Err(none_answered(&failed, &without_key));
        }
        let providers: Vec<SmolStr> = lists.iter().map(|(name, _)| name.clone()).collect();
        let usage = (!charged.is_empty()).then(|| Usage {
            provider: charged.join("+").into(),
            model: SmolStr::new_static("web_search"),
            cost_micros: cost,
            ..Usage::default()
        });
        let results = merge::merged(lists, request.count.clamp(1, 10));
        Ok(SearchAnswer { results, providers, failed, usage })
    }

    /// The providers that the tenant selects, in its order; all of the deployment's if it selects none.
    fn wanted(&self, request: &SearchRequest) -> Result<Vec<&Link>, ToolError> {
        let links: Vec<&Link> = match request.order.is_empty() {
            true => self.links.iter().collect(),
            false => {
                let of_name = |name: &String| self.links.iter().find(|link| link.provider.name() == name);
                request.order.iter().filter_map(of_name).collect()
            }
        };
        if links.is_empty() {
            return Err(ToolError::new(ErrorKind::Unavailable, "no search provider is enabled")
                .try_instead("a person has to enable one in `web.search`"));
        }
        Ok(links)
    }

    async fn ask(
        &self,
        tenant: &TenantId,
        link: &Link,
        request: &SearchRequest,
        secrets: &Secrets,
    ) -> Result<Vec<SearchResult>, Miss> {
        if let Some(left) = self.resting_for(tenant, link.provider) {
            return Err(Miss::Failed(format!("is skipped for {} s after a rate limit", left.as_secs() + 1)));
        }
        let key = self.key(tenant, link).await?;
        if let Some(key) = &key {
            secrets.add(key.expose_secret().trim());
        }
        let question = providers::request(link.provider, &link.base, request, key.as_ref());
        let question = question.map_err(Miss::Failed)?.most_bytes(MOST_BYTES).times(self.times);
        let mut response = self.client.send(question).await.map_err(|error| Miss::Failed(told(&error)))?;
        match response.status() {
            200..=299 => {}
            status @ (402 | 429 | 432 | 433) => {
                return Err(Miss::Limited(format!("refused because of a rate limit ({status})")));
            }
            status @ (401 | 403) => return Err(Miss::Failed(format!("refused the key ({status})"))),
            status => return Err(Miss::Failed(format!("answered with status {status}"))),
        }
        let body = response.decoded().await.map_err(|error| Miss::Failed(told(&error)))?;
        providers::read(link.provider, &body).map_err(|why| match why {
            providers::Unread::Limited => Miss::Limited("asks for a CAPTCHA".to_owned()),
            providers::Unread::Broken(why) => Miss::Failed(format!("sent an invalid answer: {why}")),
        })
    }

    async fn key(&self, tenant: &TenantId, link: &Link) -> Result<Option<SecretString>, Miss> {
        let is_set = |key: &SecretString| !key.expose_secret().trim().is_empty();
        let mut unread = None;
        for name in &link.secrets {
            match self.keys.sealed(tenant, name).await {
                Ok(key) => {
                    if let Some(key) = key.filter(is_set) {
                        return Ok(Some(key));
                    }
                }
                Err(why) => unread = Some(why),
            }
        }
        for name in &link.variables {
            if let Some(key) = self.keys.variable(tenant, name).await.map_err(Miss::Failed)?.filter(is_set) {
                return Ok(Some(key));
            }
        }
        match link.provider.variable() {
            // The default secret may be missing; a configured one must be readable.
            Some(_) => Err(unread.filter(|_| link.names_secrets).map_or(Miss::NoKey, Miss::Failed)),
            None => Ok(None),
        }
    }

    fn rest(&self, tenant: &TenantId, provider: SearchProvider) {
        let mut resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        resting.retain(|_, until| *until > Instant::now());
        resting.insert((tenant.clone(), provider), Instant::now() + REST);
    }

    fn resting_for(&self, tenant: &TenantId, provider: SearchProvider) -> Option<Duration> {
        let resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        let until = resting.get(&(tenant.clone(), provider))?;
        until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }
}

/// The enabled providers of a configuration, in their order.
pub(crate) fn links(config: &SearchConfig) -> Result<Vec<Link>, WebConfigError> {
    let (mut links, mut seen) = (Vec::new(), BTreeSet::new());
    for provider in &config.order {
        let settings = config.providers.get(provider).cloned().unwrap_or_default();
        if seen.insert(*provider) && settings.enabled {
            links.extend(Link::new(*provider, &settings)?);
        }
    }
    Ok(links)
}

impl Link {
    /// A provider as configured; `None` if it has no address.
    fn new(
        provider: SearchProvider,
        settings: &SearchProviderConfig,
    ) -> Result<Option<Self>, WebConfigError> {
        let key = format!("search.providers.{}.base_url", provider.name());
        let refuse = |reason: String| WebConfigError::new(key.clone(), reason);
        let Some(text) = settings.base_url.as_deref().or(provider.address()) else { return Ok(None) };
        let base =
            Url::parse(text).map_err(|error| refuse(format!("`{text}` is not an address ({error})")))?;
        if claw_net::Origin::of(&base).is_none() {
            return Err(refuse(format!("`{text}` is neither http nor https")));
        }
        if base.scheme() == "http" && !is_near(&base) && provider.variable().is_some() {
            return Err(refuse(
                "would send the key to a public address without encryption; use https".into(),
            ));
        }
        let is_named = settings.base_url.is_some();
        let mut variables = settings.key_env.clone();
        if variables.is_empty() {
            variables.extend(provider.variable().map(str::to_owned));
        }
        let names_secrets = !settings.key_secret.is_empty();
        let mut secrets = settings.key_secret.clone();
        if secrets.is_empty() && provider.variable().is_some() {
            secrets.push(format!("web-{}", provider.name()));
        }
        Ok(Some(Self {
            provider,
            base,
            is_named,
            secrets,
            names_secrets,
            variables,
            cost_micros: settings.cost_micros,
        }))
    }

    pub(crate) fn origin(&self) -> Origin {
        Origin {
            scheme: self.base.scheme().into(),
            host: SmolStr::from(self.base.host_str().unwrap_or_default()),
            port: self.base.port_or_known_default().unwrap_or_default(),
        }
    }
}

/// Returns whether an address is on this machine or network.
fn is_near(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| !is_public(address))
}

/// The error without the address, which may contain the query.
fn told(error: &NetError) -> String {
    match error {
        NetError::TimedOut { limit, .. } => format!("did not answer within {limit:?}"),
        error => error.to_string(),
    }
}

fn none_answered(failed: &BTreeMap<SmolStr, String>, without_key: &[SmolStr]) -> ToolError {
    let mut told: Vec<String> = failed.iter().map(|(name, why)| format!("{name} {why}")).collect();
    if !without_key.is_empty() {
        told.push(format!("no key is set for {}", without_key.join(", ")));
    }
    ToolError::new(ErrorKind::Unavailable, format!("no search provider answered: {}", told.join("; ")))
        .try_instead("try again later; a person can set keys, see docs/web.md")
}
