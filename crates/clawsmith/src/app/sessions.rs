//! Sessions: agents at work in this process. Messages go into the queue, from which a worker takes runs.
//!
//! A run belongs to the process that holds its lease. If the process dies, its lease expires and the next one that
//! takes the lane resumes the run from what is stored.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use claw_agent::{
    Acceptance, Budget, Chronicle, ClientTools, Deployment, ModelChoice, Order, Peer, Profile, Profiles,
    ProjectFiles, Worker, WorkerOptions,
};
use claw_core::message::Part;
use claw_core::port::{Clock, Model, Owner};
use claw_core::store::{self, Cancel, Cancelled, JobFilter, JobState, Process, Store, StoreError};
use claw_core::tool::{Caller, Digest};
use claw_core::{AgentId, BootId, JobId, NodeId, SessionKey, TenantId};
use claw_host::{ProcessKeeping, SystemClock};
use claw_registry::{Asking, Executor};
use smol_str::{SmolStr, format_smolstr};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::client_tools::ClientTurn;
use super::compose::Hooks;
use super::follow_changes::{ChangesToFollow, Following};
use super::mode::Mode;
use super::rule_check::{check_entries, shorter};
use super::running_programs::{self, Owning};
use super::traces::Collector;
use super::{App, Error, client_tools};
use crate::config::Config;

/// The time after which the run of a dead process is taken over.
const LEASE: Duration = Duration::from_secs(15);
/// The longest that runs may take to stop where they stand. A tool has two seconds to clean up.
const HANDING_OVER: Duration = Duration::from_secs(10);
/// The most entries of the list of tools that a message allows.
const MOST_ALLOWED: usize = 256;

/// The options of agents in this process.
#[derive(Debug, Clone, Default)]
pub struct SessionsOptions {
    /// The lanes from which runs are taken. A message goes into the first.
    pub lanes: Vec<SmolStr>,
    /// A script that is played instead of every model.
    pub script: Option<PathBuf>,
    /// A different model for one agent.
    pub instead: Option<(AgentId, ModelChoice)>,
    /// The number of concurrent runs; `None` means 8.
    pub slots: Option<usize>,
    /// The person who answers approvals owns this machine, and is asked about paths outside the workspace too.
    pub owner_answers: bool,
}

/// The worker of this process, which runs agents, and the operations on sessions that front ends use.
pub struct Sessions {
    deployment: RwLock<Deployment>,
    lasting: Lasting,
    /// The application whose configuration holds.
    app: watch::Sender<App>,
    worker: Worker,
    lane: SmolStr,
    stop: CancellationToken,
    deserted: CancellationToken,
    /// The worker's task; `None` once it was ended.
    working: Mutex<Option<JoinHandle<Result<(), store::StoreError>>>>,
    owning: Owning,
    lost: Vec<Process>,
    /// The mode of messages that are sent from now on.
    pub(super) mode: Mutex<Mode>,
    /// Keep policy and scrubbers of the executor, and of former ones that runs still use, as they are to be.
    following: Mutex<Vec<Following>>,
}

/// Returns the lane of a session whose runs are taken only by a process that shows it.
pub fn private_lane(session: &SessionKey) -> SmolStr {
    format_smolstr!("chat:{session}")
}

/// The parts of a deployment that a reload keeps.
struct Lasting {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    chronicle: Arc<Chronicle>,
    keeping: ProcessKeeping,
    script: Option<PathBuf>,
    instead: Option<(AgentId, ModelChoice)>,
    owner_answers: bool,
    collector: Option<Collector>,
}

/// The run that will answer a message.
struct NewRun<'a> {
    order: Order,
    lane: &'a str,
    priority: i16,
    /// The run that must be the last of the session: its calls wait for the results in the message.
    after: Option<JobId>,
}

