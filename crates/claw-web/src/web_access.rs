//! Web access of a deployment: lists, cache, fetcher and search providers under one port.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use claw_core::port::{FetchRequest, SearchAnswer, SearchRequest, Surfer, WebHost, WebPage};
use claw_core::tool::{ErrorKind, Origin, Secrets, ToolError};
use claw_core::{AgentId, TenantId};
use claw_net::{Client, Lookup, Options, Url, system_lookup};
use secrecy::SecretString;
use tokio::sync::Semaphore;

use crate::cache::Cache;
use crate::config::WebConfig;
use crate::error::WebConfigError;
use crate::fetch::{Fetcher, Judge, MOST_READING, Pace};
use crate::host_lists::HostPatterns;
use crate::page;
use crate::pdf::PdfProcess;
use crate::search::{Chain, SearchProvider};
use crate::seen_hosts::SeenHosts;

/// Reads keys of search providers.
#[async_trait]
pub trait SearchKeys: Send + Sync {
    /// The key in this sealed secret of the tenant; `None` if there is none. The error tells why it cannot be
    /// read.
    async fn sealed(&self, tenant: &TenantId, name: &str) -> Result<Option<SecretString>, String>;
    /// The key in this environment variable, which is the deployment's.
    async fn variable(&self, tenant: &TenantId, name: &str) -> Result<Option<SecretString>, String>;
}

/// The parts of a deployment's web access besides its `[web]` table.
pub struct WebParts {
    /// Block lists of tenants' agents.
    pub agents: BTreeMap<(TenantId, AgentId), Vec<String>>,
    /// Keys of search providers.
    pub keys: Arc<dyn SearchKeys>,
    /// Resolves names.
    pub lookup: Lookup,
    /// Starts readers of PDF; without it a PDF is refused.
    pub pdf: Option<Arc<dyn PdfProcess>>,
}

impl WebParts {
    /// Parts with the system's names, no block lists of agents and no reader of PDF.
    pub fn new(keys: Arc<dyn SearchKeys>) -> Self {
        Self { agents: BTreeMap::new(), keys, lookup: system_lookup(), pdf: None }
    }
}

/// The web of a deployment.
pub struct WebAccess {
    fetcher: Fetcher,
    allow: HostPatterns,
    block: HostPatterns,
    agents: BTreeMap<(TenantId, AgentId), HostPatterns>,
    cache: Cache,
    seen: SeenHosts,
    chain: Chain,
}

impl WebAccess {
    /// Takes a configuration; keys are read when a search is made.
    pub fn new(config: &WebConfig, parts: WebParts) -> Result<Self, WebConfigError> {
        let WebParts { agents, keys, lookup, pdf } = parts;
        let list = |key: &str, patterns: &[String]| {
            HostPatterns::compile(patterns.iter().map(String::as_str))
                .map_err(|error| WebConfigError::new(key, error.to_string()))
        };
        let mut named = BTreeSet::new();
        for text in &config.private_origins {
            let origin = text.parse::<claw_net::Origin>();
            let origin = origin.map_err(|error| WebConfigError::new("private_origins", error.to_string()))?;
            named.insert(origin);
        }
        let mut of_agents = BTreeMap::new();
        for (agent, patterns) in &agents {
            let key = format!("agents.{}.block_hosts", agent.1);
            of_agents.insert(agent.clone(), list(&key, patterns)?);
        }
        let options = Options {
            named,
            user_agent: config.user_agent.clone(),
            lookup: Arc::clone(&lookup),
            ..Options::default()
        };
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let fetcher = Fetcher {
            client: Client::new(options),
            whole: Duration::from_secs(u64::from(config.seconds.max(1))),
            most_bytes: u64::from(config.most_bytes),
            redirects: usize::try_from(config.redirects).unwrap_or_default(),
            extracting: Arc::new(Semaphore::new(cores.max(2))),
            reading: Arc::new(Semaphore::new(MOST_READING)),
            extract: page::extract,
            pace: Pace::default(),
            pdf,
        };
        Ok(Self {
            fetcher,
            allow: list("allow", &config.allow)?,
            block: list("block", &config.block)?,
            agents: of_agents,
            cache: Cache::new(Duration::from_secs(60 * u64::from(config.cache_minutes))),
            seen: SeenHosts::default(),
            chain: Chain::new(&config.search, keys, lookup)?,
        })
    }

    /// The search providers that are asked, in their order.
    pub fn providers(&self) -> Vec<SearchProvider> {
        self.chain.providers()
    }

    /// The rule that judges each address of a fetch, for one caller.
    fn judge(&self, surfer: &Surfer, request: &FetchRequest) -> Result<Judge, ToolError> {
        let of_tenant = HostPatterns::compile(request.block.iter().map(String::as_str)).map_err(|error| {
            ToolError::new(ErrorKind::Unavailable, format!("`settings.web_fetch.block`: {error}"))
                .try_instead("a person has to fix the setting")
        })?;
        let allow = self.allow.clone();
        let agent = (surfer.tenant.clone(), surfer.agent.clone());
        let of_agent = self.agents.get(&agent).cloned().unwrap_or_default();
        let blocks = [
            (self.block.clone(), "web.block"),
            (of_tenant, "settings.web_fetch.block"),
            (of_agent, "block_hosts"),
        ];
        Ok(Arc::new(move |url: &Url| {
            let host = url.host_str().unwrap_or_default();
            if !allow.is_empty() && !allow.covers(host) {
                return Err(format!("`{host}` is not in `web.allow`"));
            }
            match blocks.iter().find(|(list, _)| list.covers(host)) {
                Some((_, name)) => Err(format!("`{host}` is blocked by `{name}`")),
                None => Ok(()),
            }
        }))
    }
}

#[async_trait]
impl WebHost for WebAccess {
    fn search_origins(&self) -> Vec<Origin> {
        self.chain.origins()
    }

    fn knows(&self, surfer: &Surfer, host: &str) -> bool {
        self.seen.knows(surfer, host)
    }

    async fn fetch(&self, surfer: &Surfer, request: &FetchRequest) -> Result<WebPage, ToolError> {
        let (text, mode) = (request.address.as_str(), request.mode);
        let judge = self.judge(surfer, request)?;
        let url = Url::parse(text).map_err(|error| ToolError::invalid(error.to_string()))?;
        if let Some(fetched) = self.cache.get(&surfer.tenant, text, mode) {
            // Lists may have changed, and differ between agents.
            for url in &fetched.way {
                judge(url).map_err(|why| ToolError::new(ErrorKind::Forbidden, why))?;
            }
            self.seen.learn(surfer, request.address.host());
            return Ok(WebPage { cached: true, ..fetched.page });
        }
        let fetched = self.fetcher.fetch(&url, mode, judge).await?;
        self.seen.learn(surfer, request.address.host());
        self.cache.put(&surfer.tenant, text, mode, fetched.clone());
        Ok(fetched.page)
    }

    async fn search(
        &self,
        surfer: &Surfer,
        request: &SearchRequest,
        secrets: &Secrets,
    ) -> Result<SearchAnswer, ToolError> {
        self.chain.search(&surfer.tenant, request, secrets).await
    }
}
