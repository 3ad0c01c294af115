//! Composition: the one place where the concrete parts of a deployment meet.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use claw_agent::StoredTalks;
use claw_core::AgentId;
use claw_core::event::Listener;
use claw_core::port::{Access, FsBridge, Quota, World};
use claw_core::tool::Caller;
use claw_host::files::{RoutedFiles, Routing, StoredSeen, StoredUndo, workspace_path};
use claw_host::recall::StoredGraph;
use claw_host::{ArtifactLimits, FileArtifacts, IndexedArtifacts, ProcessKeeping, SystemClock};
use claw_llm::EnvKeys;
use claw_policy::git_config::harmless_settings;
use claw_policy::program::OPEN_VARIABLES;
use claw_registry::rate_limiter::Limiter;
use claw_registry::{AgentFiles, Discovery, Executor, FileRules, Registry};
use claw_sandbox::shell::{CredentialedPrograms, NoCredentials, ProgramRules};
use claw_store::StoreLocation;
use claw_store::vault::StoredCredentials;

use super::custom;
use super::shell::store_files;
use super::without_store::Unopened;
use super::{App, DeploymentKeys, Error, Setup, real};
use crate::config::{ContextFiles, NAME, candidates};
use crate::{Toolbox, populate};

/// The most sessions with rate limits counted in one process.
const SESSIONS: usize = 100_000;
/// The policy's rules for programs with credentials.
pub(super) const PROGRAM_RULES: ProgramRules =
    ProgramRules { open: OPEN_VARIABLES, harmless: harmless_settings };

impl Setup {
    /// Returns a registry of every built-in tool, and the known ones that this build lacks. Creates no tool.
    pub fn registry(&self) -> Arc<Registry> {
        let registry = Registry::new(self.world());
        populate(&registry, &Discovery::default(), |warning| tracing::warn!("{warning}"));
        Arc::new(registry)
    }

    /// The world without a store.
    fn world(&self) -> World {
        let mut world = World::new(Arc::new(SystemClock));
        world.bridge = Some(self.files());
        world.shell = Some(self.shell());
        let (machine, none) = (self.machine(), Arc::new(NoCredentials));
        world.programs = Some(Arc::new(CredentialedPrograms::new(machine, none, PROGRAM_RULES)));
        if let Ok(directory) = self.data_dir() {
            let artifacts = FileArtifacts::new(directory, ArtifactLimits::default());
            world.artifacts = Some(Arc::new(artifacts));
        }
        world.agents = Some(Arc::new(self.agent_resolver()));
        world.talks = Some(Arc::new(Unopened));
        world.skills = Some(Arc::new(Unopened));
        world.memory = Some(Arc::new(Unopened));
        world.graph = Some(Arc::new(Unopened));
        // An invalid endpoint is reported where it would be used.
        world.endpoints = self.endpoints(Arc::new(EnvKeys)).unwrap_or_default();
        world.web = self.web(Arc::new(EnvKeys)).ok();
        world
    }

    /// The directory of the workspaces that we create.
    pub fn workspaces(&self) -> Result<PathBuf, Error> {
        Ok(real(&self.data_dir()?).join(FileRules::WORKSPACES))
    }

