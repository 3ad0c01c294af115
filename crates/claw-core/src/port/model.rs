//! Models: what is asked of one, what it answers, and what can go wrong.
//!
//! What differs between providers (stop reasons, ids of calls, arguments that are cut off) ends in `claw-llm`:
//! who asks a model sees what stands here and nothing else.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::id::TenantId;
use crate::message::{Part, Turn};
use crate::store::Tokens;
use crate::tool::Spec;

/// A model that can be asked. Dropping the future ends the request.
#[async_trait]
pub trait Model: Send + Sync {
    /// What is known of it.
    fn card(&self) -> &ModelCard;
    /// Asks it, and tells the pieces of the answer as they come; the whole is given at the end.
    async fn ask(&self, question: &Question, ear: &dyn Ear) -> Result<Answer, ModelError>;
}

/// Which models there are.
#[async_trait]
pub trait Models: Send + Sync {
    /// The model that answers for these names: those of an agent, or the deployment's where they are `None`. Its
    /// chain of fallbacks is behind it.
    async fn model(
        &self,
        tenant: &TenantId,
        provider: Option<&str>,
        model: Option<&str>,
    ) -> Result<Arc<dyn Model>, ModelError>;
}

/// What is known of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCard {
    /// Who runs it, by the name in configuration.
    pub provider: SmolStr,
    /// Its name there.
    pub model: SmolStr,
    /// How many tokens it can read and write together.
    pub context: u64,
    /// How many it can write in one answer.
    pub output: u64,
    /// Whether it sees pictures.
    pub images: bool,
    /// What it costs.
    pub prices: Prices,
    /// Whether it only plays a script. Front ends say so.
    pub demo: bool,
}

/// What a million tokens cost, in millionths of a US dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Prices {
    /// Read anew.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Read from the provider's cache.
    pub cache_read: u64,
    /// Put into it.
    pub cache_write: u64,
}

impl Prices {
    /// What these tokens cost, in millionths of a US dollar, rounded up.
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

/// What a model is asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Question {
    /// What it is told before all else. What seldom changes comes first: `stable` can be kept in a provider's
    /// cache.
    pub system: Prompt,
    /// The conversation so far.
    pub turns: Vec<Turn>,
    /// The tools it may call, in a stable order.
    pub tools: Vec<Spec>,
    /// Whether it may call them now.
    pub choice: Choice,
    /// How many tokens it may write; the model's own limit where `None`.
    pub output: Option<u64>,
    /// How many tokens it may think; none where `None`.
    pub thinking: Option<u64>,
    /// How freely it chooses its words.
    pub temperature: Option<f32>,
}

/// What a model is told before all else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The same in every turn of a session.
    pub stable: String,
    /// What changes: the time, reminders.
    pub changing: String,
}

/// Whether a model may call tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Choice {
    /// As it sees fit.
    #[default]
    Free,
    /// It may not; the tools stay in the request, so that caches hold.
    None,
}

/// Who hears an answer while it is given. Must not block.
pub trait Ear: Send + Sync {
    /// Takes a piece.
    fn hear(&self, piece: Piece<'_>);
}

impl<F: Fn(Piece<'_>) + Send + Sync> Ear for F {
    fn hear(&self, piece: Piece<'_>) {
        self(piece);
    }
}

/// A piece of an answer that is being given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Words.
    Text(&'a str),
    /// A thought.
    Thinking(&'a str),
    /// A call has begun; its arguments follow.
    Call {
        /// Which tool.
        tool: &'a str,
    },
    /// More of the last call's arguments.
    Args(&'a str),
    /// It failed half-way and begins anew: what was heard so far is not part of the answer.
    Again {
        /// Why.
        reason: &'a str,
    },
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What it said and which calls it wants, in order.
    pub parts: Vec<Part>,
    /// Why it stopped.
    pub stop: Stop,
    /// What was read and written, as the provider counts.
    pub tokens: Tokens,
    /// Who answered in the end; a fallback, maybe.
    pub provider: SmolStr,
    /// Which model.
    pub model: SmolStr,
    /// What it cost, in millionths of a US dollar.
    pub cost: i64,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It was done.
    Done,
    /// It wants tools to be called.
    Calls,
    /// Its answer became too long.
    Length,
    /// The provider would not let it say more.
    Refused,
}

/// Why a model did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider}/{model}: {fault}: {message}")]
pub struct ModelError {
    /// Who was asked.
    pub provider: SmolStr,
    /// Which model.
    pub model: SmolStr,
    /// What kind of failure.
    pub fault: Fault,
    /// What happened, with the values and scrubbed of keys, and what to try.
    pub message: String,
}

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Too many requests, or nothing left to spend.
    #[error("rate limited")]
    RateLimited {
        /// When to try again, if it was said.
        retry_after: Option<Duration>,
    },
    /// It is overloaded or broken on its side.
    #[error("unavailable")]
    Unavailable,
    /// The key is wrong, or may not use this model.
    #[error("not authorised")]
    Unauthorised,
    /// The conversation is longer than the model can read.
    #[error("conversation too long")]
    TooLong,
    /// It does not take the request as it is.
    #[error("bad request")]
    BadRequest,
    /// It was not reached, or the connection broke.
    #[error("connection failed")]
    Connection,
    /// It took too long: to connect, to begin, or to go on.
    #[error("timed out")]
    TimedOut,
    /// What it sent is not what its protocol says.
    #[error("unreadable answer")]
    Garbled,
    /// There is no such provider or model here.
    #[error("not set up")]
    NotSetUp,
}

impl Fault {
    /// Whether asking the same model again may help.
    pub const fn passes(self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. } | Self::Unavailable | Self::Connection | Self::TimedOut | Self::Garbled
        )
    }
}
