//! A connection to a server: dialled when it is first needed, watched, and dialled again when it is lost.

mod dial;
mod failure;
mod live;
mod reconnect;
mod threads;
mod view;
mod watching;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claw_core::port::{Control, UnixMillis};
use claw_core::store::{McpServer, McpTransport};
use claw_core::tool::Digest;
use claw_core::{AgentId, TenantId, UserId};
use rmcp::service::{Peer, RunningService};
use rmcp::{ClientCacheConfig, RoleClient};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::dial::{DialError, dial};
pub(crate) use self::live::{CallArguments, TimedCall};
use self::reconnect::{LOST, keep_up};
pub(crate) use self::threads::ConnectionThreads;
pub use self::view::{ConnectionStatus, ConnectionView};
use self::watching::{Listed, read};
use crate::error::McpError;
use crate::handler::Watcher;
use crate::hub::ConnectionParts;
use crate::oauth::endpoint_of;

/// The longest a server may take to introduce itself, and to list its tools.
const DIAL_WITHIN: Duration = Duration::from_secs(60);
/// The longest a call waits for a connection that is being made.
const CALL_WAITS: Duration = Duration::from_secs(20);

/// The state of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ConnectionState {
    /// Not needed yet.
    Idle,
    /// Being made.
    Connecting,
    /// Connected.
    Ready {
        /// The protocol version that both sides speak.
        protocol: String,
    },
    /// The last attempt failed.
    Waiting {
        /// Failed attempts in a row.
        attempts: u32,
        /// The cause of the last failure.
        why: String,
        /// The time of the next attempt, unless a call wants one earlier.
        next_try: UnixMillis,
    },
    /// Given up: the server was removed, disabled or changed.
    Closed,
}

/// A server as it introduces itself, with the tools that it lists.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct ServerReport {
    /// The protocol version that both sides speak.
    pub protocol: String,
    /// The server's name and version, if it gives them.
    pub server: Option<String>,
    /// The server's instructions for its use, in the server's own words; `None` if it gives none.
    pub instructions: Option<String>,
    /// The server offers resources.
    pub resources: bool,
    /// The server offers prompts.
    pub prompts: bool,
    /// The definitions of its tools, by name.
    pub tools: BTreeMap<String, Value>,
}

/// A server with everything that a connection to it needs.
pub(crate) struct Target {
    pub(crate) tenant: TenantId,
    pub(crate) server: McpServer,
    /// The agent that owns the connection; `None` for the one that agents share.
    pub(crate) agent: Option<AgentId>,
    /// The user whose login it uses; `None` if one login serves all.
    pub(crate) user: Option<UserId>,
    /// The tools that it lists are stored.
    pub(crate) stores: bool,
    /// Values that are not sealed yet, for a server that is tried before it is added.
    pub(crate) given: Vec<(String, SecretString)>,
    /// The sealed values that the connection was made with.
    pub(crate) opened: Mutex<Option<OpenedValues>>,
    pub(crate) place: Arc<ConnectionParts>,
}

/// The sealed values that a connection was made with.
#[derive(Clone, Copy)]
pub(crate) struct OpenedValues {
    /// The number of changes of secrets before they were read.
    at: u64,
    digest: Digest,
}

/// A connection that is up.
pub(crate) struct Live {
    peer: Peer<RoleClient>,
    watcher: Watcher,
    /// The digest of the whole list.
    listed: Digest,
    /// The digest of each tool's definition.
    digests: BTreeMap<String, Digest>,
    /// The definitions themselves, where the connection is made to read them.
    definitions: BTreeMap<String, Value>,
    /// The server's description of itself, without tools.
    report: ServerReport,
}

#[derive(Clone)]
struct Now {
    state: ConnectionState,
    live: Option<Arc<Live>>,
}

/// A connection in any state. Dropping it closes it, and kills a server that is a child process.
pub(crate) struct Connection {
    pub(crate) target: Arc<Target>,
    now: watch::Sender<Now>,
    /// Rings when a call wants a connection that rests after a failure.
    retry: Arc<Notify>,
    stop: CancellationToken,
    _ends: DropGuard,
}

/// The service of a connection, and the child behind it.
struct Dialled {
    service: RunningService<RoleClient, Watcher>,
    child: Option<(Box<dyn Control>, watch::Receiver<String>)>,
}

impl Connection {
    pub(crate) fn new(target: Target) -> Arc<Self> {
        let stop = CancellationToken::new();
        let (now, _) = watch::channel(Now { state: ConnectionState::Idle, live: None });
        let (target, retry) = (Arc::new(target), Arc::default());
        Arc::new(Self { target, now, retry, _ends: stop.clone().drop_guard(), stop })
    }

    /// Returns whether the connection was given up.
    pub(crate) fn is_closed(&self) -> bool {
        self.stop.is_cancelled() || self.now.borrow().state == ConnectionState::Closed
    }

    /// Returns whether a sealed value of the server was given anew since the connection was made.
    pub(crate) async fn has_old_values(&self) -> bool {
        self.target.has_old_values().await
    }