    /// Returns the agent's own workspace for the caller's user, below the data directory, making it if
    /// missing. The data directory must exist: only then are links in its path resolved.
    pub fn managed_workspace(&self, caller: &Caller) -> Result<PathBuf, Error> {
        let base = self.workspaces()?;
        let workspace = workspace_path(&base, &caller.tenant, &caller.agent, caller.user.as_ref());
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&workspace);
        made.map_err(|error| {
            Error::failed(format!("`{}` cannot be made", workspace.display())).because(error)
        })?;
        Ok(workspace)
    }

    /// The directories outside a workspace that any agent can change, and the workspaces that we create.
    fn changeable_by_agents(&self) -> Result<Vec<PathBuf>, Error> {
        let mut changeable = vec![self.workspaces()?];
        for agent in std::iter::once("").chain(self.config().agents.keys().map(String::as_str)) {
            let granted = self.granted_directories(agent)?.into_iter();
            changeable.extend(granted.filter(|root| root.access == Access::Write).map(|root| root.path));
        }
        Ok(changeable)
    }

    /// The files that agents may reach. Data directory and store are never among them.
    pub(crate) fn file_rules(&self) -> Result<FileRules, Error> {
        let config = self.config();
        let mut rules = FileRules { data_dir: Some(real(&self.data_dir()?)), ..FileRules::default() };
        if let StoreLocation::File(file) = self.place()? {
            rules.denied.extend(store_files(&real(&file)));
        }
        rules.denied.extend(config.files.deny.iter().cloned());
        // An agent that writes a configuration could allow itself anything, here or where the next command is run.
        rules.configuration.push(PathBuf::from(NAME));
        let files = candidates(self.loaded.found.as_ref(), &self.around);
        for file in files.into_iter().chain(self.around.trusted()) {
            let (text, real) = (std::path::absolute(&file).unwrap_or_else(|_| file.clone()), real(&file));
            rules.configuration.extend((text != real).then_some(text));
            rules.configuration.push(real);
        }
        let (bytes, files) = (config.files.quota_bytes, config.files.quota_files);
        if bytes.is_some() || files.is_some() {
            let limit = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
            rules.quota = Some(Quota { bytes: limit(bytes), files: limit(files) });
        }
        rules.roots = self.granted_directories("")?;
        for (id, agent) in &config.agents {
            let (denied, roots) = (agent.deny_paths.clone(), self.granted_directories(id)?);
            if let Ok(id) = AgentId::new(id)
                && !(denied.is_empty() && roots.is_empty())
            {
                let key = (config.tenant.clone(), id);
                rules.agents.insert(key, AgentFiles { roots, denied, ..AgentFiles::default() });
            }
        }
        Ok(rules)
    }
}

/// The hooks by which a front end takes part in calls.
#[derive(Default)]
pub struct Hooks {
    /// Receives calls and approvals.
    pub listener: Option<Arc<dyn Listener>>,
    /// Keeps commands running in the background; `None` refuses them.
    pub keeping: Option<ProcessKeeping>,
    /// The person who answers approvals owns this machine, and is asked about paths outside the workspace too.
    pub owner_answers: bool,
    /// The executor whose place the new one takes; `None` for the first one.
    pub after: Option<Executor>,
}

impl App {
    /// Builds the executor, the only way to the tools, over the store. A call that cannot be recorded is not
    /// run. Every value sealed for the deployment's tenant is scrubbed.
    pub async fn toolbox(&self, hooks: Hooks) -> Result<Toolbox, Error> {
        let (setup, config) = (self.setup(), self.setup().config());
        setup.make_private_directories();
        custom::check_file_names(self).await?;
        let mut files = setup.file_rules()?;
        files.grantable = hooks.owner_answers.then(|| setup.grantable()).transpose()?;
        let mut builder = Toolbox::builder()
            .world(self.world()?)
            .everything_in(Arc::clone(&self.store) as _)
            .policy(self.policy_config().await?)
            .approvals(config.approvals.clone())
            .limiter(Limiter::new(config.limits.rate, SESSIONS))
            .limits(config.limits.for_calls())
            .files(files)
            .commands(setup.command_rules()?)
            .scrubbers(setup.scrubbers()?)
            .caller_tools(custom::source(self)?)
            .caller_tools(Arc::new(self.shown_hub()?.tools()));
        for tool in &self.own_tools {
            builder = builder.any_tool(Arc::clone(tool));
        }
        match (&self.calls, hooks.listener) {
            // Listeners write what they hear to the store.
            (Some(calls), _) => builder = builder.store(Arc::clone(calls)),
            (None, Some(listener)) => builder = builder.listener(listener),
            (None, None) => {}
        }
        if let Some(collector) = self.collector()? {
            builder = builder.traces(Arc::new(collector));
        }
        if let Some(keeping) = hooks.keeping {
            builder = builder.keeping(keeping);
        }
        if let Some(former) = &hooks.after {
            builder = builder.after(former);
        }
        let toolbox = builder.build().map_err(|error| Error::invalid(error.to_string()))?;
        super::log::know(&toolbox);
        self.hide_sealed(&toolbox).await?;
        Ok(toolbox)
    }

