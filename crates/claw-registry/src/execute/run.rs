//! Step 7: the tool runs, over ports that are bound to its caller and its plan.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use claw_core::event::What;
use claw_core::tool::{Call, CallParts, Effect, Output, Secrets, ToolError};
use futures_util::FutureExt as _;
use serde_json::Value;

use super::abandoned::Abandoned;
use super::judge::Judged;
use super::scrub_progress::scrub_progress;
use super::timeout::{Bounds, TimeLimit, bounded};
use super::{Trip, programs};
use crate::guard::{self, Grant, Site};

/// A call that has run.
pub(super) struct Ran {
    pub(super) result: Result<Output, ToolError>,
    pub(super) secrets: Secrets,
    pub(super) grant: Arc<Grant>,
    pub(super) abandoned: Abandoned,
    pub(super) took: Duration,
}

impl Trip<'_> {
    /// Step 7: runs the tool, over guarded ports and within its time limit; a panic is an error.
    pub(super) async fn run(&self, judged: Judged, args: Value) -> Ran {
        let meta = &self.tool.entry.meta;
        let (secrets, settings) = (Secrets::default(), judged.analysis.prints_settings());
        let cancel = self.request.cancel.child_token();
        let abandoned = Abandoned::watch(self.executor, self.offer, self.request.call, meta, &cancel);
        let (progress, tail) = scrub_progress(self.executor, settings, self.offer, &self.request, &secrets);
        let Bounds { limit, grace } = self.bounds();
        let time = TimeLimit::new(limit);
        let grant = Arc::new(Grant {
            logins: programs::logins(&judged),
            settings,
            access: self.access(&judged.analysis, judged.effects),
            writes: judged.effects.has(Effect::Write),
            reads_only: self.with_approvals(claw_policy::approval::ApprovalConfig::denies_writing),
            asking: self.request.asking,
            narrowing: self.request.narrowing.clone(),
            inputs: self.request.inputs.clone(),
            time: time.clone(),
            plan: judged.plan,
            sights: judged.sights,
            effects: judged.left,
            scope: self.scope(&judged.place),
            network: judged.analysis.network,
            cancel: cancel.clone(),
            progress: progress.clone(),
            secrets: secrets.clone(),
            run: self.request.run,
            changed: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let (executor, offer, call) = (self.executor, self.offer, self.request.call);
        let ports = guard::ports(&Site { executor, offer, call, meta, grant: &grant });
        let call = Call::new(CallParts {
            id: call,
            model_id: self.request.model_id.clone(),
            caller: Arc::clone(self.offer.caller()),
            facts: Arc::clone(&judged.place.facts),
            cancel: cancel.clone(),
            progress,
            ports,
        });
        self.emit(|| What::CallStarted { tool: meta.name.clone() });
        let begun = Instant::now();
        let work = async { judged.built.tool.run_erased(&call, args).await };
        let result = bounded(AssertUnwindSafe(work).catch_unwind(), &time, grace, &cancel).await;
        let took = begun.elapsed();
        tail.end();
        Ran { result, secrets, grant, abandoned, took }
    }

    fn bounds(&self) -> Bounds {
        let own = self.tool.entry.meta.timeout_secs.map(|seconds| Duration::from_secs(seconds.into()));
        let limits = &self.executor.0.limits;
        let limit = self.request.timeout.or(own).unwrap_or(limits.timeout);
        let limit = self.request.within.map_or(limit, |left| limit.min(left));
        Bounds { limit, grace: limits.grace }
    }
}
