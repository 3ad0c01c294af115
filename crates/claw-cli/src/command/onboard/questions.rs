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
use crate::failure::Failure;

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
        let key = self.key(&provider, known.filter(|_| base_url.is_none()))?;
        let model = self.model(known)?;
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
        self.repeat(&format!("Number or name [{usual}]: "), |text| match text {
            "" => Ok(usual.to_owned()),
            text => self.check.provider(text, false),
        })
    }

    fn base_url(&self, provider: &str, known: Option<&KnownProvider>) -> Result<Option<String>, Stop> {
        let check = |text: &str| self.check.address(provider, text);
        match &self.flags.base_url {
            Some(text) => check(text).map(Some).map_err(|message| wrong("--base-url", &message)),
            None if known.is_some() => Ok(None),
            None if !self.terminal => Err(missing("--base-url URL")),
            None => self.repeat("Base URL, such as http://localhost:8000/v1: ", check).map(Some),
        }
    }

    /// Finds the key's source: the flags, then a known provider's variables, then a question.
    fn key(&self, provider: &str, known: Option<&KnownProvider>) -> Result<NewKey, Stop> {
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
        if let Some(variable) = known.and_then(|known| self.check.variable_of(known)) {
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
            let checked = match (line.trim(), line.trim().strip_prefix('$')) {
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

    fn model(&self, known: Option<&KnownProvider>) -> Result<String, Stop> {
        let usual = known.map(|known| known.model).filter(|model| !model.is_empty());
        let check = |text: &str| self.check.model(text);
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
}

fn wrong(flag: &str, message: &str) -> Stop {
    Failure::usage(format!("`{flag}`: {message}")).into()
}

fn missing(flag: &str) -> Stop {
    let failure = Failure::usage(format!("nobody is here to be asked, and `{flag}` is missing"));
    failure.hint("clawsmith onboard --help").into()
}
