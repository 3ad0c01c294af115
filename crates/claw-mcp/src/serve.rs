//! Our tools for MCP clients: those that the policy gives the client's caller, with the same checks as every
//! call.

mod asking;
mod paging;
mod waiting;

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use claw_core::CallId;
use claw_core::tool::{Block, Caller, Digest, Effect, Meta, Progress, Spec};
use claw_registry::{Asking, CallError, Executor, Offer, Reply, Request};
use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod, CompleteRequestParams,
    CompleteResult, ContentBlock, ErrorData, Implementation, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProgressToken,
    ProtocolVersion, Resource, ResourceContents, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
    ToolAnnotations,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{SessionId, SessionManager as _};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{Peer, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use self::asking::AskableClient;
pub use self::asking::{ClientAnswer, ClientApprovals};
use self::waiting::{RepeatableCall, WaitingCalls};
use crate::transport::LARGEST_MESSAGE;

/// The pause before clients are notified of changed tools, so that several changes make one notice.
const SETTLE: Duration = Duration::from_millis(200);
/// The longest time after which the end of a client's session, and a change that nothing announces, are noticed.
const CHECK: Duration = Duration::from_secs(30);

/// The caller behind a client's request, and the road.
pub struct Served {
    /// The road.
    pub executor: Executor,
    /// The caller.
    pub caller: Caller,
    /// Answers approvals for the client; `None` where its key may not.
    pub approvals: Option<Arc<dyn ClientApprovals>>,
}

/// Identifies the clients of a server.
#[async_trait]
pub trait Clients: Send + Sync + 'static {
    /// Returns the caller behind a request; `parts` is the head of the HTTP request, `None` on standard
    /// streams. The error is sent to the client.
    async fn served(&self, parts: Option<&Parts>) -> Result<Served, String>;

    /// Rises when the tools of a client may have changed.
    fn changes(&self) -> Vec<watch::Receiver<u64>>;
}

/// An MCP server that offers our tools. Cheap to clone; clones share the calls that wait for approvals.
#[derive(Clone)]
pub struct ClawServer {
    clients: Arc<dyn Clients>,
    waiting: Arc<Mutex<WaitingCalls>>,
}

impl ClawServer {
    /// A server for these clients.
    pub fn new(clients: Arc<dyn Clients>) -> Self {
        Self { clients, waiting: Arc::default() }
    }

    async fn served(&self, extensions: &rmcp::model::Extensions) -> Result<Served, ErrorData> {
        let served = self.clients.served(extensions.get::<Parts>()).await;
        served.map_err(|why| ErrorData::invalid_request(why, None))
    }

    /// Returns a digest of the client's current tools; `None` if it has no access any more.
    async fn digest(&self, extensions: &rmcp::model::Extensions) -> Option<Digest> {
        let Served { executor, caller, .. } = self.served(extensions).await.ok()?;
        Some(Digest::of(&executor.offer(caller).await.specs(|_, _| {})))
    }

    /// Returns the id of a call: that of the same call if it waits for an approval, else a new one.
    fn call_id(&self, made: &RepeatableCall) -> CallId {
        self.waiting().call_id(made).unwrap_or_else(CallId::new)
    }

