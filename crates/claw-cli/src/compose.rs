//! Where the concrete parts meet: registry, world, store, scrubbers, executor.
//!
//! Nothing is created on disk until a call is made: listing, explaining and checking leave no trace and open no
//! store.

pub(crate) mod models;
pub(crate) mod processes;
pub(crate) mod shell;
mod unopened;

use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use claw_agent::StoredTalks;
use claw_core::AgentId;
use claw_core::event::Listener;
use claw_core::port::{AgentCard, FsBridge, Quota, World};
use claw_core::store::{AgentSetup, StoreError};
use claw_core::tool::dialect::{self, Dialect};
use claw_core::tool::{Meta, Spec};
use claw_host::files::{RoutedFiles, Routing, StoredSeen, StoredUndo};
use claw_host::shell::{CredentialedPrograms, NoCredentials};
use claw_host::{
    ArtifactLimits, ConfiguredAgents, FileArtifacts, IndexedArtifacts, StoredAgents, SystemClock,
};
use claw_llm::EnvKeys;
use claw_policy::config::AgentTools;
use claw_policy::pipeline::{Policy, PolicyError, ToolSet};
use claw_policy::program::OPEN_VARIABLES;
use claw_policy::scrub::{Scrubber, Value as SecretValue};
use claw_registry::limit::Limiter;
use claw_registry::{AgentFiles, Discovery, Executor, ExecutorBuilder, FileRules, Registry, Scrubbers};
use claw_store::Vault;
use claw_store::seal::KeySource;
use claw_store::vault::StoredCredentials;
use claw_store::{Backend, Place, StoreOptions};
use secrecy::ExposeSecret as _;
use serde_json::Value;

use self::models::DeploymentKeys;
use crate::command::tools::runtime;
use crate::config::{AgentConfig, Config, ContextFiles, KEYS, Loaded, NAME, Surroundings, candidates};
use crate::failure::Failure;
use crate::installation;

/// One process makes few calls; this many sessions are more than it plays.
const SESSIONS: usize = 64;

/// Where everything is kept.
pub(crate) fn data_dir(loaded: &Loaded, around: &Surroundings) -> Result<PathBuf, Failure> {
    loaded.data_dir(around).ok_or_else(|| {
        Failure::usage("there is no place for data: neither `data_dir` nor a home directory is set")
            .hint("set `CLAWSMITH_DATA_DIR` to a directory")
    })
}

/// What opens sealed values: the store, and the keys from `CLAWSMITH_KEYS` or from `keys/ring` in the data
/// directory.
pub(crate) async fn vault(loaded: &Loaded, around: &Surroundings) -> Result<Vault, Failure> {
    let keys = keys(loaded, around)?;
    let store = store(loaded, around).await?;
    Vault::open(store, keys).await.map_err(|error| Failure::failed(error.to_string()))
}

/// Where the keys are.
fn keys(loaded: &Loaded, around: &Surroundings) -> Result<KeySource, Failure> {
    let file = data_dir(loaded, around)?.join("keys").join("ring");
    let keys = KeySource::new(around.variable(KEYS).cloned(), file);
    keys.map_err(|error: StoreError| Failure::failed(error.to_string()))
}

/// The programs that run with credentials.
pub(crate) fn programs(
    loaded: &Loaded,
    around: &Surroundings,
    store: &Arc<dyn Backend>,
) -> Result<CredentialedPrograms, Failure> {
    let credentials = StoredCredentials::new(Arc::clone(store) as _, keys(loaded, around)?);
    // Their files are this machine's, and so is their sandbox, wherever other commands run.
    let shell = shell::machine(loaded, around);
    Ok(CredentialedPrograms::new(shell, Arc::new(credentials), OPEN_VARIABLES))
}

/// Every built-in tool, and the known ones that this build lacks. Builds and creates nothing.
pub(crate) fn registry(loaded: &Loaded, around: &Surroundings) -> Arc<Registry> {
    populated(world(loaded, around))
}

