//! The questions: each is also a flag, and without a terminal the flags must answer all.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use claw_core::nearest::nearest;
use claw_llm::{
    EnvKeys, KNOWN_PROVIDERS, KnownProvider, ModelsConfig, ProviderConfig, ProviderKind, Providers,
};
use claw_policy::scrub::Scrubber;
use claw_terminal::{complain, tell};
use clawsmith::app::onboard::{NewKey, NewModel};
use clawsmith::config::Surroundings;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::runtime::Runtime;

use super::Onboard;
use crate::command::prompt;
use crate::failure::Failure;

/// The default name of a provider at a custom address.
const OWN: &str = "own";
/// The provider that needs nothing.
const DEMO: &str = "demo";
/// The shortest text that is taken for a key, in bytes.
const SHORTEST_KEY: usize = 8;
/// The number of times a question is asked.
const ATTEMPTS: usize = 3;

/// Why the questions ended without answers.
pub(super) enum Stop {
    /// The person gave up.
    GaveUp,
    /// There is no key, and the person wants none.
    Demo,
    Failed(Failure),
}

impl From<clawsmith::app::Error> for Stop {
    fn from(error: clawsmith::app::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Asks.
pub(super) struct Questions<'a> {
    pub(super) flags: &'a Onboard,
    pub(super) around: &'a Surroundings,
    pub(super) runtime: &'a Runtime,
    /// True if a person can answer.
    pub(super) terminal: bool,
    pub(super) scrubber: &'a Scrubber,
}

impl Questions<'_> {
    pub(super) fn ask(&self) -> Result<NewModel, Stop> {
        let provider = self.provider()?;
        if provider == DEMO {
            return Err(Stop::Demo);
        }
        let known = KNOWN_PROVIDERS.iter().find(|known| known.name == provider);
        let base_url = self.base_url(&provider, known)?;
        let key = self.key(&provider, known.filter(|_| base_url.is_none()))?;
        let model = self.model(known)?;
        let kind = known.is_none().then_some(ProviderKind::OpenAi);
        Ok(NewModel { provider, kind, base_url, model, key })
    }

    /// Asks for yes or no; an empty answer means `usual`.
    pub(super) fn confirm(&self, question: &str, usual: bool) -> Result<bool, Stop> {
        let choice = if usual { "[Y/n]" } else { "[y/N]" };
        self.repeat(&format!("{question} {choice} "), |text| match text.to_lowercase().as_str() {
            "" => Ok(usual),
            "y" | "yes" => Ok(true),
            "n" | "no" => Ok(false),
            _ => Err("answer `y` or `n`".to_owned()),
        })
    }

    fn provider(&self) -> Result<String, Stop> {
        if let Some(name) = &self.flags.provider {
            let checked = self.provider_name(name, self.flags.base_url.is_some());
            return checked.map_err(|message| wrong("--provider", &message));
        }
        if self.flags.base_url.is_some() {
            return Ok(OWN.to_owned());
        }
        if !self.terminal {
            return Err(missing("--provider NAME"));
        }
        tell("Who provides the model?");
        for (at, known) in KNOWN_PROVIDERS.iter().enumerate() {
            let note = match (self.variable_of(known), known.key_env.is_empty()) {
                (Some(variable), _) => format!("`{variable}` is set"),
                (None, false) => String::new(),
                (None, true) if known.name == DEMO => {
                    "plays a script; needs no key and no network".to_owned()
                }
                (None, true) => format!("your own server, at {}", known.base_url),
            };
            tell(format!("{:>4}  {:<11} {note}", at + 1, known.name).trim_end());
        }
        tell(format_args!(
            "{:>4}  {OWN:<11} any other OpenAI-compatible endpoint",
            KNOWN_PROVIDERS.len() + 1
        ));
        let usual = KNOWN_PROVIDERS.iter().find(|known| self.variable_of(known).is_some());
        let usual = usual.or(KNOWN_PROVIDERS.first()).map_or(OWN, |known| known.name);
        self.repeat(&format!("Number or name [{usual}]: "), |text| match text.parse::<usize>() {
            _ if text.is_empty() => Ok(usual.to_owned()),
            Ok(number) if number == KNOWN_PROVIDERS.len() + 1 => Ok(OWN.to_owned()),
            Ok(number) => match number.checked_sub(1).and_then(|at| KNOWN_PROVIDERS.get(at)) {
                Some(known) => Ok(known.name.to_owned()),
                None => Err(format!("there is no {number} in the list")),
            },
            Err(_) => self.provider_name(text, false),
        })
    }