impl App {
    /// Starts a worker for these lanes.
    pub async fn sessions(&self, options: SessionsOptions) -> Result<Sessions, Error> {
        let (setup, config) = (self.setup(), self.setup().config());
        let store: Arc<dyn Store> = Arc::clone(&self.store) as _;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let chronicle = Chronicle::start(Arc::clone(&store), Arc::clone(&clock), None);
        let (me, data) = (alone(), setup.data_dir()?);
        let lost = running_programs::lost(&data, &self.store).await;
        let owning = Owning::begin(&data, &me)?;
        let keeping = Owning::keeping(&self.store, me.clone(), config.limits.for_processes());
        let (script, instead, owner_answers) = (options.script, options.instead, options.owner_answers);
        let collector = self.collector()?;
        let lasting = Lasting { store, clock, chronicle, keeping, script, instead, owner_answers, collector };
        let app = watch::Sender::new(self.clone());
        let changes = ChangesToFollow::from_now(app.subscribe()).await?;
        let deployment = self.deployment(&lasting, None).await?;
        let following = changes.apply_to(&deployment.executor);
        let lane = options.lanes.first().cloned().unwrap_or_else(|| SmolStr::new_static("main"));
        let mut worker_options = WorkerOptions { lease: LEASE, ..WorkerOptions::new(me, options.lanes) };
        worker_options.slots = options.slots.unwrap_or(worker_options.slots);
        let worker = Worker::new(deployment.clone(), worker_options);
        let (stop, deserted) = (CancellationToken::new(), CancellationToken::new());
        let working = tokio::spawn({
            let (worker, stop, deserted) = (worker.clone(), stop.clone(), deserted.clone());
            async move {
                // However it ends: those who wait for an answer are told.
                let _deserted = deserted.drop_guard();
                worker.work(stop).await
            }
        });
        if let Some(extractor) = self.extractor(Arc::clone(&deployment.models) as _)? {
            let stop = stop.clone();
            tokio::spawn(async move { extractor.work(stop).await });
        }
        let indexer = self.memory()?.indexer();
        tokio::spawn({
            let stop = stop.clone();
            async move { indexer.work(stop).await }
        });
        Ok(Sessions {
            deployment: RwLock::new(deployment),
            lasting,
            app,
            worker,
            lane,
            stop,
            deserted,
            working: Mutex::new(Some(working)),
            owning,
            lost,
            mode: Mutex::default(),
            following: Mutex::new(vec![following]),
        })
    }

    /// The parts that runs are made with, as this application's configuration has them.
    async fn deployment(&self, lasting: &Lasting, after: Option<Executor>) -> Result<Deployment, Error> {
        let (setup, config) = (self.setup(), self.setup().config());
        let listener = Some(Arc::clone(&lasting.chronicle) as _);
        let hooks = Hooks {
            listener,
            keeping: Some(lasting.keeping.clone()),
            owner_answers: lasting.owner_answers,
            after,
        };
        let executor = self.toolbox(hooks).await?.executor().clone();
        let models = setup.models(self.keys(Some(&executor))?, lasting.script.as_deref())?;
        let profiles = Arc::new(profiles(config, lasting.instead.clone()));
        let (models, agents) = (Arc::new(models), self.agent_resolver());
        let (store, clock) = (Arc::clone(&lasting.store), Arc::clone(&lasting.clock));
        let chronicle = Arc::clone(&lasting.chronicle);
        let traces = lasting.collector.clone().map(|collector| Arc::new(collector) as _);
        Ok(Deployment { store, executor, models, clock, chronicle, agents, profiles, traces })
    }
}

impl Sessions {
    /// The parts that the next run is made with.
    pub fn deployment(&self) -> Deployment {
        self.deployment.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes the runs that begin from now on as this application's configuration says. Runs that go on keep their model,
    /// tools and limits; the tool policy holds for them too, from their next call on. If the new configuration cannot be
    /// used, nothing changes.
    pub(super) async fn reload(&self, app: &App) -> Result<(), Error> {
        let changes = ChangesToFollow::from_now(self.app.subscribe()).await?;
        let deployment = app.deployment(&self.lasting, Some(self.deployment().executor)).await?;
        let following = changes.apply_to(&deployment.executor);
        self.worker.set_deployment(deployment.clone());
        *self.deployment.write().unwrap_or_else(PoisonError::into_inner) = deployment;
        self.app.send_replace(app.clone());
        let mut all = self.following.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|former| !former.is_over());
        all.push(following);
        Ok(())
    }

