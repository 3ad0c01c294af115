//! A conversation that this process carries: what is said goes into the queue, and a worker takes it from there.

use std::sync::Arc;
use std::time::Duration;

use claw_agent::{Chronicle, Deployment, Order, Profile, Profiles, Worker, WorkerOptions};
use claw_core::message::Part;
use claw_core::port::Clock;
use claw_core::store::{self, Process, Store};
use claw_core::tool::Caller;
use claw_core::{AgentId, BootId, JobId, NodeId};
use claw_host::SystemClock;
use claw_registry::Asking;
use claw_store::Backend;
use smol_str::{SmolStr, format_smolstr};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Chat;
use super::view::View;
use crate::cli::Session;
use crate::compose;
use crate::compose::models::{DeploymentKeys, models};
use crate::compose::processes::{self, Owning};
use crate::config::{AgentConfig, Config, Loaded};
use crate::failure::Failure;
use crate::output::{tell, visible};

/// How long a run belongs to a process that is gone.
const LEASE: Duration = Duration::from_secs(15);

/// A conversation, and who works on it.
pub(super) struct Talk {
    pub(super) deployment: Deployment,
    pub(super) caller: Caller,
    pub(super) view: View,
    pub(super) worker: Worker,
    lane: SmolStr,
    stop: CancellationToken,
    working: JoinHandle<Result<(), store::StoreError>>,
    owning: Owning,
}

/// Another model than the one that is set up, by provider and name.
#[derive(Debug, Clone, Default)]
pub(super) struct Instead {
    pub(super) provider: Option<SmolStr>,
    pub(super) model: Option<SmolStr>,
}

impl Talk {
    pub(super) async fn start(
        chat: &Chat,
        (session, loaded): (&Session, &Loaded),
        backend: &Arc<dyn Backend>,
        caller: Caller,
        instead: &Instead,
    ) -> Result<Self, Failure> {
        let store: Arc<dyn Store> = Arc::clone(backend) as _;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let chronicle = Chronicle::start(Arc::clone(&store), Arc::clone(&clock), None);
        let listener = Arc::clone(&chronicle) as _;
        let around = &session.around;
        let (me, data) = (alone(), compose::data_dir(loaded, around)?);
        tell_lost(&processes::lost(&data, backend).await, &caller);
        let owning = Owning::begin(&data, &me)?;
        let builder = compose::builder(loaded, around, Arc::clone(backend), listener)?;
        let limits = loaded.config.limits.for_processes();
        let executor = builder.keeping(Owning::keeping(backend, me.clone(), limits)).build();
        compose::hide_sealed(&executor, loaded, around, backend).await?;
        let keys = DeploymentKeys::new(loaded, around, backend, Some(&executor))?;
        let models = Arc::new(models(loaded, around, keys, chat.script.as_deref())?);
        let profiles = Arc::new(profiles(&loaded.config, &caller.agent, instead));
        let deserted = CancellationToken::new();
        let deployment = Deployment { store, executor, models, clock, chronicle, profiles };
        let view = View::new(&deployment, &caller, deserted.clone()).await?;
        let lane = format_smolstr!("chat:{}", caller.session);
        let options = WorkerOptions { lease: LEASE, ..WorkerOptions::new(me, [lane.clone()]) };
        let worker = Worker::new(deployment.clone(), options);
        let stop = CancellationToken::new();
        let working = tokio::spawn({
            let (worker, stop) = (worker.clone(), stop.clone());
            async move {
                // However it ends: whoever waits for an answer is told.
                let _deserted = deserted.drop_guard();
                worker.work(stop).await
            }
        });
        Ok(Self { deployment, caller, view, worker, lane, stop, working, owning })
    }