/// What there is to reach without a store.
fn world(loaded: &Loaded, around: &Surroundings) -> World {
    let mut world = World::new(Arc::new(SystemClock));
    world.bridge = Some(shell::files(loaded, around));
    world.shell = Some(shell::shell(loaded, around));
    let (machine, none) = (shell::machine(loaded, around), Arc::new(NoCredentials));
    world.programs = Some(Arc::new(CredentialedPrograms::new(machine, none, OPEN_VARIABLES)));
    if let Some(directory) = loaded.data_dir(around) {
        let artifacts = FileArtifacts::new(directory, ArtifactLimits::default());
        world.artifacts = Some(Arc::new(artifacts));
    }
    world.agents = Some(Arc::new(agents(&loaded.config)));
    world.talks = Some(Arc::new(unopened::Unopened));
    // What is wrong with them is told where one would be used.
    world.endpoints = models::endpoints(loaded, Arc::new(EnvKeys)).unwrap_or_default();
    world
}

fn populated(world: World) -> Arc<Registry> {
    let registry = Registry::new(world);
    clawsmith::populate(&registry, &Discovery::default(), |warning| tracing::warn!("{warning}"));
    Arc::new(registry)
}

/// Every tool of the catalogue, those that this build lacks too: a policy is written for what is to come as
/// well, and checking it should not wait until the tool is there.
pub(crate) fn catalogue() -> ToolSet {
    ToolSet::new(claw_tools::catalogue().into_iter().map(Arc::new), [])
}

fn agents(config: &Config) -> ConfiguredAgents {
    let card = |(id, agent): (&String, &AgentConfig)| {
        let id = AgentId::new(id).ok()?;
        let name = agent.name.clone().unwrap_or_else(|| id.to_string());
        Some((config.tenant.clone(), AgentCard { id, name, about: agent.about.clone() }))
    };
    config.agents.iter().filter_map(card).collect()
}

/// Adds the agents that the store keeps to those of the configuration file, which hold where both have one.
pub(crate) async fn add_stored_agents(loaded: &mut Loaded, store: &Arc<dyn Backend>) -> Result<(), Failure> {
    let agents = store.agents(&loaded.config.tenant).await;
    for agent in agents.map_err(|error| Failure::failed("the agents cannot be read").because(error))? {
        if let Entry::Vacant(place) = loaded.config.agents.entry(agent.id.to_string()) {
            place.insert(as_configured(&agent.setup).map_err(|failure| {
                Failure::failed(format!("agent `{}` of the store cannot be used: {failure}", agent.id))
            })?);
        }
    }
    Ok(())
}

/// A stored agent as a configuration file would say it.
pub(crate) fn as_configured(setup: &AgentSetup) -> Result<AgentConfig, Failure> {
    let AgentTools { allow, deny, also_allow, by_provider } = tools_of(setup)?;
    let about = setup.about().to_owned();
    let name = Some(setup.name.clone());
    Ok(AgentConfig {
        name,
        about,
        provider: setup.provider.as_ref().map(ToString::to_string),
        model: setup.model.as_ref().map(ToString::to_string),
        allow,
        deny,
        also_allow,
        by_provider,
        ..AgentConfig::default()
    })
}

/// How a stored agent's tools differ from those of all agents.
pub(crate) fn tools_of(setup: &AgentSetup) -> Result<AgentTools, Failure> {
    match &setup.policy {
        Value::Null => Ok(AgentTools::default()),
        policy => serde_json::from_value(policy.clone())
            .map_err(|error| Failure::failed("its policy is not one").because(error)),
    }
}

/// The policy. It was checked when the configuration was loaded.
pub(crate) fn policy(config: &Config) -> Result<Policy, Failure> {
    Policy::compile(&config.policy()).map_err(|error: PolicyError| Failure::usage(error.to_string()))
}

/// Where the store is.
pub(crate) fn place(loaded: &Loaded, around: &Surroundings) -> Result<Place, Failure> {
    match loaded.place(around) {
        Some(place) => Ok(place),
        // The data directory is what is missing.
        None => data_dir(loaded, around).map(Place::File),
    }
}

/// What the store is opened with: as configured, and for the installation that the data directory is part of.
pub(crate) fn store_options(loaded: &Loaded, data: &Path) -> Result<StoreOptions, Failure> {
    Ok(StoreOptions { installation: installation::of(data)?, ..loaded.config.store.options() })
}

