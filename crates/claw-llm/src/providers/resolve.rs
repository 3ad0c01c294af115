//! Turns configuration into usable providers, or reports the key at fault.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use claw_core::TenantId;
use claw_core::port::{ModelCard, Prices};
use claw_net::{HeaderName, HeaderValue, Origin, Url, is_public};
use secrecy::SecretString;
use smol_str::SmolStr;

use super::ConfigError;
use crate::api_keys::{KeyPlace, Keys};
use crate::config::{ModelConfig, ModelsConfig, PricesConfig, ProviderConfig, ProviderKind};
use crate::known_models;
use crate::known_providers;
use crate::script::Script;

/// A resolved provider.
pub(super) struct Provider {
    pub(super) name: SmolStr,
    pub(super) kind: ProviderKind,
    /// `None` for a script.
    pub(super) base: Option<Url>,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) model: Option<SmolStr>,
    pub(super) script: Option<Arc<Script>>,
    places: Vec<KeyPlace>,
    private: bool,
    models: BTreeMap<String, ModelConfig>,
}

/// All providers: the configured ones, and those known by name.
pub(super) fn providers(
    config: &ModelsConfig,
    directory: &Path,
) -> Result<BTreeMap<SmolStr, Provider>, ConfigError> {
    let nothing = ProviderConfig::default();
    let mut providers = BTreeMap::new();
    for (name, written) in &config.providers {
        providers.insert(SmolStr::from(name), provider(name, written, directory)?);
    }
    for known in known_providers::PROVIDERS {
        if !config.providers.contains_key(known.name) {
            providers.insert(known.name.into(), provider(known.name, &nothing, directory)?);
        }
    }
    let check = |key: String, name: &str| match providers.contains_key(name) {
        true => Ok(()),
        false => Err(ConfigError { key, reason: format!("there is no provider `{name}`") }),
    };
    if let Some(name) = &config.provider {
        check("provider".to_owned(), name)?;
    }
    let own = config.providers.iter().flat_map(|(provider, written)| {
        written.models.iter().filter_map(move |(model, written)| {
            Some((format!("providers.{provider}.models.{model}.fallback"), written.fallback.as_ref()?))
        })
    });
    for (key, names) in own.chain([("fallback".to_owned(), &config.fallback)]) {
        for name in names {
            let Some((provider, _)) = name.split_once('/') else {
                let reason = format!("`{name}` is not a model name; write it as `provider/model`");
                return Err(ConfigError { key, reason });
            };
            check(key.clone(), provider)?;
        }
    }
    Ok(providers)
}

fn provider(name: &str, written: &ProviderConfig, directory: &Path) -> Result<Provider, ConfigError> {
    let refuse = |key: &str, reason: String| ConfigError { key: format!("providers.{name}{key}"), reason };
    if name.is_empty() || name.contains('/') {
        return Err(refuse("", "a provider's name must not be empty or contain `/`".to_owned()));
    }
    let known = known_providers::PROVIDERS.iter().find(|known| known.name == name);
    let Some(kind) = written.kind.or(known.map(|known| known.kind)) else {
        let reason = "is missing, and the provider is not known by name; set `openai`, `anthropic`, `gemini` or `scripted`";
        return Err(refuse(".kind", reason.to_owned()));
    };
    let same_kind = known.filter(|known| known.kind == kind);
    let scripted = kind == ProviderKind::Scripted;
    if !scripted && written.script.is_some() {
        return Err(refuse(".script", "needs the kind `scripted`".to_owned()));
    }
    let base = match (&written.base_url, same_kind) {
        _ if scripted => None,
        (Some(text), _) => Some(base_url(text).map_err(|reason| refuse(".base_url", reason))?),
        (None, Some(known)) => Some(base_url(known.base_url).map_err(|reason| refuse(".base_url", reason))?),
        (None, None) => {
            return Err(refuse(".base_url", "is missing; set the URL of the provider".to_owned()));
        }
    };
    let script = match scripted {
        true => {
            let path = written.script.as_ref().map(|path| directory.join(path));
            let script =
                super::script(path.as_deref()).map_err(|error| refuse(".script", error.to_string()))?;
            Some(script)
        }
        false => None,
    };
    let mut places: Vec<KeyPlace> = written.key_env.iter().cloned().map(KeyPlace::Env).collect();
    places.extend(written.key_secret.iter().cloned().map(KeyPlace::Secret));
    // Keys of a known provider stay with it: they are not sent to another address configured under its name.
    if places.is_empty()
        && written.base_url.is_none()
        && let Some(known) = same_kind
    {
        places.extend(known.key_env.iter().map(|name| KeyPlace::Env((*name).to_owned())));
    }
    for (model, config) in &written.models {
        let prices = config.prices.unwrap_or_default();
        let all = [prices.input, prices.output, prices.cache_read, prices.cache_write];
        if !all.iter().all(|price| (0.0..1e6).contains(price)) {
            let key = format!(".models.{model}.prices");
            return Err(refuse(&key, "a price is from 0 to a million dollars".to_owned()));
        }
    }
    let provider = Provider { private: written.private, base, places, ..Provider::named(name, kind) };
    if provider.needs_key()
        && provider.near().is_none()
        && provider.base.as_ref().is_some_and(|b| b.scheme() == "http")
    {
        let reason = "would send the key to a public address without encryption; use https, or set `private`";
        return Err(refuse(".base_url", reason.to_owned()));
    }
    let model = written.model.as_deref().or_else(|| same_kind.map(|known| known.model));
    let model = model.filter(|model| !model.is_empty()).map(SmolStr::from);
    Ok(Provider {
        headers: headers(&written.headers)
            .map_err(|(header, reason)| refuse(&format!(".headers.{header}"), reason))?,
        model: model.or_else(|| scripted.then(|| "script".into())),
        script,
        models: written.models.clone(),
        ..provider
    })
}

