//! OpenAI's chat completions, and the variants of compatible servers.

mod request;
mod stream;

use claw_core::port::{ModelCard, Question};
use claw_net::Url;
use claw_schema::dialect::Dialect;
use serde_json::Value;

use crate::wire::{Reader, Wire, below};

/// The variant that a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenAi {
    pub(crate) dialect: Dialect,
    /// The limit of an answer is sent as `max_completion_tokens`.
    pub(crate) completion_tokens: bool,
    /// The setting that controls thinking.
    pub(crate) thinking: Thinking,
    /// The server wants its thoughts back during tool calls.
    pub(crate) echo: bool,
    /// Call ids have nine letters and digits.
    pub(crate) short_ids: bool,
    /// Usage in a stream has to be requested.
    pub(crate) ask_usage: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thinking {
    /// No setting is sent.
    Untold,
    /// `reasoning_effort`: low, medium or high.
    Effort,
    /// `reasoning.max_tokens`.
    Budget,
}

impl OpenAi {
    /// The variant of the server at this host.
    pub(crate) fn at(host: &str) -> Self {
        let most = Self {
            dialect: Dialect::OpenAi,
            completion_tokens: false,
            thinking: Thinking::Untold,
            echo: false,
            short_ids: false,
            ask_usage: true,
        };
        let is = |domain: &str| {
            host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        if is("openai.com") || is("openai.azure.com") {
            Self { completion_tokens: true, thinking: Thinking::Effort, ..most }
        } else if is("openrouter.ai") {
            Self { thinking: Thinking::Budget, ..most }
        } else if is("x.ai") {
            Self { dialect: Dialect::XAi, thinking: Thinking::Effort, ..most }
        } else if is("mistral.ai") {
            Self { short_ids: true, ask_usage: false, ..most }
        } else if is("groq.com") {
            Self { completion_tokens: true, ..most }
        } else if is("deepseek.com") || is("moonshot.ai") || is("moonshot.cn") || is("minimax.io") {
            Self { echo: true, ..most }
        } else {
            most
        }
    }
}

impl Wire for OpenAi {
    fn url(&self, base: &Url, _: &str) -> Url {
        below(base, &["chat", "completions"])
    }

    fn key(&self, key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    fn body(&self, question: &Question, card: &ModelCard) -> Value {
        request::body(self, question, card)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<stream::Stream>::default()
    }
}

#[cfg(test)]
mod tests;