    fn provider_name(&self, name: &str, has_address: bool) -> Result<String, String> {
        self.harmless(name)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return Err("a provider's name has 1 to 64 letters, digits, `-` and `_`".to_owned());
        }
        let mut names = KNOWN_PROVIDERS.iter().map(|known| known.name).chain([OWN]);
        if has_address || names.clone().any(|known| known == name) {
            return Ok(name.to_owned());
        }
        let meant = nearest(name, names.clone()).map(|near| format!("did you mean `{near}`? "));
        let names = names.by_ref().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let meant = meant.unwrap_or_default();
        Err(format!("`{name}` is not known by name; {meant}there are {names}; for another give `--base-url`"))
    }

    fn base_url(&self, provider: &str, known: Option<&KnownProvider>) -> Result<Option<String>, Stop> {
        let check = |text: &str| self.address(provider, known, text);
        match &self.flags.base_url {
            Some(text) => check(text).map(Some).map_err(|message| wrong("--base-url", &message)),
            None if known.is_some() => Ok(None),
            None if !self.terminal => Err(missing("--base-url URL")),
            None => self.repeat("Base URL, such as http://localhost:8000/v1: ", check).map(Some),
        }
    }

    /// An address that a provider may have.
    fn address(&self, provider: &str, known: Option<&KnownProvider>, text: &str) -> Result<String, String> {
        self.harmless(text)?;
        let kind = Some(known.map_or(ProviderKind::OpenAi, |known| known.kind));
        let own = ProviderConfig { kind, base_url: Some(text.to_owned()), ..ProviderConfig::default() };
        let providers = [(provider.to_owned(), own)].into();
        let config = ModelsConfig { providers, ..ModelsConfig::default() };
        match Providers::new(config, Path::new("."), Arc::new(EnvKeys)) {
            Ok(_) => Ok(text.to_owned()),
            Err(error) => Err(error.reason),
        }
    }

    /// Finds the key's source: the flags, then a known provider's variables, then a question.
    fn key(&self, provider: &str, known: Option<&KnownProvider>) -> Result<NewKey, Stop> {
        if let Some(name) = &self.flags.key_env {
            return variable_name(name).map(NewKey::Env).map_err(|message| wrong("--key-env", &message));
        }
        if self.flags.key_stdin {
            return self.given(provider);
        }
        if known.is_some_and(|known| known.key_env.is_empty()) {
            return Ok(NewKey::None);
        }
        if let Some(variable) = known.and_then(|known| self.variable_of(known)) {
            let asks = self.terminal && !self.flags.yes;
            if !asks || self.confirm(&format!("Use the key in `{variable}`?"), true)? {
                return Ok(NewKey::Env(variable.to_owned()));
            }
        } else if !self.terminal {
            // A server of one's own may ask for none; one that does says so in the test.
            return if known.is_some() {
                Err(missing("--key-env NAME` or `--key-stdin"))
            } else {
                Ok(NewKey::None)
            };
        }
        self.typed(known)
    }

    /// A key, or the name of a variable that holds it. Nothing that is typed here shows: it may be the key.
    fn typed(&self, known: Option<&KnownProvider>) -> Result<NewKey, Stop> {
        let question = "API key (hidden; $NAME reads an environment variable; Enter for none): ";
        for _ in 0..ATTEMPTS {
            let line = prompt::hidden(self.runtime, question)?.ok_or(Stop::GaveUp)?;
            if line.is_empty() {
                return Err(Stop::GaveUp);
            }
            let text = line.trim();
            if let Some(name) = text.strip_prefix('$') {
                match variable_name(name) {
                    Ok(name) => return Ok(NewKey::Env(name)),
                    Err(message) => complain("no", message),
                }
                continue;
            }
            match text {
                "" if known.is_some() => return Err(Stop::Demo),
                "" => return Ok(NewKey::None),
                key if key.len() < SHORTEST_KEY
                    || key.contains(|c: char| c.is_whitespace() || c.is_control()) =>
                {
                    complain(
                        "no",
                        "this is not an API key: a key is one line of at least 8 characters, without spaces",
                    );
                }
                key => return Ok(NewKey::Given(SecretString::from(key))),
            }
        }
        Err(Failure::usage("none of these answers will do").hint("clawsmith onboard --help").into())
    }

    fn given(&self, provider: &str) -> Result<NewKey, Stop> {
        let what = format!("the key of `{provider}`");
        let key = prompt::value(self.runtime, &what, "clawsmith chat works without a key: a demo answers")?;
        let key = key.ok_or(Stop::GaveUp)?;
        let text = key.expose_secret().trim();
        if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(Failure::usage("what was given is no key: one has no spaces and is one line").into());
        }
        Ok(NewKey::Given(SecretString::from(text)))
    }

    fn model(&self, known: Option<&KnownProvider>) -> Result<String, Stop> {
        let usual = known.map(|known| known.model).filter(|model| !model.is_empty());
        let check = |text: &str| {
            self.harmless(text)?;
            if text.is_empty()
                || text.len() > 256
                || text.contains(|c: char| c.is_whitespace() || c.is_control())
            {
                return Err("a model's name has 1 to 256 bytes and no spaces".to_owned());
            }
            Ok(text.to_owned())
        };
        match (&self.flags.model, usual) {
            (Some(name), _) => check(name).map_err(|message| wrong("--model", &message)),
            (None, Some(usual)) if !self.terminal || self.flags.yes => Ok(usual.to_owned()),
            (None, None) if !self.terminal => Err(missing("--model NAME")),
            (None, Some(usual)) => self.repeat(&format!("Model [{usual}]: "), |text| match text {
                "" => Ok(usual.to_owned()),
                text => check(text),
            }),
            (None, None) => self.repeat("Model: ", check),
        }
    }

    /// Asks until the answer will do, a few times.
    fn repeat<T>(&self, question: &str, check: impl Fn(&str) -> Result<T, String>) -> Result<T, Stop> {
        for _ in 0..ATTEMPTS {
            let text = prompt::line(self.runtime, question)?.ok_or(Stop::GaveUp)?;
            match check(&text) {
                Ok(answer) => return Ok(answer),
                Err(message) => complain("no", message),
            }
        }
        Err(Failure::usage("none of these answers will do").hint("clawsmith onboard --help").into())
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

    /// Returns the variable of a provider that has a value.
    fn variable_of(&self, known: &KnownProvider) -> Option<&'static str> {
        let holds = |name: &&&str| {
            self.around.variable(name).is_some_and(|value| !value.to_string_lossy().trim().is_empty())
        };
        known.key_env.iter().find(holds).copied()
    }
}

/// Checks the name of a variable. An invalid one is not shown: it may be the key itself.
fn variable_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins && text.len() <= 128 && text.chars().all(plain) {
        return Ok(text.to_owned());
    }
    Err("this is no name of a variable, such as `OPENAI_API_KEY`; the key itself is not written here"
        .to_owned())
}

fn wrong(flag: &str, message: &str) -> Stop {
    Stop::Failed(Failure::usage(format!("`{flag}`: {message}")))
}

fn missing(flag: &str) -> Stop {
    let failure = Failure::usage(format!("nobody is here to be asked, and `{flag}` is missing"));
    Stop::Failed(failure.hint("clawsmith onboard --help"))
}
