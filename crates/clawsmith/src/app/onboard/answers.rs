//! The answers that set a model up: those that are offered, and checks of those that are given.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use claw_core::did_you_mean::nearest;
use claw_llm::{
    EnvKeys, KNOWN_PROVIDERS, KeyPlace, Keys as _, KnownProvider, ModelsConfig, ProviderConfig, ProviderKind,
    Providers,
};
use claw_policy::scrub::Scrubber;
use secrecy::SecretString;

use crate::app::{Error, Setup};

/// The default name of a provider at a custom address.
pub const OWN_PROVIDER: &str = "own";
/// The provider that needs nothing.
pub const DEMO_PROVIDER: &str = "demo";
/// The shortest text that is taken for a key, in bytes.
const SHORTEST_KEY: usize = 8;

/// Checks answers. The error of each check is a sentence for the person who answered.
pub struct AnswerCheck {
    setup: Setup,
    scrubber: Scrubber,
}

/// A provider that is known by name.
pub fn known_provider(name: &str) -> Option<&'static KnownProvider> {
    KNOWN_PROVIDERS.iter().find(|known| known.name == name)
}

impl AnswerCheck {
    /// Checks answers by the rules of this configuration.
    pub fn new(setup: &Setup) -> Result<Self, Error> {
        Ok(Self { setup: setup.clone(), scrubber: setup.scrubber()? })
    }

    /// The providers that are offered, each with a note.
    pub fn providers(&self) -> Vec<(&'static str, String)> {
        let note = |known: &KnownProvider| match (self.variable_of(known), known.key_env.is_empty()) {
            (Some(variable), _) => format!("`{variable}` is set"),
            (None, false) => String::new(),
            (None, true) if known.name == DEMO_PROVIDER => {
                "plays a script; needs no key and no network".to_owned()
            }
            (None, true) => format!("your own server, at {}", known.base_url),
        };
        let own = (OWN_PROVIDER, "any other OpenAI-compatible endpoint".to_owned());
        KNOWN_PROVIDERS.iter().map(|known| (known.name, note(known))).chain([own]).collect()
    }

    /// The provider that is taken where none is chosen: the configured one, or the first whose key is in the environment.
    pub fn usual_provider(&self) -> &str {
        let usual = KNOWN_PROVIDERS.iter().find(|known| self.variable_of(known).is_some());
        let usual = usual.or(KNOWN_PROVIDERS.first()).map_or(OWN_PROVIDER, |known| known.name);
        self.setup.config().models.provider.as_deref().unwrap_or(usual)
    }

    /// The configured address of a provider.
    pub fn usual_address(&self, provider: &str) -> Option<&str> {
        self.configured(provider)?.base_url.as_deref()
    }

    /// The model that is configured for a provider, or its own default.
    pub fn usual_model(&self, provider: &str) -> Option<&str> {
        let models = &self.setup.config().models;
        let configured = models.model.as_deref().filter(|_| models.provider.as_deref() == Some(provider));
        let of_provider = || known_provider(provider).map(|known| known.model);
        configured.or_else(of_provider).filter(|model| !model.is_empty())
    }

    /// The key that is stored for a provider.
    pub async fn stored_key(&self, provider: &str) -> Result<Option<SecretString>, Error> {
        let names = self.configured(provider).map(|config| config.key_secret.as_slice()).unwrap_or_default();
        if names.is_empty() {
            return Ok(None);
        }
        let Some(app) = self.setup.open_existing().await? else { return Ok(None) };
        let mut found = Ok(None);
        for name in names {
            let place = KeyPlace::Secret(name.clone());
            found = app.keys(None)?.key(app.tenant(), &place).await;
            if !matches!(found, Ok(None)) {
                break;
            }
        }
        app.close().await;
        found.map_err(|why| Error::failed(format!("the stored key of `{provider}` cannot be read: {why}")))
    }

    fn configured(&self, provider: &str) -> Option<&ProviderConfig> {
        self.setup.config().models.providers.get(provider)
    }

