//! The caller, and the parts of a running call.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;
use tokio_util::sync::CancellationToken;

use super::{ErrorKind, Facts, Need, ToolError};
use crate::id::{AgentId, CallId, SessionKey, TenantId, UserId};
use crate::port::{Clock, Ports};
use crate::provenance::RunTrace;

/// The kind of chat that a call belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PeerKind {
    /// One person.
    #[default]
    Direct,
    /// Several people.
    Group,
}

/// The position of the caller in a tree of subagents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SubagentDepth {
    /// 0 for an agent that people talk to.
    pub depth: u8,
    /// True if it may start no further subagents.
    pub leaf: bool,
}

/// A model that calls tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallingModel {
    /// Its name at its provider.
    pub name: SmolStr,
    /// The context window in tokens, input and output together.
    pub context: u64,
}

/// The caller: the same for all calls of one turn.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Caller {
    /// The tenant that owns the data.
    pub tenant: TenantId,
    /// The agent.
    pub agent: AgentId,
    /// The account it acts with in a channel.
    pub account: Option<SmolStr>,
    /// The user the agent acts for; `None` if there is none.
    pub user: Option<UserId>,
    /// The channel the message came by: `cli`, `telegram`, ...
    pub channel: SmolStr,
    /// The chat within the channel.
    pub chat_id: Option<SmolStr>,
    /// One person or several.
    pub peer_kind: PeerKind,
    /// The session.
    pub session: SessionKey,
    /// The key of the sandbox that its commands share; derived from the session.
    pub sandbox_key: SmolStr,
    /// The model's provider, which policies may name.
    pub provider: Option<SmolStr>,
    /// The model that makes the call; `None` if no model does.
    pub model: Option<CallingModel>,
    /// The number of sessions that a message was forwarded through before it came to this one.
    pub hops: u8,
    /// The directory its files are in.
    pub workspace: PathBuf,
    /// The path at which its commands see the workspace, if it is another one; every tool accepts both.
    pub shown_workspace: Option<SmolStr>,
    /// The workspace it shares with a team; `None` outside a team.
    pub team_workspace: Option<PathBuf>,
    /// The directory of the agent's own data.
    pub agent_dir: Option<PathBuf>,
    /// Settings of tools: a map from tool name to that tool's settings.
    pub config: Arc<Value>,
    /// True if its commands run in a sandbox.
    pub sandboxed: bool,
    /// Its place in a tree of subagents.
    pub subagent: SubagentDepth,
    /// The tools that the message itself allows; `None` if it does not restrict them.
    pub request_allow: Option<Arc<[String]>>,
    /// The run that it acts in, which documents that it writes are recorded with.
    #[serde(skip)]
    pub trace: RunTrace,
}

impl Caller {
    /// Returns a caller with this agent and session, in this workspace; the rest has defaults.
    pub fn new(agent: AgentId, session: SessionKey, workspace: impl Into<PathBuf>) -> Self {
        Self {
            tenant: TenantId::main(),
            agent,
            account: None,
            user: None,
            channel: SmolStr::new(session.kind()),
            chat_id: None,
            peer_kind: PeerKind::default(),
            sandbox_key: SmolStr::new(session.as_str()),
            session,
            provider: None,
            model: None,
            hops: 0,
            workspace: workspace.into(),
            shown_workspace: None,
            team_workspace: None,
            agent_dir: None,
            config: Arc::new(Value::Null),
            sandboxed: true,
            subagent: SubagentDepth::default(),
            request_allow: None,
            trace: RunTrace::default(),
        }
    }

    /// The same for a tenant other than the main one.
    #[must_use]
    pub fn of_tenant(mut self, tenant: TenantId) -> Self {
        self.tenant = tenant;
        self
    }

    /// The same for a user.
    #[must_use]
    pub fn for_user(mut self, user: UserId) -> Self {
        self.user = Some(user);
        self
    }

    /// The same with only these tools, by name or group.
    #[must_use]
    pub fn allowing(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.request_allow = Some(tools.into_iter().map(Into::into).collect());
        self
    }

    /// The same with commands that run on this machine without a sandbox.
    #[must_use]
    pub const fn without_sandbox(mut self) -> Self {
        self.sandboxed = false;
        self
    }

