//! The executor: registry, policy, limits, scrubbers and stores that calls run on.
//!
//! Policy, overlays and secret values can change while calls run: each call uses the current ones, and an
//! offer made before a change is checked against the current decision.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use claw_core::event::{Event, Listener, What};
use claw_core::port::{ProcessHost, Traces};
use claw_core::store::{CallStore, Rules, SettingsStore};
use claw_core::tool::{Caller, Meta, Need, Profile, Unavailable};
use claw_core::{CallId, ToolName};
use claw_policy::approval::{ApprovalConfig, Narrowing};
use claw_policy::pipeline::{Policy, Subject};
use claw_policy::profile;
use claw_policy::rate_config::RateConfig;
use futures_util::FutureExt as _;
use tokio::sync::watch;

use crate::approver::Approver;
use crate::bound_tool::BoundTool;
use crate::guard::{FileRules, SeenTable};
use crate::offer::{MadeFrom, Offer, OfferOptions, Offered, State};
use crate::processes::BackgroundCommands;
use crate::rate_limiter::Limiter;
use crate::registry::{Context, Registry};
use crate::scrub::Scrubbers;
use crate::settings::StoredLayers;
use crate::shell_settings::CommandRules;
use crate::tool_layer::{CallerTools, Layers};
use crate::tool_overlay::{OverlayScope, Overlays};

/// Number of sessions that the rate limiter tracks at a time.
const SESSIONS: usize = 100_000;

/// Limits of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Time limit of a call if neither the tool nor the request has one.
    pub timeout: Duration,
    /// Time for a tool to clean up after it was told to stop.
    pub grace: Duration,
    /// Bytes of a result that the model is sent; the whole result is kept as an artifact.
    pub output_bytes: usize,
    /// Largest arguments of a call, in bytes.
    pub argument_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            grace: Duration::from_secs(2),
            output_bytes: 32 * 1024,
            argument_bytes: 4 * 1024 * 1024,
        }
    }
}

/// The one road to a tool. Cheap to clone.
#[derive(Clone)]
pub struct Executor(pub(crate) Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) registry: Arc<Registry>,
    overlays: Overlays,
    layers: Layers,
    policy: ArcSwap<Policy>,
    policy_version: watch::Sender<u64>,
    pub(crate) approvals: ArcSwap<ApprovalConfig>,
    pub(crate) limiter: Limiter,
    pub(crate) scrubbers: Scrubbers,
    pub(crate) store: Arc<dyn CallStore>,
    pub(crate) rules: Option<Arc<dyn Rules>>,
    pub(crate) settings: StoredLayers,
    listener: Option<Arc<dyn Listener>>,
    pub(crate) traces: Option<Arc<dyn Traces>>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) limits: Limits,
    pub(crate) files: ArcSwap<FileRules>,
    pub(crate) commands: CommandRules,
    pub(crate) seen: SeenTable,
    pub(crate) processes: BackgroundCommands,
}

/// An executor that may be gone: whoever holds this does not keep it.
#[derive(Debug, Clone)]
pub struct WeakExecutor(Weak<Parts>);

impl WeakExecutor {
    /// Returns the executor; `None` where nobody uses it any more.
    pub fn upgrade(&self) -> Option<Executor> {
        self.0.upgrade().map(Executor)
    }
}

/// Builds an [`Executor`]; everything but registry, store and policy has a default.
pub struct ExecutorBuilder {
    registry: Arc<Registry>,
    store: Arc<dyn CallStore>,
    policy: Policy,
    approvals: ApprovalConfig,
    limiter: Limiter,
    scrubbers: Scrubbers,
    settings: Option<Arc<dyn SettingsStore>>,
    rules: Option<Arc<dyn Rules>>,
    listener: Option<Arc<dyn Listener>>,
    traces: Option<Arc<dyn Traces>>,
    approver: Option<Arc<dyn Approver>>,
    limits: Limits,
    files: FileRules,
    commands: CommandRules,
    processes: BackgroundCommands,
    policy_version: watch::Sender<u64>,
    caller_tools: Vec<Arc<dyn CallerTools>>,
}

impl ExecutorBuilder {
    /// Sets the conditions under which a person is asked.
    #[must_use]
    pub fn approvals(mut self, approvals: ApprovalConfig) -> Self {
        self.approvals = approvals;
        self
    }

    /// Sets the rate limiter.
    #[must_use]
    pub fn limiter(mut self, limiter: Limiter) -> Self {
        self.limiter = limiter;
        self
    }

    /// Sets the scrubbers.
    #[must_use]
    pub fn scrubbers(mut self, scrubbers: Scrubbers) -> Self {
        self.scrubbers = scrubbers;
        self
    }

