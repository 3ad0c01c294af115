//! All servers of a process: access to them, and their connections.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use claw_core::port::{Clock, ShellHost, UnixMillis};
use claw_core::store::{McpAccess, McpEndpoint, McpServer, McpToolState, Store, StoreError, Topic};
use claw_core::tool::{Caller, ErrorKind, ToolError};
use claw_core::{AgentId, ServerName, TenantId, UserId};
use secrecy::SecretString;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::connection::{Connection, ConnectionThreads, ConnectionView, ServerReport, Target};
use crate::error::McpError;
use crate::grants::{Access, access};
use crate::oauth::{LoginPlace, LoginView, LoginWish, endpoint_of};
use crate::secrets::{McpSecrets, Opener};
use crate::servers::{McpTools, Rows, Servers};

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
    /// The most threads of their own that connections live on. With none, they live on the runtime of their callers.
    pub threads: usize,
}

/// Returns the threads for connections that suit this machine: one for two processors, at most four.
pub fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |processors| processors.get() / 2).clamp(1, 4)
}

/// A weak reference to a hub: it does not keep its connections.
#[derive(Clone)]
pub struct WeakHub(Weak<Inner>);

impl WeakHub {
    /// Returns the hub; `None` once nothing uses it any more.
    pub fn upgrade(&self) -> Option<Hub> {
        self.0.upgrade().map(Hub)
    }
}

/// The parts of the process that connections need.
pub(crate) struct ConnectionParts {
    store: Arc<dyn Store>,
    pub(crate) secrets: Opener,
    pub(crate) shell: Arc<dyn ShellHost>,
    directory: PathBuf,
    pub(crate) sandboxed: bool,
    clock: Arc<dyn Clock>,
    pub(crate) threads: ConnectionThreads,
    /// A lock per login, held while it is renewed.
    refreshing: Mutex<HashMap<LoginKey, Arc<tokio::sync::Mutex<()>>>>,
}

/// The tenant, server and user of a login.
type LoginKey = (TenantId, ServerName, Option<UserId>);

impl ConnectionParts {
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

    /// The time.
    pub(crate) fn now(&self) -> UnixMillis {
        self.clock.now()
    }

