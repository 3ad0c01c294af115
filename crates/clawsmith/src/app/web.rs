//! The web of a deployment.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use claw_core::port::WebHost;
use claw_core::{AgentId, TenantId};
use claw_llm::{KeyPlace, Keys};
use claw_web::{SearchKeys, WebAccess, WebParts};
use secrecy::SecretString;

use super::pdf_process::SandboxedPdf;
use super::{Error, Setup};

impl Setup {
    /// Returns the configured access to the web. Keys of search providers are read when a search is made.
    pub fn web(&self, keys: Arc<dyn Keys>) -> Result<Arc<dyn WebHost>, Error> {
        let config = self.config();
        let mut agents = BTreeMap::new();
        for (id, agent) in config.agents.iter().filter(|(_, agent)| !agent.block_hosts.is_empty()) {
            if let Ok(id) = AgentId::new(id) {
                agents.insert((config.tenant.clone(), id), agent.block_hosts.clone());
            }
        }
        let pdf = Arc::new(SandboxedPdf::new(Duration::from_secs(u64::from(config.web.seconds.max(1)))));
        let parts = WebParts { agents, pdf: Some(pdf), ..WebParts::new(Arc::new(KeysOfSearch(keys))) };
        let web = WebAccess::new(&config.web, parts).map_err(|error| {
            let place = match error.key.starts_with("agents.") {
                true => error.key,
                false => format!("web.{}", error.key),
            };
            Error::invalid(format!("`{place}`: {}", error.reason)).hint("clawsmith config show")
        })?;
        Ok(Arc::new(web))
    }
}

/// Keys of search providers, from the source of model keys.
struct KeysOfSearch(Arc<dyn Keys>);

#[async_trait]
impl SearchKeys for KeysOfSearch {
    async fn sealed(&self, tenant: &TenantId, name: &str) -> Result<Option<SecretString>, String> {
        self.0.key(tenant, &KeyPlace::Secret(name.to_owned())).await
    }

    async fn variable(&self, tenant: &TenantId, name: &str) -> Result<Option<SecretString>, String> {
        self.0.key(tenant, &KeyPlace::Env(name.to_owned())).await
    }
}
