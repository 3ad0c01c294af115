//! Stands for the sender of spans in a build without the feature `otel`: a configured endpoint is refused.

use claw_core::port::{Span, Traces};

use super::Error;
use crate::config::{NOT_BUILT_IN, TelemetryConfig};

/// Never made in this build.
#[derive(Clone)]
pub(super) enum Collector {}

impl Collector {
    pub(super) fn start(
        config: &TelemetryConfig,
        _: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, Error> {
        match config.endpoint {
            None => Ok(None),
            Some(_) => Err(Error::invalid(format!("`telemetry.endpoint`: {NOT_BUILT_IN}"))),
        }
    }

    #[expect(clippy::unused_async, reason = "the same signature as in a build that sends")]
    pub(super) async fn flush(&self) {
        match *self {}
    }
}

impl Traces for Collector {
    fn with_content(&self) -> bool {
        match *self {}
    }

    fn ended(&self, _: Span) {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_that_traces_are_not_built_in() {
        let endpoint = Some("http://127.0.0.1:4318".to_owned());
        let config = TelemetryConfig { endpoint, ..TelemetryConfig::default() };
        let error = Collector::start(&config, |_| None).err().unwrap();
        assert!(error.message().contains("built without traces"), "{error}");
        assert!(error.message().contains("cargo feature `otel`"), "{error}");
        assert!(Collector::start(&TelemetryConfig::default(), |_| None).unwrap().is_none());
    }
}