    fn remember(&self, made: &RepeatableCall, executor: &Executor, reply: &Reply) {
        match &reply.outcome {
            Err(CallError::Waiting(approval)) => {
                let now = executor.registry().world().clock.now();
                self.waiting().insert(made, reply.call, approval.expires, now);
            }
            _ => self.waiting().remove(made),
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, WaitingCalls> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An MCP server over streamable HTTP, for a router.
pub type HttpServer = StreamableHttpService<ClawServer, LocalSessionManager>;

/// The open sessions of an [`HttpServer`], for ending them before their clients do. Cheap to clone.
#[derive(Clone)]
pub struct HttpSessions(Arc<LocalSessionManager>);

impl HttpSessions {
    /// Ends the session with this id; does nothing if there is none.
    pub async fn end(&self, id: &str) {
        let id: SessionId = id.into();
        if let Err(error) = self.0.close_session(&id).await {
            tracing::debug!(%error, "a session of an MCP client was not closed");
        }
    }
}

/// Serves these clients over streamable HTTP until `ending` is cancelled, for requests whose `Host` and
/// `Origin` are among `hosts`. The router in front of it checks the key, and puts what [`Clients::served`]
/// needs into a request's extensions.
pub fn http_server(
    clients: Arc<dyn Clients>,
    hosts: Vec<String>,
    ending: CancellationToken,
) -> (HttpServer, HttpSessions) {
    let server = ClawServer::new(clients);
    let origins: Vec<String> =
        hosts.iter().flat_map(|host| [format!("http://{host}:*"), format!("https://{host}:*")]).collect();
    let mut config =
        StreamableHttpServerConfig::default().with_allowed_hosts(hosts).with_allowed_origins(origins);
    config.cancellation_token = ending;
    config.max_request_body_bytes = LARGEST_MESSAGE;
    let sessions = Arc::new(LocalSessionManager::default());
    let open = HttpSessions(Arc::clone(&sessions));
    (StreamableHttpService::new(move || Ok(server.clone()), sessions, config), open)
}

/// Serves one client on standard input and output until it disconnects.
pub async fn serve_stdio(clients: Arc<dyn Clients>) -> Result<(), String> {
    let transport = AsyncRwTransport::new_server(tokio::io::stdin(), tokio::io::stdout());
    let transport = transport.with_max_line_length(LARGEST_MESSAGE);
    let served = rmcp::serve_server(ClawServer::new(clients), transport).await;
    let service = match served {
        Ok(service) => service,
        // A client that hangs up before it has introduced itself asked for nothing.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(format!("the client did not complete the MCP handshake: {error}")),
    };
    service.waiting().await.map(drop).map_err(|error| error.to_string())
}

impl ServerHandler for ClawServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        let mut config = ServerConfig::new(capabilities);
        config.server_info = Implementation::new("clawsmith", env!("CARGO_PKG_VERSION"));
        config.instructions = Some(
            "Tools of a Clawsmith agent. Every call is decided by policy, recorded and scrubbed. A call that needs \
             approval says so: make the same call again once a person has approved it."
                .to_owned(),
        );
        config
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let after = paging::after(request.and_then(|request| request.cursor).as_deref())?;
        let Served { executor, caller, .. } = self.served(&context.extensions).await?;
        let offer = executor.offer(caller).await;
        let specs = offer.specs(|meta, why| tracing::warn!(tool = %meta.name, %why, "a tool cannot be made"));
        let (specs, next) = paging::page(specs, after.as_ref(), |spec| &spec.name);
        let tools = specs.iter().filter_map(|spec| Some(listed(spec, offer.meta(spec.name.as_str())?)));
        let mut result = ListToolsResult::with_all_items(tools.collect());
        result.next_cursor = next;
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Served { executor, caller, approvals } = self.served(&context.extensions).await?;
        let client = AskableClient::new(approvals, context.client_capabilities());
        let is_modern =
            context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        let mut responses = request.input_responses.unwrap_or_default();
        let args = Value::Object(request.arguments.unwrap_or_default());
        let made = RepeatableCall::new(&caller, &request.name, &args);
        let offer = executor.offer(caller).await;
        let mut call = Request::new(request.name.to_string(), args);
        call.call = self.call_id(&made);
        call.cancel = context.ct.clone();
        call.asking = Asking::Unwatched;
        let token = context.meta.get_progress_token();
        let teller = token.map(|token| tell_progress(context.peer.clone(), token));
        if let Some((progress, _)) = &teller {
            call.progress = progress.clone();
        }
        // Requests for input come while the call runs, when a client of the newer protocol cannot be asked.
        let listener = client.clone().filter(|_| !is_modern).map(|client| (client, context.peer.clone()));
        let mut again = client.is_some().then(|| call.clone());
        let mut reply = execute(&executor, &offer, call, listener.as_ref()).await;
        if let (Some(client), Err(CallError::Waiting(waiting))) = (&client, &reply.outcome) {
            let id = waiting.approval;
            let is_answered = match is_modern {
                true => client.take(id, &mut responses).await,
                false => Some(client.ask(&context.peer, id).await),
            };
            match (is_answered, again.take()) {
                (Some(true), Some(call)) => {
                    reply = execute(&executor, &offer, call, listener.as_ref()).await;
                }
                // A client whose user was asked and dismissed it is not asked again.
                (Some(_), _) => {}
                (None, _) => {
                    if let Some(required) = client.required(id).await {
                        self.remember(&made, &executor, &reply);
                        return Ok(CallToolResponse::InputRequired(required));
                    }
                }
            }
        }
        drop(again);
        self.remember(&made, &executor, &reply);
        // The call's progress is sent before its result.
        if let Some((progress, task)) = teller {
            drop(progress);
            let _ = tokio::time::timeout(Duration::from_secs(5), task).await;
        }
        Ok(CallToolResponse::Complete(answered(&reply)))
    }

    /// Tells a client of an older protocol of changed tools, for as long as it is connected.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let (server, peer, extensions) = (self.clone(), context.peer, context.extensions);
        tokio::spawn(async move {
            let mut tools = Offered::new(&server, &extensions).await;
            while tools.changed(|| peer.is_transport_closed()).await {
                if peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        });
    }

    // Requests for which we declare no capability are not known here; the library would answer them with empty lists.

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    fn accepted_subscription_filter(&self, _requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    /// Tells a client that subscribed of changed tools, until it unsubscribes.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut tools = Offered::new(self, &context.request_context().extensions).await;
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                // A subscription that is over is cancelled.
                changed = tools.changed(|| false) => {
                    let wanted = context.accepted().tools_list_changed == Some(true);
                    if !changed || wanted && context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// Makes a call; requests for input that it puts meanwhile are asked of the client too.
async fn execute(
    executor: &Executor,
    offer: &Offer,
    mut call: Request,
    client: Option<&(AskableClient, Peer<RoleServer>)>,
) -> Reply {
    let Some((client, peer)) = client else { return executor.execute(offer, call).await };
    let (sender, mut asked) = mpsc::unbounded_channel();
    call.inputs = Some(sender);
    let mut executing = std::pin::pin!(executor.execute(offer, call));
    loop {
        tokio::select! {
            reply = &mut executing => return reply,
            Some(approval) = asked.recv() => {
                let (client, peer, id) = (client.clone(), peer.clone(), approval.id);
                // Whoever answers first counts; the call goes on with that answer.
                tokio::spawn(async move { client.ask(&peer, id).await });
            }
        }
    }
}

/// The tools of one client, watched for changes.
struct Offered<'a> {
    server: &'a ClawServer,
    extensions: &'a rmcp::model::Extensions,
    changes: Vec<watch::Receiver<u64>>,
    known: Option<Digest>,
}

impl<'a> Offered<'a> {
    async fn new(server: &'a ClawServer, extensions: &'a rmcp::model::Extensions) -> Self {
        let changes = server.clients.changes();
        let known = server.digest(extensions).await;
        Self { server, extensions, changes, known }
    }

    /// Waits until the tools have really changed; returns `false` if no more changes are announced, or once the client
    /// `is_gone`, which is asked before the tools are looked up. They are looked up at least every [`CHECK`]: files that
    /// define tools announce nothing.
    async fn changed(&mut self, is_gone: impl Fn() -> bool) -> bool {
        loop {
            let announced = tokio::time::timeout(CHECK, any_changed(&mut self.changes)).await;
            match announced {
                Ok(false) => return false,
                Ok(true) => tokio::time::sleep(SETTLE).await,
                Err(_) => {}
            }
            if is_gone() {
                return false;
            }
            let now = self.server.digest(self.extensions).await;
            if now != self.known {
                self.known = now;
                return true;
            }
        }
    }
}

/// Waits for a change of any of these; returns `false` if none are left.
async fn any_changed(changes: &mut [watch::Receiver<u64>]) -> bool {
    let waits: Vec<_> = changes.iter_mut().map(|change| Box::pin(change.changed())).collect();
    if waits.is_empty() {
        return false;
    }
    futures_util::future::select_all(waits).await.0.is_ok()
}

/// Creates a progress whose pieces go to the client, and the task that sends them.
fn tell_progress(peer: Peer<RoleServer>, token: ProgressToken) -> (Progress, tokio::task::JoinHandle<()>) {
    let (sender, mut pieces) = mpsc::channel::<String>(64);
    let task = tokio::spawn(async move {
        let mut sent = 0.0;
        while let Some(piece) = pieces.recv().await {
            sent += 1.0;
            let mut params = ProgressNotificationParam::new(token.clone(), sent);
            params.message = Some(piece);
            if peer.notify_progress(params).await.is_err() {
                return;
            }
        }
    });
    // A client that reads slowly misses pieces of progress, never the result.
    let progress = Progress::to(move |text| drop(sender.try_send(text.to_owned())));
    (progress, task)
}

/// Converts a tool for a client's list.
fn listed(spec: &Spec, meta: &Meta) -> Tool {
    let parameters = match &*spec.parameters {
        Value::Object(schema) => schema.clone(),
        _ => serde_json::Map::new(),
    };
    let effects = meta.effects;
    let reads = effects.read_only();
    let mut annotations = ToolAnnotations::new().read_only(reads).open_world(effects.has(Effect::Network));
    if !reads {
        annotations = annotations.destructive(effects.has(Effect::Write) || effects.has(Effect::Execute));
    }
    let mut tool = Tool::new(
        Cow::Owned(spec.name.to_string()),
        Cow::Owned(spec.description.to_string()),
        Arc::new(parameters),
    );
    tool.title = meta.label.as_ref().map(ToString::to_string);
    tool.annotations = Some(annotations);
    tool
}

/// A reply as a client reads it.
fn answered(reply: &Reply) -> CallToolResult {
    let notes = || reply.notes.iter().map(|note| ContentBlock::text(format!("note: {note}")));
    match &reply.outcome {
        Ok(output) => {
            let mut content: Vec<_> = output.content.iter().map(content).collect();
            if content.is_empty() {
                content.push(ContentBlock::text("done; there is no output"));
            }
            content.extend(notes());
            let mut result = CallToolResult::success(content);
            result.structured_content = output.details.clone().filter(Value::is_object);
            result
        }
        Err(CallError::Waiting(waiting)) => {
            let text = format!(
                "approval {} is pending and nothing has happened yet; a person approves it with `clawsmith approvals \
                 approve {}`; then make the same call again",
                waiting.approval, waiting.approval
            );
            let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
            result.structured_content = Some(
                json!({ "approvalId": waiting.approval, "callId": reply.call, "expires": waiting.expires }),
            );
            result
        }
        Err(_) => CallToolResult::error(vec![ContentBlock::text(reply.model_text())]),
    }
}

fn content(block: &Block) -> ContentBlock {
    match block {
        Block::Text { text } => ContentBlock::text(text.clone()),
        Block::Image(image) => match image.data() {
            Some(bytes) => ContentBlock::image(STANDARD.encode(bytes), image.mime.to_string()),
            None => ContentBlock::text(format!("[an image of type {}]", image.mime)),
        },
        Block::Attachment(attachment) => match (attachment.data(), &attachment.uri) {
            (Some(bytes), None) if attachment.is_audio() => {
                ContentBlock::audio(STANDARD.encode(bytes), attachment.mime.to_string())
            }
            (Some(bytes), uri) => ContentBlock::resource(ResourceContents::BlobResourceContents {
                uri: uri.clone().unwrap_or_else(|| format!("clawsmith:blob/{}", attachment.digest)),
                mime_type: Some(attachment.mime.to_string()),
                blob: STANDARD.encode(bytes),
                meta: None,
            }),
            (None, _) => ContentBlock::text(attachment.to_string()),
        },
        Block::Resource { uri, mime, text: Some(text) } => {
            ContentBlock::resource(ResourceContents::TextResourceContents {
                uri: uri.clone(),
                mime_type: mime.as_ref().map(ToString::to_string),
                text: text.clone(),
                meta: None,
            })
        }
        Block::Resource { uri, mime, text: None } => {
            let mut link = Resource::new(uri.clone(), uri.clone());
            link.mime_type = mime.as_ref().map(ToString::to_string);
            ContentBlock::resource_link(link)
        }
    }
}

#[cfg(test)]
mod tests;
