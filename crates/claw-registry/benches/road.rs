//! Measures the road: a no-op tool with a 1 KB result, called directly and through the executor, by parts.
//!
//! Prints `name<TAB>value<TAB>unit` lines; times are medians of many batches.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use claw_core::port::{Ports, UnixMillis, World};
use claw_core::store::{
    Answer, Approval, ApprovalState, Approvals, Bells, Blob, BlobCard, Blobs, CallStore, Changes, Entry,
    EntryPage, Ledger, NewApproval, NewBlob, Record, StoreError, Tally, Topic,
};
use claw_core::tool::{
    AnyTool, Call, CallParts, Caller, Digest, Group, Meta, Output, Progress, Tool, ToolError, erase,
};
use claw_core::{AgentId, ApprovalId, CallId, NodeId, SessionKey, TenantId};
use claw_host::SystemClock;
use claw_policy::config::PolicyConfig;
use claw_policy::pipeline::Policy;
use claw_policy::rate_config::RateConfig;
use claw_registry::rate_limiter::Limiter;
use claw_registry::{Executor, Registry, Request, Scrubbers};
use claw_store::SqliteStore;
use claw_store_memory::MemoryStore;
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Returns a kilobyte.
struct Noop(String);

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Anything.
    path: String,
}

impl Tool for Noop {
    type Args = Args;
    const META: Meta = Meta::new("noop", Group::Fs).effects(&[]).about("Do nothing.");

    async fn run(&self, _: &Call, args: Args) -> Result<Output, ToolError> {
        black_box(args.path);
        Ok(Output::text(self.0.clone()))
    }
}

/// Stores nothing, to measure the cost of the rest.
struct NoStore(Bells);

#[async_trait]
impl Ledger for NoStore {
    async fn refuse(&self, _: Record) -> Result<(), StoreError> {
        Ok(())
    }
    async fn begin_call(&self, _: Record) -> Result<(), StoreError> {
        Ok(())
    }
    async fn finish_call(&self, _: Record) -> Result<(), StoreError> {
        Ok(())
    }
    async fn fate(&self, _: &TenantId, _: CallId) -> Result<Option<claw_core::store::Outcome>, StoreError> {
        Ok(None)
    }
    async fn recent(&self, _: &TenantId, _: usize) -> Result<Vec<Entry>, StoreError> {
        Ok(Vec::new())
    }
    async fn entries(&self, _: &TenantId, _: &EntryPage) -> Result<Vec<(u64, Entry)>, StoreError> {
        Ok(Vec::new())
    }
    async fn tally(&self, _: &TenantId, _: &SessionKey) -> Result<Tally, StoreError> {
        Ok(Tally::default())
    }
}

#[async_trait]
impl Approvals for NoStore {
    async fn request(&self, new: NewApproval) -> Result<Approval, StoreError> {
        let (id, state) = (ApprovalId::new(), ApprovalState::Denied);
        Ok(Approval { id, request: new, state, answered_by: None, reason: None })
    }
    async fn approval(&self, _: &TenantId, _: ApprovalId) -> Result<Option<Approval>, StoreError> {
        Ok(None)
    }
    async fn pending(&self, _: &TenantId, _: UnixMillis) -> Result<Vec<Approval>, StoreError> {
        Ok(Vec::new())
    }
    async fn answer(&self, _: &TenantId, id: ApprovalId, _: Answer) -> Result<Approval, StoreError> {
        Err(StoreError::ApprovalState { id, state: "missing" })
    }
    async fn take_values(
        &self,
        _: &TenantId,
        _: ApprovalId,
    ) -> Result<Option<serde_json::Map<String, serde_json::Value>>, StoreError> {
        Ok(None)
    }
    async fn close(&self, _: &TenantId, id: ApprovalId, _: ApprovalState) -> Result<Approval, StoreError> {
        Err(StoreError::ApprovalState { id, state: "missing" })
    }
}

