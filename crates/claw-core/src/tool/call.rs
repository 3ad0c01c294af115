//! Who calls, and what a running call can reach.

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

/// What kind of conversation a call belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PeerKind {
    /// One person.
    #[default]
    Direct,
    /// Several people.
    Group,
}

/// How deep in a tree of subagents the caller stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SubagentDepth {
    /// 0 for an agent that people talk to.
    pub depth: u8,
    /// Whether it may start no further ones.
    pub leaf: bool,
}

/// A model that calls tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallingModel {
    /// Its name at its provider.
    pub name: SmolStr,
    /// How many tokens it can read and write together.
    pub context: u64,
}

/// Who calls: the same for all calls of one turn.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Caller {
    /// Whose data it is.
    pub tenant: TenantId,
    /// Which agent acts.
    pub agent: AgentId,
    /// The account it acts with in a channel.
    pub account: Option<SmolStr>,
    /// For whom.
    pub user: Option<UserId>,
    /// The channel the message came by: `cli`, `telegram`, ...
    pub channel: SmolStr,
    /// The chat within the channel.
    pub chat_id: Option<SmolStr>,
    /// One person or several.
    pub peer_kind: PeerKind,
    /// The conversation.
    pub session: SessionKey,
    /// Which sandbox its commands share; derived from the session.
    pub sandbox_key: SmolStr,
    /// The model's provider, which policies may speak of.
    pub provider: Option<SmolStr>,
    /// The model that calls, where one does.
    pub model: Option<CallingModel>,
    /// How many conversations a message went through, sent from one to the next, before it came to this one.
    pub hops: u8,
    /// The directory its files are in.
    pub workspace: PathBuf,
    /// The path at which its commands see the workspace, where that is another; every tool understands it.
    pub shown_workspace: Option<SmolStr>,
    /// The workspace it shares with a team, if it is in one.
    pub team_workspace: Option<PathBuf>,
    /// Where the agent keeps its own data.
    pub agent_dir: Option<PathBuf>,
    /// Settings for tools: a map from tool name to whatever that tool takes.
    pub config: Arc<Value>,
    /// Whether its commands run in a sandbox.
    pub sandboxed: bool,
    /// Its place in a tree of subagents.
    pub subagent: SubagentDepth,
    /// The tools that the message itself allows; `None` where it says nothing.
    pub request_allow: Option<Arc<[String]>>,
    /// The run that it acts in, which documents that it writes are recorded with.
    #[serde(skip)]
    pub trace: RunTrace,
}

impl Caller {
    /// A caller with this agent and session, in this workspace; the rest has plain defaults.
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

    /// What the plan of a call of `tool` may be computed from.
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

/// Where a running call tells how far it is. What it tells is scrubbed on the way.
#[derive(Clone)]
pub struct Progress(Option<Arc<Hear>>);

type Hear = dyn Fn(&str) + Send + Sync;

impl Progress {
    /// Nobody listens.
    pub const fn silent() -> Self {
        Self(None)
    }

    /// Each piece of text goes to `listener`.
    pub fn to(listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Tells a piece of text.
    pub fn tell(&self, text: &str) {
        if let Some(listener) = &self.0 {
            listener(text);
        }
    }

    /// Whether anybody listens.
    pub const fn is_silent(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_silent() { "Progress(silent)" } else { "Progress(..)" })
    }
}

/// Values that are secret for one call: credentials opened for a child, a key in a header.
///
/// Whoever opens one adds it before it can show up anywhere; what the call gives back and tells is scrubbed
/// of it. It holds them for the call's time and shows none of them.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Mutex<Vec<String>>>);

impl Secrets {
    /// Adds a value.
    pub fn add(&self, value: impl Into<String>) {
        self.lock().push(value.into());
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values, for the scrubber alone.
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

/// What a [`Call`] is made of. The road makes them; tests may too.
pub struct CallParts {
    /// Our id of this call.
    pub id: CallId,
    /// The model's id of it, kept beside ours and never a key.
    pub model_id: Option<SmolStr>,
    /// Who calls.
    pub caller: Arc<Caller>,
    /// The tool's settings and directories.
    pub facts: Arc<Facts>,
    /// Rings when the caller gives up or the time is over.
    pub cancel: CancellationToken,
    /// Where to tell how far it is.
    pub progress: Progress,
    /// What it can reach, already guarded.
    pub ports: Ports,
}

impl Call {
    /// Puts the parts together.
    pub fn new(parts: CallParts) -> Self {
        Self(Arc::new(parts))
    }

    /// Our id of this call.
    pub fn id(&self) -> CallId {
        self.0.id
    }

    /// The model's id of it.
    pub fn model_id(&self) -> Option<&str> {
        self.0.model_id.as_deref()
    }

    /// Who calls.
    pub fn caller(&self) -> &Caller {
        &self.0.caller
    }

    /// The tool's settings and directories.
    pub fn facts(&self) -> &Facts {
        &self.0.facts
    }

    /// Rings when the caller gives up or the time is over.
    pub fn cancel(&self) -> &CancellationToken {
        &self.0.cancel
    }

    /// Where to tell how far it is.
    pub fn progress(&self) -> &Progress {
        &self.0.progress
    }

    /// The clock.
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
