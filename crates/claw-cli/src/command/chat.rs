//! `clawsmith chat`: one question to an agent, and what it says and does to answer it.
//!
//! The question goes into the queue like every other, in a lane of its conversation: this process takes it from
//! there, and if it dies, the next chat in the conversation goes on from where it stopped. What is shown is read
//! from the conversation's log, as any other client would.

mod models;
mod view;

use std::convert::Infallible;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use claw_agent::{Chronicle, Deployment, Order, Peer, Profile, Profiles, Worker, WorkerOptions};
use claw_core::message::Part;
use claw_core::port::Clock;
use claw_core::store::{self, Store};
use claw_core::tool::{Caller, Digest};
use claw_core::{AgentId, BootId, JobId};
use claw_host::SystemClock;
use claw_registry::Asking;
use claw_store::Backend;
use serde_json::Value;
use smol_str::format_smolstr;
use tokio_util::sync::CancellationToken;

use self::models::LocalModels;
use self::view::View;
use super::tools::{approve, read, runtime, workspace};
use crate::caller::CallerArgs;
use crate::cli::Session;
use crate::compose;
use crate::config::{AgentConfig, Config, Loaded};
use crate::failure::{Failure, Outcome};
use crate::output::tell;

/// No question is longer.
const MOST_BYTES: usize = 1024 * 1024;

/// What to say, to whom, and where.
#[derive(Debug, Args)]
#[command(
    after_help = "The answer goes to standard output as it comes; which tools are called goes to standard \
error. With `--json` everything goes to standard output, one event a line. A conversation goes on where it was: \
there is one for each agent, user and workspace, unless `--session` names another.

Where a call needs an approval you are asked on a terminal; elsewhere it is refused, unless `--wait` lets it \
wait for `clawsmith approvals`. Ctrl-C ends the run: what was said is kept.

Exit codes: 0 answered, 1 the run failed, 2 usage, 130 stopped.

Examples:
  clawsmith chat -m 'show me'
  clawsmith chat -m 'what is in README.md?' --workspace ~/project
  echo 'list the files' | clawsmith chat
  clawsmith chat -m hello --json"
)]
pub(crate) struct Chat {
    /// What to say [default: what standard input holds].
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// The directory that the agent works in; not `/` and not the home directory itself [default: the current
    /// directory].
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Play this script instead of asking a model.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Where an approval is needed and nobody sits at this terminal, wait for one from another
    /// (`clawsmith approvals`).
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    caller: CallerArgs,
}