    /// Returns the facts that the plan of a call of `tool` may be computed from.
    pub fn facts(&self, tool: &str) -> Facts {
        let settings = match self.config.get(tool) {
            Some(settings) => Arc::new(settings.clone()),
            None => Arc::new(Value::Null),
        };
        Facts {
            workspace: self.workspace.clone(),
            directory: self.workspace.clone(),
            settings,
            sandboxed: self.sandboxed,
        }
    }
}

/// Where a running call tells how far it is: a command's output as it comes, a step of a tool.
///
/// Pieces are scrubbed on the way. Text is told as soon as no secret can begin in it, in the middle of a line too; the
/// rest is told when the call ends. Pieces come in order, on the thread of the call, so that the listener must be quick.
///
/// ```
/// # use claw_core::tool::Progress;
/// # use std::sync::mpsc;
/// let (sender, told) = mpsc::channel();
/// let progress = Progress::to(move |text| sender.send(text.to_owned()).unwrap());
/// progress.tell("half of it\n");
/// assert_eq!(told.recv(), Ok("half of it\n".to_owned()));
/// ```
#[derive(Clone)]
pub struct Progress(Option<Arc<Hear>>);

type Hear = dyn Fn(&str) + Send + Sync;

impl Progress {
    /// Drops all progress.
    pub const fn silent() -> Self {
        Self(None)
    }

    /// Sends each piece of text to `listener`.
    pub fn to(listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Reports a piece of text.
    pub fn tell(&self, text: &str) {
        if let Some(listener) = &self.0 {
            listener(text);
        }
    }

    /// Returns whether nobody listens.
    pub const fn is_silent(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_silent() { "Progress(silent)" } else { "Progress(..)" })
    }
}

/// Values that are secret for one call: credentials decrypted for a child, a key in a header.
///
/// A value must be added before it can appear anywhere; the call's result and progress are scrubbed of it.
/// This holds the values as long as the call runs, and `Debug` shows none of them.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Mutex<Vec<String>>>);

impl Secrets {
    /// Adds a value.
    pub fn add(&self, value: impl Into<String>) {
        self.lock().push(value.into());
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the values, for the scrubber alone.
    pub fn reveal(&self) -> Vec<String> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.len())
    }
}

/// One running call. Cheap to clone and `'static`, so that it can enter a spawned task.
#[derive(Clone)]
pub struct Call(Arc<CallParts>);

/// The parts of a [`Call`]. The executor makes them; tests may too.
pub struct CallParts {
    /// Our id of this call.
    pub id: CallId,
    /// The model's id of it, stored beside ours and never used as a key.
    pub model_id: Option<SmolStr>,
    /// The caller.
    pub caller: Arc<Caller>,
    /// The tool's settings and directories.
    pub facts: Arc<Facts>,
    /// Cancelled when the caller gives up or the timeout is reached.
    pub cancel: CancellationToken,
    /// The receiver of its progress.
    pub progress: Progress,
    /// The ports it can use, already guarded.
    pub ports: Ports,
}

impl Call {
    /// Makes a call from its parts.
    pub fn new(parts: CallParts) -> Self {
        Self(Arc::new(parts))
    }

    /// Returns our id of this call.
    pub fn id(&self) -> CallId {
        self.0.id
    }

    /// Returns the model's id of it.
    pub fn model_id(&self) -> Option<&str> {
        self.0.model_id.as_deref()
    }

    /// Returns the caller.
    pub fn caller(&self) -> &Caller {
        &self.0.caller
    }

    /// Returns the tool's settings and directories.
    pub fn facts(&self) -> &Facts {
        &self.0.facts
    }

    /// Returns the token that is cancelled when the caller gives up or the timeout is reached.
    pub fn cancel(&self) -> &CancellationToken {
        &self.0.cancel
    }

    /// Returns the receiver of its progress.
    pub fn progress(&self) -> &Progress {
        &self.0.progress
    }

    /// Returns the clock.
    pub fn clock(&self) -> &dyn Clock {
        self.0.ports.clock.as_ref()
    }

    pub(crate) fn ports(&self) -> &Ports {
        &self.0.ports
    }

    pub(crate) fn port<'a, P: ?Sized>(&self, port: Option<&'a P>, need: Need) -> Result<&'a P, ToolError> {
        port.ok_or_else(|| {
            let message = format!("this call has no `{}` port", need.name());
            ToolError::new(ErrorKind::Unavailable, message).because("the tool does not declare it in `needs`")
        })
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("id", &self.0.id).field("session", &self.0.caller.session).finish()
    }
}
