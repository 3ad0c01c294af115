//! The bridge to MCP servers beside a bare client: one call, 50 servers with 2,000 tools, and 200 calls at once.
//!
//! Prints `name<TAB>value<TAB>unit` lines. Words after `--` choose the parts: `call`, `tools`, `many`. The upstream servers
//! run in a child process, on loopback; each part has a process of its own, so that memory is that of the part.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use axum::serve::{Listener, ListenerExt as _};
use claw_core::port::{UnixMillis, World};
use claw_core::store::{
    McpEndpoint, McpGrant, McpServer, McpStore as _, McpSubject, McpTransport, StoreError,
};
use claw_core::tool::Caller;
use claw_core::{AgentId, NodeId, SecretName, ServerName, SessionKey, TenantId};
use claw_host::SystemClock;
use claw_mcp::{Clients, Hub, HubOptions, McpSecrets, Parts, Served, default_threads, http_server};
use claw_policy::config::PolicyConfig;
use claw_policy::pipeline::Policy;
use claw_policy::rate_config::RateConfig;
use claw_registry::rate_limiter::Limiter;
use claw_registry::{Executor, OfferOptions, Registry, Request};
use claw_store::SqliteStore;
use claw_store_memory::MemoryStore;
use claw_testkit::{FakeShell, Reply};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig, ContentBlock,
    ElicitationCapability, ErrorData, FormElicitationCapability, Implementation, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, Tool,
    UrlElicitationCapability,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RequestContext, RunningService};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ClientHandler, RoleClient, RoleServer, ServerHandler};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Argument of the child that serves, and of one that runs a single part.
const UPSTREAMS: &str = "upstreams";
const PART: &str = "part";
/// Servers, and the tools of each.
const SERVERS: usize = 50;
const TOOLS: usize = 40;
/// Calls at once, and the time that the upstream takes for each of them: a remote service, not a busy processor.
const AT_ONCE: usize = 200;
const WORK: Duration = Duration::from_millis(100);
/// Batches of calls, taken in turns, and the calls of each.
const BATCHES: usize = 30;
const CALLS: usize = 50;
/// The tokens that a model is sent for tools; the others are found by searching.
const BUDGET: usize = 8_000;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match words.first().map(String::as_str) {
        Some(UPSTREAMS) => return runtime().block_on(serve_upstreams()),
        Some(PART) => {
            // As the program does.
            claw_sandbox::limit_heaps();
            // On the runtime's own threads, as calls of a gateway or an agent are.
            let part = async move {
                match words[1].as_str() {
                    "call" => call().await,
                    "tools" => tools().await,
                    _ => many().await,
                }
            };
            return runtime().block_on(async { tokio::spawn(part).await.unwrap() });
        }
        _ => {}
    }
    for part in ["call", "tools", "many"] {
        if words.is_empty() || words.iter().any(|word| word == part) {
            let ran = Command::new(std::env::current_exe().unwrap()).args([PART, part]).status().unwrap();
            assert!(ran.success(), "{part} failed");
        }
    }
}

fn told(name: &str, value: f64, unit: &str) {
    println!("mcp/{name}\t{value:.3}\t{unit}");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A server with tools whose names and descriptions differ.
#[derive(Clone)]
struct Upstream {
    number: usize,
}

const VERBS: [&str; 8] = ["create", "list", "delete", "update", "search", "export", "archive", "review"];
const THINGS: [&str; 10] = [
    "invoice",
    "branch",
    "ticket",
    "customer",
    "deployment",
    "document",
    "calendar",
    "alert",
    "dataset",
    "contract",
];

/// The name and the description of a tool.
fn described(server: usize, tool: usize) -> (String, String) {
    let (verb, thing) = (VERBS[tool % VERBS.len()], THINGS[(tool / VERBS.len() + server) % THINGS.len()]);
    let name = format!("{verb}_{thing}_{tool}");
    let about = format!(
        "{verb} a {thing} in system {server}. Takes the {thing}'s number and returns its fields; fails if it is locked."
    );
    (name, about)
}

impl ServerHandler for Upstream {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = (0..TOOLS).map(|at| {
            let (name, about) = described(self.number, at);
            // No two tools have the same schema.
            let schema = json!({
                "type": "object",
                "properties": {
                    "number": { "type": "integer", "description": format!("Number for {name}."), "minimum": self.number },
                    "fields": { "type": "array", "items": { "type": "string" }, "description": "Fields to return." },
                    "note": { "type": "string", "description": "Reason, for the audit.", "maxLength": 400 },
                    "format": { "type": "string", "enum": ["short", "long", "raw"] },
                },
                "required": ["number"],
            });
            let Value::Object(schema) = schema else { unreachable!() };
            Tool::new(name, about, Arc::new(schema))
        });
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        if arguments.get("note").is_some_and(|note| note == "work") {
            tokio::time::sleep(WORK).await;
        }
        let text = format!("{}: {}", request.name, "a line of the record, as it is stored; ".repeat(25));
        Ok(CallToolResponse::Complete(CallToolResult::success(vec![ContentBlock::text(text)])))
    }
}

