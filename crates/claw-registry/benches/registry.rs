//! Reading the registry during writes, compared with reading one that does not change.
//!
//! Prints `name<TAB>value<TAB>unit` lines; times are medians of many batches.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use claw_core::ToolName;
use claw_core::port::World;
use claw_core::tool::{Call, Group, Meta, Output, Tool, ToolError, erase};
use claw_host::SystemClock;
use claw_registry::Registry;

struct Noop;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NoArgs {}

impl Tool for Noop {
    type Args = NoArgs;
    const META: Meta = Meta::new("noop", Group::Fs).effects(&[]).about("Do nothing.");

    async fn run(&self, _: &Call, _: NoArgs) -> Result<Output, ToolError> {
        Ok(Output::default())
    }
}

fn put(registry: &Registry, name: &str) {
    registry.register_with(erase(Noop), |meta| meta.name = ToolName::new(name).unwrap()).unwrap();
}

fn measure(name: &str, mut read: impl FnMut()) -> f64 {
    const CALLS: usize = 20_000;
    let mut times: Vec<f64> = (0..=50)
        .map(|_| {
            let begun = Instant::now();
            (0..CALLS).for_each(|_| read());
            begun.elapsed().as_secs_f64() * 1e9 / CALLS as f64
        })
        .skip(1)
        .collect();
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    println!("{name}\t{median:.1}\tns");
    median
}

fn main() {
    let registry = Arc::new(Registry::new(World::new(Arc::new(SystemClock))));
    (0..100).for_each(|at| put(&registry, &format!("tool_{at}")));
    let still = measure("look a tool up among 100, nobody writes", || {
        black_box(registry.has(black_box("tool_57")));
    });
    let (stop, writes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (churn, ended, count) = (registry.clone(), stop.clone(), writes.clone());
    let writer = std::thread::spawn(move || {
        while !ended.load(Ordering::Relaxed) {
            put(&churn, "comes_and_goes");
            churn.unregister("comes_and_goes");
            count.fetch_add(2, Ordering::Relaxed);
        }
    });
    let begun = Instant::now();
    let churning = measure("look a tool up among 100, a writer churns", || {
        black_box(registry.has(black_box("tool_57")));
    });
    let seconds = begun.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    println!("writes meanwhile\t{:.0}\t/s", writes.load(Ordering::Relaxed) as f64 / seconds);
    println!("churning / still\t{:.2}\tx", churning / still);
}
