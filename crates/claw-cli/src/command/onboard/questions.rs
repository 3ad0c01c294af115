//! The questions: each is also a flag, and without a terminal the flags must answer all.

use claw_llm::{KnownProvider, ProviderKind};
use claw_terminal::{ask_until, ask_yes, complain, tell};
use clawsmith::app::onboard::answers::{
    AnswerCheck, DEMO_PROVIDER, OWN_PROVIDER, given_key, known_provider, typed_key, variable_name,
};
use clawsmith::app::onboard::{NewKey, NewModel};
use secrecy::ExposeSecret as _;
use tokio::runtime::Runtime;

use super::Onboard;
use crate::command::prompt;
use crate::exit_code::Failure;

/// The number of times a key is asked for.
const ATTEMPTS: usize = 3;

/// Why the questions ended without answers.
pub(super) enum Stop {
    /// The person gave up.
    GaveUp,
    /// There is no key, and the person wants none.
    Demo,
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Asks.
pub(super) struct Questions<'a> {
    pub(super) flags: &'a Onboard,
    pub(super) runtime: &'a Runtime,
    /// True if a person can answer.
    pub(super) terminal: bool,
    pub(super) check: &'a AnswerCheck,
}

impl Questions<'_> {
    pub(super) fn ask(&self) -> Result<NewModel, Stop> {
        let provider = self.provider()?;
        if provider == DEMO_PROVIDER {
            return Err(Stop::Demo);
        }
        let known = known_provider(&provider);
        let base_url = self.base_url(&provider, known)?;
        // A key is for one address: the one of another is not offered.
        let configured =
            Some(provider.as_str()).filter(|name| base_url.as_deref() == self.check.usual_address(name));
        let key = self.key(&provider, known.filter(|_| base_url.is_none()), configured)?;
        let model = self.model(&provider)?;
        let kind = known.is_none().then_some(ProviderKind::OpenAi);
        Ok(NewModel { provider, kind, base_url, model, key })
    }

    /// Asks for yes or no; an empty answer means `usual`.
    pub(super) fn confirm(&self, question: &str, usual: bool) -> Result<bool, Stop> {
        ask_yes(self.runtime, question, usual)?.ok_or(Stop::GaveUp)
    }

    /// Asks until the answer will do, a few times.
    fn repeat<T>(&self, question: &str, check: impl Fn(&str) -> Result<T, String>) -> Result<T, Stop> {
        let answer = ask_until(self.runtime, question, check);
        let answer = answer.map_err(|error| Failure::from(error).hint("clawsmith onboard --help"))?;
        answer.ok_or(Stop::GaveUp)
    }

    fn provider(&self) -> Result<String, Stop> {
        if let Some(name) = &self.flags.provider {
            let checked = self.check.provider(name, self.flags.base_url.is_some());
            return checked.map_err(|message| wrong("--provider", &message));
        }
        if self.flags.base_url.is_some() {
            return Ok(OWN_PROVIDER.to_owned());
        }
        if !self.terminal {
            return Err(missing("--provider NAME"));
        }
        tell("Who provides the model?");
        for (at, (name, note)) in self.check.providers().iter().enumerate() {
            tell(format!("{:>4}  {name:<11} {note}", at + 1).trim_end());
        }
        let usual = self.check.usual_provider();
        self.offer("Number or name", Some(usual), |text| self.check.provider(text, false))
    }

    /// Asks until the answer will do; an empty answer means the usual one, if there is one.
    fn offer(
        &self,
        what: &str,
        usual: Option<&str>,
        check: impl Fn(&str) -> Result<String, String>,
    ) -> Result<String, Stop> {
        let offered = usual.map(|usual| format!(" [{usual}]")).unwrap_or_default();
        self.repeat(&format!("{what}{offered}: "), |text| match (text, usual) {
            ("", Some(usual)) => Ok(usual.to_owned()),
            (text, _) => check(text),
        })
    }

    fn base_url(&self, provider: &str, known: Option<&KnownProvider>) -> Result<Option<String>, Stop> {
        let check = |text: &str| self.check.address(provider, text);
        let usual = self.check.usual_address(provider);
        match (&self.flags.base_url, usual) {
            (Some(text), _) => check(text).map(Some).map_err(|message| wrong("--base-url", &message)),
            (None, Some(_)) if self.terminal => self.offer("Base URL", usual, check).map(Some),
            (None, _) if known.is_some() => Ok(None),
            (None, Some(usual)) => Ok(Some(usual.to_owned())),
            (None, None) if !self.terminal => Err(missing("--base-url URL")),
            (None, None) => self.offer("Base URL, such as http://localhost:8000/v1", None, check).map(Some),
        }
    }

    /// Finds the key's source: the flags, then the variables of a configured or known provider, then a question.
    fn key(
        &self,
        provider: &str,
        known: Option<&KnownProvider>,
        configured: Option<&str>,
    ) -> Result<NewKey, Stop> {
        if let Some(name) = &self.flags.key_env {
            return variable_name(name).map(NewKey::Env).map_err(|message| wrong("--key-env", &message));
        }
        if self.flags.key_stdin {
            let what = format!("the key of `{provider}`");
            let hint = "clawsmith chat works without a key: a demo answers";
            let key = prompt::value(self.runtime, &what, hint)?.ok_or(Stop::GaveUp)?;
            return Ok(NewKey::Given(given_key(key.expose_secret()).map_err(Failure::usage)?));
        }
        if known.is_some_and(|known| known.key_env.is_empty()) {
            return Ok(NewKey::None);
        }
        let configured_variable = configured.and_then(|name| self.check.usual_variable(name));
        let known_variable = || known.and_then(|known| self.check.variable_of(known));
        if let Some(variable) = configured_variable.or_else(known_variable) {
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
        self.typed(known, configured)
    }

    /// A key, or the name of a variable that holds it. Nothing that is typed here shows: it may be the key.
    fn typed(&self, known: Option<&KnownProvider>, configured: Option<&str>) -> Result<NewKey, Stop> {
        let stored = match configured {
            Some(name) => self.runtime.block_on(self.check.stored_key(name))?,
            None => None,
        };
        let empty = if stored.is_some() { "keeps the stored one" } else { "for none" };
        let question = format!("API key (hidden; $NAME reads an environment variable; Enter {empty}): ");
        for _ in 0..ATTEMPTS {
            let line = prompt::hidden(self.runtime, &question)?.ok_or(Stop::GaveUp)?;
            if line.is_empty() {
                return Err(Stop::GaveUp);
            }
            let checked = match (line.trim(), line.trim().strip_prefix('$')) {
                ("", _) if stored.is_some() => return Ok(stored.map_or(NewKey::None, NewKey::Given)),
                ("", _) if known.is_some() => return Err(Stop::Demo),
                ("", _) => return Ok(NewKey::None),
                (_, Some(name)) => variable_name(name).map(NewKey::Env),
                (key, None) => typed_key(key).map(NewKey::Given),
            };
            match checked {
                Ok(key) => return Ok(key),
                Err(message) => complain("no", message),
            }
        }
        Err(Failure::usage("no valid answer was given; stopped asking")
            .hint("clawsmith onboard --help")
            .into())
    }

    fn model(&self, provider: &str) -> Result<String, Stop> {
        let check = |text: &str| self.check.model(text);
        match (&self.flags.model, self.check.usual_model(provider)) {
            (Some(name), _) => check(name).map_err(|message| wrong("--model", &message)),
            (None, Some(usual)) if !self.terminal || self.flags.yes => Ok(usual.to_owned()),
            (None, None) if !self.terminal => Err(missing("--model NAME")),
            (None, usual) => self.offer("Model", usual, check),
        }
    }
}

fn wrong(flag: &str, message: &str) -> Stop {
    Failure::usage(format!("`{flag}`: {message}")).into()
}

fn missing(flag: &str) -> Stop {
    let failure = Failure::usage(format!("`{flag}` is missing, and there is no terminal to ask at"));
    failure.hint("clawsmith onboard --help").into()
}