/// A listener whose connections send small pieces at once.
fn without_delay(
    listener: tokio::net::TcpListener,
) -> impl Listener<Io = tokio::net::TcpStream, Addr = SocketAddr> {
    listener.tap_io(|stream| stream.set_nodelay(true).unwrap())
}

/// Serves all upstreams on one port, prints it, and ends with standard input.
async fn serve_upstreams() {
    let mut router = axum::Router::new();
    for number in 0..SERVERS {
        let sessions = Arc::new(LocalSessionManager::default());
        let config = StreamableHttpServerConfig::default();
        let service = StreamableHttpService::new(move || Ok(Upstream { number }), sessions, config);
        router = router.route_service(&format!("/{number}"), service);
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    let parent = tokio::task::spawn_blocking(|| std::io::stdin().lines().count());
    tokio::select! {
        served = axum::serve(without_delay(listener), router) => served.unwrap(),
        _ = parent => {}
    }
}

/// The child with the upstreams; it ends with this value.
struct Upstreams {
    child: Child,
    address: SocketAddr,
}

impl Upstreams {
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(UPSTREAMS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, address: line.trim().parse().unwrap() }
    }

    fn url(&self, number: usize) -> String {
        format!("http://{}/{number}", self.address)
    }
}

impl Drop for Upstreams {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that declares the same abilities as ours, which the newer lifecycle sends with every request, and does nothing
/// else.
struct Bare;

impl ClientHandler for Bare {
    fn get_info(&self) -> ClientConfig {
        let elicitation = ElicitationCapability::new()
            .with_form(FormElicitationCapability::new())
            .with_url(UrlElicitationCapability::new());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        ClientConfig::new(capabilities, Implementation::new("bare", "1"))
    }
}

/// A client of the protocol library alone.
async fn bare_client(url: String) -> RunningService<RoleClient, Bare> {
    let config = StreamableHttpClientTransportConfig::with_uri(url).max_concurrent_requests(256);
    let transport = StreamableHttpClientTransport::with_client(reqwest::Client::new(), config);
    // The lifecycle in which the bridge speaks to the same server.
    let lifecycle = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    };
    Bare.serve_with_lifecycle(transport, lifecycle).await.unwrap()
}

fn arguments(note: &str) -> Value {
    json!({ "number": 70, "fields": ["name", "owner"], "note": note })
}

async fn bare_call(client: &RunningService<RoleClient, Bare>, tool: &str, note: &str) {
    let Value::Object(arguments) = arguments(note) else { unreachable!() };
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    let result = client.peer().call_tool(params).await.unwrap();
    assert_ne!(result.is_error, Some(true), "{:?}", result.content);
}

/// No server here has a secret.
struct NoSecrets;

#[async_trait]
impl McpSecrets for NoSecrets {
    async fn secret(
        &self,
        _: &TenantId,
        _: Option<&AgentId>,
        _: &SecretName,
    ) -> Result<Option<SecretString>, StoreError> {
        Ok(None)
    }