    /// Sets the store of tool settings. Stored settings override the caller's, and a change takes effect with
    /// the next call.
    #[must_use]
    pub fn settings(mut self, settings: Arc<dyn SettingsStore>) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Sets the store of remembered rules. Without it, every approval is asked for anew.
    #[must_use]
    pub fn rules(mut self, rules: Arc<dyn Rules>) -> Self {
        self.rules = Some(rules);
        self
    }

    /// Sets the listener for events.
    #[must_use]
    pub fn listener(mut self, listener: Arc<dyn Listener>) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Takes the spans of calls that are part of no run. The spans of runs have those of their calls.
    #[must_use]
    pub fn traces(mut self, traces: Arc<dyn Traces>) -> Self {
        self.traces = Some(traces);
        self
    }

    /// Answers the approvals of calls that wait. Without it answers come by the store alone.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// Sets the limits of a call.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the files that agents may reach beyond their workspaces, and those they may not.
    #[must_use]
    pub fn files(mut self, rules: FileRules) -> Self {
        self.files = rules;
        self
    }

    /// Sets the rules for shell commands.
    #[must_use]
    pub fn commands(mut self, rules: CommandRules) -> Self {
        self.commands = rules;
        self
    }

    /// Allows commands in the background; without it they are refused. They end with this executor.
    #[must_use]
    pub fn processes(mut self, host: Arc<dyn ProcessHost>) -> Self {
        self.processes = BackgroundCommands(Some(host));
        self
    }

    /// Takes the place of another executor in the same program: commands that run in the background are those of both,
    /// [`processes`](Self::processes) are those of the first one, and whoever follows the changes of the former policy is told
    /// of those of the new one.
    #[must_use]
    pub fn after(mut self, former: &Executor) -> Self {
        self.processes = former.0.processes.clone();
        self.policy_version = former.0.policy_version.clone();
        self
    }

    /// Adds a source of tools that differ by caller. If two sources have a tool of the same name, the source
    /// added first wins.
    #[must_use]
    pub fn caller_tools(mut self, source: Arc<dyn CallerTools>) -> Self {
        self.caller_tools.push(source);
        self
    }

    /// Builds the executor.
    pub fn build(self) -> Executor {
        Executor(Arc::new(Parts {
            registry: self.registry,
            overlays: Overlays::default(),
            layers: Layers::new(self.caller_tools),
            policy: ArcSwap::from_pointee(self.policy),
            policy_version: self.policy_version,
            approvals: ArcSwap::from_pointee(self.approvals),
            limiter: self.limiter,
            scrubbers: self.scrubbers,
            store: self.store,
            rules: self.rules,
            settings: StoredLayers::new(self.settings),
            listener: self.listener,
            traces: self.traces,
            approver: self.approver,
            limits: self.limits,
            files: ArcSwap::from_pointee(self.files),
            commands: self.commands,
            seen: SeenTable::default(),
            processes: self.processes,
        }))
    }
}

impl Executor {
    /// Starts building an executor over these tools and this store, under this policy.
    pub fn builder(registry: Arc<Registry>, store: Arc<dyn CallStore>, policy: Policy) -> ExecutorBuilder {
        ExecutorBuilder {
            registry,
            store,
            policy,
            approvals: ApprovalConfig::default(),
            limiter: Limiter::new(RateConfig::default(), SESSIONS),
            scrubbers: Scrubbers::default(),
            settings: None,
            rules: None,
            listener: None,
            traces: None,
            approver: None,
            limits: Limits::default(),
            files: FileRules::default(),
            commands: CommandRules::default(),
            processes: BackgroundCommands::default(),
            policy_version: watch::Sender::new(0),
            caller_tools: Vec::new(),
        }
    }

    /// A reference that does not keep the executor.
    pub fn downgrade(&self) -> WeakExecutor {
        WeakExecutor(Arc::downgrade(&self.0))
    }

    /// Ends all background commands and waits for them; returns how many there were.
    pub async fn end_processes(&self) -> usize {
        self.0.processes.end_all().await
    }

