//! One connection to a server: dialled when it is first wanted, watched, and dialled again when it is lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use claw_core::port::{Control, RunContext, WorkspaceAccess};
use claw_core::store::{McpServer, McpTransport};
use claw_core::tool::{Call, Effects, Progress, Secrets};
use claw_core::{AgentId, ServerName, TenantId};
use claw_net::{HeaderMap, HeaderName, HeaderValue};
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, GetPromptRequestParams,
    JsonObject, PaginatedRequestParams, PingRequest, Prompt, PromptMessage, ProtocolVersion,
    ReadResourceRequestParams, Resource, ResourceContents, ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, Peer, PeerRequestOptions,
    RunningService, ServiceError,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::definition::pinned;
use crate::error::McpError;
use crate::handler::Watcher;
use crate::hub::{Place, SecretKind};
use crate::transport::{GuardedHttp, LARGEST_MESSAGE, Remote, SseWorker, StdioChild, start};

/// How often a connection that is up is tried.
const HEALTH_EVERY: Duration = Duration::from_secs(30);
/// How long a server may take to answer a health check, or to introduce itself.
const HEALTH_WITHIN: Duration = Duration::from_secs(15);
const DIAL_WITHIN: Duration = Duration::from_secs(60);
/// The first and the longest pause between two attempts, and the pause after [`QUICK_ATTEMPTS`] of them.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
const SLOW_PAUSE: Duration = Duration::from_secs(300);
const QUICK_ATTEMPTS: u32 = 10;
/// How long a call waits for a connection that is being made.
const CALL_WAITS: Duration = Duration::from_secs(20);
/// The most tools and pages that are read of one server.
const MOST_TOOLS: usize = 5_000;
const MOST_PAGES: usize = 200;

/// The state of a connection, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ConnectionState {
    /// Nobody has wanted it yet.
    Idle,
    /// It is being made.
    Connecting,
    /// It is up.
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
    },
    /// It has been given up: the server was removed, disabled or changed.
    Closed,
}

/// A server as it introduces itself, with the tools that it lists.
#[derive(Debug, Clone, Serialize)]
pub struct ServerReport {
    /// The protocol version that both sides speak.
    pub protocol: String,
    /// The server's name and version, if it says.
    pub server: Option<String>,
    /// The server's instructions for its use, if it gives any. They are the server's words.
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
    /// The agent whose own connection it is; `None` for the one that agents share.
    pub(crate) agent: Option<AgentId>,
    /// The tools that it lists are stored.
    pub(crate) stores: bool,
    /// Values that are not sealed yet, for a server that is tried before it is added.
    pub(crate) given: Vec<(String, SecretString)>,
    pub(crate) place: Arc<Place>,
}

/// A connection that is up.
pub(crate) struct Live {
    peer: Peer<RoleClient>,
    watcher: Watcher,
    pub(crate) tools: BTreeMap<String, Value>,
    report: ServerReport,
}

#[derive(Clone)]
struct Now {
    state: ConnectionState,
    live: Option<Arc<Live>>,
}

