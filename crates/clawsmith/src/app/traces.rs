//! Sends spans to a collector, by OpenTelemetry's protocol over HTTP with JSON.
//!
//! Nothing is sent unless `telemetry.endpoint` is set. A collector that is slow or away costs spans, never a run: spans wait in a
//! queue of bounded length and are dropped when it is full.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use claw_core::port::{Attribute, Span, Traces};
use claw_net::{Client, Method, Options, Origin, Request, Times, Url, header};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::Error;
use crate::config::TelemetryConfig;

/// Spans that wait, and spans of one request.
const WAITING: usize = 4_096;
const BATCH: usize = 256;
/// The longest that a span waits for others.
const EVERY: Duration = Duration::from_secs(1);
/// The longest that a request takes, and the end of the process waits.
const PATIENCE: Duration = Duration::from_secs(5);

enum Line {
    Ended(Span),
    Flush(oneshot::Sender<()>),
}

/// Spans on their way to a collector.
#[derive(Clone)]
pub(super) struct Collector {
    lines: mpsc::Sender<Line>,
    lost: Arc<AtomicU64>,
    content: bool,
}

impl Collector {
    /// Starts to send, within a runtime; `None` if no endpoint is set. `variable` reads the environment.
    pub(super) fn start(
        config: &TelemetryConfig,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, Error> {
        let Some(endpoint) = &config.endpoint else { return Ok(None) };
        let unusable =
            || Error::invalid(format!("`telemetry.endpoint` is not an HTTP address: `{endpoint}`"));
        let address = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let url = Url::parse(&address).map_err(|_| unusable())?;
        let origin = Origin::of(&url).ok_or_else(unusable)?;
        let token = match &config.token_env {
            None => None,
            Some(name) => Some(variable(name).ok_or_else(|| {
                Error::invalid(format!("`telemetry.token_env` names the variable `{name}`, which is not set"))
            })?),
        };
        let client = Client::new(Options { named: BTreeSet::from([origin]), ..Options::default() });
        let (lines, told) = mpsc::channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let sender = Sender { client, url, token, service: config.service.clone(), lost: Arc::clone(&lost) };
        tokio::spawn(sender.work(told));
        Ok(Some(Self { lines, lost, content: config.content }))
    }

    /// Waits until everything told so far is sent or given up.
    pub(super) async fn flush(&self) {
        let (asked, done) = oneshot::channel();
        let flushed = async {
            if self.lines.send(Line::Flush(asked)).await.is_ok() {
                // The sender ends with its last owner.
                let _ = done.await;
            }
        };
        if timeout(PATIENCE, flushed).await.is_err() {
            tracing::warn!("the collector took too long; the last spans may be missing");
        }
    }
}

impl Traces for Collector {
    fn with_content(&self) -> bool {
        self.content
    }

    fn ended(&self, span: Span) {
        if self.lines.try_send(Line::Ended(span)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

struct Sender {
    client: Client,
    url: Url,
    token: Option<String>,
    service: String,
    lost: Arc<AtomicU64>,
}

impl Sender {
    async fn work(self, mut told: mpsc::Receiver<Line>) {
        let mut spans = Vec::new();
        let mut tick = interval(EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                line = told.recv() => match line {
                    Some(Line::Ended(span)) => spans.push(span),
                    Some(Line::Flush(done)) => {
                        self.send(&mut spans).await;
                        // The asker may be gone.
                        let _ = done.send(());
                    }
                    None => return self.send(&mut spans).await,
                },
                _ = tick.tick() => self.send(&mut spans).await,
            }
            if spans.len() >= BATCH {
                self.send(&mut spans).await;
            }
        }
    }

    async fn send(&self, spans: &mut Vec<Span>) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            tracing::warn!(lost, "spans were dropped: the collector takes them too slowly");
        }
        if spans.is_empty() {
            return;
        }
        let body = export(&self.service, spans).to_string();
        let count = spans.len();
        spans.clear();
        let times = Times { whole: Some(PATIENCE), ..Times::default() };
        let mut request = Request::new(Method::POST, self.url.clone()).times(times).body(body);
        request = request.header(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        if let Some(token) = &self.token
            && let Ok(value) = header::HeaderValue::from_str(&format!("Bearer {token}"))
        {
            request = request.header(header::AUTHORIZATION, value);
        }
        match self.client.send(request).await {
            Ok(answer) if (200..300).contains(&answer.status()) => {}
            Ok(answer) => {
                tracing::warn!(
                    status = answer.status(),
                    count,
                    "the collector refused spans; they are dropped"
                );
            }
            Err(error) => tracing::warn!(%error, count, "spans could not be sent; they are dropped"),
        }
    }
}

/// The request that exports spans, in the protocol's JSON form.
fn export(service: &str, spans: &[Span]) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    let resource = [
        ("service.name", Attribute::Text(service.to_owned())),
        ("service.version", Attribute::Text(version.to_owned())),
    ];
    json!({ "resourceSpans": [{
        "resource": { "attributes": attributes(&resource) },
        "scopeSpans": [{
            "scope": { "name": "clawsmith", "version": version },
            "spans": spans.iter().map(shown).collect::<Vec<Value>>(),
        }],
    }] })
}

fn shown(span: &Span) -> Value {
    let start = u128::try_from(span.start.0).unwrap_or(0) * 1_000_000;
    let mut shown = json!({
        "traceId": format!("{:032x}", span.trace.0),
        "spanId": format!("{:016x}", span.id.0),
        "name": span.name,
        "kind": if span.is_client { 3 } else { 1 },
        "startTimeUnixNano": start.to_string(),
        "endTimeUnixNano": (start + span.took.as_nanos()).to_string(),
        "attributes": attributes(&span.attributes),
    });
    if let Some(parent) = span.parent {
        shown["parentSpanId"] = format!("{:016x}", parent.0).into();
    }
    if let Some(error) = &span.error {
        shown["status"] = json!({ "code": 2, "message": error });
    }
    shown
}

fn attributes(attributes: &[(&'static str, Attribute)]) -> Vec<Value> {
    let text = |text: &String| json!({ "stringValue": text });
    let shown = attributes.iter().map(|(key, value)| {
        let value = match value {
            Attribute::Text(value) => text(value),
            Attribute::Texts(values) => {
                json!({ "arrayValue": { "values": values.iter().map(text).collect::<Vec<Value>>() } })
            }
            // Numbers of 64 bits are texts in the protocol's JSON form.
            Attribute::Number(value) => json!({ "intValue": value.to_string() }),
        };
        json!({ "key": key, "value": value })
    });
    shown.collect()
}
