//! Gemini's content API.

mod request;
mod stream;

use claw_core::port::{ModelCard, Question};
use claw_net::Url;
use serde_json::Value;

use crate::wire::{Reader, Wire, below};

/// The provider's name in seals.
const SEAL: &str = "gemini";

pub(crate) struct Gemini;

impl Wire for Gemini {
    fn url(&self, base: &Url, model: &str) -> Url {
        let model = model.strip_prefix("models/").unwrap_or(model);
        let mut url = below(base, &["models", &format!("{model}:streamGenerateContent")]);
        url.set_query(Some("alt=sse"));
        url
    }

    fn key(&self, key: &str) -> (&'static str, String) {
        ("x-goog-api-key", key.to_owned())
    }

    fn body(&self, question: &Question, card: &ModelCard) -> Value {
        request::body(question, card)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<stream::Stream>::default()
    }
}
