//! Metrics for Prometheus: requests, connections, and the states of runs.

use std::borrow::Cow;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::http::{Method, StatusCode, header};
use axum::response::IntoResponse as _;
use clawsmith::store::LaneCount;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use serde_json::json;

use crate::Gateway;
use crate::api::{Output, Replied, Visit};
use crate::error::ApiError;
use crate::openapi::{Operation, Schemas};
use crate::reload;

/// Upper bounds of the classes of durations, in seconds.
const SECONDS: [f64; 9] = [0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0, 300.0];

/// The path of a request as the table has it, so that ids make no labels.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    path: Cow<'static, str>,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PathLabels {
    path: Cow<'static, str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

/// The numbers of one gateway.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    seconds: Family<PathLabels, Histogram>,
    /// Open connections.
    pub(crate) connections: Gauge,
    runs: Family<StateLabels, Gauge>,
    memory: Gauge,
    files: Gauge,
    tasks: Gauge,
    outdated: Gauge,
    reloads: Gauge,
    _started: Gauge<f64, AtomicU64>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("clawsmith");
        let requests = Family::default();
        let seconds: Family<PathLabels, Histogram> =
            Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        let (connections, runs) = (Gauge::default(), Family::default());
        let (memory, files, started) = (Gauge::default(), Gauge::default(), Gauge::default());
        let (outdated, reloads, tasks) = (Gauge::default(), Gauge::default(), Gauge::default());
        registry.register("http_requests", "Requests that were answered", requests.clone());
        let about = "Time from a request to the head of its answer";
        registry.register("http_request_seconds", about, seconds.clone());
        registry.register("http_connections", "Open connections", connections.clone());
        registry.register("runs", "Unfinished runs of all tenants, by state", runs.clone());
        registry.register("resident_memory_bytes", "Memory that the process uses", memory.clone());
        registry.register("open_files", "Files and sockets that the process has open", files.clone());
        registry.register("tasks", "Unfinished tasks of the program's runtime", tasks.clone());
        let about = "1 if the configuration file is invalid and an earlier version of it is in force";
        registry.register("configuration_outdated", about, outdated.clone());
        let about = "Reloads of the configuration since the gateway started";
        registry.register("configuration_reloads", about, reloads.clone());
        registry.register("start_time_seconds", "Unix time at which the gateway started", started.clone());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        started.set(now.map_or(0.0, |now| now.as_secs_f64()));
        Self {
            registry,
            requests,
            seconds,
            connections,
            runs,
            memory,
            files,
            tasks,
            outdated,
            reloads,
            _started: started,
        }
    }

    /// Counts a request to a path of the table, and its answer.
    pub(crate) fn observe(
        &self,
        method: &'static str,
        path: Cow<'static, str>,
        status: StatusCode,
        took: Duration,
    ) {
        let labels = PathLabels { path };
        self.seconds.get_or_create(&labels).observe(took.as_secs_f64());
        let labels = RequestLabels { method, path: labels.path, status: status.as_u16() };
        self.requests.get_or_create(&labels).inc();
    }

    /// Reads the values that are not counted as they happen.
    async fn look(&self, gateway: &Gateway) -> Result<(), clawsmith::app::Error> {
        let mut open: [(&'static str, u64); 3] = [("pending", 0), ("leased", 0), ("parked", 0)];
        for tenant in gateway.app().tenants().await? {
            for LaneCount { pending, leased, parked, .. } in gateway.app().store().lanes(&tenant.id).await? {
                for ((_, sum), count) in open.iter_mut().zip([pending, leased, parked]) {
                    *sum += count;
                }
            }
        }
        for (state, count) in open {
            self.runs.get_or_create(&StateLabels { state }).set(count.try_into().unwrap_or(i64::MAX));
        }
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages: i64 = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default();
        self.memory.set(pages.saturating_mul(4096));
        let files = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        self.files.set(files.try_into().unwrap_or(i64::MAX));
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        self.tasks.set(tasks.try_into().unwrap_or(i64::MAX));
        let configuration = reload::status(gateway);
        self.outdated.set(configuration.failure.is_some().into());
        self.reloads.set(configuration.reloads.try_into().unwrap_or(i64::MAX));
        Ok(())
    }
}

/// The name of a method as a label. Methods that nobody has heard of make no labels.
pub(crate) fn method_name(method: &Method) -> &'static str {
    let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    known.into_iter().find(|name| *name == method.as_str()).unwrap_or("other")
}

/// The metrics as text.
pub(crate) struct Exposition;

impl Output for Exposition {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let mime = "application/openmetrics-text";
        operation.also(StatusCode::OK, mime, json!({ "type": "string" }));
    }
}

pub(crate) async fn show(visit: Visit) -> Result<Replied<Exposition>, ApiError> {
    visit.gateway.app().may_read_metrics(visit.visitor())?;
    let metrics = &visit.gateway.0.metrics;
    metrics.look(&visit.gateway).await?;
    let mut text = String::new();
    let encoded = encode(&mut text, &metrics.registry);
    encoded.map_err(|_| {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", "metrics cannot be written")
    })?;
    let mime = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, mime)], text).into_response().into())
}
