//! The web behind one port: pages as Markdown, and a chain of search providers.
//!
//! Every request goes through `claw-net`, so addresses are checked and pinned there. This crate adds what a deployment
//! configures (lists, private origins, limits, providers), a cache per tenant, and the way from bytes to readable text.
//! It runs no script, loads nothing that a page refers to, and drops text that a reader would not see.

mod cache;
mod config;
mod error;
mod fetch;
mod host_lists;
mod page;
pub mod pdf;
mod search;
mod seen_hosts;
mod web_access;

pub use claw_net::Lookup;

pub use config::{SearchConfig, SearchProviderConfig, WebConfig};
pub use error::WebConfigError;
pub use host_lists::{BadPattern, HostPatterns};
pub use page::{Page, Source, extract};
pub use search::SearchProvider;
pub use web_access::{SearchKeys, WebAccess, WebParts};