    /// Checks a provider, by its name or its number in the list that is offered. One with an address may have any name, and a
    /// configured one has it.
    pub fn provider(&self, name: &str, has_address: bool) -> Result<String, String> {
        let has_address = has_address || self.configured(name).is_some();
        let mut names = KNOWN_PROVIDERS.iter().map(|known| known.name).chain([OWN_PROVIDER]);
        if let (Ok(number), false) = (name.parse::<usize>(), has_address) {
            let found = number.checked_sub(1).and_then(|at| names.nth(at));
            return found.map(str::to_owned).ok_or_else(|| format!("there is no {number} in the list"));
        }
        self.harmless(name)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return Err("a provider's name has 1 to 64 letters, digits, `-` and `_`".to_owned());
        }
        if has_address || names.clone().any(|known| known == name) {
            return Ok(name.to_owned());
        }
        let meant = nearest(name, names.clone()).map(|near| format!("did you mean `{near}`? "));
        let names = names.by_ref().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let meant = meant.unwrap_or_default();
        Err(format!(
            "`{name}` is not a known provider; {meant}the known ones are {names}; to use another, give its address with `--base-url`"
        ))
    }

    /// Checks the address of a provider.
    pub fn address(&self, provider: &str, text: &str) -> Result<String, String> {
        self.harmless(text)?;
        let kind = Some(known_provider(provider).map_or(ProviderKind::OpenAi, |known| known.kind));
        let own = ProviderConfig { kind, base_url: Some(text.to_owned()), ..ProviderConfig::default() };
        let providers = [(provider.to_owned(), own)].into();
        let config = ModelsConfig { providers, ..ModelsConfig::default() };
        match Providers::new(config, Path::new("."), Arc::new(EnvKeys)) {
            Ok(_) => Ok(text.to_owned()),
            Err(error) => Err(error.reason),
        }
    }

    /// Checks the name of a model.
    pub fn model(&self, text: &str) -> Result<String, String> {
        self.harmless(text)?;
        if text.is_empty() || text.len() > 256 || has_blanks(text) {
            return Err("a model's name has 1 to 256 bytes and no spaces".to_owned());
        }
        Ok(text.to_owned())
    }

    /// Returns the environment variable of a known provider that has a value.
    pub fn variable_of(&self, known: &KnownProvider) -> Option<&'static str> {
        known.key_env.iter().copied().find(|name| self.holds_value(name))
    }

    /// Returns the environment variable that is configured for a provider and has a value.
    pub fn usual_variable(&self, provider: &str) -> Option<&str> {
        let names = self.configured(provider)?.key_env.iter().map(String::as_str);
        names.into_iter().find(|name| self.holds_value(name))
    }

    fn holds_value(&self, variable: &str) -> bool {
        let value = self.setup.around.variable(variable);
        value.is_some_and(|value| !value.to_string_lossy().trim().is_empty())
    }

    /// Refuses text that looks like a key: it would be shown, and written to the file.
    fn harmless(&self, text: &str) -> Result<(), String> {
        match self.scrubber.scrub(text) {
            Cow::Borrowed(_) => Ok(()),
            Cow::Owned(clean) if clean == text => Ok(()),
            Cow::Owned(_) => {
                Err("this looks like a secret, and secrets do not belong in the file".to_owned())
            }
        }
    }
}

/// Checks the name of a variable. An invalid one is not shown: it may be the key itself.
pub fn variable_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins && text.len() <= 128 && text.chars().all(plain) {
        return Ok(text.to_owned());
    }
    Err("this is not a variable name such as `OPENAI_API_KEY`; do not write the key itself here".to_owned())
}

/// Checks a key that a person typed, and rejects words that are not a key.
pub fn typed_key(text: &str) -> Result<SecretString, String> {
    if text.len() < SHORTEST_KEY || has_blanks(text) {
        let what = "this is not an API key: a key is one line of at least 8 characters, without spaces";
        return Err(what.to_owned());
    }
    Ok(SecretString::from(text))
}

/// Checks a key that was given by other means.
pub fn given_key(text: &str) -> Result<SecretString, String> {
    let text = text.trim();
    if text.is_empty() || has_blanks(text) {
        return Err("this is not an API key: a key is one line without spaces".to_owned());
    }
    Ok(SecretString::from(text))
}

fn has_blanks(text: &str) -> bool {
    text.contains(|c: char| c.is_whitespace() || c.is_control())
}
