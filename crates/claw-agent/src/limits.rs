//! The limits of one run.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// Limits of one run. When one is reached, the run ends with a last answer, in which the model may call no
/// tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunLimits {
    /// The most requests to the model.
    #[schemars(range(min = 1))]
    pub iterations: u32,
    /// The most tool calls.
    pub calls: u32,
    /// The longest duration, in seconds.
    #[schemars(range(min = 1))]
    pub seconds: u32,
    /// The most it may cost, in millionths of a US dollar. Left out: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// The most tokens of one answer. Left out: the model's own limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// The most tokens of thinking before an answer. Left out: no thinking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<u64>,
    /// The most attempts, after failures and crashes, before the run is given up and reported.
    #[schemars(range(min = 1))]
    pub attempts: u16,
    /// The treatment of messages that arrive during a run.
    pub meanwhile: Meanwhile,
    /// Thresholds at which a run that repeats itself is warned and stopped.
    pub loops: LoopLimits,
}

/// The treatment of messages that arrive during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Meanwhile {
    /// Each waits for the run to end and is answered by itself.
    #[default]
    Queue,
    /// All wait for the run to end and are answered together.
    Merge,
    /// The run reads them at its next request to the model.
    Steer,
}

/// Thresholds at which a run that repeats itself is warned and stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoopLimits {
    /// Repetitions of the same call with the same result, with nothing changed meanwhile.
    #[serde(deserialize_with = "same_call")]
    pub same_call: Threshold,
    /// Repetitions of the same result by a tool that reads, or that fails, whatever its arguments.
    #[serde(deserialize_with = "same_result")]
    pub same_result: Threshold,
    /// Reading calls in a row. Tripled if more than 60 % of them differ in tool or arguments.
    #[serde(deserialize_with = "reads")]
    pub reads: Threshold,
    /// Repetitions of two alternating calls with the same results.
    #[serde(deserialize_with = "ping_pong")]
    pub ping_pong: Threshold,
}

/// A threshold of repetitions. A field left out has the default of its counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Threshold {
    /// The number at which the model is warned; 0 for never.
    pub warn: u32,
    /// The number at which the run ends; 0 for never.
    pub stop: u32,
}

impl Threshold {
    const SAME_CALL: Self = Self { warn: 3, stop: 5 };
    const SAME_RESULT: Self = Self { warn: 4, stop: 6 };
    const READS: Self = Self { warn: 12, stop: 18 };
    const PING_PONG: Self = Self { warn: 3, stop: 5 };

    /// Deserialises a threshold, with `self` as the default of missing fields.
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
    /// Returns the longest duration.
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