    /// The tools that all agents have.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.0.registry
    }

    /// The store of calls and approvals; front ends answer approvals here.
    pub fn store(&self) -> &Arc<dyn CallStore> {
        &self.0.store
    }

    /// When a person is asked, in this mode of a run.
    pub(crate) fn approvals_in(&self, narrowing: Option<&Arc<Narrowing>>) -> Arc<ApprovalConfig> {
        let approvals = self.0.approvals.load_full();
        match narrowing {
            Some(narrowing) => Arc::new(approvals.as_ref().clone().narrowed(narrowing.as_ref().clone())),
            None => approvals,
        }
    }

    /// The store of remembered rules, if there is one.
    pub fn rules(&self) -> Option<&Arc<dyn Rules>> {
        self.0.rules.as_ref()
    }

    /// The scrubbers; secret values are added and removed here.
    pub fn scrubbers(&self) -> &Scrubbers {
        &self.0.scrubbers
    }

    /// The current policy.
    pub fn policy(&self) -> Arc<Policy> {
        self.0.policy.load_full()
    }

    /// Replaces the policy. Existing offers are checked against it.
    pub fn set_policy(&self, policy: Policy) {
        self.0.policy.store(Arc::new(policy));
        self.0.policy_version.send_modify(|version| *version += 1);
    }

    /// A number that rises with each change of the policy, also after another executor took the place of this one.
    pub fn policy_changes(&self) -> watch::Receiver<u64> {
        self.0.policy_version.subscribe()
    }

    /// The rules for asking people.
    pub fn approvals(&self) -> Arc<ApprovalConfig> {
        self.0.approvals.load_full()
    }

    /// Replaces the rules for asking people.
    pub fn set_approvals(&self, approvals: ApprovalConfig) {
        self.0.approvals.store(Arc::new(approvals));
    }

    /// The files that agents may reach, and those they may not.
    pub fn file_rules(&self) -> Arc<FileRules> {
        self.0.files.load_full()
    }

    /// Replaces the rules for files. They apply from the next call on.
    pub fn set_file_rules(&self, rules: FileRules) {
        self.0.files.store(Arc::new(rules));
    }

    /// Gives a tenant, or one of its agents, tools on top of the common ones; `None` removes them. An agent's
    /// tools shadow its tenant's: make both with [`Registry::over`] the common registry.
    pub fn set_overlay(&self, scope: &OverlayScope, overlay: Option<Arc<Registry>>) {
        self.0.overlays.set(&self.0.registry, scope, overlay.as_ref());
    }

    /// The tools of this caller now: the common ones, the overlays of its tenant and agent, and those from
    /// sources of [`CallerTools`].
    pub async fn registry_for(&self, caller: &Caller) -> Arc<Registry> {
        let base = self.0.overlays.of(&self.0.registry, caller);
        self.0.layers.over(base, caller).await
    }

    /// Returns the tools that this caller may call now.
    pub async fn offer(&self, caller: Caller) -> Offer {
        self.offer_with(caller, OfferOptions::default()).await
    }

    /// The same, for a session that was offered tools before or has a token budget.
    pub async fn offer_with(&self, caller: Caller, options: OfferOptions) -> Offer {
        let caller = Arc::new(caller);
        let registry = self.registry_for(&caller).await;
        let made_from = self.state(&registry);
        let tools = registry.tool_set();
        let decision = self.policy().decide(&tools, &Subject::from(caller.as_ref()));
        let something_to_read = self.has_artifacts(&caller).await;
        let (mut offered, mut unavailable) = (Vec::new(), Vec::new());
        for (meta, verdict) in decision.allowed() {
            let Some(entry) = registry.find(meta.name.as_str()) else { continue };
            if let Some(reason) = registry.lacking(&entry) {
                unavailable.push((Arc::clone(&entry.meta), reason));
                continue;
            }
            let dormant =
                entry.meta.standing && !(something_to_read && entry.meta.needs.contains(&Need::Artifacts));
            let state = if dormant { State::Dormant } else { State::Listed };
            let tool = Offered::new(entry, verdict.effects, state);
            // A factory that failed before is tried at once; others make their tools at first use.
            if tool.entry.last_failure().is_some() {
                let context = Context { caller: &caller, world: registry.world() };
                if let Err(why) = tool.make(&context) {
                    unavailable.push((Arc::clone(&tool.entry.meta), why.0));
                    continue;
                }
            }
            offered.push(tool);
        }
        self.keep_withdrawn(&registry, &mut offered, &options.previous);
        stable_order(&mut offered, &options.previous);
        let offer = Offer::new(caller, registry, made_from, offered, unavailable);
        match options.token_budget {
            Some(budget) => offer.fit(budget, &options.previous, &options.uses),
            None => offer,
        }
    }

    /// Returns whether an offer that is made now for the same caller would have the same tools.
    pub async fn is_current(&self, offer: &Offer) -> bool {
        let registry = self.registry_for(offer.caller()).await;
        self.state(&registry) == offer.0.made_from
    }

    /// Returns a tool of the offer, to be called directly: its `execute` takes all steps. Fails with the
    /// reason if the offer has no tool of this name or the tool cannot be made.
    pub fn resolve(&self, offer: &Offer, name: &str) -> Result<BoundTool, Unavailable> {
        let Some(tool) = offer.find(name).filter(|tool| tool.state() == State::Listed) else {
            let named = |meta: &Meta| meta.name.as_str() == name || meta.aliases.contains(name);
            let why = offer.unavailable().into_iter().find(|(meta, _)| named(meta)).map(|(_, why)| why);
            let absent = || format!("`{name}` is not among the tools that are offered here");
            return Err(Unavailable(why.unwrap_or_else(absent)));
        };
        offer.built(tool)?;
        Ok(self.bind(offer, &tool.entry.meta))
    }

    /// Returns every tool of the offer. One that cannot be made is left out and reported to `observe`.
    pub fn resolve_all(&self, offer: &Offer, mut observe: impl FnMut(&Meta, &Unavailable)) -> Vec<BoundTool> {
        let mut tools = Vec::new();
        for meta in offer.metas() {
            let Some(tool) = offer.find(meta.name.as_str()).filter(|tool| tool.state() == State::Listed)
            else {
                continue;
            };
            match offer.built(tool) {
                Ok(_) => tools.push(self.bind(offer, &meta)),
                Err(error) => observe(&meta, &error),
            }
        }
        tools
    }

    /// The tools of the offer that a profile includes.
    pub fn resolve_by_profile(
        &self,
        offer: &Offer,
        wanted: Profile,
        observe: impl FnMut(&Meta, &Unavailable),
    ) -> Vec<BoundTool> {
        let mut tools = self.resolve_all(offer, observe);
        tools.retain(|tool| profile::includes(wanted, tool.meta()));
        tools
    }

    /// The versions that a decision made now would be based on.
    pub(crate) fn state(&self, registry: &Arc<Registry>) -> MadeFrom {
        MadeFrom {
            executor: Arc::as_ptr(&self.0).addr(),
            registry: Arc::as_ptr(registry).addr(),
            tools: registry.version(),
            policy: *self.0.policy_version.borrow(),
        }
    }

    pub(crate) fn is_heard(&self) -> bool {
        self.0.listener.is_some()
    }

    /// Tells the listener. If it panics, it misses this event, and the call is not affected.
    pub(crate) fn emit(&self, caller: &Caller, call: CallId, what: impl FnOnce() -> What) {
        if let Some(listener) = &self.0.listener {
            let (tenant, session) = (caller.tenant.clone(), caller.session.clone());
            let event = Event { tenant, session, call, what: what() };
            if catch_unwind(AssertUnwindSafe(|| listener.hear(event))).is_err() {
                tracing::error!(%call, "a listener panicked");
            }
        }
    }

    /// Waits until the listener has room for the events of a call. If the listener panics, the call does not wait.
    pub(crate) async fn wait_for_listener(&self) {
        let Some(listener) = &self.0.listener else { return };
        let Ok(Some(room)) = catch_unwind(AssertUnwindSafe(|| listener.room())) else { return };
        if AssertUnwindSafe(room).catch_unwind().await.is_err() {
            tracing::error!("a listener panicked while calls waited for it");
        }
    }

    fn bind(&self, offer: &Offer, meta: &Arc<Meta>) -> BoundTool {
        BoundTool::new(self.clone(), offer.clone(), Arc::clone(meta))
    }

    async fn has_artifacts(&self, caller: &Caller) -> bool {
        let Some(artifacts) = &self.0.registry.world().artifacts else { return false };
        let owner = crate::guard::owner(caller);
        artifacts.list(&owner).await.is_ok_and(|list| !list.is_empty())
    }

    /// Keeps tools listed that the session was offered before and may no longer call, so that the prompt does
    /// not change; calls of them are refused.
    fn keep_withdrawn(&self, registry: &Registry, offered: &mut Vec<Offered>, previous: &[ToolName]) {
        for name in previous {
            let there = offered.iter().any(|tool| tool.entry.meta.name == *name);
            if let (false, Some(entry)) = (there, registry.named(name.as_str())) {
                let effects = claw_core::tool::Effects::NONE;
                offered.push(Offered::new(entry, effects, State::Withdrawn));
            }
        }
    }
}

/// Sorts tools offered before to the front, in their old order; the rest by name.
fn stable_order(offered: &mut [Offered], previous: &[ToolName]) {
    let rank: HashMap<_, _> = previous.iter().enumerate().map(|(at, name)| (name, at)).collect();
    offered.sort_by(|a, b| {
        let (a, b) = (&a.entry.meta.name, &b.entry.meta.name);
        let place = |name| rank.get(name).copied().unwrap_or(usize::MAX);
        place(a).cmp(&place(b)).then_with(|| a.cmp(b))
    });
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executor").field("registry", &self.0.registry).finish_non_exhaustive()
    }
}
