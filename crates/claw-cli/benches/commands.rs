//! The cost of running a command through the whole call path: judged, looked at, recorded, run, scrubbed.
//!
//! `exec true` on the host and in the kernel sandbox, with the ledger in memory and in a synced SQLite file,
//! against a bare `bash -c true`. `cargo bench -p claw-sandbox --bench exec` has the same without the call path.
//!
//! Prints `name<TAB>value<TAB>unit` lines; times are medians, and the compared runs alternate.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a benchmark that cannot be set up should stop")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use claw_core::port::World;
use claw_core::store::CallStore;
use claw_core::tool::Caller;
use claw_core::{AgentId, NodeId, SessionKey};
use claw_host::SystemClock;
use claw_policy::config::PolicyConfig;
use claw_policy::pipeline::Policy;
use claw_policy::rate_config::RateConfig;
use claw_registry::rate_limiter::Limiter;
use claw_registry::{Discovery, Executor, Offer, Registry, Request};
use claw_sandbox::Launcher;
use claw_sandbox::shell::{LocalShell, ShellOptions};
use claw_store::SqliteStore;
use claw_store_memory::MemoryStore;
use serde_json::json;

const RUNS: usize = 200;
const AT_ONCE: usize = 200;

fn main() {
    claw_sandbox::enter_if_asked();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(run());
}

async fn run() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("workspace");
    std::fs::create_dir(&place).unwrap();
    let place = place.canonicalize().unwrap();
    let file = SqliteStore::open(&directory.path().join("store.db"), NodeId::local()).await.unwrap();
    let memory = executor(Arc::new(MemoryStore::new()));
    let durable = executor(Arc::new(file));
    let offers = [offer(&memory, &place, false).await, offer(&memory, &place, true).await];
    let durable_offers = [offer(&durable, &place, false).await, offer(&durable, &place, true).await];
    let mut times: [Vec<f64>; 5] = Default::default();
    for round in 0..=RUNS {
        let runs = [
            time(async { bare(&place) }).await,
            time(call(&memory, &offers[0])).await,
            time(call(&durable, &durable_offers[0])).await,
            time(call(&memory, &offers[1])).await,
            time(call(&durable, &durable_offers[1])).await,
        ];
        // The first has the helper's start and the probing in it.
        for (times, took) in times.iter_mut().zip(runs).filter(|_| round > 0) {
            times.push(took);
        }
    }
    let [bare, host, host_durable, inside, inside_durable] = times.map(median);
    println!("bare bash -c true\t{bare:.2}\tms");
    for (name, took) in [
        ("exec true on the host, ledger in memory", host),
        ("exec true on the host, durable ledger", host_durable),
        ("exec true in the kernel sandbox, ledger in memory", inside),
        ("exec true in the kernel sandbox, durable ledger", inside_durable),
    ] {
        println!("{name}\t{took:.2}\tms\t{:.2}\tx bare", took / bare);
    }
    let begun = Instant::now();
    let calls = (0..AT_ONCE).map(|_| {
        let (durable, offer) = (durable.clone(), durable_offers[1].clone());
        tokio::spawn(async move { call(&durable, &offer).await })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    println!(
        "{AT_ONCE} exec in the kernel sandbox at once, durable ledger, none lost\t{:.0}\tms",
        millis(begun)
    );
}

fn executor(store: Arc<dyn CallStore>) -> Executor {
    let mut world = World::new(Arc::new(SystemClock));
    world.shell = Some(Arc::new(LocalShell::new(Arc::new(Launcher::new()), ShellOptions::default())));
    let registry = Registry::new(world);
    clawsmith::populate(&registry, &Discovery::default(), |warning| panic!("{warning}"));
    // The limits count like any other and are out of reach.
    let rate = RateConfig { normal: u16::MAX, heavy: u16::MAX, ..RateConfig::UNLIMITED };
    let policy = Policy::compile(&PolicyConfig::default()).unwrap();
    Executor::builder(Arc::new(registry), store, policy).limiter(Limiter::new(rate, 100_000)).build()
}

async fn offer(executor: &Executor, place: &Path, sandboxed: bool) -> Offer {
    let mut caller = Caller::new(AgentId::new("bench").unwrap(), SessionKey::new("bench:1").unwrap(), place);
    caller.sandboxed = sandboxed;
    executor.offer(caller).await
}

async fn call(executor: &Executor, offer: &Offer) {
    let reply = executor.execute(offer, Request::new("exec", json!({ "command": "true" }))).await;
    assert!(reply.is_done(), "{}", reply.model_text());
}

fn bare(place: &Path) {
    let out = Command::new("/bin/bash").args(["-c", "true"]).current_dir(place).output().unwrap();
    assert!(out.status.success());
}

async fn time(run: impl Future<Output = ()>) -> f64 {
    let begun = Instant::now();
    run.await;
    millis(begun)
}

fn millis(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}