    /// Returns a token that is cancelled when no worker of this process takes runs any more.
    pub fn deserted(&self) -> &CancellationToken {
        &self.deserted
    }

    /// Returns the background commands of programs that died; each is reported once.
    pub fn lost(&self) -> &[Process] {
        &self.lost
    }

    /// Stores a message, and the run that will answer it; returns the run.
    pub async fn send(&self, caller: &Caller, parts: Vec<Part>, asking: Asking) -> Result<JobId, Error> {
        self.send_with(caller, parts, asking, ClientTurn::default()).await
    }

    /// Stores a message whose client has tools of its own; returns the run.
    pub(super) async fn send_with(
        &self,
        caller: &Caller,
        parts: Vec<Part>,
        asking: Asking,
        ClientTurn { tools, after }: ClientTurn,
    ) -> Result<JobId, Error> {
        check_allowed_tools(caller)?;
        let mode = *self.mode.lock().unwrap_or_else(PoisonError::into_inner);
        let order = Order { client: tools, ..order(caller, asking, mode) };
        self.accept(caller, parts, NewRun { order, lane: &self.lane, priority: 0, after }).await
    }

    /// Adds a message to the run that goes on in the caller's session; returns that run. It reads the message before it asks
    /// its model again; if it ends before, a run of its own answers the message.
    pub async fn inject(&self, caller: &Caller, parts: Vec<Part>) -> Result<JobId, Error> {
        let states = vec![JobState::Pending, JobState::Leased, JobState::Parked];
        let filter = JobFilter { session: Some(caller.session.clone()), states, ..JobFilter::default() };
        let open = self.deployment().store.jobs(&caller.tenant, &filter).await?;
        // The first to be accepted is the one that goes on; the list begins with the latest.
        let Some(run) = open.last() else {
            return Err(Error::conflict(format!("session `{}` has no active run", caller.session))
                .hint("send the message normally: a new run answers it"));
        };
        let order: Order = serde_json::from_value(run.new.payload.clone())
            .map_err(|error| Error::failed("the run's order cannot be read").because(error))?;
        // If a run of its own answers the message, no client waits for that one.
        let order = Order { client: ClientTools::default(), ..order };
        let run_of_message = NewRun { order, lane: &run.new.lane, priority: Order::INJECTED, after: None };
        self.accept(caller, parts, run_of_message).await?;
        Ok(run.new.id)
    }

    /// The number of the last event of the caller's session; 0 where there is none.
    pub async fn last_event(&self, caller: &Caller) -> Result<u64, Error> {
        let owner = Owner { tenant: caller.tenant.clone(), session: caller.session.clone() };
        Ok(self.follow(owner, None).await?.seen())
    }

    async fn accept(
        &self,
        caller: &Caller,
        parts: Vec<Part>,
        NewRun { order, lane, priority, after }: NewRun<'_>,
    ) -> Result<JobId, Error> {
        let deployment = self.deployment();
        let scrubber = deployment.executor.scrubbers().for_tenant(&caller.tenant);
        // Names are stored and shown as they are.
        if scrubber.knows(caller.session.as_str()) {
            return Err(Error::invalid("the session's name holds a secret").hint("use another name"));
        }
        let scrubbed = |part| match part {
            Part::Text { text } => Ok(Part::text(scrubber.said(&text))),
            Part::Image(image) if !scrubber.passes_image(&image) => {
                let hint = "an image cannot be scrubbed; send one without the secret";
                Err(Error::invalid(format!("the image ({} bytes) holds a secret", image.bytes)).hint(hint))
            }
            part => Ok(part),
        };
        let parts = parts.into_iter().map(scrubbed).collect::<Result<Vec<Part>, Error>>()?;
        let place = Acceptance { lane, at: deployment.clock.now(), lineage: None, priority, after };
        let owner = Owner { tenant: caller.tenant.clone(), session: caller.session.clone() };
        let accepted = order.accept(&*deployment.store, &owner, &parts, place).await;
        let accepted = accepted.map_err(|error| match (error, after) {
            (StoreError::Refused { .. }, Some(run)) => client_tools::went_on(run),
            (error, _) => Error::failed("the message could not be stored").because(error),
        })?;
        Ok(accepted.job)
    }

