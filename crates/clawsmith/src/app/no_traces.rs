//! Stands for the sender of spans in a build without the feature `otel`: a configured endpoint is refused.

use claw_core::port::{Span, Traces};

use super::Error;
use crate::config::TelemetryConfig;

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
            Some(_) => Err(Error::invalid("`telemetry.endpoint` is set, but this build sends no traces")
                .hint("build it with the feature `otel`")),
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