    /// A number that rises when a sealed value changed.
    pub(crate) fn secret_changes(&self) -> u64 {
        *self.store.changes(Topic::Secrets).borrow()
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
                    tracing::warn!(%server, tool = tool.name, "a changed MCP tool is blocked");
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
    place: Arc<ConnectionParts>,
    changes: watch::Receiver<u64>,
    tenants: Mutex<HashMap<TenantId, Arc<Servers>>>,
    connections: Mutex<HashMap<Key, Arc<Connection>>>,
    /// Ends the tasks of the hub with it.
    ends: DropGuard,
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

/// The most callers whose layers are cached.
pub(crate) const MOST_CALLERS: usize = 10_000;

impl Hub {
    /// Creates a hub without connections: each is made when first needed.
    pub fn new(options: HubOptions) -> Self {
        let HubOptions { store, secrets, shell, directory, sandboxed, clock, threads } = options;
        let ends = CancellationToken::new();
        let changes = store.changes(Topic::Mcp);
        let refreshing = Mutex::default();
        let place = ConnectionParts {
            store,
            secrets: Opener(secrets),
            shell,
            directory,
            sandboxed,
            clock,
            threads: ConnectionThreads::new(threads, ends.clone()),
            refreshing,
        };
        Self(Arc::new(Inner {
            place: Arc::new(place),
            changes,
            tenants: Mutex::default(),
            connections: Mutex::default(),
            ends: ends.drop_guard(),
        }))
    }

    /// Returns a reference that does not keep the hub.
    pub fn downgrade(&self) -> WeakHub {
        WeakHub(Arc::downgrade(&self.0))
    }

    /// The tools of servers, for the road.
    ///
    /// Servers that are removed, disabled or changed end at once, whether or not anybody calls.
    pub fn tools(&self) -> McpTools {
        let (hub, mut changes) = (self.downgrade(), self.0.changes.clone());
        let ended = self.0.ends.token().clone();
        let retiring = async move {
            while changes.changed().await.is_ok() {
                let Some(hub) = hub.upgrade() else { return };
                let tenants: Vec<TenantId> = hub.tenants().keys().cloned().collect();
                for tenant in tenants {
                    if let Err(error) = hub.servers(&tenant).await {
                        tracing::warn!(%tenant, %error, "the MCP servers of a tenant cannot be read");
                    }
                }
            }
        };
        tokio::spawn(async move { ended.run_until_cancelled(retiring).await });
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
            opened: Mutex::default(),
            place: Arc::clone(&self.0.place),
        };
        let connection = Connection::new(target);
        let live = connection.live().await?;
        Ok(ServerReport { tools: live.definitions().clone(), ..live.report().clone() })
    }

    /// Returns the connection for a call, and its timeout. The server and the caller's grants are read from the store
    /// for each call: a revocation holds from the next call on, whether or not its notice has arrived here.
    pub(crate) async fn connection_for(
        &self,
        caller: &Caller,
        server: &ServerName,
        tool: &str,
    ) -> Result<(Arc<Connection>, Duration), ToolError> {
        let refused = |why: String| {
            let message = format!("`{tool}` of MCP server `{server}` is not available to this caller: {why}");
            ToolError::new(ErrorKind::Forbidden, message)
        };
        let store = &self.0.place.store;
        let stored = store.mcp_access(&caller.tenant, server, &caller.agent, caller.user.as_ref()).await;
        let stored = stored.map_err(|error| ToolError::from(McpError::from(error)))?;
        let Some(McpAccess { server, grants }) = stored.filter(|stored| stored.server.enabled) else {
            return Err(refused("the server was removed or disabled".to_owned()));
        };
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
                refused(
                    "each user has a login of their own at this server, and the call has no user".to_owned(),
                )
            })?),
            _ => None,
        };
        let key = Key { tenant: caller.tenant.clone(), server: server.name.clone(), agent, user };
        let server = with_overrides(server, &access);
        let mut connection = self.connection(key.clone(), &server)?;
        if connection.has_old_values().await {
            connection.close();
            connection = self.connection(key, &server)?;
        }
        Ok((connection, Duration::from_secs(u64::from(limit.max(1)))))
    }

    /// Returns the connection of this key, made anew if the server's settings changed.
    fn connection(&self, key: Key, server: &McpServer) -> Result<Arc<Connection>, McpError> {
        let mut connections = self.connections();
        if let Some(known) = connections.get(&key) {
            if known.target.server == *server && !known.is_closed() {
                return Ok(Arc::clone(known));
            }
            known.close();
        }
        self.make_directory(&key.tenant, server)?;
        let place = Arc::clone(&self.0.place);
        // A server may show other tools to an agent or a user with a login of their own.
        let stores = key.agent.is_none() && key.user.is_none();
        let Key { tenant, agent, user, .. } = key.clone();
        let (server, given) = (server.clone(), Vec::new());
        let opened = Mutex::default();
        let target = Target { tenant, server, agent, user, stores, given, opened, place };
        let connection = Connection::new(target);
        connections.insert(key, Arc::clone(&connection));
        Ok(connection)
    }

    /// Returns the connections of this process to the tenant's servers, with their states, by server.
    pub fn states(&self, tenant: &TenantId) -> BTreeMap<ServerName, Vec<ConnectionView>> {
        let mut states: BTreeMap<ServerName, Vec<ConnectionView>> = BTreeMap::new();
        for (key, connection) in self.connections().iter().filter(|(key, _)| key.tenant == *tenant) {
            states.entry(key.server.clone()).or_default().extend(connection.view());
        }
        for connections in states.values_mut() {
            connections.sort_by(|a, b| (&a.agent, &a.user).cmp(&(&b.agent, &b.user)));
        }
        states
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
        let (endpoint, oauth) = endpoint_of(server)
            .ok_or_else(|| settings("it is not set up for logins; add it with `--oauth`"))?;
        let user = match (oauth.per_user, user) {
            (true, None) => return Err(settings("each user has a login of their own, and no user is named")),
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
    pub(crate) async fn servers(&self, tenant: &TenantId) -> Result<Arc<Servers>, StoreError> {
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
        let read = Arc::new(Servers::read(&self.downgrade(), at, rows, before.as_deref()));
        self.tenants().insert(tenant.clone(), Arc::clone(&read));
        Ok(read)
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

#[cfg(test)]
mod tests;
