//! How far one run may go.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// How far one run may go before it has to end. What is reached ends it with a last answer, in which the model may
/// call no tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunLimits {
    /// How often the model is asked.
    #[schemars(range(min = 1))]
    pub iterations: u32,
    /// How many tool calls are made.
    pub calls: u32,
    /// How many seconds it may take.
    #[schemars(range(min = 1))]
    pub seconds: u32,
    /// What it may cost, in millionths of a US dollar. Left out: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// How many tokens the model may write in one answer. Left out: the model's own limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// How many tokens the model may think before it answers. Left out: it does not think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<u64>,
    /// How often a run is begun, after failures and crashes, before it is given up and reported.
    #[schemars(range(min = 1))]
    pub attempts: u16,
    /// What becomes of messages that come while a run goes on.
    pub meanwhile: Meanwhile,
    /// When a run that goes in circles is warned, and when it is stopped.
    pub loops: LoopLimits,
}

/// What becomes of messages that come while a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Meanwhile {
    /// Each waits for the run to end and is answered by itself.
    #[default]
    Queue,
    /// They wait for the run to end and are answered together.
    Merge,
    /// The run reads them as soon as the model is asked again.
    Steer,
}

/// When a run that goes in circles is warned, and when it is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoopLimits {
    /// The same call gave the same result this often, and nothing was changed meanwhile.
    #[serde(deserialize_with = "same_call")]
    pub same_call: Threshold,
    /// A tool that reads, or that fails, gave the same result this often, whatever its arguments.
    #[serde(deserialize_with = "same_result")]
    pub same_result: Threshold,
    /// Nothing but reading, this often in a row. Three times as often where most of it is new.
    #[serde(deserialize_with = "reads")]
    pub reads: Threshold,
    /// Two calls that take turns, this many times each, with the same results.
    #[serde(deserialize_with = "ping_pong")]
    pub ping_pong: Threshold,
}

/// How often is too often. What is left out is as usual for what is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Threshold {
    /// The model is told; 0 for never.
    pub warn: u32,
    /// The run ends; 0 for never.
    pub stop: u32,
}

impl Threshold {
    const SAME_CALL: Self = Self { warn: 3, stop: 5 };
    const SAME_RESULT: Self = Self { warn: 4, stop: 6 };
    const READS: Self = Self { warn: 12, stop: 18 };
    const PING_PONG: Self = Self { warn: 3, stop: 5 };

    /// What is given, over what is usual.
    fn over<'de, D: Deserializer<'de>>(self, given: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Given {
            warn: Option<u32>,
            stop: Option<u32>,
        }
        let Given { warn, stop } = Given::deserialize(given)?;
        Ok(Self { warn: warn.unwrap_or(self.warn), stop: stop.unwrap_or(self.stop) })
    }
}

impl RunLimits {
    /// How long it may take.
    pub fn time(&self) -> Duration {
        Duration::from_secs(self.seconds.into())
    }
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            iterations: 40,
            calls: 200,
            seconds: 1_800,
            cost_micros: None,
            output_tokens: None,
            thinking_tokens: None,
            attempts: 3,
            meanwhile: Meanwhile::Queue,
            loops: LoopLimits::default(),
        }
    }
}

impl Default for LoopLimits {
    fn default() -> Self {
        Self {
            same_call: Threshold::SAME_CALL,
            same_result: Threshold::SAME_RESULT,
            reads: Threshold::READS,
            ping_pong: Threshold::PING_PONG,
        }
    }
}

fn same_call<'de, D: Deserializer<'de>>(given: D) -> Result<Threshold, D::Error> {
    Threshold::SAME_CALL.over(given)
}

fn same_result<'de, D: Deserializer<'de>>(given: D) -> Result<Threshold, D::Error> {
    Threshold::SAME_RESULT.over(given)
}

fn reads<'de, D: Deserializer<'de>>(given: D) -> Result<Threshold, D::Error> {
    Threshold::READS.over(given)
}

fn ping_pong<'de, D: Deserializer<'de>>(given: D) -> Result<Threshold, D::Error> {
    Threshold::PING_PONG.over(given)
}