pub(crate) fn base_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("`{text}` is not a URL: {error}"))?;
    if Origin::of(&url).is_none() {
        return Err(format!("`{text}` is neither http nor https"));
    }
    if !url.username().is_empty()
        || url.password().is_some()
        || url.query().is_some()
        || url.fragment().is_some()
    {
        return Err(
            "the URL may have only scheme, host, port and path; put keys into `key_env` or `key_secret`"
                .into(),
        );
    }
    Ok(url)
}

/// Headers sent with every request; none may carry a key.
pub(crate) fn headers(
    written: &BTreeMap<String, String>,
) -> Result<Vec<(HeaderName, HeaderValue)>, (String, String)> {
    let headers = written.iter().map(|(name, value)| {
        let wrong = |reason: &str| (name.clone(), reason.to_owned());
        let lower = name.to_ascii_lowercase();
        if matches!(lower.as_str(), "authorization" | "x-api-key" | "x-goog-api-key" | "cookie" | "host") {
            return Err(wrong("cannot be set here; put keys into `key_env` or `key_secret`"));
        }
        let header = HeaderName::try_from(lower).map_err(|_| wrong("is not a valid header name"))?;
        let value = HeaderValue::try_from(value).map_err(|_| wrong("is not a valid header value"))?;
        Ok((header, value))
    });
    headers.collect()
}

impl Provider {
    fn named(name: &str, kind: ProviderKind) -> Self {
        Self {
            name: name.into(),
            kind,
            base: None,
            headers: Vec::new(),
            model: None,
            script: None,
            places: Vec::new(),
            private: false,
            models: BTreeMap::new(),
        }
    }

    /// The origin that may be reached although it is not public.
    pub(super) fn near(&self) -> Option<Origin> {
        near(self.base.as_ref()?, self.private)
    }

    pub(super) fn needs_key(&self) -> bool {
        !self.places.is_empty()
    }

    /// The message for a missing key.
    pub(super) fn no_key(&self) -> String {
        no_key(&self.places).unwrap_or_default()
    }

    /// Reads the keys, each once, in order.
    pub(super) async fn keys(&self, keys: &dyn Keys, tenant: &TenantId) -> Result<Vec<SecretString>, String> {
        use secrecy::ExposeSecret as _;
        let mut found: Vec<SecretString> = Vec::new();
        for place in &self.places {
            if let Some(key) = keys.key(tenant, place).await?
                && !key.expose_secret().trim().is_empty()
                && !found.iter().any(|known| known.expose_secret() == key.expose_secret())
            {
                found.push(key);
            }
        }
        Ok(found)
    }

    pub(super) fn card(&self, model: &SmolStr) -> ModelCard {
        let known = known_models::traits(model);
        let written = self.models.get(model.as_str());
        let context = written.and_then(|written| written.context).unwrap_or(known.context);
        let output = written.and_then(|written| written.output).unwrap_or(known.output);
        ModelCard {
            provider: self.name.clone(),
            model: model.clone(),
            context,
            output: output.min(context),
            images: written.and_then(|written| written.images).unwrap_or(known.images),
            prices: written.and_then(|written| written.prices).map_or(known.prices, prices),
            demo: false,
        }
    }

    pub(super) fn adaptive(&self, model: &str) -> bool {
        self.models.get(model).and_then(|written| written.adaptive_thinking).unwrap_or(false)
    }
}

/// The origin of a URL if it may be reached although it is not public.
pub(crate) fn near(base: &Url, private: bool) -> Option<Origin> {
    let host = base.host_str()?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let near = host == "localhost" || bare.parse().is_ok_and(|address| !is_public(address));
    Origin::of(base).filter(|_| private || near)
}

/// The message for a missing key; `None` if no key is needed.
pub(crate) fn no_key(places: &[KeyPlace]) -> Option<String> {
    let named = places.iter().map(|place| match place {
        KeyPlace::Env(name) => format!("the variable `{name}`"),
        KeyPlace::Secret(name) => format!("the secret `{name}`"),
    });
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| format!("it has no key; set {}", named.join(" or ")))
}

/// Converts dollars to millionths.
fn prices(written: PricesConfig) -> Prices {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be from 0 to a million"
    )]
    let millionths = |dollars: f64| (dollars * 1e6).round() as u64;
    Prices {
        input: millionths(written.input),
        output: millionths(written.output),
        cache_read: millionths(written.cache_read),
        cache_write: millionths(written.cache_write),
    }
}
