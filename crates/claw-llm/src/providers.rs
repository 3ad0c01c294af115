//! All models of a deployment, from its configuration.

pub(crate) mod resolve;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::{Fault, Model, ModelCard, ModelError, Models};
use claw_net::{Client, Options, Origin, Times};
use smol_str::SmolStr;

use crate::anthropic::Anthropic;
use crate::api_keys::Keys;
use crate::config::{ModelsConfig, ProviderKind};
use crate::fallback::WithFallbacks;
use crate::gemini::Gemini;
use crate::http_model::Remote;
use crate::known_providers::{self, DEMO};
use crate::openai::OpenAi;
use crate::retry::Retry;
use crate::script::Script;
use crate::scripted::Scripted;
use crate::wire::Wire;
use resolve::Provider;

/// Least similarity of two names for one to be suggested for the other.
const CLOSE: f64 = 0.6;

/// The models of a deployment.
pub struct Providers {
    config: ModelsConfig,
    providers: BTreeMap<SmolStr, Provider>,
    keys: Arc<dyn Keys>,
    client: Client,
    /// Index of the key of a provider that worked last.
    turns: Mutex<BTreeMap<(TenantId, SmolStr), Arc<AtomicUsize>>>,
}

/// An error in the configuration of models.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {reason}")]
pub struct ConfigError {
    /// The configuration key, below that of models.
    pub key: String,
    /// The problem, and what to try.
    pub reason: String,
}

/// A provider, as listed to users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderCard {
    /// The provider's name.
    pub name: SmolStr,
    /// Wire format.
    pub kind: ProviderKind,
    /// Base URL; empty for a script.
    pub base_url: String,
    /// The default model.
    pub model: Option<SmolStr>,
    /// Number of keys found, or why they could not be read.
    pub keys: Result<usize, String>,
    /// The provider needs a key.
    pub needs_key: bool,
}

impl ProviderCard {
    /// Returns whether the provider can be used: it has a key or needs none.
    pub fn is_ready(&self) -> bool {
        !self.needs_key || self.keys.as_ref().is_ok_and(|count| *count > 0)
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Providers").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Providers {
    /// Takes a configuration. Scripts are read now, relative to `directory`; keys when a model is requested.
    pub fn new(config: ModelsConfig, directory: &Path, keys: Arc<dyn Keys>) -> Result<Self, ConfigError> {
        let providers = resolve::providers(&config, directory)?;
        let named: BTreeSet<Origin> = providers.values().filter_map(Provider::near).collect();
        let connect = Duration::from_secs(u64::from(config.connect_secs.max(1)));
        let client = Client::new(Options { named, connect, ..Options::default() });
        Ok(Self { config, providers, keys, client, turns: Mutex::default() })
    }

    /// All usable providers, known ones included, and whether they are set up for this tenant.
    pub async fn list(&self, tenant: &TenantId) -> Vec<ProviderCard> {
        let mut cards = Vec::with_capacity(self.providers.len());
        for provider in self.providers.values() {
            let keys = provider.keys(&*self.keys, tenant).await;
            cards.push(ProviderCard {
                name: provider.name.clone(),
                kind: provider.kind,
                base_url: provider.base.as_ref().map(ToString::to_string).unwrap_or_default(),
                model: provider.model.clone(),
                keys: keys.map(|keys| keys.len()),
                needs_key: provider.needs_key(),
            });
        }
        cards
    }

    /// The provider used if none is named.
    async fn usual(&self, tenant: &TenantId) -> SmolStr {
        if let Some(name) = &self.config.provider {
            return name.into();
        }
        let written = self.config.providers.keys().map(String::as_str);
        let known = known_providers::PROVIDERS.iter().map(|known| known.name);
        for name in written.chain(known) {
            let Some(provider) = self.providers.get(name) else { continue };
            // A provider without a key is used only if it is configured: nobody runs a server of every kind.
            let written = self.config.providers.contains_key(name);
            let ready = match provider.keys(&*self.keys, tenant).await {
                Ok(keys) if provider.needs_key() => !keys.is_empty(),
                Ok(_) => written,
                // An error message is better than the demo.
                Err(_) => written,
            };
            if ready {
                return provider.name.clone();
            }
        }
        SmolStr::new_static(DEMO)
    }

    /// Returns one model, without its fallbacks.
    async fn single(
        &self,
        tenant: &TenantId,
        provider: &str,
        model: Option<&str>,
    ) -> Result<Arc<dyn Model>, ModelError> {
        let found = self.providers.get(provider);
        let model = model.map(SmolStr::from).or_else(|| found?.model.clone());
        let refuse = |message: String| ModelError {
            provider: provider.into(),
            model: model.clone().unwrap_or_else(|| "-".into()),
            fault: Fault::NotSetUp,
            message,
        };
        let Some(found) = found else {
            return Err(refuse(self.no_provider(provider)));
        };
        if provider == DEMO
            && !self.config.providers.contains_key(DEMO)
            && let Some(other) = model.as_ref().filter(|model| *model != DEMO)
        {
            let names = self.names();
            return Err(refuse(format!(
                "the demo plays a script and has no model `{other}`; name another provider: {names}"
            )));
        }
        let Some(model) = model.clone() else {
            return Err(refuse(format!(
                "no model is named; set `models.providers.{provider}.model`, or name one for the agent"
            )));
        };
        if let Some(script) = &found.script {
            return Ok(Arc::new(Scripted::new(provider, model, script.clone())));
        }
        let Some(base) = &found.base else {
            return Err(refuse("the provider has no `base_url`".to_owned()));
        };
        let keys = found.keys(&*self.keys, tenant).await.map_err(&refuse)?;
        if keys.is_empty() && found.needs_key() {
            return Err(refuse(found.no_key()));
        }
        let card = found.card(&model);
        let wire: Box<dyn Wire> = match found.kind {
            ProviderKind::Anthropic => Box::new(Anthropic { adaptive: found.adaptive(&model) }),
            ProviderKind::Gemini => Box::new(Gemini),
            ProviderKind::OpenAi | ProviderKind::Scripted => {
                Box::new(OpenAi::at(base.host_str().unwrap_or_default()))
            }
        };
        Ok(Arc::new(Remote {
            card,
            wire,
            client: self.client.clone(),
            base: base.clone(),
            headers: found.headers.clone(),
            keys,
            turn: self.turn(tenant, &found.name),
            retry: self.retry(),
            times: self.times(),
        }))
    }

    /// The error for a model that no provider could serve.
    fn unanswered(&self, model: &str, provider: Option<&str>) -> ModelError {
        let message = match provider {
            Some(provider) => self.no_provider(provider),
            None => format!(
                "no provider is set up; set the key of one, or name the model as `provider/model`; the providers \
                 are {}",
                self.names()
            ),
        };
        let (provider, model) = match provider {
            Some(provider) => (provider, model.get(provider.len() + 1..).unwrap_or(model)),
            None => ("-", model),
        };
        ModelError { provider: provider.into(), model: model.into(), fault: Fault::NotSetUp, message }
    }

    /// The message for an unknown provider, with a suggestion and the known names.
    fn no_provider(&self, name: &str) -> String {
        let likeness = |other: &&SmolStr| strsim::normalized_damerau_levenshtein(name, other);
        let near = self.providers.keys().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        let near = near.filter(|near| likeness(near) >= CLOSE);
        let meant = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        format!("there is no provider `{name}`; {meant}there are {}", self.names())
    }

    fn names(&self) -> String {
        self.providers.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    }

    fn turn(&self, tenant: &TenantId, provider: &SmolStr) -> Arc<AtomicUsize> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.entry((tenant.clone(), provider.clone())).or_default().clone()
    }

