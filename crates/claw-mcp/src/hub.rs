//! All servers of a process: access to them, and their connections.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use claw_core::port::{Clock, ShellHost};
use claw_core::store::{McpEndpoint, McpGrant, McpServer, McpTool, McpToolState, Store, StoreError, Topic};
use claw_core::tool::{AnyTool, Caller, ErrorKind, ToolError, Unavailable};
use claw_core::{AgentId, SecretName, ServerName, TenantId, UserId};
use claw_registry::{CallerTools, ToolLayer};
use secrecy::SecretString;
use serde_json::Value;
use tokio::sync::watch;

use crate::access::{Access, access};
use crate::connection::{Connection, ConnectionState, ServerReport, Target};
use crate::definition;
use crate::error::McpError;
use crate::name::tool_name;
use crate::oauth::{LoginPlace, LoginView, LoginWish, endpoint_of};
use crate::offers::{OfferKind, OfferTool};
use crate::tool::BridgedTool;

/// Opens the sealed values of servers.
#[async_trait]
pub trait McpSecrets: Send + Sync {
    /// Returns a secret: the agent's own if it has one of that name, else the tenant's.
    async fn secret(
        &self,
        tenant: &TenantId,
        agent: Option<&AgentId>,
        name: &SecretName,
    ) -> Result<Option<SecretString>, StoreError>;

    /// Seals a secret of the tenant, replacing the stored one; `None` removes it.
    async fn seal(
        &self,
        tenant: &TenantId,
        name: &SecretName,
        value: Option<&SecretString>,
    ) -> Result<(), StoreError>;
}

/// The use of a server's sealed value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretKind {
    /// A variable of its program.
    Env,
    /// A header of its requests.
    Header,
    /// A login by OAuth with its tokens.
    Login,
    /// A begun login.
    PendingLogin,
}

/// Returns the name of the secret that holds a variable or header of a server.
pub fn secret_name(server: &ServerName, kind: SecretKind, name: &str) -> Result<SecretName, McpError> {
    let kind = match kind {
        SecretKind::Env => "env",
        SecretKind::Header => "header",
        SecretKind::Login => "login",
        SecretKind::PendingLogin => "pending-login",
    };
    SecretName::new(format!("mcp.{server}.{kind}.{name}")).map_err(|_| McpError::Settings {
        server: server.to_string(),
        why: format!("`{name}` cannot name a {kind}; use letters, digits, `_` and `-`"),
    })
}

/// The parts of a hub.
pub struct HubOptions {
    /// Servers, grants and accepted tools.
    pub store: Arc<dyn Store>,
    /// Sealed values of variables and headers.
    pub secrets: Arc<dyn McpSecrets>,
    /// The shell that runs servers that are programs.
    pub shell: Arc<dyn ShellHost>,
    /// The directory in which each such server has a directory of its own.
    pub directory: PathBuf,
    /// Such programs run in the sandbox.
    pub sandboxed: bool,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// A weak reference to a hub: tools do not keep it alive.
#[derive(Clone)]
pub(crate) struct WeakHub(Weak<Inner>);

impl WeakHub {
    pub(crate) fn upgrade(&self) -> Option<Hub> {
        self.0.upgrade().map(Hub)
    }
}

/// The parts of the process that connections need.
pub(crate) struct Place {
    store: Arc<dyn Store>,
    pub(crate) secrets: Opener,
    pub(crate) shell: Arc<dyn ShellHost>,
    directory: PathBuf,
    pub(crate) sandboxed: bool,
    clock: Arc<dyn Clock>,
    /// A lock per login, held while it is renewed.
    refreshing: Mutex<HashMap<LoginKey, Arc<tokio::sync::Mutex<()>>>>,
}

/// The tenant, server and user of a login.
type LoginKey = (TenantId, ServerName, Option<UserId>);

pub(crate) struct Opener(pub(crate) Arc<dyn McpSecrets>);

impl Opener {
    pub(crate) async fn value(
        &self,
        target: &Target,
        kind: SecretKind,
        name: &str,
    ) -> Result<Option<SecretString>, McpError> {
        let name = secret_name(&target.server.name, kind, name)?;
        Ok(self.0.secret(&target.tenant, target.agent.as_ref(), &name).await?)
    }
}

impl Place {
    /// The directory of a server that is a program.
    pub(crate) fn workspace(&self, tenant: &TenantId, server: &ServerName) -> PathBuf {
        self.directory.join(tenant.as_str()).join(server.as_str())
    }

