//! Models: questions to them, their answers, and errors.
//!
//! The differences between providers (stop reasons, ids of calls, arguments that are cut off) end in
//! `claw-llm`: callers of a model see only the types in this file.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::id::{TenantId, ToolName};
use crate::message::{Part, Turn};
use crate::store::Tokens;
use crate::tool::Spec;

/// A model that can be asked. Dropping the future ends the request.
#[async_trait]
pub trait Model: Send + Sync {
    /// Returns the model's description.
    fn card(&self) -> &ModelCard;
    /// Asks the model, passes the pieces of the answer on as they arrive, and returns the whole.
    async fn ask(&self, question: &Question, ear: &dyn Ear) -> Result<Answer, ModelError>;
}

/// The models of a deployment.
#[async_trait]
pub trait Models: Send + Sync {
    /// Returns the model of these names: an agent's, or the deployment's for `None`. Its chain of fallbacks
    /// is included.
    async fn model(
        &self,
        tenant: &TenantId,
        provider: Option<&str>,
        model: Option<&str>,
    ) -> Result<Arc<dyn Model>, ModelError>;
}

/// The description of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCard {
    /// The provider, by its name in the configuration.
    pub provider: SmolStr,
    /// The provider's name of the model.
    pub model: SmolStr,
    /// The context window in tokens, input and output together.
    pub context: u64,
    /// The most tokens of one answer.
    pub output: u64,
    /// True if it accepts images.
    pub images: bool,
    /// Its prices.
    pub prices: Prices,
    /// True if it only plays a script. Front ends show that.
    pub demo: bool,
}

/// The prices of a million tokens, in millionths of a US dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Prices {
    /// Uncached input.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Input read from the provider's cache.
    pub cache_read: u64,
    /// Input written to the provider's cache.
    pub cache_write: u64,
}

impl Prices {
    /// Returns the cost of these tokens, in millionths of a US dollar, rounded up.
    pub fn cost(&self, tokens: &Tokens) -> i64 {
        let sum = [
            (tokens.input, self.input),
            (tokens.output, self.output),
            (tokens.cache_read, self.cache_read),
            (tokens.cache_write, self.cache_write),
        ]
        .into_iter()
        .map(|(count, price)| u128::from(count) * u128::from(price))
        .sum::<u128>();
        i64::try_from(sum.div_ceil(1_000_000)).unwrap_or(i64::MAX)
    }
}

/// A request to a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Question {
    /// The system prompt. Its stable part comes first, so that a provider can cache it.
    pub system: Prompt,
    /// The messages so far.
    pub turns: Vec<Turn>,
    /// The tools, in a stable order.
    pub tools: Vec<Spec>,
    /// The permission to call tools.
    pub choice: Choice,
    /// The most tokens to write; `None` for the model's own limit.
    pub output: Option<u64>,
    /// The most tokens to think; `None` for no thinking.
    pub thinking: Option<u64>,
    /// The sampling temperature; `None` for the provider's default.
    pub temperature: Option<f32>,
}

/// The system prompt of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The part that is the same in every turn of a session.
    pub stable: String,
    /// The part that changes: the time, reminders.
    pub changing: String,
}

/// The permission of a model to call tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Choice {
    /// The model decides.
    #[default]
    Free,
    /// Tools may not be called; they stay in the request, so that caches hold.
    None,
    /// A tool must be called.
    Any,
    /// This tool must be called.
    Tool(ToolName),
}

/// Receives an answer while it streams. Must not block.
pub trait Ear: Send + Sync {
    /// Takes one piece.
    fn hear(&self, piece: Piece<'_>);
}

impl<F: Fn(Piece<'_>) + Send + Sync> Ear for F {
    fn hear(&self, piece: Piece<'_>) {
        self(piece);
    }
}

/// A piece of a streaming answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text.
    Text(&'a str),
    /// Reasoning.
    Thinking(&'a str),
    /// A call has begun; its arguments follow.
    Call {
        /// The tool.
        tool: &'a str,
    },
    /// More of the last call's arguments.
    Args(&'a str),
    /// The answer failed half-way and starts again: the pieces so far are not part of it.
    Again {
        /// The reason.
        reason: &'a str,
    },
}

/// The answer of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Its texts and calls, in order.
    pub parts: Vec<Part>,
    /// The reason why the model stopped.
    pub stop: Stop,
    /// The tokens read and written, as the provider counts.
    pub tokens: Tokens,
    /// The provider that answered, possibly a fallback.
    pub provider: SmolStr,
    /// The model that answered.
    pub model: SmolStr,
    /// The cost, in millionths of a US dollar.
    pub cost: i64,
}

/// The reason why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The answer is complete.
    Done,
    /// The model requests tool calls.
    Calls,
    /// The answer reached its length limit.
    Length,
    /// The provider refused to let the model continue.
    Refused,
}

/// The reason why a model did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider}/{model}: {fault}: {message}")]
pub struct ModelError {
    /// The provider.
    pub provider: SmolStr,
    /// The model.
    pub model: SmolStr,
    /// The kind of failure.
    pub fault: Fault,
    /// The failure with its values, scrubbed of keys, and the advice.
    pub message: String,
}

/// The kind of a model's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Too many requests, or no credit left.
    #[error("rate limited")]
    RateLimited {
        /// The wait that the provider asked for; `None` if it asked for none.
        retry_after: Option<Duration>,
    },
    /// The provider is overloaded or broken.
    #[error("unavailable")]
    Unavailable,
    /// The key is wrong, or does not permit this model.
    #[error("not authorised")]
    Unauthorised,
    /// The messages exceed the model's context window.
    #[error("conversation too long")]
    TooLong,
    /// The provider rejects the request.
    #[error("bad request")]
    BadRequest,
    /// The provider could not be reached, or the connection broke.
    #[error("connection failed")]
    Connection,
    /// A timeout: to connect, to begin, or to go on.
    #[error("timed out")]
    TimedOut,
    /// The answer violates the provider's protocol.
    #[error("unreadable answer")]
    Garbled,
    /// The provider or model is not configured.
    #[error("not set up")]
    NotSetUp,
}

impl Fault {
    /// Returns whether the failure is transient, so that asking the same model again may succeed.
    pub const fn is_transient(self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. } | Self::Unavailable | Self::Connection | Self::TimedOut | Self::Garbled
        )
    }
}