    fn retry(&self) -> Retry {
        Retry {
            retries: self.config.retries,
            wait: Duration::from_millis(u64::from(self.config.retry_wait_ms)),
            longest: Duration::from_secs(u64::from(self.config.longest_wait_secs)),
        }
    }

    fn times(&self) -> Times {
        let secs = |secs: u32| Duration::from_secs(u64::from(secs.max(1)));
        let ModelsConfig { first_byte_secs, idle_secs, .. } = self.config;
        Times { first_byte: secs(first_byte_secs), idle: secs(idle_secs), whole: None }
    }

    /// The fallbacks of a model.
    fn fallback(&self, card: &ModelCard) -> &[String] {
        let own =
            self.config.providers.get(card.provider.as_str()).and_then(|p| p.models.get(card.model.as_str()));
        own.and_then(|model| model.fallback.as_ref()).unwrap_or(&self.config.fallback)
    }
}

#[async_trait]
impl Models for Providers {
    async fn model(
        &self,
        tenant: &TenantId,
        provider: Option<&str>,
        model: Option<&str>,
    ) -> Result<Arc<dyn Model>, ModelError> {
        let (provider, model) = match (provider, model) {
            (Some(provider), model) => (SmolStr::from(provider), model),
            // `provider/model`, if the first part is a provider.
            (None, Some(both)) => match both.split_once('/') {
                Some((provider, model)) if self.providers.contains_key(provider) => {
                    (provider.into(), Some(model))
                }
                named => {
                    let usual = self.usual(tenant).await;
                    // A caller that names a model does not want the demo instead.
                    if usual == DEMO && self.config.provider.is_none() {
                        return Err(self.unanswered(both, named.map(|(provider, _)| provider)));
                    }
                    (usual, Some(both))
                }
            },
            (None, None) => {
                let provider = self.usual(tenant).await;
                let usual = self.config.model.as_deref();
                (provider.clone(), usual.filter(|_| provider != DEMO || self.config.provider.is_some()))
            }
        };
        let first = self.single(tenant, &provider, model).await?;
        let mut others = Vec::new();
        for name in self.fallback(first.card()) {
            let Some((provider, model)) = name.split_once('/') else { continue };
            if (provider, model) == (first.card().provider.as_str(), first.card().model.as_str()) {
                continue;
            }
            // A fallback that is not set up is skipped; `list` and `doctor` tell.
            match self.single(tenant, provider, Some(model)).await {
                Ok(model) => others.push(model),
                Err(error) => tracing::warn!(%error, "a fallback is not set up"),
            }
        }
        Ok(WithFallbacks::of(first, others))
    }
}

/// A script by its path, or the demo.
fn script(path: Option<&Path>) -> Result<Arc<Script>, crate::script::ScriptError> {
    path.map_or_else(Script::demo, |path| Script::read(path).map(Arc::new))
}

#[cfg(test)]
mod tests;