    /// The place of a login.
    pub(crate) fn login(&self, tenant: &TenantId, server: &ServerName, user: Option<&UserId>) -> LoginPlace {
        let key = (tenant.clone(), server.clone(), user.cloned());
        let mut locks = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        if locks.len() > MOST_CALLERS {
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        }
        let refreshing = Arc::clone(locks.entry(key).or_default());
        let (secrets, changes) = (Arc::clone(&self.secrets.0), self.store.changes(Topic::Secrets));
        let (tenant, server, user) = (tenant.clone(), server.clone(), user.cloned());
        LoginPlace { secrets, tenant, server, user, refreshing, changes }
    }

    /// Stores the tools that a server lists.
    pub(crate) async fn list(&self, target: &Target, tools: &BTreeMap<String, Value>) {
        if !target.stores {
            return;
        }
        let (tenant, server) = (&target.tenant, &target.server.name);
        match self.store.list_mcp_tools(tenant, server, tools, self.clock.now()).await {
            Ok(changed) => {
                for tool in changed.iter().filter(|tool| tool.state() == McpToolState::Changed) {
                    tracing::warn!(%server, tool = tool.name, "an MCP tool changed its definition and is stopped");
                }
            }
            Err(error) => tracing::warn!(%server, %error, "the tools of an MCP server could not be stored"),
        }
    }
}

/// All MCP servers of a process. Cheap to clone; connections end with the last clone.
#[derive(Clone)]
pub struct Hub(Arc<Inner>);

struct Inner {
    place: Arc<Place>,
    changes: watch::Receiver<u64>,
    tenants: Mutex<HashMap<TenantId, Arc<Servers>>>,
    connections: Mutex<HashMap<Key, Arc<Connection>>>,
}

/// The identity of a connection. It is shared by all agents without variables or headers of their own, and by
/// all users of a server if one login serves all.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    tenant: TenantId,
    server: ServerName,
    agent: Option<AgentId>,
    user: Option<UserId>,
}

/// The store's rows of a tenant's servers.
struct Rows {
    servers: Vec<McpServer>,
    grants: Vec<McpGrant>,
    tools: Vec<McpTool>,
}

/// A snapshot of a tenant's servers.
struct Servers {
    /// The number of changes when they were read.
    at: u64,
    tools: Vec<Arc<BridgedTool>>,
    /// Tools for resources and prompts, each with the servers that offer such things.
    offers: Vec<Offered>,
    grants: HashMap<ServerName, Vec<McpGrant>>,
    /// A layer per set of tools, and the layers of callers.
    layers: Mutex<Layers>,
}

/// A tool for resources or prompts, and the servers that offer such things.
struct Offered {
    tool: Arc<OfferTool>,
    kind: OfferKind,
    servers: Vec<ServerName>,
}

#[derive(Default)]
struct Layers {
    by_caller: HashMap<(AgentId, Option<UserId>), Arc<ToolLayer>>,
    by_tools: HashMap<Vec<usize>, Arc<ToolLayer>>,
}

/// The most callers whose layers are cached.
const MOST_CALLERS: usize = 10_000;

impl Hub {
    /// Creates a hub without connections: each is made when first needed.
    pub fn new(options: HubOptions) -> Self {
        let HubOptions { store, secrets, shell, directory, sandboxed, clock } = options;
        let changes = store.changes(Topic::Mcp);
        let refreshing = Mutex::default();
        let place = Place { store, secrets: Opener(secrets), shell, directory, sandboxed, clock, refreshing };
        Self(Arc::new(Inner {
            place: Arc::new(place),
            changes,
            tenants: Mutex::default(),
            connections: Mutex::default(),
        }))
    }

    fn downgrade(&self) -> WeakHub {
        WeakHub(Arc::downgrade(&self.0))
    }