    fn world(&self) -> Result<World, Error> {
        let store = &self.store;
        let mut world = self.setup.world();
        world.bridge = Some(self.bridge()?);
        world.programs = Some(Arc::new(self.programs()?));
        world.undo = Some(Arc::new(self.undo_journal()?));
        world.artifacts = Some(Arc::new(self.artifacts()?));
        world.agents = Some(self.agent_resolver());
        world.endpoints = self.setup.endpoints(self.keys(None)?)?;
        world.http = Some(custom::guarded_http(&self.setup)?);
        world.web = Some(self.setup.web(self.keys(None)?)?);
        world.skills = Some(Arc::new(self.skill_shelf()?));
        world.talks = Some(Arc::new(StoredTalks::new(Arc::clone(store) as _, Arc::clone(&world.clock))));
        let memory = self.memory()?.for_agents(self.setup.config().memory.untrusted);
        world.graph = Some(Arc::new(StoredGraph::new(Arc::clone(store) as _, memory.clone())));
        world.memory = Some(Arc::new(memory));
        world.seen = Some(Arc::new(StoredSeen::new(Arc::clone(store) as _, Arc::clone(&world.clock))));
        Ok(world)
    }

    /// Returns the API keys of models and endpoints; `executor`, if given, scrubs the keys that were read.
    pub fn keys(&self, executor: Option<&Executor>) -> Result<Arc<DeploymentKeys>, Error> {
        DeploymentKeys::new(&self.setup, &self.store, executor)
    }

    /// The programs that run with credentials.
    pub fn programs(&self) -> Result<CredentialedPrograms, Error> {
        let credentials = StoredCredentials::new(Arc::clone(&self.store) as _, self.setup.keys()?);
        // Their files are this machine's, and so is their sandbox, wherever other commands run.
        let programs = CredentialedPrograms::new(self.setup.machine(), Arc::new(credentials), PROGRAM_RULES);
        Ok(programs.refusing(self.setup.changeable_by_agents()?))
    }

    fn artifacts(&self) -> Result<IndexedArtifacts, Error> {
        let files = FileArtifacts::new(self.setup.data_dir()?, ArtifactLimits::default());
        let keeping = self.setup.config().limits.artifact_keeping();
        Ok(IndexedArtifacts::new(files, Arc::clone(&self.store) as _, Arc::new(SystemClock), keeping))
    }

    /// The journal of file changes.
    pub(crate) fn undo_journal(&self) -> Result<StoredUndo, Error> {
        let (data, limits) = (self.setup.data_dir()?, self.setup.config().files.undo_limits());
        let undo = StoredUndo::new(Arc::clone(&self.store) as _, data, Arc::new(SystemClock), limits);
        // A store in memory knows nothing of the files that the one on disk has kept there.
        Ok(if self.setup.place()? == StoreLocation::Memory { undo } else { undo.sweeping() })
    }

    /// The files of workspaces, with context files and memory routed to the store.
    pub(crate) fn bridge(&self) -> Result<Arc<dyn FsBridge>, Error> {
        let routing = match self.setup.config().files.context {
            ContextFiles::Managed => Routing::Below(self.setup.workspaces()?),
            ContextFiles::Store => Routing::All,
        };
        let (documents, agents) = (Arc::clone(&self.store) as _, self.agent_resolver() as _);
        Ok(Arc::new(RoutedFiles::with(self.setup.files(), documents, agents, Arc::new(SystemClock), routing)))
    }
}
