//! `[telemetry]`: traces for a collector.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Traces for a collector of OpenTelemetry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// The collector's address for OTLP over HTTP, to which `/v1/traces` is added. Left out: nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The environment variable with a bearer token for the collector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// The `service.name` of the spans.
    pub service: String,
    /// Send messages, arguments and results too, scrubbed.
    pub content: bool,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self { endpoint: None, token_env: None, service: "clawsmith".to_owned(), content: false }
    }
}
