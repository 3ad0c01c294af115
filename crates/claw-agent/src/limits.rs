//! How far one run may go.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// When a run that goes in circles is warned, and when it is stopped.
    pub loops: LoopLimits,
}

/// When a run that goes in circles is warned, and when it is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoopLimits {
    /// The same call gave the same result this often, and nothing was changed meanwhile.
    pub same_call: Threshold,
    /// A tool that reads, or that fails, gave the same result this often, whatever its arguments.
    pub same_result: Threshold,
    /// Nothing but reading, this often in a row. Three times as often where most of it is new.
    pub reads: Threshold,
    /// Two calls that take turns, this many times each, with the same results.
    pub ping_pong: Threshold,
}

/// How often is too often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// The model is told; 0 for never.
    pub warn: u32,
    /// The run ends; 0 for never.
    pub stop: u32,
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
            loops: LoopLimits::default(),
        }
    }
}

impl Default for LoopLimits {
    fn default() -> Self {
        Self {
            same_call: Threshold { warn: 3, stop: 5 },
            same_result: Threshold { warn: 4, stop: 6 },
            reads: Threshold { warn: 12, stop: 18 },
            ping_pong: Threshold { warn: 3, stop: 5 },
        }
    }
}