impl Chat {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let loaded = self.caller.load(session)?;
        let workspace = workspace(self.workspace.as_deref(), &session.around)?;
        let mut caller = self.caller.caller(&loaded.config, &session.around, &workspace)?;
        if !self.caller.names_session() {
            self.name_session(&mut caller, &workspace)?;
        }
        let text = self.message()?;
        let models = LocalModels::new(self.script.as_deref())?;
        runtime()?.block_on(self.talk(session, &loaded, caller, (text, models)))
    }

    /// One conversation for each agent, user and workspace.
    fn name_session(&self, caller: &mut Caller, workspace: &Path) -> Result<(), Failure> {
        let name = workspace.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let digest = Digest::of_bytes(workspace.as_os_str().as_encoded_bytes()).to_string();
        let digest: String = digest.chars().filter(char::is_ascii_hexdigit).take(8).collect();
        let chat: String = name.chars().take(40).chain(['-']).chain(digest.chars()).collect();
        let user = caller.user.as_ref().map_or("me", |user| user.as_str());
        let peer = Peer::Direct { user, chat: Some(&chat) };
        let key = claw_agent::key(&caller.agent, "cli", peer)
            .map_err(|error| Failure::usage(error.to_string()).hint("name one with `--session KIND:NAME`"))?;
        caller.sandbox_key = key.as_str().into();
        caller.session = key;
        caller.channel = "cli".into();
        Ok(())
    }

    fn message(&self) -> Result<String, Failure> {
        let text = match &self.message {
            Some(text) => text.clone(),
            None if std::io::stdin().is_terminal() => {
                return Err(Failure::usage("there is nothing to say").hint("clawsmith chat -m 'show me'"));
            }
            None => {
                let bytes = read(std::io::stdin().lock())
                    .map_err(|error| Failure::usage("standard input cannot be read").because(error))?;
                String::from_utf8(bytes).map_err(|_| Failure::usage("standard input is not UTF-8"))?
            }
        };
        if text.trim().is_empty() {
            return Err(Failure::usage("there is nothing to say").hint("clawsmith chat -m 'show me'"));
        }
        if text.len() > MOST_BYTES {
            let failure =
                Failure::usage(format!("a message of {} bytes is longer than {MOST_BYTES}", text.len()));
            return Err(failure.hint("put it into a file of the workspace and ask about the file"));
        }
        Ok(text)
    }

    async fn talk(
        &self,
        session: &mut Session,
        loaded: &Loaded,
        caller: Caller,
        (text, models): (String, LocalModels),
    ) -> Outcome {
        let store = compose::store(loaded, &session.around).await?;
        let ended = self.ask(session, loaded, &store, caller, (text, models)).await;
        store.disconnect().await;
        ended
    }

    async fn ask(
        &self,
        session: &mut Session,
        loaded: &Loaded,
        backend: &Arc<dyn Backend>,
        caller: Caller,
        (text, models): (String, LocalModels),
    ) -> Outcome {
        let store: Arc<dyn Store> = Arc::clone(backend) as _;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let chronicle = Chronicle::start(Arc::clone(&store), Arc::clone(&clock), None);
        let listener = Arc::clone(&chronicle) as _;
        let executor = compose::executor(loaded, &session.around, Arc::clone(backend), listener)?;
        let profiles = Arc::new(profiles(&loaded.config));
        let deployment = Deployment { store, executor, models: Arc::new(models), clock, chronicle, profiles };
        let mut view = View::new(&mut session.out, &deployment, &caller).await?;
        view.introduce(&*deployment.models.model(&caller.tenant, None, None).await.map_err(unusable)?)?;

        let asking = if self.wait { Asking::Possible } else { approve::asking() };
        let lane = format_smolstr!("chat:{}", caller.session);
        let order = order(&caller, asking);
        let text = deployment.executor.scrubbers().for_tenant(&caller.tenant).said(&text);
        let place = (lane.as_str(), deployment.clock.now());
        let owner = (&caller.tenant, &caller.session);
        let accepted = order
            .accept(&*deployment.store, owner, &[Part::text(text)], place)
            .await
            .map_err(|error| Failure::failed("the message could not be stored").because(error))?;

        let worker = store::Worker { node: loaded.config.node.clone(), boot: BootId::new() };
        let worker = Worker::new(deployment.clone(), WorkerOptions::new(worker, [lane]));
        let stop = CancellationToken::new();
        let working = tokio::spawn({
            let (worker, stop) = (worker.clone(), stop.clone());
            async move { worker.work(stop).await }
        });
        let ended = tokio::select! {
            ended = view.follow(accepted.job) => ended,
            never = interrupted(&worker, accepted.job) => match never {},
        };
        stop.cancel();
        if let Ok(Err(error)) = working.await {
            return Err(Failure::failed("the queue could not be worked on").because(error));
        }
        Ok(ExitCode::from(ended?))
    }
}

/// Ctrl-C ends the run; a second one ends the program.
async fn interrupted(worker: &Worker, run: JobId) -> Infallible {
    if tokio::signal::ctrl_c().await.is_err() {
        return std::future::pending().await;
    }
    tell("\nstopping; press Ctrl-C again to quit at once");
    worker.abort(run);
    match tokio::signal::ctrl_c().await {
        Ok(()) => std::process::exit(130),
        Err(_) => std::future::pending().await,
    }
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
    }
}

/// What the configuration says of agents.
fn profiles(config: &Config) -> Profiles {
    let settings = config.settings.clone().into_iter();
    let tools: Value = settings.map(|(tool, settings)| (tool, Value::Object(settings))).collect();
    let common = Profile {
        limits: config.runs.clone(),
        tool_tokens: config.limits.tool_tokens.map(|tokens| tokens as usize),
        tools: Arc::new(tools),
        ..Profile::default()
    };
    let profile = |(id, agent): (&String, &AgentConfig)| {
        let mut profile = Profile { name: agent.name.clone(), about: agent.about.clone(), ..common.clone() };
        if let Some(limits) = &agent.runs {
            profile.limits = limits.clone();
        }
        Some((AgentId::new(id).ok()?, profile))
    };
    let agents = config.agents.iter().filter_map(profile).collect();
    Profiles { common, agents }
}

fn unusable(error: claw_core::port::ModelError) -> Failure {
    Failure::failed("no model can be asked").because(error)
}