/// A connection, whatever its state. Dropping it ends it, and a server that is a child with it.
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

    pub(crate) fn state(&self) -> ConnectionState {
        self.now.borrow().state.clone()
    }

    /// Begins to connect, if that has not happened yet.
    pub(crate) fn wake(&self) {
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
            tokio::spawn(async move {
                tokio::select! {
                    () = keep_up(target, &now, &retry) => {}
                    () = stop.cancelled() => {}
                }
                now.send_replace(Now { state: ConnectionState::Closed, live: None });
            });
        }
    }

    /// Gives the connection up: calls that wait for it fail.
    pub(crate) fn close(&self) {
        self.stop.cancel();
    }

    /// The connection once it is up. A call waits for one that is being made; one that rests after a failure is tried again
    /// for it.
    pub(crate) async fn live(&self) -> Result<Arc<Live>, McpError> {
        self.wake();
        let mut now = self.now.subscribe();
        let failed = match &now.borrow().state {
            ConnectionState::Waiting { attempts, .. } => Some(*attempts),
            _ => None,
        };
        if failed.is_some() {
            self.retry.notify_one();
        }
        let settled = now.wait_for(|now| match &now.state {
            ConnectionState::Connecting => false,
            ConnectionState::Waiting { attempts, .. } => Some(*attempts) != failed,
            _ => true,
        });
        let unreachable = |why: String| McpError::Unreachable { server: self.name(), why };
        match timeout(CALL_WAITS, settled).await {
            Err(_) => Err(unreachable(format!("it is not ready after {} seconds", CALL_WAITS.as_secs()))),
            Ok(Err(_)) => Err(unreachable("the connection was closed".to_owned())),
            Ok(Ok(now)) => match (&now.live, &now.state) {
                (Some(live), _) => Ok(Arc::clone(live)),
                (None, ConnectionState::Waiting { why, attempts }) => {
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

/// Dials, watches, and dials again, for as long as it is wanted.
async fn keep_up(target: Arc<Target>, now: &watch::Sender<Now>, retry: &Notify) {
    let mut attempts = 0;
    // A server that failed in the newer lifecycle is spoken to in the older one from then on.
    let mut legacy = matches!(target.server.transport, McpTransport::Sse(_));
    loop {
        now.send_replace(Now { state: ConnectionState::Connecting, live: None });
        let why = match connect(&target, &mut legacy).await {
            Ok((live, dialled)) => {
                attempts = 0;
                target.place.list(&target, &live.tools).await;
                watch_over(&target, now, live, dialled).await
            }
            Err(why) => why,
        };
        attempts += 1;
        tracing::debug!(server = %target.server.name, attempts, "{why}");
        now.send_replace(Now { state: ConnectionState::Waiting { attempts, why }, live: None });
        let wanted = async {
            sleep(FIRST_PAUSE).await;
            retry.notified().await;
        };
        tokio::select! {
            () = sleep(pause(attempts)) => {}
            () = wanted => {}
        }
    }
}

fn pause(attempts: u32) -> Duration {
    if attempts > QUICK_ATTEMPTS {
        return SLOW_PAUSE;
    }
    FIRST_PAUSE.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(LONGEST_PAUSE)
}

/// Connects once and reads the tools.
async fn connect(target: &Target, legacy: &mut bool) -> Result<(Live, Dialled), String> {
    let watcher = Watcher::new(target.server.name.as_str());
    let dialled = match timeout(DIAL_WITHIN, dial(target, &watcher, *legacy)).await {
        Ok(Ok(dialled)) => dialled,
        Ok(Err(DialError::Lifecycle(_))) if !*legacy => {
            *legacy = true;
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
    let tools = list(&peer).await?;
    let info = peer.peer_info();
    let protocol = info.as_ref().map(|info| info.protocol_version.to_string()).unwrap_or_default();
    let server = info.as_ref().and_then(|info| info.server_info.as_ref());
    let server = server.map(|server| format!("{} {}", server.name, server.version));
    let instructions = info.as_ref().and_then(|info| info.instructions.clone());
    let capabilities = info.as_ref().map(|info| info.capabilities.clone()).unwrap_or_default();
    let (resources, prompts) = (capabilities.resources.is_some(), capabilities.prompts.is_some());
    let report = ServerReport { protocol, server, instructions, resources, prompts, tools: tools.clone() };
    Ok((Live { peer, watcher, tools, report }, dialled))
}

fn late() -> String {
    format!("it did not introduce itself within {} seconds", DIAL_WITHIN.as_secs())
}

/// Why a server could not be reached.
#[derive(Debug, thiserror::Error)]
enum DialError {
    #[error("{0}")]
    Settings(String),
    /// The server answered, and not as the lifecycle wants.
    #[error("{0}")]
    Lifecycle(String),
}

impl From<ClientInitializeError> for DialError {
    fn from(error: ClientInitializeError) -> Self {
        // The deepest cause says what happened; what stands above it speaks of the library's parts.
        let mut deepest: &dyn std::error::Error = &error;
        while let Some(cause) = deepest.source() {
            deepest = cause;
        }
        Self::Lifecycle(plain(&deepest.to_string()))
    }
}

/// The cause in a message of the protocol library, without its types and the step that it was at.
fn plain(message: &str) -> String {
    let cause = message.rsplit("] error: ").next().unwrap_or(message);
    let cause = cause.strip_prefix("Client error: ").unwrap_or(cause);
    cause.split(", when ").next().unwrap_or(cause).to_owned()
}

async fn dial(target: &Target, watcher: &Watcher, legacy: bool) -> Result<Dialled, DialError> {
    let lifecycle = if legacy {
        ClientLifecycleMode::Initialize
    } else {
        ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        }
    };
    let settings = DialError::Settings;
    match &target.server.transport {
        McpTransport::Stdio(program) => {
            let env = target.values(SecretKind::Env, &program.env).await.map_err(settings)?;
            let child = start(&target.place, program, env, context(target)).await;
            let StdioChild { output, input, control, errors } =
                child.map_err(|error| DialError::Settings(error.message))?;
            let transport = AsyncRwTransport::new_client(output, input).with_max_line_length(LARGEST_MESSAGE);
            let served = watcher.clone().serve_with_lifecycle(transport, lifecycle).await;
            match served {
                Ok(service) => Ok(Dialled { service, child: Some((control, errors)) }),
                Err(error) => {
                    // Its last words say more than that it hung up.
                    let said = errors.borrow().trim().to_owned();
                    let DialError::Lifecycle(why) = DialError::from(error) else {
                        return Err(DialError::Lifecycle("it ended".to_owned()));
                    };
                    let said = if said.is_empty() { why } else { format!("{why}; it printed: {said}") };
                    Err(DialError::Lifecycle(said))
                }
            }
        }
        McpTransport::Http(endpoint) => {
            let headers = target.headers(&endpoint.headers).await.map_err(settings)?;
            let remote = Remote::new(endpoint, headers).map_err(settings)?;
            let mut config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str());
            config.max_sse_event_size = LARGEST_MESSAGE;
            config.max_concurrent_requests = 64;
            let transport = StreamableHttpClientTransport::with_client(GuardedHttp(remote), config);
            let service = watcher.clone().serve_with_lifecycle(transport, lifecycle).await?;
            Ok(Dialled { service, child: None })
        }
        McpTransport::Sse(endpoint) => {
            let headers = target.headers(&endpoint.headers).await.map_err(settings)?;
            let remote = Remote::new(endpoint, headers).map_err(settings)?;
            let service = watcher.clone().serve_with_lifecycle(SseWorker(remote), lifecycle).await?;
            Ok(Dialled { service, child: None })
        }
    }
}

fn context(target: &Target) -> RunContext {
    RunContext {
        workspace: target.place.workspace(&target.tenant, &target.server.name),
        // Servers share nothing with each other, nor do the connections of two agents.
        sandbox_key: format!(
            "mcp:{}:{}:{}",
            target.tenant,
            target.server.name,
            target.agent.as_ref().map_or("", AgentId::as_str)
        )
        .into(),
        sandboxed: target.place.sandboxed,
        effects: Effects::ALL,
        access: WorkspaceAccess::Direct,
        network: false,
        paths: Vec::new(),
        readable: Vec::new(),
        granted: Vec::new(),
        home: None,
        hidden: Vec::new(),
        sights: Vec::new(),
        cancel: CancellationToken::new(),
        progress: Progress::silent(),
        secrets: Secrets::default(),
    }
}

impl Target {
    /// The values of variables or headers: the agent's own where it has one, else the server's.
    async fn values(&self, kind: SecretKind, names: &[String]) -> Result<Vec<(String, String)>, String> {
        let mut values = Vec::with_capacity(names.len());
        for name in names {
            if let Some((_, value)) = self.given.iter().find(|(given, _)| given == name) {
                values.push((name.clone(), value.expose_secret().to_owned()));
                continue;
            }
            let value =
                self.place.secrets.value(self, kind, name).await.map_err(|error| error.to_string())?;
            let value = value.ok_or_else(|| {
                format!(
                    "the value of `{name}` is missing; add the server `{}` again with it",
                    self.server.name
                )
            })?;
            values.push((name.clone(), value.expose_secret().to_owned()));
        }
        Ok(values)
    }

    async fn headers(&self, names: &[String]) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.values(SecretKind::Header, names).await? {
            let header =
                HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` is no header name"))?;
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| format!("the value of header `{name}` cannot be sent"))?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        Ok(headers)
    }
}

/// Reads all tools of a server, within bounds.
async fn list(peer: &Peer<RoleClient>) -> Result<BTreeMap<String, Value>, String> {
    let read = async {
        let (mut tools, mut cursor) = (BTreeMap::new(), None);
        for _ in 0..MOST_PAGES {
            let mut params = PaginatedRequestParams::default();
            params.cursor = cursor.take();
            let page = match peer.list_tools(Some(params)).await {
                Ok(page) => page,
                // A server without tools need not know the request.
                Err(ServiceError::McpError(error))
                    if error.code == rmcp::model::ErrorCode::METHOD_NOT_FOUND =>
                {
                    break;
                }
                Err(error) => return Err(format!("its tools cannot be listed: {error}")),
            };
            for tool in &page.tools {
                tools.insert(tool.name.to_string(), pinned(tool));
            }
            cursor = page.next_cursor;
            if tools.len() > MOST_TOOLS {
                return Err(format!("it lists more than {MOST_TOOLS} tools"));
            }
            if cursor.is_none() {
                return Ok(tools);
            }
        }
        match cursor {
            None => Ok(tools),
            Some(_) => Err(format!("its list of tools has more than {MOST_PAGES} pages")),
        }
    };
    match timeout(DIAL_WITHIN, read).await {
        Ok(read) => read,
        Err(_) => Err(format!("it did not list its tools within {} seconds", DIAL_WITHIN.as_secs())),
    }
}

/// Watches a connection until it is lost, and says why it was.
async fn watch_over(target: &Target, now: &watch::Sender<Now>, live: Live, dialled: Dialled) -> String {
    let (peer, watcher) = (live.peer.clone(), live.watcher.clone());
    let protocol = live.report.protocol.clone();
    let subscribed = subscribe(&peer, &watcher);
    let ready = |live: Live| {
        let state = ConnectionState::Ready { protocol: protocol.clone() };
        now.send_replace(Now { state, live: Some(Arc::new(live)) });
    };
    let mut report = live.report.clone();
    ready(live);
    let ended = dialled.service.cancellation_token();
    let mut child = dialled.child;
    let mut closed = Box::pin(dialled.service.waiting());
    let mut next = Instant::now() + HEALTH_EVERY;
    let why = loop {
        tokio::select! {
            _ = &mut closed => break "the server closed the connection".to_owned(),
            () = child_ended(&mut child) => break "the server's program ended".to_owned(),
            () = watcher.tools_changed() => match list(&peer).await {
                Ok(tools) => {
                    target.place.list(target, &tools).await;
                    report.tools = tools.clone();
                    ready(Live { peer: peer.clone(), watcher: watcher.clone(), tools, report: report.clone() });
                }
                Err(why) => break why,
            },
            () = tokio::time::sleep_until(next) => {
                if let Some(why) = unhealthy(&peer).await {
                    break why;
                }
                next = Instant::now() + HEALTH_EVERY;
            }
        }
    };
    ended.cancel();
    if let Some(task) = subscribed {
        task.abort();
    }
    if let Some((control, _)) = &mut child {
        control.kill().await;
    }
    why
}

async fn child_ended(child: &mut Option<(Box<dyn Control>, watch::Receiver<String>)>) {
    match child {
        Some((control, _)) => drop(control.ended().await),
        None => std::future::pending().await,
    }
}

/// Asks a server of the newer protocol to tell of changed tools; older ones tell by themselves.
fn subscribe(peer: &Peer<RoleClient>, watcher: &Watcher) -> Option<tokio::task::JoinHandle<()>> {
    let modern = peer.peer_info().is_some_and(|info| info.protocol_version >= ProtocolVersion::V_2026_07_28);
    let (peer, watcher) = (peer.clone(), watcher.clone());
    modern.then(|| {
        tokio::spawn(async move {
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            let Ok(mut subscription) = peer.listen(filter).await else { return };
            while let Ok(Some(_)) = subscription.next().await {
                watcher.note_change();
            }
        })
    })
}

/// Why a server does not pass a health check. Any answer counts, an error too.
async fn unhealthy(peer: &Peer<RoleClient>) -> Option<String> {
    let ping = peer.send_request(ClientRequest::PingRequest(PingRequest::default()));
    match timeout(HEALTH_WITHIN, ping).await {
        Ok(Ok(_) | Err(ServiceError::McpError(_))) => None,
        Ok(Err(error)) => Some(format!("a health check failed: {error}")),
        Err(_) => {
            Some(format!("it did not answer a health check within {} seconds", HEALTH_WITHIN.as_secs()))
        }
    }
}

impl Live {
    /// The server as it introduced itself.
    pub(crate) const fn report(&self) -> &ServerReport {
        &self.report
    }

    /// The contents of a resource.
    pub(crate) async fn resource(
        &self,
        server: &ServerName,
        uri: String,
    ) -> Result<Vec<ResourceContents>, McpError> {
        let read = self.peer.read_resource(ReadResourceRequestParams::new(uri)).await;
        read.map(|result| result.contents).map_err(|error| failed(server.as_str(), error))
    }

    /// The resources of the server, the first page of them.
    pub(crate) async fn resources(&self, server: &ServerName) -> Result<Vec<Resource>, McpError> {
        let listed = self.peer.list_resources(None).await;
        listed.map(|result| result.resources).map_err(|error| failed(server.as_str(), error))
    }

    /// The messages of a prompt.
    pub(crate) async fn prompt(
        &self,
        server: &ServerName,
        name: String,
        arguments: JsonObject,
    ) -> Result<Vec<PromptMessage>, McpError> {
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let got = self.peer.get_prompt(params).await;
        got.map(|result| result.messages).map_err(|error| failed(server.as_str(), error))
    }

    /// The prompts of the server, the first page of them.
    pub(crate) async fn prompts(&self, server: &ServerName) -> Result<Vec<Prompt>, McpError> {
        let listed = self.peer.list_prompts(None).await;
        listed.map(|result| result.prompts).map_err(|error| failed(server.as_str(), error))
    }

    /// Calls a tool by the server's name of it.
    pub(crate) async fn call(
        &self,
        server: &McpServer,
        tool: &str,
        args: JsonObject,
        (call, limit): (&Call, Duration),
    ) -> Result<CallToolResult, McpError> {
        let name = || server.name.to_string();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let mut handle = sent.map_err(|error| failed(&name(), error))?;
        let _following = self.watcher.follow(&handle.progress_token, call.progress().clone());
        let (why, error) = tokio::select! {
            answered = &mut handle.rx => return match answered {
                Ok(Ok(ServerResult::CallToolResult(result))) => Ok(result),
                Ok(Ok(ServerResult::InputRequiredResult(_))) => Err(McpError::Invalid {
                    server: name(),
                    why: "it asks for input from a person, which is not supported here".to_owned(),
                }),
                Ok(Ok(_)) => Err(McpError::Invalid { server: name(), why: "it is no result of a tool".to_owned() }),
                Ok(Err(error)) => Err(failed(&name(), error)),
                Err(_) => Err(McpError::Dropped { server: name() }),
            },
            () = call.cancel().cancelled() => ("cancelled by the caller", McpError::Cancelled { server: name() }),
            () = sleep(limit) => ("timed out", McpError::TimedOut { server: name(), limit }),
        };
        // The server is told, so that it stops working; it may not listen.
        let _ = timeout(Duration::from_secs(2), handle.cancel(Some(why.to_owned()))).await;
        Err(error)
    }
}

fn failed(server: &str, error: ServiceError) -> McpError {
    let server = server.to_owned();
    match error {
        ServiceError::McpError(error) => McpError::Refused { server, why: error.message.to_string() },
        ServiceError::TransportClosed => McpError::Dropped { server },
        ServiceError::Timeout { timeout } => McpError::TimedOut { server, limit: timeout },
        error => McpError::Invalid { server, why: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_cause_and_no_types() {
        let library = "Send message error Transport [a::B<c::D>] error: Client error: refused (111), when send initialize";
        assert_eq!(plain(library), "refused (111)");
        assert_eq!(plain("it ended"), "it ended");
    }

    #[test]
    fn attempts_are_further_apart_up_to_a_bound() {
        let pauses: Vec<u64> = (1..13).map(|attempts| pause(attempts).as_secs()).collect();
        assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 300, 300]);
    }
}
