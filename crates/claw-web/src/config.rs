//! `[web]` of the configuration.

use std::collections::BTreeMap;

use claw_core::tool::Origin;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::search::{Link, SearchProvider, links};

/// Access of tools to the web.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebConfig {
    /// Origins on private addresses that may be fetched, such as `http://127.0.0.1:8080`. Others are refused; no
    /// setting of a tenant can allow them.
    pub private_origins: Vec<String>,
    /// Only these hosts are fetched: names, or `*.example.com` for all names below one. Empty: all hosts.
    pub allow: Vec<String>,
    /// These hosts are never fetched, in the same notation. A tenant's `settings.web_fetch.block` and an
    /// agent's `block_hosts` add to it.
    pub block: Vec<String>,
    /// Time limit for fetching one page, in seconds; reading a PDF may take as long again.
    #[schemars(range(min = 1, max = 300))]
    pub seconds: u32,
    /// Largest page in bytes, both compressed and decompressed.
    #[schemars(range(min = 1024, max = 104_857_600))]
    pub most_bytes: u32,
    /// Number of redirects that are followed.
    #[schemars(range(max = 20))]
    pub redirects: u32,
    /// Minutes that a fetched page is kept for its tenant; 0 keeps none.
    #[schemars(range(max = 1440))]
    pub cache_minutes: u32,
    /// The `User-Agent` header of fetches.
    pub user_agent: String,
    /// Settings of web search.
    pub search: SearchConfig,
}

impl WebConfig {
    /// Servers that a search may send its query to, in order; empty if the configuration is invalid.
    pub fn search_origins(&self) -> Vec<Origin> {
        links(&self.search).map(|links| links.iter().map(Link::origin).collect()).unwrap_or_default()
    }
}

impl Default for WebConfig {
    fn default() -> Self {
        Self {
            private_origins: Vec::new(),
            allow: Vec::new(),
            block: Vec::new(),
            seconds: 30,
            most_bytes: 5 * 1024 * 1024,
            redirects: 5,
            cache_minutes: 15,
            user_agent: concat!("Mozilla/5.0 (compatible; clawsmith/", env!("CARGO_PKG_VERSION"), ")")
                .to_owned(),
            search: SearchConfig::default(),
        }
    }
}

/// Search providers and their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SearchConfig {
    /// The order in which providers are tried. A provider without a key is skipped; DuckDuckGo needs none.
    pub order: Vec<SearchProvider>,
    /// Number of providers asked for one search; their results are merged by address. More than 1 costs more.
    #[schemars(range(min = 1, max = 5))]
    pub merge: u32,
    /// Timeout of one provider, in seconds.
    #[schemars(range(min = 1, max = 120))]
    pub seconds: u32,
    /// Settings of single providers.
    pub providers: BTreeMap<SearchProvider, SearchProviderConfig>,
}

impl Default for SearchConfig {
    fn default() -> Self {
        Self { order: SearchProvider::ALL.to_vec(), merge: 1, seconds: 15, providers: BTreeMap::new() }
    }
}

/// Settings of one search provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SearchProviderConfig {
    /// False disables the provider.
    pub enabled: bool,
    /// The provider's address, if it is not the usual one. SearXNG has no default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Environment variables that may hold its key; the first that is set is used.
    pub key_env: Vec<String>,
    /// Secrets that may hold its key, read first. Left out: `web-NAME`, such as `web-brave`.
    pub key_secret: Vec<String>,
    /// Price of one search, in millionths of a US dollar.
    pub cost_micros: u64,
}

impl Default for SearchProviderConfig {
    fn default() -> Self {
        Self { enabled: true, base_url: None, key_env: Vec::new(), key_secret: Vec::new(), cost_micros: 0 }
    }
}