    /// The tools of servers, for the road.
    ///
    /// Servers that are removed, disabled or changed end at once, whether or not anybody calls.
    pub fn tools(&self) -> McpTools {
        let (hub, mut changes) = (self.downgrade(), self.0.changes.clone());
        tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                let Some(hub) = hub.upgrade() else { return };
                let tenants: Vec<TenantId> = hub.tenants().keys().cloned().collect();
                for tenant in tenants {
                    if let Err(error) = hub.servers(&tenant).await {
                        tracing::warn!(%tenant, %error, "the MCP servers of a tenant cannot be read");
                    }
                }
            }
        });
        McpTools(self.clone())
    }

    /// Connects to a server once, enabled or not, and returns its description and tools. Nothing is stored.
    /// Values that are `given` override the sealed ones; the login is the user's if each has their own.
    pub async fn probe(
        &self,
        tenant: &TenantId,
        server: &McpServer,
        user: Option<&UserId>,
        given: Vec<(String, SecretString)>,
    ) -> Result<ServerReport, McpError> {
        self.make_directory(tenant, server)?;
        let target = Target {
            tenant: tenant.clone(),
            server: server.clone(),
            agent: None,
            user: user.filter(|_| endpoint_of(server).is_some_and(|(_, oauth)| oauth.per_user)).cloned(),
            stores: false,
            given,
            place: Arc::clone(&self.0.place),
        };
        let connection = Connection::new(target);
        let live = connection.live().await?;
        Ok(live.report().clone())
    }

    /// Returns the connection for a call, and its timeout; the grants are read again.
    pub(crate) async fn connection_for(
        &self,
        caller: &Caller,
        server: &ServerName,
        tool: &str,
    ) -> Result<(Arc<Connection>, Duration), ToolError> {
        let store = &self.0.place.store;
        let refused = |why: String| {
            let message = format!("`{tool}` of MCP server `{server}` is not for this caller: {why}");
            ToolError::new(ErrorKind::Forbidden, message)
        };
        let failed = |error: StoreError| ToolError::from(McpError::from(error));
        let servers = store.mcp_servers(&caller.tenant).await.map_err(failed)?;
        let Some(server) = servers.into_iter().find(|now| now.name == *server && now.enabled) else {
            return Err(refused("the server was removed or disabled".to_owned()));
        };
        let mut grants = store.mcp_grants(&caller.tenant).await.map_err(failed)?;
        grants.retain(|grant| grant.server == server.name);
        let access = access(&grants, &caller.agent, caller.user.as_ref()).map_err(refused)?;
        if !access.permits(tool) {
            return Err(refused("its grant does not cover the tool".to_owned()));
        }
        let overrides = &access.overrides;
        let own = !overrides.env.is_empty() || !overrides.headers.is_empty();
        let agent = own.then(|| caller.agent.clone());
        let limit = overrides.timeout_secs.unwrap_or(server.timeout_secs);
        let user = match endpoint_of(&server) {
            Some((_, oauth)) if oauth.per_user => Some(caller.user.clone().ok_or_else(|| {
                refused("each user logs in to this server, and the call has no user".to_owned())
            })?),
            _ => None,
        };
        self.make_directory(&caller.tenant, &server)?;
        let key = Key { tenant: caller.tenant.clone(), server: server.name.clone(), agent, user };
        let connection = self.connection(key, &with_overrides(server, &access));
        Ok((connection, Duration::from_secs(u64::from(limit.max(1)))))
    }

    /// Returns the connection of this key, made anew if the server's settings changed.
    fn connection(&self, key: Key, server: &McpServer) -> Arc<Connection> {
        let mut connections = self.connections();
        if let Some(known) = connections.get(&key) {
            if known.target.server == *server && known.state() != ConnectionState::Closed {
                return Arc::clone(known);
            }
            known.close();
        }
        let place = Arc::clone(&self.0.place);
        // A server may show other tools to an agent or a user with a login of their own.
        let stores = key.agent.is_none() && key.user.is_none();
        let Key { tenant, agent, user, .. } = key.clone();
        let (server, given) = (server.clone(), Vec::new());
        let target = Target { tenant, server, agent, user, stores, given, place };
        let connection = Connection::new(target);
        connections.insert(key, Arc::clone(&connection));
        connection
    }

    /// Begins a login at a server; returns the address that the person opens in a browser.
    pub async fn begin_login(
        &self,
        tenant: &TenantId,
        server: &McpServer,
        wish: LoginWish,
    ) -> Result<String, McpError> {
        let (place, endpoint) = self.login(tenant, server, wish.user.as_ref())?;
        place.begin(endpoint, wish).await
    }

    /// Finishes a begun login, with the address that the browser was redirected to.
    pub async fn finish_login(
        &self,
        tenant: &TenantId,
        server: &McpServer,
        user: Option<&UserId>,
        callback: &str,
    ) -> Result<(), McpError> {
        let (place, endpoint) = self.login(tenant, server, user)?;
        place.finish(endpoint, callback).await
    }

    /// Removes a login; returns `false` if there is none.
    pub async fn end_login(
        &self,
        tenant: &TenantId,
        server: &McpServer,
        user: Option<&UserId>,
    ) -> Result<bool, McpError> {
        self.login(tenant, server, user)?.0.end().await
    }

    /// Returns the state of a login; `None` if there is none, or none is needed.
    pub async fn login_view(
        &self,
        tenant: &TenantId,
        server: &McpServer,
        user: Option<&UserId>,
    ) -> Result<Option<LoginView>, McpError> {
        match self.login(tenant, server, user) {
            Ok((place, _)) => place.view().await,
            Err(_) => Ok(None),
        }
    }

    /// The place of the login that serves a user at a server.
    fn login<'a>(
        &self,
        tenant: &TenantId,
        server: &'a McpServer,
        user: Option<&UserId>,
    ) -> Result<(LoginPlace, &'a McpEndpoint), McpError> {
        let settings =
            |why: &str| McpError::Settings { server: server.name.to_string(), why: why.to_owned() };
        let (endpoint, oauth) =
            endpoint_of(server).ok_or_else(|| settings("it has no login; add it with `--oauth`"))?;
        let user = match (oauth.per_user, user) {
            (true, None) => return Err(settings("each user logs in for themselves, and no user is named")),
            (true, user) => user,
            (false, _) => None,
        };
        Ok((self.0.place.login(tenant, &server.name, user), endpoint))
    }

    fn make_directory(&self, tenant: &TenantId, server: &McpServer) -> Result<(), McpError> {
        let directory = self.0.place.workspace(tenant, &server.name);
        std::fs::create_dir_all(&directory).map_err(|error| McpError::Settings {
            server: server.name.to_string(),
            why: format!("`{}` cannot be made: {error}", directory.display()),
        })
    }

    /// The tenant's servers, read again if anything changed.
    async fn servers(&self, tenant: &TenantId) -> Result<Arc<Servers>, StoreError> {
        let at = *self.0.changes.borrow();
        let before = self.tenants().get(tenant).cloned();
        if let Some(known) = before.as_ref().filter(|known| known.at == at) {
            return Ok(Arc::clone(known));
        }
        let store = &self.0.place.store;
        let rows = Rows {
            servers: store.mcp_servers(tenant).await?,
            grants: store.mcp_grants(tenant).await?,
            tools: store.mcp_tools(tenant).await?,
        };
        self.retire(tenant, &rows.servers);
        let read = Arc::new(self.read(at, rows, before.as_deref()));
        self.tenants().insert(tenant.clone(), Arc::clone(&read));
        Ok(read)
    }

    fn read(&self, at: u64, rows: Rows, before: Option<&Servers>) -> Servers {
        let mut grants: HashMap<ServerName, Vec<McpGrant>> = HashMap::new();
        for grant in rows.grants {
            grants.entry(grant.server.clone()).or_default().push(grant);
        }
        let enabled: HashMap<&ServerName, Arc<McpServer>> = rows
            .servers
            .iter()
            .filter(|server| server.enabled)
            .map(|server| (&server.name, Arc::new(server.clone())))
            .collect();
        let mut tools = Vec::new();
        for tool in rows.tools.into_iter().filter(|tool| tool.state() == McpToolState::Accepted) {
            let Some(server) = enabled.get(&tool.server) else { continue };
            // A tool that did not change stays the same one.
            let same = |known: &&Arc<BridgedTool>| known.tool == tool && *known.server == **server;
            let known = before.and_then(|before| before.tools.iter().find(same));
            let name = tool_name(server, &tool.name);
            if name
                .as_ref()
                .is_ok_and(|name| tools.iter().any(|other: &Arc<BridgedTool>| other.meta.name == *name))
            {
                tracing::warn!(server = %tool.server, tool = tool.name, "an MCP tool is left out: its name is taken");
                continue;
            }
            match (known, definition::read(server, &tool)) {
                (Some(known), _) => tools.push(Arc::clone(known)),
                (None, Ok((meta, spec))) => {
                    let (hub, server) = (self.downgrade(), Arc::clone(server));
                    tools.push(Arc::new(BridgedTool { hub, server, tool, meta, spec }));
                }
                (None, Err(why)) => {
                    tracing::warn!(server = %tool.server, tool = tool.name, "an MCP tool is left out: {why}");
                }
            }
        }
        let offering = |kind: OfferKind| {
            let offers = |server: &&Arc<McpServer>| match kind {
                OfferKind::Resources => server.resources,
                OfferKind::Prompts => server.prompts,
            };
            let servers = enabled.values().filter(offers).map(|server| server.name.clone()).collect();
            let known = before.and_then(|before| before.offers.iter().find(|offer| offer.kind == kind));
            let tool = known.map(|offer| Arc::clone(&offer.tool));
            let tool = tool.unwrap_or_else(|| Arc::new(OfferTool::new(self.downgrade(), kind)));
            Offered { tool, kind, servers }
        };
        let offers = [OfferKind::Resources, OfferKind::Prompts].map(offering).into();
        Servers { at, tools, offers, grants, layers: Mutex::default() }
    }

    /// Ends the connections to servers that were removed or disabled.
    fn retire(&self, tenant: &TenantId, servers: &[McpServer]) {
        self.connections().retain(|key, connection| {
            let kept = key.tenant != *tenant
                || servers.iter().any(|server| server.name == key.server && server.enabled);
            if !kept {
                connection.close();
            }
            kept
        });
    }

    fn tenants(&self) -> std::sync::MutexGuard<'_, HashMap<TenantId, Arc<Servers>>> {
        self.0.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connections(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Arc<Connection>>> {
        self.0.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The server with the names of variables and headers that an agent has of its own.
fn with_overrides(mut server: McpServer, access: &Access) -> McpServer {
    use claw_core::store::McpTransport;
    let add = |names: &mut Vec<String>, more: &[String]| {
        names.extend(more.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
    };
    match &mut server.transport {
        McpTransport::Stdio(program) => add(&mut program.env, &access.overrides.env),
        McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) => {
            add(&mut endpoint.headers, &access.overrides.headers);
        }
    }
    server
}

/// The tools of MCP servers: for each caller those that it was granted.
pub struct McpTools(Hub);

#[async_trait]
impl CallerTools for McpTools {
    fn name(&self) -> &str {
        "mcp"
    }

    async fn layer(&self, caller: &Caller) -> Result<Arc<ToolLayer>, Unavailable> {
        let servers = self.0.servers(&caller.tenant).await;
        let servers = servers.map_err(|error| Unavailable::because(error.to_string()))?;
        Ok(servers.layer(caller))
    }
}

impl Servers {
    fn layer(&self, caller: &Caller) -> Arc<ToolLayer> {
        let key = (caller.agent.clone(), caller.user.clone());
        if let Some(known) = self.layers().by_caller.get(&key) {
            return Arc::clone(known);
        }
        let granted: HashMap<&ServerName, Access> = self
            .grants
            .iter()
            .filter_map(|(server, grants)| {
                Some((server, access(grants, &caller.agent, caller.user.as_ref()).ok()?))
            })
            .collect();
        let permitted = |(_, tool): &(usize, &Arc<BridgedTool>)| {
            granted.get(&tool.server.name).is_some_and(|access| access.permits(&tool.tool.name))
        };
        let tools: Vec<_> = self.tools.iter().enumerate().filter(permitted).collect();
        let is_offered = |(_, offer): &(usize, &Offered)| {
            let permits = |name| granted.get(name).is_some_and(|access| access.permits(offer.kind.method()));
            offer.servers.iter().any(permits)
        };
        let offers: Vec<_> = self.offers.iter().enumerate().filter(is_offered).collect();
        let mut which: Vec<usize> = tools.iter().map(|(at, _)| *at).collect();
        which.extend(offers.iter().map(|(at, _)| self.tools.len() + at));
        let mut layers = self.layers();
        let make = || {
            let bridged = tools.iter().map(|(_, tool)| Arc::clone(tool) as Arc<dyn AnyTool>);
            let offers = offers.iter().map(|(_, offer)| Arc::clone(&offer.tool) as Arc<dyn AnyTool>);
            ToolLayer::new(bridged.chain(offers).collect())
        };
        let layer = Arc::clone(layers.by_tools.entry(which).or_insert_with(make));
        if layers.by_caller.len() >= MOST_CALLERS {
            layers.by_caller.clear();
        }
        layers.by_caller.insert(key, Arc::clone(&layer));
        layer
    }

    fn layers(&self) -> std::sync::MutexGuard<'_, Layers> {
        self.layers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