    /// Stops every run of the caller's session, in any process: those of this one at once.
    pub async fn stop(&self, caller: &Caller, by: &str) -> Result<(), Error> {
        let states = vec![JobState::Pending, JobState::Leased, JobState::Parked];
        let filter = JobFilter { session: Some(caller.session.clone()), states, ..JobFilter::default() };
        let runs = self.lasting.store.jobs(&caller.tenant, &filter).await.map_err(unstoppable)?;
        for run in runs.iter().map(|job| job.new.id) {
            self.worker.abort(run);
            cancel(&*self.lasting.store, &caller.tenant, run, by).await?;
        }
        Ok(())
    }

    /// The model that answers this caller.
    pub async fn model(&self, caller: &Caller) -> Result<Arc<dyn Model>, Error> {
        let profile = self.deployment().profile(&caller.tenant, &caller.agent).await;
        let profile = profile.map_err(|error| Error::failed("the agent cannot be read").because(error))?;
        self.model_named(caller, &ModelChoice { provider: profile.provider, model: profile.model }).await
    }

    /// The caller as its runs call tools: policies may speak of the provider that answers.
    pub async fn answered(&self, caller: &Caller) -> Result<Caller, Error> {
        let mut caller = caller.clone();
        caller.provider = Some(self.model(&caller).await?.card().provider.clone());
        Ok(caller)
    }

    /// A model by name, for the tenant of this caller.
    pub async fn model_named(&self, caller: &Caller, choice: &ModelChoice) -> Result<Arc<dyn Model>, Error> {
        let (provider, model) = (choice.provider.as_deref(), choice.model.as_deref());
        let model = self.deployment().models.model(&caller.tenant, provider, model).await;
        model.map_err(|error| Error::failed(error.to_string()))
    }

    /// Ends the worker once its runs have ended, and the background commands; returns the number of commands.
    /// Runs that take longer than `grace` are parked where they stand, and any other process takes them at once; `None`
    /// waits for all of them.
    pub async fn end(&self, grace: Option<Duration>) -> Result<usize, Error> {
        self.stop.cancel();
        let working = self.working.lock().unwrap_or_else(PoisonError::into_inner).take();
        let worked = match (working, grace) {
            (None, _) => return Ok(0),
            (Some(working), None) => working.await,
            (Some(mut working), Some(grace)) => {
                match timeout(grace, &mut working).await {
                    Ok(worked) => worked,
                    Err(_) => {
                        self.worker.hand_over();
                        timeout(HANDING_OVER, working).await.map_err(|_| {
                        Error::failed("a run did not stop in time; another process resumes it when its lease expires")
                    })?
                    }
                }
            }
        };
        let commands = self.deployment().executor.end_processes().await;
        self.deployment().chronicle.written().await;
        if let Some(collector) = &self.lasting.collector {
            collector.flush().await;
        }
        self.owning.end();
        let failed = || Error::failed("the worker failed");
        match worked {
            Ok(Ok(())) => Ok(commands),
            Ok(Err(error)) => Err(failed().because(error)),
            Err(error) => Err(failed().because(error)),
        }
    }
}

/// Returns the session of this agent, user and workspace on a terminal; `other` names another one.
pub fn workspace_session(caller: &Caller, other: Option<&str>) -> Result<SessionKey, Error> {
    let workspace = &caller.workspace;
    let name = workspace.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let digest = Digest::of_bytes(workspace.as_os_str().as_encoded_bytes()).to_string();
    let digest = digest.strip_prefix("sha256:").unwrap_or(&digest).chars().take(8);
    let mut chat: String = name.chars().take(40).chain(['-']).chain(digest).collect();
    if let Some(other) = other {
        chat.push('-');
        chat.push_str(other);
    }
    let user = caller.user.as_ref().map_or("me", |user| user.as_str());
    claw_agent::key(&caller.agent, "cli", Peer::Direct { user, chat: Some(&chat) })
        .map_err(|error| Error::invalid(error.to_string()).hint("name one with `--session KIND:NAME`"))
}

