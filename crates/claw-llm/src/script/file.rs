//! The file format of a script.

use serde::Deserialize;
use toml::Spanned;

use claw_core::port::{Prices, Stop};
use claw_core::store::Tokens;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub(super) model: Model,
    /// Characters per piece.
    #[serde(default = "piece")]
    pub(super) piece: Spanned<usize>,
    /// Delay before each piece, in milliseconds.
    #[serde(default)]
    pub(super) delay_ms: u64,
    #[serde(default)]
    pub(super) turn: Vec<Spanned<Turn>>,
}

fn piece() -> Spanned<usize> {
    Spanned::new(0..0, 16)
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Model {
    pub(super) context: u64,
    pub(super) output: u64,
    pub(super) images: bool,
    pub(super) prices: Prices,
}

impl Default for Model {
    fn default() -> Self {
        Self { context: 128_000, output: 8_000, images: true, prices: Prices::default() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Turn {
    pub(super) when: Option<When>,
    #[serde(rename = "do")]
    pub(super) steps: Vec<Spanned<Step>>,
    pub(super) stop: Option<Stop>,
    pub(super) tokens: Option<Counted>,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
pub(super) struct Counted {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

impl From<Counted> for Tokens {
    fn from(counted: Counted) -> Self {
        let Counted { input, output, cache_read, cache_write } = counted;
        Self { input, output, cache_read, cache_write }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct When {
    pub(super) said: Option<String>,
    pub(super) said_matches: Option<Spanned<String>>,
    pub(super) system: Option<String>,
    pub(super) result: Option<String>,
    pub(super) result_matches: Option<Spanned<String>>,
    pub(super) result_of: Option<String>,
    pub(super) result_failed: Option<bool>,
    #[serde(default)]
    pub(super) offered: Vec<String>,
    #[serde(default)]
    pub(super) not_offered: Vec<String>,
    pub(super) may_call: Option<bool>,
    pub(super) image: Option<bool>,
    pub(super) round: Option<usize>,
    pub(super) time: Option<Spanned<u32>>,
    pub(super) first: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    pub(super) say: Option<String>,
    pub(super) think: Option<String>,
    pub(super) call: Option<String>,
    pub(super) args: Option<toml::Table>,
    pub(super) args_text: Option<String>,
    pub(super) id: Option<String>,
    pub(super) cut: Option<usize>,
    pub(super) piece: Option<usize>,
    pub(super) delay_ms: Option<u64>,
    pub(super) wait_ms: Option<u64>,
    pub(super) fail: Option<Failure>,
    pub(super) retry_after_ms: Option<u64>,
    pub(super) message: Option<String>,
    pub(super) hang: Option<bool>,
}

/// The kinds of failure, by name.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Failure {
    RateLimited,
    Unavailable,
    Unauthorised,
    TooLong,
    BadRequest,
    Connection,
    TimedOut,
    Garbled,
}