    /// Begins to connect, if that has not happened yet.
    pub(crate) fn wake(&self) {
        if self.now.borrow().state != ConnectionState::Idle {
            return;
        }
        let runtime = self.target.place.threads.next();
        let begun = self.now.send_if_modified(|now| {
            let idle = now.state == ConnectionState::Idle;
            if idle {
                now.state = ConnectionState::Connecting;
            }
            idle
        });
        if begun {
            let (target, now, stop) = (Arc::clone(&self.target), self.now.clone(), self.stop.clone());
            let retry = Arc::clone(&self.retry);
            runtime.spawn(async move {
                tokio::select! {
                    () = keep_up(target, &now, &retry) => {}
                    () = stop.cancelled() => {}
                }
                now.send_replace(Now { state: ConnectionState::Closed, live: None });
            });
        }
    }

    /// Closes the connection: waiting calls fail.
    pub(crate) fn close(&self) {
        self.stop.cancel();
    }

    /// Waits for the connection to be up. A connection that pauses after a failure is retried at once.
    pub(crate) async fn live(&self) -> Result<Arc<Live>, McpError> {
        let mut now = self.now.subscribe();
        let is_unusable = |now: &Now| now.live.as_ref().is_some_and(|live| !live.watcher.is_usable());
        // Failures up to this one were not waited for.
        let failed = match &*now.borrow() {
            Now { state: ConnectionState::Waiting { attempts, .. }, .. } => Some(*attempts),
            now if is_unusable(now) => Some(LOST),
            _ => None,
        };
        if matches!(now.borrow().state, ConnectionState::Waiting { .. }) {
            self.retry.notify_one();
        }
        self.wake();
        let settled = now.wait_for(|now| match &now.state {
            ConnectionState::Connecting => false,
            ConnectionState::Waiting { attempts, .. } => Some(*attempts) != failed,
            _ => !is_unusable(now),
        });
        let unreachable = |why: String| McpError::Unreachable { server: self.name(), why };
        match timeout(CALL_WAITS, settled).await {
            Err(_) => Err(unreachable(format!("it is not ready after {} seconds", CALL_WAITS.as_secs()))),
            Ok(Err(_)) => Err(unreachable("the connection was closed".to_owned())),
            Ok(Ok(now)) => match (&now.live, &now.state) {
                (Some(live), _) => Ok(Arc::clone(live)),
                (None, ConnectionState::Waiting { why, attempts, .. }) => {
                    Err(unreachable(format!("{why} (after {attempts} attempts)")))
                }
                (None, _) => Err(unreachable("the connection was closed".to_owned())),
            },
        }
    }

    fn name(&self) -> String {
        self.target.server.name.to_string()
    }
}

/// Connects once and reads the tools.
async fn connect(target: &Target, legacy: &mut bool) -> Result<(Live, Dialled), String> {
    let hidden = if endpoint_of(&target.server).is_some() { None } else { Some(target.hidden().await) };
    let new_watcher = || Watcher::new(target.server.name.as_str(), target.roots(), hidden.clone());
    let mut watcher = new_watcher();
    let dialled = match timeout(DIAL_WITHIN, dial(target, &watcher, *legacy)).await {
        Ok(Ok(dialled)) => dialled,
        Ok(Err(DialError::Lifecycle(_))) if !*legacy => {
            *legacy = true;
            watcher = new_watcher();
            match timeout(DIAL_WITHIN, dial(target, &watcher, true)).await {
                Ok(Ok(dialled)) => dialled,
                Ok(Err(error)) => {
                    *legacy = matches!(target.server.transport, McpTransport::Sse(_));
                    return Err(error.to_string());
                }
                Err(_) => return Err(late()),
            }
        }
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err(late()),
    };
    let peer = dialled.service.peer().clone();
    // A cached list could hide that the server has other tools now.
    peer.set_response_cache_config(ClientCacheConfig::disabled()).await;
    let tools = read(&peer).await?;
    let info = peer.peer_info();
    let protocol = info.as_ref().map(|info| info.protocol_version.to_string()).unwrap_or_default();
    let server = info.as_ref().and_then(|info| info.server_info.as_ref());
    let server = server.map(|server| format!("{} {}", server.name, server.version));
    let instructions = info.as_ref().and_then(|info| info.instructions.clone());
    let capabilities = info.as_ref().map(|info| info.capabilities.clone()).unwrap_or_default();
    let (resources, prompts) = (capabilities.resources.is_some(), capabilities.prompts.is_some());
    let report = ServerReport { protocol, server, instructions, resources, prompts, tools: BTreeMap::new() };
    Ok((live(target, peer, watcher, tools, report).await, dialled))
}

/// The connection with the tools that the server lists now, which are stored.
async fn live(
    target: &Target,
    peer: Peer<RoleClient>,
    watcher: Watcher,
    tools: Listed,
    report: ServerReport,
) -> Live {
    let (listed, tools) = (tools.digest(), tools.usable());
    target.listed(&tools).await;
    let digests = tools.iter().map(|(name, definition)| (name.clone(), Digest::of(definition))).collect();
    let definitions = if target.stores { BTreeMap::new() } else { tools };
    Live { peer, watcher, listed, digests, definitions, report }
}

fn late() -> String {
    format!("it did not complete the handshake within {} seconds", DIAL_WITHIN.as_secs())
}