/// Cancels a run and all runs below it.
pub(super) async fn cancel(
    store: &dyn Store,
    tenant: &TenantId,
    run: JobId,
    by: &str,
) -> Result<Cancelled, Error> {
    let note = serde_json::json!([Part::text(format!("the run was stopped by {by}"))]);
    let request = Cancel { at: SystemClock.now(), by: by.to_owned(), note };
    store.cancel(tenant, run, request).await.map_err(unstoppable)
}

/// Refuses a message whose list of allowed tools is too long: it is stored with the run, and read with every list of runs.
pub(super) fn check_allowed_tools(caller: &Caller) -> Result<(), Error> {
    let allowed = caller.request_allow.as_deref().unwrap_or_default();
    check_entries("the list of allowed tools", allowed, MOST_ALLOWED).map_err(shorter)
}

fn unstoppable(error: StoreError) -> Error {
    Error::failed("the run could not be stopped").because(error).hint("try again")
}

/// A worker by itself: its runs belong to this process until their leases expire, and another process on this
/// machine is not a later life of it.
fn alone() -> store::Worker {
    let boot = BootId::new();
    let node = NodeId::new(format!("chat-{boot}")).unwrap_or_else(|_| NodeId::local());
    store::Worker { node, boot }
}

fn order(caller: &Caller, asking: Asking, mode: Mode) -> Order {
    Order {
        agent: caller.agent.clone(),
        user: caller.user.clone(),
        channel: caller.channel.clone(),
        chat: caller.chat_id.clone(),
        peer: caller.peer_kind,
        workspace: caller.workspace.clone(),
        allow: caller.request_allow.as_ref().map(|allow| allow.to_vec()),
        thread: None,
        asking,
        hops: 0,
        untrusted: false,
        budget: Budget::default(),
        narrowing: mode.narrowing(),
        client: ClientTools::default(),
    }
}

/// Returns the common profile of all agents; `instead` gives one agent another model.
fn profiles(config: &Config, instead: Option<(AgentId, ModelChoice)>) -> Profiles {
    let common = Profile {
        limits: config.runs.clone(),
        tool_tokens: config.limits.tool_tokens.map(|tokens| tokens as usize),
        untrusted_memory: config.memory.untrusted,
        skill_tokens: config.skills.prompt_tokens as usize,
        project: Some(ProjectFiles {
            read: claw_host::project_instructions::instructions,
            bytes: config.files.project_bytes as usize,
        }),
        tools: Arc::new(config.tool_settings()),
        sandbox: config.sandbox.sandboxing(),
        ..Profile::default()
    };
    let instead = instead.into_iter().map(|(agent, choice)| ((config.tenant.clone(), agent), choice));
    Profiles { common, instead: instead.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_a_message_that_allows_megabytes_of_tools() {
        let check = |allowed: Option<Vec<String>>| {
            let session = SessionKey::new("cli:x").unwrap();
            let mut caller = Caller::new(AgentId::new("default").unwrap(), session, "w");
            caller.request_allow = allowed.map(Into::into);
            check_allowed_tools(&caller)
        };
        let names =
            |count: usize| -> Vec<String> { (0..count).map(|number| format!("tool_{number}")).collect() };
        assert!(check(None).is_ok() && check(Some(names(0))).is_ok() && check(Some(names(256))).is_ok());
        let many = check(Some(names(257))).unwrap_err();
        assert_eq!(many.message(), "the list of allowed tools has 257 entries; at most 256 are accepted");
        assert!(many.advice().is_some());
        let long = check(Some(vec!["x".repeat(8 << 20)])).unwrap_err();
        assert!(long.message().contains("8388608 bytes; at most 128 are accepted"), "{long}");
        assert!(check(Some(vec!["x".repeat(128)])).is_ok());
    }
}