    async fn seal(&self, _: &TenantId, _: &SecretName, _: Option<&SecretString>) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Our side: the servers behind grants, on the road.
struct Bridge {
    store: Arc<SqliteStore>,
    hub: Hub,
    executor: Executor,
    _directory: tempfile::TempDir,
}

fn caller() -> Caller {
    Caller::new(AgentId::new("bench").unwrap(), SessionKey::new("bench:1").unwrap(), "/w")
}

fn server(number: usize) -> ServerName {
    ServerName::new(format!("s{number}")).unwrap()
}

fn tool_name(number: usize, tool: usize) -> String {
    format!("mcp_s{number}_{}", described(number, tool).0)
}

impl Bridge {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        // Servers and grants are in a file, as a deployment's are; the ledger is in memory.
        let path = directory.path().join("bench.db");
        let store = Arc::new(SqliteStore::open(&path, NodeId::local()).await.unwrap());
        let hub = Hub::new(HubOptions {
            store: Arc::clone(&store) as _,
            secrets: Arc::new(NoSecrets),
            shell: Arc::new(FakeShell::new(Reply::prints(""))),
            directory: directory.path().to_owned(),
            sandboxed: false,
            clock: Arc::new(SystemClock),
            threads: default_threads(),
        });
        let registry = Arc::new(Registry::new(World::new(Arc::new(SystemClock))));
        for builtin in claw_tools::builtin() {
            if builtin.meta.name.as_str() == "tool_search" {
                registry.register((builtin.make)()).unwrap();
            }
        }
        let policy = Policy::compile(&PolicyConfig::default()).unwrap();
        let rate = RateConfig { normal: u16::MAX, ..RateConfig::UNLIMITED };
        let executor = Executor::builder(registry, Arc::new(MemoryStore::new()), policy)
            .limiter(Limiter::new(rate, 100_000))
            .caller_tools(Arc::new(hub.tools()))
            .build();
        Self { store, hub, executor, _directory: directory }
    }

    /// Adds a server as `clawsmith mcp add` does: connects, stores its tools, grants it.
    async fn add(&self, upstreams: &Upstreams, number: usize) {
        let (tenant, name, at) = (TenantId::main(), server(number), UnixMillis(1));
        let endpoint =
            McpEndpoint { url: upstreams.url(number), headers: Vec::new(), private: true, oauth: None };
        let transport = McpTransport::Http(endpoint);
        let server = McpServer::new(name.clone(), transport);
        let report = self.hub.probe(&tenant, &server, None, Vec::new()).await.unwrap();
        assert_eq!(report.tools.len(), TOOLS);
        self.store.put_mcp_server(&tenant, &server, at).await.unwrap();
        self.store.list_mcp_tools(&tenant, &name, &report.tools, at).await.unwrap();
        let grant = McpGrant::new(name, McpSubject::Agent(AgentId::new("bench").unwrap()));
        self.store.put_mcp_grant(&tenant, &grant, at).await.unwrap();
    }

    async fn call(&self, offer: &claw_registry::Offer, tool: &str, note: &str) {
        let reply = self.executor.execute(offer, Request::new(tool, arguments(note))).await;
        assert!(reply.is_done(), "{}", reply.model_text());
    }
}