/// The store, made and brought up to date where necessary. Whoever opens it closes it.
pub(crate) async fn store(loaded: &Loaded, around: &Surroundings) -> Result<Arc<dyn Backend>, Failure> {
    let (data, place) = (data_dir(loaded, around)?, place(loaded, around)?);
    let options = store_options(loaded, &data)?;
    let store = claw_store::open(&place, loaded.config.node.clone(), &options)
        .await
        .map_err(|error| unopened(error, &place, &data))?;
    if options.installation.is_none() && place != Place::Memory {
        installation::join(&data, &place, store.installation())?;
    }
    Ok(store)
}

/// The store if there is one already; where there is none, none is made.
pub(crate) async fn existing_store(
    loaded: &Loaded,
    around: &Surroundings,
) -> Result<Option<Arc<dyn Backend>>, Failure> {
    let (data, place) = (data_dir(loaded, around)?, place(loaded, around)?);
    match claw_store::exists(&place).await.map_err(|error| unopened(error, &place, &data))? {
        true => store(loaded, around).await.map(Some),
        false => Ok(None),
    }
}

/// Lets `work` work with the store, which is made where there is none, and closes it.
pub(crate) fn with_store<T>(
    loaded: &Loaded,
    around: &Surroundings,
    work: impl AsyncFnOnce(&Arc<dyn Backend>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    runtime()?.block_on(async {
        let store = store(loaded, around).await?;
        let done = work(&store).await;
        store.disconnect().await;
        done
    })
}

/// The same with a store that is there already; where there is none, none is made and nothing done.
pub(crate) fn with_existing_store<T>(
    loaded: &Loaded,
    around: &Surroundings,
    work: impl AsyncFnOnce(&Arc<dyn Backend>) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    runtime()?.block_on(async {
        let Some(store) = existing_store(loaded, around).await? else { return Ok(None) };
        let done = work(&store).await;
        store.disconnect().await;
        done.map(Some)
    })
}

/// Why a store could not be opened, and what to do about it.
pub(crate) fn unopened(error: StoreError, place: &Place, data: &Path) -> Failure {
    let hint = match &error {
        StoreError::OtherInstallation { .. } => format!(
            "set `store.url` (now {place}) or `data_dir` (now `{}`) so that they belong together; if that store \
             is lost and all begins anew, remove `{}`",
            data.display(),
            installation::file(data).display()
        ),
        _ => {
            "see `store.url` and `data_dir` in `clawsmith config show`; the store must be there and writable"
                .to_owned()
        }
    };
    Failure::failed(format!("the store at {place} cannot be opened")).because(error).hint(hint)
}

/// The road, over the store. A call that cannot be recorded is not run.
pub(crate) fn executor(
    loaded: &Loaded,
    around: &Surroundings,
    store: Arc<dyn Backend>,
    listener: Arc<dyn Listener>,
) -> Result<Executor, Failure> {
    Ok(builder(loaded, around, store, listener)?.build())
}

/// The same, before it is built.
pub(crate) fn builder(
    loaded: &Loaded,
    around: &Surroundings,
    store: Arc<dyn Backend>,
    listener: Arc<dyn Listener>,
) -> Result<ExecutorBuilder, Failure> {
    let config = &loaded.config;
    shell::make_said_by_people(around);
    let mut world = world(loaded, around);
    world.bridge = Some(bridge(loaded, around, &store)?);
    world.programs = Some(Arc::new(programs(loaded, around, &store)?));
    world.undo = Some(Arc::new(undo(loaded, around, &store)?));
    world.artifacts = Some(Arc::new(artifacts(loaded, around, &store)?));
    world.agents = Some(Arc::new(StoredAgents::new(agents(config), Arc::clone(&store) as _)));
    world.endpoints = models::endpoints(loaded, DeploymentKeys::new(loaded, around, &store, None)?)?;
    world.talks = Some(Arc::new(StoredTalks::new(Arc::clone(&store) as _, Arc::clone(&world.clock))));
    world.seen = Some(Arc::new(StoredSeen::new(Arc::clone(&store) as _, Arc::clone(&world.clock))));
    let builder = Executor::builder(populated(world), Arc::clone(&store) as _, policy(config)?)
        .settings(Arc::clone(&store) as _)
        .rules(store)
        .approvals(config.approvals.clone())
        .limiter(Limiter::new(config.limits.rate, SESSIONS))
        .limits(config.limits.for_calls())
        .files(file_rules(loaded, around)?)
        .commands(shell::command_rules(config)?)
        .scrubbers(scrubbers(config, around)?)
        .listener(listener);
    Ok(builder)
}

/// Makes all that the store keeps sealed for the tenant known to the scrubbers: a program may have written it into a
/// file long ago.
pub(crate) async fn hide_sealed(
    executor: &Executor,
    loaded: &Loaded,
    around: &Surroundings,
    store: &Arc<dyn Backend>,
) -> Result<(), Failure> {
    let values = sealed(loaded, around, store).await?;
    let short = executor.scrubbers().add_all_for(&loaded.config.tenant, values);
    let short =
        short.map_err(|error| Failure::failed("the sealed values cannot be hidden").because(error))?;
    if short > 0 {
        tracing::warn!(count = short, "sealed values are too short to be told from ordinary text");
    }
    Ok(())
}

/// All that the store keeps sealed for the tenant.
pub(crate) async fn sealed(
    loaded: &Loaded,
    around: &Surroundings,
    store: &Arc<dyn Backend>,
) -> Result<Vec<String>, Failure> {
    let tenant = &loaded.config.tenant;
    let unopened = |error: StoreError| {
        Failure::failed("a sealed value cannot be opened, so it could not be kept out of what is shown")
            .because(error)
            .hint("`clawsmith doctor` tells which; set it again, or remove it")
    };
    let kept = store.secrets(tenant).await.map_err(unopened)?;
    let mut values = programs(loaded, around, store)?.secrets(tenant).await.map_err(unopened)?;
    if !kept.is_empty() {
        let vault = Vault::open(Arc::clone(store) as _, keys(loaded, around)?).await.map_err(unopened)?;
        let secrets = vault.secrets(tenant).await.map_err(unopened)?;
        values.extend(secrets.iter().map(|secret| secret.expose_secret().trim().to_owned()));
    }
    Ok(values)
}

/// Results too long to send whole.
fn artifacts(
    loaded: &Loaded,
    around: &Surroundings,
    store: &Arc<dyn Backend>,
) -> Result<IndexedArtifacts, Failure> {
    let files = FileArtifacts::new(data_dir(loaded, around)?, ArtifactLimits::default());
    let keeping = loaded.config.limits.artifact_keeping();
    Ok(IndexedArtifacts::new(files, Arc::clone(store) as _, Arc::new(SystemClock), keeping))
}

/// What files were before they were changed.
pub(crate) fn undo(
    loaded: &Loaded,
    around: &Surroundings,
    store: &Arc<dyn Backend>,
) -> Result<StoredUndo, Failure> {
    let (data, limits) = (data_dir(loaded, around)?, loaded.config.files.undo_limits());
    let undo = StoredUndo::new(Arc::clone(store) as _, data, Arc::new(SystemClock), limits);
    // A store in memory knows nothing of what the one on the disk has kept there.
    Ok(if place(loaded, around)? == Place::Memory { undo } else { undo.sweeping() })
}

/// Where files are.
pub(crate) fn bridge(
    loaded: &Loaded,
    around: &Surroundings,
    store: &Arc<dyn Backend>,
) -> Result<Arc<dyn FsBridge>, Failure> {
    let routing = match loaded.config.files.context {
        ContextFiles::Managed => Routing::Below(workspaces(loaded, around)?),
        ContextFiles::Store => Routing::All,
    };
    let documents = (Arc::clone(store) as _, Arc::clone(store) as _);
    let files = shell::files(loaded, around);
    let kind = |(id, agent): (&String, &crate::config::AgentConfig)| {
        Some(((loaded.config.tenant.clone(), AgentId::new(id).ok()?), agent.kind?.into()))
    };
    let kinds = loaded.config.agents.iter().filter_map(kind).collect();
    let routed = RoutedFiles::with(files, documents, Arc::new(SystemClock), routing);
    Ok(Arc::new(routed.with_kinds(kinds)))
}

/// Where the workspaces are that we make.
pub(crate) fn workspaces(loaded: &Loaded, around: &Surroundings) -> Result<PathBuf, Failure> {
    Ok(real(&data_dir(loaded, around)?).join(FileRules::WORKSPACES))
}

/// Which files agents may reach. Our own directories are none of their business, and neither is the store.
pub(crate) fn file_rules(loaded: &Loaded, around: &Surroundings) -> Result<FileRules, Failure> {
    let config = &loaded.config;
    let mut rules = FileRules { data_dir: Some(real(&data_dir(loaded, around)?)), ..FileRules::default() };
    if let Place::File(file) = place(loaded, around)? {
        let file = real(&file);
        let beside = |suffix: &str| {
            let mut name = file.clone().into_os_string();
            name.push(suffix);
            PathBuf::from(name)
        };
        rules.denied.extend(["", "-wal", "-shm", "-journal"].map(beside));
    }
    rules.denied.extend(config.files.deny.iter().cloned());
    // Who writes what holds could allow itself anything, here or where the next command is run.
    rules.configuration.push(PathBuf::from(NAME));
    for file in candidates(loaded.found.as_ref(), around).into_iter().chain(around.trusted()) {
        let (text, real) = (std::path::absolute(&file).unwrap_or_else(|_| file.clone()), real(&file));
        rules.configuration.extend((text != real).then_some(text));
        rules.configuration.push(real);
    }
    let (bytes, files) = (config.files.quota_bytes, config.files.quota_files);
    if bytes.is_some() || files.is_some() {
        let limit = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
        rules.quota = Some(Quota { bytes: limit(bytes), files: limit(files) });
    }
    for (id, agent) in config.agents.iter().filter(|(_, agent)| !agent.deny_paths.is_empty()) {
        let denied = agent.deny_paths.clone();
        if let Ok(id) = AgentId::new(id) {
            let key = (config.tenant.clone(), id);
            rules.agents.insert(key, AgentFiles { denied, ..AgentFiles::default() });
        }
    }
    Ok(rules)
}

/// The absolute path, without links where it is there: workspaces are compared with it.
pub(crate) fn real(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.canonicalize().unwrap_or(absolute)
}

pub(crate) fn scrubbers(config: &Config, around: &Surroundings) -> Result<Scrubbers, Failure> {
    let scrubbers = if config.scrub.output { Scrubbers::default() } else { Scrubbers::with_open_output() };
    for (name, value) in secrets(config, around) {
        scrubbers.add(&value).map_err(|error| unusable(&name, error))?;
    }
    Ok(scrubbers)
}

/// What removes secrets, the configured values too.
pub(crate) fn scrubber(config: &Config, around: &Surroundings) -> Result<Scrubber, Failure> {
    let mut scrubber = Scrubber::default();
    for (name, value) in secrets(config, around) {
        let value = [SecretValue::new(value, "value")];
        scrubber = scrubber.with_values(value).map_err(|error| unusable(&name, error))?;
    }
    Ok(scrubber)
}

fn unusable(name: &str, error: impl std::error::Error + Send + Sync + 'static) -> Failure {
    Failure::usage(format!("`scrub.values_from_env`: the value of `{name}` cannot be scrubbed"))
        .because(error)
}

fn secrets(config: &Config, around: &Surroundings) -> Vec<(String, String)> {
    let value =
        |name: &String| Some((name.clone(), around.variable(name)?.to_string_lossy().trim().to_owned()));
    config.scrub.values_from_env.iter().filter_map(value).collect()
}

/// What a tool's definition costs in tokens.
pub(crate) struct Tokens {
    pub(crate) count: usize,
    /// Whether it was estimated, not counted.
    pub(crate) estimated: bool,
}

/// What a built-in tool's definition costs; `None` for one that this build lacks.
pub(crate) fn tokens(meta: &Meta) -> Option<Tokens> {
    if let Some(count) = meta.tokens.or_else(|| claw_tools::tokens(meta.name.as_str())) {
        return Some(Tokens { count: count as usize, estimated: false });
    }
    let count = dialect::estimate_tokens(&Dialect::Default.tool(&spec(meta)?));
    Some(Tokens { count, estimated: true })
}

/// What a model is sent of a built-in tool; `None` for one that this build lacks.
pub(crate) fn spec(meta: &Meta) -> Option<Spec> {
    let tool = claw_tools::builtin().find(|tool| tool.meta.name == meta.name)?;
    Some((tool.make)().spec().clone())
}
