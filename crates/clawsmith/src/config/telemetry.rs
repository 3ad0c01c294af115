//! `[telemetry]`: traces for a collector.

use claw_net::{Origin, Url};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Traces that are sent to an OpenTelemetry collector.
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

impl TelemetryConfig {
    /// Returns the address that spans are sent to, or why `endpoint` is none; `None` if it is not set.
    pub(crate) fn address(&self) -> Option<Result<Url, String>> {
        const EXAMPLE: &str = "write the collector's address, such as `http://127.0.0.1:4318`";
        let endpoint = self.endpoint.as_deref()?;
        let address = || {
            let plain = endpoint.trim_end_matches('/');
            let url = Url::parse(plain)
                .map_err(|error| format!("`{endpoint}` is not a URL ({error}); {EXAMPLE}"))?;
            if Origin::of(&url).is_none() {
                return Err(format!("`{endpoint}` is neither http nor https; {EXAMPLE}"));
            }
            if !url.username().is_empty() || url.password().is_some() {
                return Err(format!("it holds a password; put a token into `token_env`, and {EXAMPLE}"));
            }
            if url.query().is_some() || url.fragment().is_some() {
                return Err(format!("`{endpoint}` has more than host, port and path; {EXAMPLE}"));
            }
            if url.path().ends_with("/v1/traces") {
                return Err(format!("`/v1/traces` is added to `{endpoint}`; leave it out"));
            }
            Url::parse(&format!("{plain}/v1/traces"))
                .map_err(|error| format!("`{endpoint}` is not a URL ({error})"))
        };
        Some(address())
    }
}
