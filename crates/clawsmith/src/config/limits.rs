//! `[limits]`: how often tools may be called, how long they may take, and how much they may return.

use std::time::Duration;

use claw_host::{ArtifactKeeping, ProcessLimits};
use claw_policy::rate_config::RateConfig;
use claw_registry::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{days, in_days, in_mib, in_u32, mib};

/// Limits of calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Calls that one session may make in any 60 seconds; 0 means no limit.
    pub rate: RateConfig,
    /// The timeout of a call, in seconds, unless the tool has its own.
    #[schemars(range(min = 1))]
    pub timeout_secs: u32,
    /// Seconds that a tool may take to clean up after it was told to stop.
    pub grace_secs: u32,
    /// The most bytes of a result sent to the model; the whole result is kept.
    #[schemars(range(min = 256))]
    pub output_bytes: u32,
    /// The most bytes of arguments of a call.
    #[schemars(range(min = 2))]
    pub argument_bytes: u32,
    /// The most tokens for the definitions of tools; tools beyond it are found with `tool_search`. Left out: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_tokens: Option<u32>,
    /// Days for which whole results are kept.
    #[schemars(range(min = 1, max = 36500))]
    pub result_days: u32,
    /// The most MiB of whole results kept for a tenant; beyond that the oldest are deleted.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub result_mib: u32,
    /// Commands of one session that may run in the background at a time; 0 allows none.
    #[schemars(range(max = 256))]
    pub background_commands: u32,
    /// The most bytes kept of a background command's output; older output is dropped.
    #[schemars(range(min = 1024, max = 67_108_864))]
    pub background_bytes: u32,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let calls = Limits::default();
        let results = ArtifactKeeping::default();
        let processes = ProcessLimits::default();
        Self {
            rate: RateConfig::default(),
            timeout_secs: in_u32(calls.timeout.as_secs()),
            grace_secs: in_u32(calls.grace.as_secs()),
            output_bytes: in_u32(calls.output_bytes),
            argument_bytes: in_u32(calls.argument_bytes),
            tool_tokens: None,
            result_days: in_days(results.age),
            result_mib: in_mib(results.bytes),
            background_commands: in_u32(processes.per_session),
            background_bytes: in_u32(processes.output_bytes),
        }
    }
}

impl LimitsConfig {
    /// Converts the limits for the executor.
    pub fn for_calls(&self) -> Limits {
        Limits {
            timeout: Duration::from_secs(self.timeout_secs.into()),
            grace: Duration::from_secs(self.grace_secs.into()),
            output_bytes: usize::try_from(self.output_bytes).unwrap_or(usize::MAX),
            argument_bytes: usize::try_from(self.argument_bytes).unwrap_or(usize::MAX),
        }
    }

    /// Returns the limits of background commands and their output.
    pub fn for_processes(&self) -> ProcessLimits {
        ProcessLimits {
            per_session: usize::try_from(self.background_commands).unwrap_or(usize::MAX),
            output_bytes: usize::try_from(self.background_bytes).unwrap_or(usize::MAX),
            ..ProcessLimits::default()
        }
    }

    /// Returns the limits on kept whole results.
    pub fn artifact_keeping(&self) -> ArtifactKeeping {
        ArtifactKeeping { age: days(self.result_days), bytes: mib(self.result_mib) }
    }
}