/// One call at a time: the bare client and the bridge take turns.
async fn call() {
    let upstreams = Upstreams::start();
    let bare = bare_client(upstreams.url(0)).await;
    let bridge = Bridge::new().await;
    bridge.add(&upstreams, 0).await;
    let offer = bridge.executor.offer(caller()).await;
    let (tool, bridged) = (described(0, 0).0, tool_name(0, 0));
    let (mut plain, mut ours, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for batch in 0..=BATCHES {
        let begun = Instant::now();
        for _ in 0..CALLS {
            bare_call(&bare, &tool, "none").await;
        }
        let without = begun.elapsed().as_secs_f64() * 1e3 / CALLS as f64;
        let begun = Instant::now();
        for _ in 0..CALLS {
            bridge.call(&offer, &bridged, "none").await;
        }
        let with = begun.elapsed().as_secs_f64() * 1e3 / CALLS as f64;
        if batch > 0 {
            plain.push(without);
            ours.push(with);
            ratios.push(with / without);
        }
    }
    told("one call, bare client", median(plain), "ms");
    told("one call, bridge", median(ours), "ms");
    told("one call, bridge beside the bare client", median(ratios), "x");
}

/// Resident memory of this process, in MB.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

/// 50 servers with 2,000 tools, all connected.
async fn tools() {
    let upstreams = Upstreams::start();
    let bridge = Bridge::new().await;
    bridge.executor.offer(caller()).await;
    let before = resident();
    for number in 0..SERVERS {
        bridge.add(&upstreams, number).await;
    }
    let mut firsts = Vec::new();
    for number in 0..20 {
        // Any change makes all callers' tools be read again.
        let grant = McpGrant::new(server(number), McpSubject::Agent(AgentId::new("bench").unwrap()));
        bridge.store.put_mcp_grant(&TenantId::main(), &grant, UnixMillis(2)).await.unwrap();
        let begun = Instant::now();
        let offer = bridge.executor.offer(caller()).await;
        assert_eq!(offer.specs(|_, _| {}).len(), SERVERS * TOOLS);
        firsts.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    told("2000 tools, listed for the first time", firsts[0], "ms");
    told("2000 tools, listed after a change", median(firsts.split_off(1)), "ms");
    let mut again = Vec::new();
    for _ in 0..20 {
        let begun = Instant::now();
        let offer = bridge.executor.offer(caller()).await;
        assert_eq!(offer.specs(|_, _| {}).len(), SERVERS * TOOLS);
        again.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    told("2000 tools, listed again", median(again), "ms");
    let offer = bridge.executor.offer(caller()).await;
    for number in 0..SERVERS {
        bridge.call(&offer, &tool_name(number, 0), "none").await;
    }
    let (mut fitted, mut searches) = (Vec::new(), Vec::new());
    let queries = [
        "export a dataset",
        "which tool reviews contracts",
        "archive_calendar",
        "update ticket of system 31",
    ];
    for at in 0..40 {
        let options = OfferOptions { token_budget: Some(BUDGET), ..OfferOptions::default() };
        let begun = Instant::now();
        let offer = bridge.executor.offer_with(caller(), options).await;
        fitted.push(begun.elapsed().as_secs_f64() * 1e3);
        assert!(offer.deferred() > 1_000, "{}", offer.deferred());
        let query = json!({ "query": queries[at % queries.len()], "limit": 5 });
        let begun = Instant::now();
        let reply = bridge.executor.execute(&offer, Request::new("tool_search", query)).await;
        searches.push(begun.elapsed().as_secs_f64() * 1e3);
        assert!(reply.is_done() && reply.model_text().contains("tools found"), "{}", reply.model_text());
    }
    told("2000 tools, offered within a token budget", median(fitted), "ms");
    told("2000 tools, tool_search", median(searches), "ms");
    told("50 servers connected, 2000 tools, memory added", resident() - before, "MB");
    told("50 servers connected, 2000 tools, whole process", resident(), "MB");
}

/// Every client of our server is the same caller.
struct OneCaller(Executor);

#[async_trait]
impl Clients for OneCaller {
    async fn served(&self, _: Option<&Parts>) -> Result<Served, String> {
        Ok(Served { executor: self.0.clone(), caller: caller(), approvals: None })
    }

    fn changes(&self) -> Vec<watch::Receiver<u64>> {
        Vec::new()
    }
}

/// 200 calls at once through `/mcp` to an upstream that takes its time.
async fn many() {
    let upstreams = Upstreams::start();
    let bridge = Bridge::new().await;
    bridge.add(&upstreams, 0).await;
    let hosts = vec!["127.0.0.1".to_owned()];
    let clients = Arc::new(OneCaller(bridge.executor.clone()));
    let (served, _) = http_server(clients, hosts, CancellationToken::new());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().route_service("/mcp", served);
    tokio::spawn(async move { axum::serve(without_delay(listener), router).await.unwrap() });
    let client = Arc::new(bare_client(format!("http://{address}/mcp")).await);
    let tool = tool_name(0, 0);
    let mut single = Vec::new();
    for _ in 0..11 {
        let begun = Instant::now();
        bare_call(&client, &tool, "work").await;
        single.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let one = median(single);
    let mut by_run: HashMap<&str, Vec<f64>> = HashMap::new();
    for _ in 0..5 {
        let begun = Instant::now();
        let calls: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                let (client, tool) = (Arc::clone(&client), tool.clone());
                tokio::spawn(async move {
                    let begun = Instant::now();
                    bare_call(&client, &tool, "work").await;
                    begun.elapsed().as_secs_f64() * 1e3
                })
            })
            .collect();
        let mut times = Vec::new();
        for call in calls {
            times.push(call.await.unwrap());
        }
        assert_eq!(times.len(), AT_ONCE);
        by_run.entry("all").or_default().push(begun.elapsed().as_secs_f64() * 1e3);
        by_run.entry("median").or_default().push(median(times));
    }
    let (all, middle) = (median(by_run["all"].clone()), median(by_run["median"].clone()));
    told("one call through /mcp, upstream takes 100 ms", one, "ms");
    told("200 calls at once through /mcp, median of a call", middle, "ms");
    told("200 calls at once through /mcp, all answered", all, "ms");
    told("200 calls at once, median beside one call", middle / one, "x");
}