#[async_trait]
impl Blobs for NoStore {
    async fn put_blob(&self, _: &TenantId, _: &NewBlob, _: UnixMillis) -> Result<(), StoreError> {
        Ok(())
    }
    async fn blob(&self, _: &TenantId, _: &Digest) -> Result<Option<Blob>, StoreError> {
        Ok(None)
    }
    async fn blob_card(&self, _: &TenantId, _: &Digest) -> Result<Option<BlobCard>, StoreError> {
        Ok(None)
    }
}

impl Changes for NoStore {
    fn changes(&self, of: Topic) -> watch::Receiver<u64> {
        self.0.listen(of)
    }
}

fn kilobyte() -> String {
    "fn main() { println!(\"a line of code, and then another one\"); }\n".repeat(16)[..1024].to_owned()
}

fn executor(store: Arc<dyn CallStore>, scrubbers: Scrubbers) -> Executor {
    let registry = Registry::new(World::new(Arc::new(SystemClock)));
    registry.register(erase(Noop(kilobyte()))).unwrap();
    let policy = Policy::compile(&PolicyConfig::default()).unwrap();
    // The limiter counts as usual, but its limit is out of reach.
    let rate = RateConfig { normal: u16::MAX, ..RateConfig::UNLIMITED };
    Executor::builder(Arc::new(registry), store, policy)
        .limiter(Limiter::new(rate, 100_000))
        .scrubbers(scrubbers)
        .build()
}

/// The median over batches, in microseconds per call.
fn measure(name: &str, batches: usize, calls: usize, mut call: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..=batches)
        .map(|_| {
            let begun = Instant::now();
            (0..calls).for_each(|_| call());
            begun.elapsed().as_secs_f64() * 1e6 / calls as f64
        })
        .skip(1)
        .collect();
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    println!("{name}\t{median:.3}\tus/call");
    median
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let caller = || Caller::new(AgentId::new("bench").unwrap(), SessionKey::new("bench:1").unwrap(), "/w");
    let args = || json!({ "path": "src/main.rs" });

    let tool: Arc<dyn AnyTool> = erase(Noop(kilobyte()));
    let (world, own) = (World::new(Arc::new(SystemClock)), Arc::new(caller()));
    let direct = measure("direct call of the tool", 25, 2000, || {
        let call = Call::new(CallParts {
            id: CallId::new(),
            model_id: None,
            facts: Arc::new(own.facts("noop")),
            caller: own.clone(),
            cancel: CancellationToken::new(),
            progress: Progress::silent(),
            ports: Ports::new(world.clock.clone()),
        });
        runtime.block_on(async { black_box(tool.run_erased(&call, args()).await.unwrap()) });
    });

    let road = |name: &str, executor: &Executor, batches: usize, calls: usize| {
        let offer = runtime.block_on(executor.offer(caller()));
        measure(name, batches, calls, || {
            let reply = runtime.block_on(executor.execute(&offer, Request::new("noop", args())));
            assert!(reply.is_done(), "{}", reply.model_text());
        })
    };

    let any = executor(Arc::new(MemoryStore::new()), Scrubbers::default());
    let offer = runtime.block_on(any.offer(caller()));
    let future = any.execute(&offer, Request::new("noop", args()));
    println!("size of a call's future\t{}\tbytes", std::mem::size_of_val(&future));
    drop(future);

    let bare = executor(Arc::new(NoStore(Bells::default())), Scrubbers::with_open_output());
    let without = road("road without ledger and scrub of the result", &bare, 25, 2000);
    let whole = executor(Arc::new(MemoryStore::new()), Scrubbers::default());
    let with = road("road whole, ledger in memory", &whole, 25, 2000);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("claw.db");
    let store = runtime.block_on(SqliteStore::open(&path, NodeId::local())).unwrap();
    let durable = executor(Arc::new(store), Scrubbers::default());
    let on_disk = road("road whole, durable store (SQLite)", &durable, 10, 100);

    println!("road without ledger and scrub / direct\t{:.1}\tx", without / direct);
    println!("road whole / direct\t{:.1}\tx", with / direct);
    println!("durable store / in memory\t{:.1}\tx", on_disk / with);
}
