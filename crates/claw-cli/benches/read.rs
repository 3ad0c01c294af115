//! The cost of reading a file through the whole call path: found, opened beneath the root, scrubbed, recorded
//! in memory and encoded as the JSON that a model is sent.
//!
//! Prints `name<TAB>value<TAB>unit` lines; times are medians of many batches.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use claw_core::port::{From, Reading, Window, World};
use claw_core::tool::{Call, Caller, Effect, Facts, Group, Meta, Need, Output, Plan, Tool, ToolError, erase};
use claw_core::{AgentId, SessionKey};
use claw_host::SystemClock;
use claw_host::files::LocalFiles;
use claw_policy::config::PolicyConfig;
use claw_policy::pipeline::Policy;
use claw_policy::rate_config::RateConfig;
use claw_policy::scrub::Scrubber;
use claw_registry::rate_limiter::Limiter;
use claw_registry::{Discovered, Discovery, Executor, Limits, Registry, Request, Scrubbers};
use claw_store_memory::MemoryStore;
use serde_json::{Value, json};

const BATCHES: usize = 25;
const CALLS: usize = 200;
/// The window, and the file.
const WINDOW: usize = 50 * 1024;
const FILE: usize = 100 * 1024;

/// A window of 50 KB: `read_file` shows less at a time.
struct Show;

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The file's path.
    path: String,
    /// The first line.
    line: u64,
}

impl Tool for Show {
    type Args = Args;
    const META: Meta = Meta::new("show", Group::Fs)
        .effects(&[Effect::Read])
        .needs(&[Need::Files])
        .about("Show a part of a file.");

    fn plan(&self, _: &Facts, _: &Args) -> Plan {
        Plan::read()
    }

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let window = Window { from: From::Line(args.line), lines: usize::MAX, bytes: WINDOW };
        match call.files()?.read(&args.path, window).await? {
            Reading::Text(view) => Ok(Output::text(view.text)),
            Reading::Binary(_) => Err(ToolError::invalid("it is not text")),
        }
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let line = "    let total = items.iter().map(|item| item.price * item.count).sum::<u64>();\n";
    let file = directory.path().join("code.rs");
    std::fs::write(&file, &line.repeat(FILE / line.len() + 1)[..FILE]).unwrap();

    let mut world = World::new(Arc::new(SystemClock));
    world.bridge = Some(Arc::new(LocalFiles::new()));
    let registry = Registry::new(world);
    registry.register(erase(Show)).unwrap();
    let built = claw_tools::builtin().map(|tool| Discovered { meta: tool.meta.clone(), make: tool.make });
    registry.discover(built, &Discovery::default(), |_| {});
    // The limit counts like any other and is out of reach.
    let rate = RateConfig { normal: u16::MAX, ..RateConfig::UNLIMITED };
    let policy = Policy::compile(&PolicyConfig::default()).unwrap();
    let executor = Executor::builder(Arc::new(registry), Arc::new(MemoryStore::new()), policy)
        .limiter(Limiter::new(rate, 100_000))
        .limits(Limits { output_bytes: 2 * WINDOW, ..Limits::default() })
        .scrubbers(Scrubbers::default())
        .build();
    let caller =
        Caller::new(AgentId::new("bench").unwrap(), SessionKey::new("bench:1").unwrap(), directory.path());
    let offer = runtime.block_on(executor.offer(caller));

    let plain = measure("read a 100 KB file plainly", || {
        black_box(std::fs::read(&file).unwrap());
    });
    let call = |name: &str, tool: &str, args: &Value, least: usize| {
        measure(name, || {
            let reply = runtime.block_on(executor.execute(&offer, Request::new(tool, args.clone())));
            let text = reply.model_text();
            assert!(reply.is_done() && text.len() >= least, "{} bytes: {text}", text.len());
            let message = json!({ "role": "tool", "content": text });
            black_box(serde_json::to_vec(&message).unwrap());
        })
    };
    let window = json!({ "path": "code.rs", "line": 100 });
    let window = call("a 50 KB window of a 100 KB file, whole road", "show", &window, WINDOW - line.len());
    let page = json!({ "path": "code.rs", "offset": 100, "limit": 1000 });
    let page = call("read_file, 24 KB of the same", "read_file", &page, 20_000);
    // The work that is necessary in any case.
    let text = String::from_utf8(std::fs::read(&file).unwrap()).unwrap();
    let (scrubber, part) = (Scrubber::new(), &text[..WINDOW]);
    measure("of it: scrub 50 KB", || {
        black_box(scrubber.scrub(black_box(part)));
    });
    measure("of it: tell what of the file is secret", || {
        black_box(claw_core::text::mask(black_box(&text), &scrubber));
    });
    measure("of it: 50 KB as JSON", || {
        let message = json!({ "role": "tool", "content": black_box(part) });
        black_box(serde_json::to_vec(&message).unwrap());
    });
    measure("of it: to another thread and back", || {
        runtime.block_on(async { tokio::task::spawn_blocking(|| black_box(1)).await.unwrap() });
    });
    println!("50 KB window / plain read of the file\t{:.1}\tx", window / plain);
    println!("read_file / plain read of the file\t{:.1}\tx", page / plain);
}

/// The median over batches, in microseconds a call.
fn measure(name: &str, mut call: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..=BATCHES)
        .map(|_| {
            let begun = Instant::now();
            (0..CALLS).for_each(|_| call());
            begun.elapsed().as_secs_f64() * 1e6 / CALLS as f64
        })
        .skip(1)
        .collect();
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    println!("{name}\t{median:.1}\tus/call");
    median
}
