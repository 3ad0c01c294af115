//! The web: fetching pages, and searching.

mod address;

use std::collections::BTreeMap;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

pub use self::address::{BadAddress, WebAddress};
use crate::id::{AgentId, SessionKey, TenantId};
use crate::tool::{Origin, Secrets, ToolError, Usage};

/// The web, limited to the servers that the plan names.
#[async_trait]
pub trait Web: Send + Sync {
    /// Fetches one page.
    async fn fetch(&self, request: &FetchRequest) -> Result<WebPage, ToolError>;
    /// Searches the web.
    async fn search(&self, request: &SearchRequest) -> Result<SearchAnswer, ToolError>;
}

/// The web of a deployment.
#[async_trait]
pub trait WebHost: Send + Sync {
    /// Servers that a search may send its query to, in the order in which they are tried.
    fn search_origins(&self) -> Vec<Origin>;
    /// Returns whether the session has fetched a page from this host before.
    fn knows(&self, surfer: &Surfer, host: &str) -> bool;
    /// Fetches one page. Lists, addresses and limits are checked for each redirect again.
    async fn fetch(&self, surfer: &Surfer, request: &FetchRequest) -> Result<WebPage, ToolError>;
    /// Searches the web. Keys are added to `secrets` before they are used.
    async fn search(
        &self,
        surfer: &Surfer,
        request: &SearchRequest,
        secrets: &Secrets,
    ) -> Result<SearchAnswer, ToolError>;
}

/// The part of a caller that caches and lists depend on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Surfer {
    /// Tenant whose cache is used.
    pub tenant: TenantId,
    /// Agent whose block list is added.
    pub agent: AgentId,
    /// Session that gets to know the host.
    pub session: SessionKey,
}

/// A page to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchRequest {
    /// Its address.
    pub address: WebAddress,
    /// The form of its text.
    pub mode: ExtractMode,
    /// Hosts that the tenant's settings block, besides those of the deployment.
    pub block: Vec<String>,
}

/// The form of a page's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExtractMode {
    /// The article as Markdown, with links, tables and code.
    #[default]
    Markdown,
    /// The article as plain text.
    Text,
    /// The body as it came, markup included.
    Raw,
}

/// A fetched page.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct WebPage {
    /// The address after all redirects.
    pub url: String,
    /// HTTP status.
    pub status: u16,
    /// Content type as the server names it, without parameters.
    pub mime: String,
    /// Kind of the page: `html`, `markdown`, `json`, `feed`, `text`, `image`, `binary`.
    pub kind: &'static str,
    /// Title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Date of publication as the page states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Site name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// The text in the requested form.
    #[serde(skip)]
    pub text: String,
    /// Bytes of the body after decompression.
    pub bytes: u64,
    /// Number of dropped elements whose text a reader would not see.
    pub hidden: usize,
    /// The page shows its content only in a browser that runs its scripts.
    pub needs_browser: bool,
    /// The page came from the cache.
    pub cached: bool,
}

/// A search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchRequest {
    /// Words to search for.
    pub query: String,
    /// Wanted number of results, 1 to 10.
    pub count: usize,
    /// Country of the results, as two letters.
    pub country: Option<String>,
    /// Language of the results, as two letters.
    pub language: Option<String>,
    /// Age of the results.
    pub freshness: Option<Freshness>,
    /// Providers that the tenant's settings want, in their order; empty for the deployment's order.
    pub order: Vec<String>,
}

/// Age of search results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Freshness {
    /// From the last day.
    Day,
    /// From the last week.
    Week,
    /// From the last month.
    Month,
    /// From the last year.
    Year,
    /// From the first date to the second, both included, as `YYYY-MM-DD`.
    Between(String, String),
}

/// The answer of a search.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SearchAnswer {
    /// Results, best first; each address once.
    pub results: Vec<SearchResult>,
    /// Providers that answered.
    pub providers: Vec<SmolStr>,
    /// Providers that failed, with the reason.
    pub failed: BTreeMap<SmolStr, String>,
    /// Cost of the search; `None` if no provider has a price.
    pub usage: Option<Usage>,
}

/// A found page.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct SearchResult {
    /// Title.
    pub title: String,
    /// Address.
    pub url: String,
    /// Excerpt.
    pub excerpt: String,
    /// Date as the provider states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Providers that found it.
    pub providers: Vec<SmolStr>,
}
