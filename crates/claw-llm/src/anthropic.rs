//! Anthropic's messages API.

mod request;
mod stream;

use claw_core::port::{ModelCard, Question};
use claw_net::Url;
use serde_json::Value;

use crate::wire::{Reader, Wire, below};

/// The provider's name in seals.
const SEAL: &str = "anthropic";
/// Prefix of the seal of a redacted thought.
const REDACTED: &str = "redacted:";

/// The messages format, with how its models are told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Anthropic {
    /// The model decides how much it thinks; otherwise it is given a number of tokens.
    pub(crate) adaptive: bool,
}

impl Wire for Anthropic {
    fn url(&self, base: &Url, _: &str) -> Url {
        let versioned = base.path().trim_end_matches('/').ends_with("/v1");
        below(base, if versioned { &["messages"] } else { &["v1", "messages"] })
    }

    fn key(&self, key: &str) -> (&'static str, String) {
        ("x-api-key", key.to_owned())
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn body(&self, question: &Question, card: &ModelCard) -> Value {
        request::body(*self, question, card)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<stream::Stream>::default()
    }
}
