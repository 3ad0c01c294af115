//! A populated executor in one call.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use claw_core::TenantId;
use claw_core::event::Listener;
use claw_core::port::{Traces, World};
use claw_core::store::{CallStore, Rules, Store};
use claw_core::tool::{AnyTool, Tool, erase};
use claw_host::files::{LocalFiles, RoutedFiles, Routing, StoredSeen, StoredUndo, UndoLimits};
use claw_host::skills::{SkillOptions, SkillShelf};
use claw_host::{
    AgentResolver, ArtifactLimits, FileArtifacts, MemoryArtifacts, ProcessKeeping, ProcessTable, SystemClock,
};
use claw_policy::approval::ApprovalConfig;
use claw_policy::config::PolicyConfig;
use claw_policy::pipeline::{Policy, PolicyError};
use claw_registry::rate_limiter::Limiter;
use claw_registry::{
    Approver, CallerTools, CommandRules, Discovered, Discovery, Executor, FileRules, Limits, RegisterError,
    Registry, Scrubbers,
};
use claw_store_memory::MemoryStore;

/// The built-in tools and yours, ready to be offered. Everything an [`Executor`] can do, it can.
#[derive(Debug, Clone)]
pub struct Toolbox(Executor);

impl Toolbox {
    /// Starts building a toolbox. By default it has the built-in tools, a policy that allows all of them, and
    /// records in memory.
    pub fn builder() -> ToolboxBuilder {
        ToolboxBuilder::default()
    }

    /// The road itself, to be shared.
    pub fn executor(&self) -> &Executor {
        &self.0
    }
}

impl Deref for Toolbox {
    type Target = Executor;
    fn deref(&self) -> &Executor {
        &self.0
    }
}

/// Builds a [`Toolbox`].
#[derive(Default)]
pub struct ToolboxBuilder {
    tools: Vec<Arc<dyn AnyTool>>,
    discovery: Discovery,
    policy: PolicyConfig,
    approvals: ApprovalConfig,
    limits: Limits,
    world: Option<World>,
    data_dir: Option<PathBuf>,
    store: Option<Arc<dyn CallStore>>,
    everything: Option<Arc<dyn Store>>,
    files: FileRules,
    commands: CommandRules,
    rules: Option<Arc<dyn Rules>>,
    listener: Option<Arc<dyn Listener>>,
    traces: Option<Arc<dyn Traces>>,
    approver: Option<Arc<dyn Approver>>,
    scrubbers: Scrubbers,
    limiter: Option<Limiter>,
    keeping: Option<ProcessKeeping>,
    after: Option<Executor>,
    caller_tools: Vec<Arc<dyn CallerTools>>,
}

/// A toolbox that could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A tool was not registered.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// The policy has entries that cannot be read.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

impl ToolboxBuilder {
    /// Adds a tool of yours.
    #[must_use]
    pub fn tool(self, tool: impl Tool) -> Self {
        self.any_tool(erase(tool))
    }

    /// Adds a tool whose schema is known only at run time.
    #[must_use]
    pub fn any_tool(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Sets the listener for calls, approvals and progress.
    #[must_use]
    pub fn listener(mut self, listener: Arc<dyn Listener>) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Takes the spans of calls that are part of no run.
    #[must_use]
    pub fn traces(mut self, traces: Arc<dyn Traces>) -> Self {
        self.traces = Some(traces);
        self
    }

    /// Answers the approvals of calls that wait, inside this program.
    #[must_use]
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Sets the scrubbers for secrets beyond those that every deployment knows.
    #[must_use]
    pub fn scrubbers(mut self, scrubbers: Scrubbers) -> Self {
        self.scrubbers = scrubbers;
        self
    }

    /// Selects the built-in tools; all of them by default.
    #[must_use]
    pub fn discovery(mut self, discovery: Discovery) -> Self {
        self.discovery = discovery;
        self
    }

    /// Sets the policy: who may call what.
    #[must_use]
    pub fn policy(mut self, policy: PolicyConfig) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the calls that need a person's approval.
    #[must_use]
    pub fn approvals(mut self, approvals: ApprovalConfig) -> Self {
        self.approvals = approvals;
        self
    }

    /// Sets the limits of calls.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the rate limits of sessions; by default those of [`RateConfig`](claw_policy::rate_config::RateConfig).
    #[must_use]
    pub fn limiter(mut self, limiter: Limiter) -> Self {
        self.limiter = Some(limiter);
        self
    }

    /// Lets commands run on in the background, managed by the tool `process`; without it they are refused.
    #[must_use]
    pub fn keeping(mut self, keeping: ProcessKeeping) -> Self {
        self.keeping = Some(keeping);
        self
    }

    /// Takes the place of another executor in the same program: commands that run in the background are those of both.
    #[must_use]
    pub fn after(mut self, former: &Executor) -> Self {
        self.after = Some(former.clone());
        self
    }

    /// Adds a source of tools that differ by tenant, agent or user, and that change while calls run.
    #[must_use]
    pub fn caller_tools(mut self, source: Arc<dyn CallerTools>) -> Self {
        self.caller_tools.push(source);
        self
    }

    /// Sets the world; by default a clock, the files of this machine and kept results.
    #[must_use]
    pub fn world(mut self, world: World) -> Self {
        self.world = Some(world);
        self
    }

    /// Records calls and approvals in this store instead of in memory, such as one that the crate
    /// `claw-store` opened.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn CallStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// Records everything in this store: calls and approvals as with [`store`](Self::store), settings of
    /// tools, and the file versions that sessions have seen. With a [`data_dir`](Self::data_dir), changes of
    /// files can be undone too, and in workspaces below `workspaces` there, context files and memory are
    /// documents of the store. A given [`world`](Self::world) keeps its own bridge and its other parts.
    #[must_use]
    pub fn everything_in(mut self, store: Arc<dyn Store>) -> Self {
        self.everything = Some(store);
        self
    }

    /// Keeps long results in this directory instead of in memory.
    #[must_use]
    pub fn data_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(directory.into());
        self
    }

