//! The operator's log on standard error: text, or JSON with one object on each line. Every line is scrubbed: of whatever looks
//! like a secret and, once tools can be called, of every value that the process knows to be secret, of all tenants.

use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::sync::{LazyLock, Mutex, PoisonError};

use claw_registry::{CallScrubber, Executor, Scrubbers, WeakExecutor};
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, fmt as text};

/// The environment variable that selects the format.
const FORMAT: &str = "CLAWSMITH_LOG_FORMAT";

/// The executors whose secret values are kept out of the log.
static KNOWN: Mutex<Vec<WeakExecutor>> = Mutex::new(Vec::new());

/// Knows no value: what looks like a secret is found all the same.
static PATTERNS: LazyLock<CallScrubber> = LazyLock::new(|| Scrubbers::default().for_all());

/// The form of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs: `time`, `level`, `target`, `message` and `fields`.
    Json,
}

/// Starts the log if `CLAWSMITH_LOG` or `RUST_LOG` says what to log, or with `usual` where neither does. The error says what
/// in the environment cannot be used; nothing is logged then.
pub fn start(usual: Option<&str>) -> Result<(), String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let Some(filter) = set("CLAWSMITH_LOG").or_else(|| set("RUST_LOG")).or(usual.map(str::to_owned)) else {
        return Ok(());
    };
    let format = match set(FORMAT).as_deref().map(str::trim) {
        None | Some("text") => LogFormat::Text,
        Some("json") => LogFormat::Json,
        Some(other) => {
            return Err(format!("`{FORMAT}` is `{other}`; use `text` or `json`; nothing is logged"));
        }
    };
    let filter = EnvFilter::try_new(&filter)
        .map_err(|error| format!("the log filter `{filter}` cannot be read ({error}); nothing is logged"))?;
    let registry = tracing_subscriber::registry().with(filter);
    // Fails only where a log was started before, which then stands.
    let _ = match format {
        LogFormat::Json => registry.with(JsonLines).try_init(),
        LogFormat::Text => {
            let lines = text::layer().with_writer(|| Scrubbed(io::stderr()));
            registry.with(lines.with_ansi(io::stderr().is_terminal())).try_init()
        }
    };
    Ok(())
}

/// Keeps the secret values of this executor out of the log, as long as it is there.
pub(super) fn know(executor: &Executor) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let there: Vec<Executor> = known.iter().filter_map(WeakExecutor::upgrade).collect();
    *known = there.iter().chain([executor]).map(Executor::downgrade).collect();
    // An executor that is dropped may log, which takes the lock.
    drop(known);
    drop(there);
}

/// The scrubbers of a line.
fn scrubbers() -> Vec<CallScrubber> {
    // The lock is not held while an executor is dropped, which may log.
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let known = known.iter().filter_map(WeakExecutor::upgrade);
    let mut scrubbers: Vec<CallScrubber> = known.map(|executor| executor.scrubbers().for_all()).collect();
    if scrubbers.is_empty() {
        scrubbers.push(PATTERNS.clone());
    }
    scrubbers
}

/// Scrubs what is written. A line is written at once.
struct Scrubbed<W>(W);

impl<W: Write> Write for Scrubbed<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let clean = String::from_utf8_lossy(line).into_owned();
        let clean = scrubbers().iter().fold(clean, |line, scrubber| scrubber.text(&line));
        self.0.write_all(clean.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes each event as a JSON object on a line of its own.
struct JsonLines;

impl<S: Subscriber> Layer<S> for JsonLines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        // Nothing is left to be done about standard error failing.
        let _ = writeln!(io::stderr(), "{}", line(event));
    }
}

/// An event as a JSON object, scrubbed before it becomes text, so that it stays JSON.
fn line(event: &Event<'_>) -> Value {
    let (mut fields, metadata) = (Fields(Map::new()), event.metadata());
    event.record(&mut fields);
    let message = fields.0.remove("message").unwrap_or_default();
    let line = json!({
        "time": jiff::Timestamp::now().to_string(),
        "level": metadata.level().to_string(),
        "target": metadata.target(),
        "message": message,
        "fields": fields.0,
    });
    scrubbers().iter().fold(line, |line, scrubber| scrubber.json(&line))
}

/// The fields of an event.
struct Fields(Map<String, Value>);

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }
}