    /// Says something; gives the run that will answer.
    pub(super) async fn say(&self, parts: Vec<Part>, asking: Asking) -> Result<JobId, Failure> {
        let Self { deployment, caller, .. } = self;
        let scrubber = deployment.executor.scrubbers().for_tenant(&caller.tenant);
        let scrubbed = |part| match part {
            Part::Text { text } => Part::text(scrubber.said(&text)),
            part => part,
        };
        let parts: Vec<Part> = parts.into_iter().map(scrubbed).collect();
        let place = (self.lane.as_str(), deployment.clock.now());
        let owner = (&caller.tenant, &caller.session);
        let accepted = order(caller, asking).accept(&*deployment.store, owner, &parts, place).await;
        let accepted =
            accepted.map_err(|error| Failure::failed("the message could not be stored").because(error))?;
        Ok(accepted.job)
    }

    /// Ends it, once what runs has come to its end.
    pub(super) async fn end(self) -> Result<(), Failure> {
        self.stop.cancel();
        let worked = self.working.await;
        match self.deployment.executor.end_processes().await {
            0 => {}
            1 => tell("1 background command was ended"),
            count => tell(format_args!("{count} background commands were ended")),
        }
        self.owning.end();
        match worked {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Failure::failed("the queue could not be worked on").because(error)),
            Err(error) => Err(Failure::failed("the queue could not be worked on").because(error)),
        }
    }
}

/// Says which background commands ended with a program that is gone.
fn tell_lost(lost: &[Process], caller: &Caller) {
    let (here, elsewhere): (Vec<_>, Vec<_>) = lost
        .iter()
        .partition(|process| process.new.tenant == caller.tenant && process.new.session == caller.session);
    for process in here {
        let (id, command) = (process.new.id.name(), visible(&process.new.command));
        tell(format_args!(
            "lost: the background command `{id}` ended with the program that ran it: {command}"
        ));
    }
    if !elsewhere.is_empty() {
        tell(format_args!(
            "{} background commands of other conversations were lost as well",
            elsewhere.len()
        ));
    }
}

/// A worker by itself: the run belongs to this process until its lease ends, and another chat on this machine is no
/// later life of it.
fn alone() -> store::Worker {
    let boot = BootId::new();
    let node = NodeId::new(format!("chat-{boot}")).unwrap_or_else(|_| NodeId::local());
    store::Worker { node, boot }
}

fn order(caller: &Caller, asking: Asking) -> Order {
    Order {
        agent: caller.agent.clone(),
        user: caller.user.clone(),
        channel: caller.channel.clone(),
        chat: caller.chat_id.clone(),
        peer: caller.peer_kind,
        workspace: caller.workspace.clone(),
        allow: caller.request_allow.as_ref().map(|allow| allow.to_vec()),
        asking: asking == Asking::Possible,
        hops: 0,
    }
}

/// What the configuration says of agents; the one that is talked to may have another model for a while.
fn profiles(config: &Config, talking: &AgentId, instead: &Instead) -> Profiles {
    let common = Profile {
        limits: config.runs.clone(),
        tool_tokens: config.limits.tool_tokens.map(|tokens| tokens as usize),
        tools: Arc::new(config.tool_settings()),
        sandbox: config.sandbox.sandboxing(),
        ..Profile::default()
    };
    let profile = |(id, agent): (&String, &AgentConfig)| {
        let mut profile = Profile {
            name: agent.name.clone(),
            about: agent.about.clone(),
            provider: agent.provider.as_deref().map(Into::into),
            model: agent.model.as_deref().map(Into::into),
            ..common.clone()
        };
        if let Some(limits) = &agent.runs {
            profile.limits = limits.clone();
        }
        Some((AgentId::new(id).ok()?, profile))
    };
    let agents = config.agents.iter().filter_map(profile).collect();
    let mut profiles = Profiles { common, agents };
    if instead.provider.is_some() || instead.model.is_some() {
        let common = profiles.common.clone();
        let profile = profiles.agents.entry(talking.clone()).or_insert(common);
        profile.provider = instead.provider.clone().or(profile.provider.take());
        profile.model = instead.model.clone();
    }
    profiles
}