    /// Sets the files that agents may or may not reach beyond their workspaces. The data directory is always
    /// out of reach, except for workspaces in it.
    #[must_use]
    pub fn files(mut self, rules: FileRules) -> Self {
        self.files = rules;
        self
    }

    /// Remembers the rules that people give with an approval in this store; without it every call is asked
    /// about anew.
    #[must_use]
    pub fn rules(mut self, rules: Arc<dyn Rules>) -> Self {
        self.rules = Some(rules);
        self
    }

    /// Sets the rules for shell commands. They apply if the world has a shell.
    #[must_use]
    pub fn commands(mut self, rules: CommandRules) -> Self {
        self.commands = rules;
        self
    }

    /// The toolbox.
    pub fn build(mut self) -> Result<Toolbox, BuildError> {
        if let Some(directory) = &self.data_dir {
            let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.clone());
            self.files.data_dir = Some(absolute.canonicalize().unwrap_or(absolute));
        }
        let data = self.files.data_dir.as_deref();
        let mut world = self.world.unwrap_or_else(|| local(self.everything.as_ref(), data));
        if let Some(store) = &self.everything {
            let seen = || Arc::new(StoredSeen::new(Arc::clone(store) as _, Arc::clone(&world.clock))) as _;
            world.seen = world.seen.or_else(|| Some(seen()));
            let undo = |data| {
                let (index, clock) = (Arc::clone(store) as _, Arc::clone(&world.clock));
                Arc::new(StoredUndo::new(index, data, clock, UndoLimits::default())) as _
            };
            world.undo = world.undo.or_else(|| data.map(undo));
        }
        world.artifacts.get_or_insert_with(|| match self.data_dir {
            Some(directory) => Arc::new(FileArtifacts::new(directory, ArtifactLimits::default())),
            None => Arc::new(MemoryArtifacts::default()),
        });
        let everything = self.everything.clone().map(|store| store as Arc<dyn CallStore>);
        let store = self.store.or(everything).unwrap_or_else(|| Arc::new(MemoryStore::new()));
        let registry = Registry::new(world);
        for tool in self.tools {
            registry.register(tool)?;
        }
        let mut refused = Vec::new();
        populate(&registry, &self.discovery, |warning| refused.push(warning));
        for warning in refused {
            tracing::warn!(warning, "a built-in tool was not registered");
        }
        let mut builder = Executor::builder(Arc::new(registry), store, Policy::compile(&self.policy)?)
            .approvals(self.approvals)
            .limits(self.limits)
            .files(self.files)
            .commands(self.commands)
            .scrubbers(self.scrubbers);
        let remembered = self.everything.clone().map(|store| store as Arc<dyn Rules>);
        if let Some(rules) = self.rules.or(remembered) {
            builder = builder.rules(rules);
        }
        if let Some(store) = self.everything {
            builder = builder.settings(store);
        }
        if let Some(listener) = self.listener {
            builder = builder.listener(listener);
        }
        if let Some(traces) = self.traces {
            builder = builder.traces(traces);
        }
        if let Some(approver) = self.approver {
            builder = builder.approver(approver);
        }
        if let Some(limiter) = self.limiter {
            builder = builder.limiter(limiter);
        }
        if let Some(keeping) = self.keeping {
            builder = builder.processes(Arc::new(ProcessTable::new(keeping)));
        }
        if let Some(former) = &self.after {
            builder = builder.after(former);
        }
        for source in self.caller_tools {
            builder = builder.caller_tools(source);
        }
        Ok(Toolbox(builder.build()))
    }
}

/// The files of this machine, with documents of the store in front where there are managed workspaces.
fn local(store: Option<&Arc<dyn Store>>, data: Option<&Path>) -> World {
    let clock = Arc::new(SystemClock);
    let mut world = World::new(Arc::clone(&clock) as _);
    let files = Arc::new(LocalFiles::new());
    world.bridge = Some(match (store, data) {
        (Some(store), Some(data)) => {
            let routing = Routing::Below(data.join(FileRules::WORKSPACES));
            let agents = Arc::new(AgentResolver::default().over(Arc::clone(store) as _));
            Arc::new(RoutedFiles::with(files, Arc::clone(store) as _, agents, clock, routing))
        }
        _ => files,
    });
    if let (Some(store), Some(data)) = (store, data) {
        let options = SkillOptions {
            snapshots: data.join(FileRules::SKILLS),
            user: None,
            deployment: Vec::new(),
            tenant: TenantId::main(),
        };
        world.skills =
            Some(Arc::new(SkillShelf::new(Arc::clone(store) as _, Arc::clone(&world.clock), options)));
    }
    world
}

/// Registers the built-in tools that `discovery` selects, and makes the rest of the catalogue known. Tools
/// that cannot be registered are reported to `warn`.
pub fn populate(registry: &Registry, discovery: &Discovery, warn: impl FnMut(String)) {
    let built = claw_tools::builtin().map(|tool| {
        let mut meta = tool.meta.clone();
        meta.tokens = claw_tools::tokens(meta.name.as_str());
        Discovered { meta, make: tool.make }
    });
    registry.discover(built, discovery, warn);
    registry.know(claw_tools::absent().iter().cloned());
}
