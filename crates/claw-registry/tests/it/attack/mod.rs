//! Attacks: each test names the one that it repeats.

mod answers;
mod arguments;
mod caps;
mod decision;
mod floods;
mod images;
mod names;
mod panics;
mod plans;
mod secrets;
mod tenants;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use claw_core::event::{Event, Listener, Room};
use claw_core::id::{AgentId, SessionKey};
use claw_core::port::{Clock, WriteMode};
use claw_core::store::{Answer, ApprovalState, Approvals, EntryEvent, Ledger};
use claw_core::tool::{
    AnyTool, Ask, Block, Call, Caller, Effect, Effects, Facts, Group, Meta, Need, Output, Plan, Script, Spec,
    Target, ToolError, ToolSource, Unavailable,
};
use claw_core::{CallId, TenantId, ToolName, UserId};
use claw_policy::approval::{ApprovalConfig, AskMode, EffectRule};
use claw_policy::config::PolicyConfig;
use claw_policy::pipeline::Policy;
use claw_registry::{Arguments, Executor, Limits, OfferOptions, Registry, Request, Scrubbers};
use claw_store_memory::MemoryStore;
use serde_json::{Value, json};

use crate::approvals::{approve_one, question};
use crate::kit::{Bench, Setup, WHOLE, caller, done, main_agent, refused};

type PlanFn = dyn Fn(&Facts, &Value) -> Result<Plan, ToolError> + Send + Sync;
type RunFn =
    dyn Fn(Call, Value) -> futures_util::future::BoxFuture<'static, Result<Output, ToolError>> + Send + Sync;

/// A tool made of closures.
pub(super) struct Custom {
    meta: Meta,
    spec: Spec,
    plan: Box<PlanFn>,
    run: Box<RunFn>,
    runs: Arc<AtomicUsize>,
}

#[async_trait]
impl AnyTool for Custom {
    fn meta(&self) -> &Meta {
        &self.meta
    }
    fn spec(&self) -> &Spec {
        &self.spec
    }
    fn plan(&self, facts: &Facts, args: &Value) -> Result<Plan, ToolError> {
        (self.plan)(facts, args)
    }
    async fn run_erased(&self, call: &Call, args: Value) -> Result<Output, ToolError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        (self.run)(call.clone(), args).await
    }
}

/// A policy that denies this tool.
pub(super) fn denies(tool: &str) -> PolicyConfig {
    let mut policy = PolicyConfig::default();
    policy.tools.deny = vec![tool.to_owned()];
    policy
}

/// Approvals that deny every call that reads.
pub(super) fn denies_reads() -> ApprovalConfig {
    ApprovalConfig { effects: [(Effect::Read, EffectRule::Deny)].into(), ..ApprovalConfig::default() }
}

pub(super) fn any_schema() -> Value {
    json!({ "type": "object" })
}

pub(super) fn custom(
    meta: Meta,
    schema: Value,
    plan: impl Fn(&Facts, &Value) -> Result<Plan, ToolError> + Send + Sync + 'static,
    run: impl Fn(Call, Value) -> futures_util::future::BoxFuture<'static, Result<Output, ToolError>>
    + Send
    + Sync
    + 'static,
) -> (Arc<dyn AnyTool>, Arc<AtomicUsize>) {
    let spec = Spec::with_schema(&meta, schema);
    let runs = Arc::new(AtomicUsize::new(0));
    (Arc::new(Custom { meta, spec, plan: Box::new(plan), run: Box::new(run), runs: runs.clone() }), runs)
}

/// A pure tool that returns this output.
pub(super) fn gives(
    name: &str,
    make: impl Fn() -> Result<Output, ToolError> + Send + Sync + Clone + 'static,
) -> (Arc<dyn AnyTool>, Arc<AtomicUsize>) {
    let mut meta = Meta::of(name.parse().unwrap(), Group::Tools);
    meta.effects = Effects::NONE;
    custom(
        meta,
        any_schema(),
        |_, _| Ok(Plan { effects: Effects::NONE, asks: vec![], given: None }),
        move |_, _| {
            let made = make();
            Box::pin(async move { made })
        },
    )
}

pub(super) fn says(name: &str, text: &'static str) -> (Arc<dyn AnyTool>, Arc<AtomicUsize>) {
    gives(name, move || Ok(Output::text(text)))
}

pub(super) fn ls() -> Request {
    Request::new("sh", json!({"command": "ls"}))
}

pub(super) fn deny(entry: &str) -> Policy {
    let mut policy = PolicyConfig::default();
    policy.tools.deny = vec![entry.into()];
    Policy::compile(&policy).unwrap()
}

pub(super) const SECRET: &str =
    "Zq8-veryprivatevalue-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQRSTUVWXYZ-end";

pub(super) async fn ledger_text(bench: &Bench) -> String {
    serde_json::to_string(&bench.store.recent(&TenantId::main(), 1000).await.unwrap()).unwrap()
}
