//! MCP servers: adding and removing them, who may use them, and the definitions of their tools.

mod import;
mod login;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::Clock as _;
use claw_core::store::{
    Approval, ApprovalState, McpEndpoint, McpGrant, McpProgram, McpRequest, McpReview, McpServer, McpSubject,
    McpTool, McpToolState, McpTransport, SecretPlace, StoreError, Topic,
};
use claw_core::tool::Caller;
use claw_core::{AccessRequestId, AgentId, ApprovalId, SecretName, ServerName, TenantId, UserId};
use claw_host::SystemClock;
use claw_mcp::{
    ClientAnswer, ClientApprovals, Clients, Hub, HubOptions, McpSecrets, Parts, SecretKind, Served,
    ServerReport, secret_name,
};
use claw_policy::sandbox::SandboxMode;
use claw_registry::Executor;
use claw_store::Vault;
use claw_store::seal::KeySource;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use tokio::sync::{OnceCell, watch};

use super::access::{Permission, Visitor};
use super::{App, Error, InputValues, Verdict, real};

pub use claw_mcp as protocol;
pub use import::read_servers;
pub use login::is_per_user;

/// The directory of servers that are programs, beside the agents' workspaces. No tenant can have this name.
const DIRECTORY: &str = ".mcp";
/// The shortest sealed value, in bytes, that is searched for in a server's text.
const SHORTEST_HIDDEN: usize = 8;
/// The agent that `mcp add` grants a server to.
const DEFAULT_AGENT: &str = "default";

/// A server to be added, with the values of its variables or headers.
#[derive(Debug)]
pub struct NewServer {
    /// The server.
    pub server: McpServer,
    /// Variables of a program, headers of an address.
    pub values: Vec<(String, SecretString)>,
}

/// A server with its tools and its grants.
#[derive(Debug, Serialize)]
pub struct ServerView {
    /// The server.
    #[serde(flatten)]
    pub server: McpServer,
    /// The tools that it has listed.
    pub tools: Vec<McpTool>,
    /// The grants of agents and users.
    pub grants: Vec<McpGrant>,
}

impl ServerView {
    /// The number of tools in a state.
    pub fn count(&self, state: McpToolState) -> usize {
        self.tools.iter().filter(|tool| tool.state() == state).count()
    }
}

impl App {
    /// Returns the MCP servers of every tenant. Connections are made when first needed, and end with the hub.
    pub fn mcp_hub(&self) -> Result<Hub, Error> {
        let setup = self.setup();
        let keys = setup.keys()?;
        let secrets =
            Arc::new(SealedValues { store: Arc::clone(&self.store) as _, keys, vault: OnceCell::new() });
        Ok(Hub::new(HubOptions {
            store: Arc::clone(&self.store) as _,
            secrets,
            shell: Arc::new(setup.machine()),
            directory: setup.workspaces()?.join(DIRECTORY),
            sandboxed: setup.config().sandbox.mode != SandboxMode::Off,
            clock: Arc::new(SystemClock),
        }))
    }

    /// Numbers that rise when the tools of a caller may have changed.
    pub fn tool_changes(&self) -> Vec<watch::Receiver<u64>> {
        [Topic::Mcp, Topic::Agents, Topic::Settings, Topic::Tools, Topic::Access]
            .map(|topic| self.store.changes(topic))
            .to_vec()
    }

    /// The tenant's servers, by name.
    pub async fn mcp_servers(&self) -> Result<Vec<ServerView>, Error> {
        let (store, tenant) = (&self.store, self.tenant());
        let servers = store.mcp_servers(tenant).await?;
        let (tools, grants) = (store.mcp_tools(tenant).await?, store.mcp_grants(tenant).await?);
        let view = |server: McpServer| ServerView {
            tools: tools.iter().filter(|tool| tool.server == server.name).cloned().collect(),
            grants: grants.iter().filter(|grant| grant.server == server.name).cloned().collect(),
            server,
        };
        Ok(servers.into_iter().map(view).collect())
    }

    /// Returns a server of the tenant.
    pub async fn mcp_server(&self, name: &ServerName) -> Result<ServerView, Error> {
        let mut servers = self.mcp_servers().await?;
        let at = servers.iter().position(|view| view.server.name == *name);
        at.map(|at| servers.swap_remove(at)).ok_or_else(|| no_server(name))
    }

    /// Adds a server, replacing the one of its name; connects to it first, and accepts the tools that it
    /// lists. The default agent gets access if nobody has any. If the server cannot be reached, nothing is
    /// stored. A server that wants a login is stored without a connection: there is no report, and its tools
    /// are listed with the first login.
    pub async fn add_mcp_server(&self, new: NewServer) -> Result<(ServerView, Option<ServerReport>), Error> {
        let NewServer { mut server, values } = new;
        check(&server)?;
        self.check_reach(&server)?;
        let (tenant, name) = (self.tenant().clone(), server.name.clone());
        let before = self.mcp_servers().await?.into_iter().find(|view| view.server.name == name);
        check_values(&server, &values, before.as_ref().map(|view| &view.server))?;
        let report = match login::wants_login(&server) {
            true => None,
            false => Some(self.first_report(&server, &values).await?),
        };
        self.keep_values(&server, values).await?;
        let now = SystemClock.now();
        if let Some(report) = &report {
            (server.resources, server.prompts) = (report.resources, report.prompts);
        }
        self.store.put_mcp_server(&tenant, &server, now).await?;
        if let Some(report) = &report {
            self.store.list_mcp_tools(&tenant, &name, &report.tools, now).await?;
        }
        if before.is_none_or(|before| before.grants.is_empty()) {
            let agent = AgentId::new(DEFAULT_AGENT).map_err(|error| Error::failed(error.to_string()))?;
            let grant = McpGrant::new(name.clone(), McpSubject::Agent(agent));
            self.store.put_mcp_grant(&tenant, &grant, now).await?;
        }
        Ok((self.mcp_server(&name).await?, report))
    }

    /// Connects to a server that is to be added, with values that are not sealed yet.
    async fn first_report(
        &self,
        server: &McpServer,
        values: &[(String, SecretString)],
    ) -> Result<ServerReport, Error> {
        match self.mcp_hub()?.probe(self.tenant(), server, None, values.to_vec()).await {
            Ok(report) => self.scrubbed(report, values).await,
            Err(error) => {
                let why = self.without_secrets(&error.to_string(), values).await?;
                Err(Error::failed(format!("the MCP server `{}` was not added", server.name))
                    .because(why)
                    .hint(hint(server)))
            }
        }
    }

    /// Seals the values of a server's variables or headers.
    async fn keep_values(
        &self,
        server: &McpServer,
        values: Vec<(String, SecretString)>,
    ) -> Result<(), Error> {
        if values.is_empty() {
            return Ok(());
        }
        let kind = match server.transport {
            McpTransport::Stdio(_) => SecretKind::Env,
            McpTransport::Http(_) | McpTransport::Sse(_) => SecretKind::Header,
        };
        let vault = self.vault().await?;
        for (name, value) in values {
            let name =
                secret_name(&server.name, kind, &name).map_err(|error| Error::invalid(error.to_string()))?;
            let place = SecretPlace { tenant: self.tenant().clone(), agent: None, name };
            vault.put_secret(&place, &value, SystemClock.now()).await?;
        }
        Ok(())
    }

    /// Refuses to grant a server's program paths that agents must never reach.
    fn check_reach(&self, server: &McpServer) -> Result<(), Error> {
        let McpTransport::Stdio(program) = &server.transport else { return Ok(()) };
        let data = real(&self.setup().data_dir()?);
        for granted in program.read.iter().chain(&program.write) {
            let path = real(Path::new(granted));
            if path.starts_with(&data) || data.starts_with(&path) {
                return Err(Error::invalid(format!(
                    "MCP server `{}`: `{granted}` holds the data directory or is in it",
                    server.name
                ))
                .hint("grant another directory"));
            }
        }
        Ok(())
    }

    /// Removes the given values, and those sealed for the tenant, from a server's text.
    async fn without_secrets(&self, text: &str, given: &[(String, SecretString)]) -> Result<String, Error> {
        let given = given.iter().map(|(_, value)| value.expose_secret().trim().to_owned());
        let values: Vec<String> = given.chain(self.sealed(self.tenant()).await?).collect();
        // A header holds its scheme before its secret, such as `Bearer`.
        let secrets = values.iter().filter_map(|value| value.split_whitespace().last()).map(str::to_owned);
        let mut hidden: Vec<String> =
            values.iter().cloned().chain(secrets).filter(|value| value.len() >= SHORTEST_HIDDEN).collect();
        hidden.sort_by_key(|value| std::cmp::Reverse(value.len()));
        let mut text = text.to_owned();
        for value in hidden {
            text = text.replace(&value, "[REDACTED]");
        }
        Ok(text)
    }

    async fn scrubbed(
        &self,
        mut report: ServerReport,
        given: &[(String, SecretString)],
    ) -> Result<ServerReport, Error> {
        for text in [&mut report.server, &mut report.instructions] {
            if let Some(said) = text.take() {
                *text = Some(self.without_secrets(&said, given).await?);
            }
        }
        // A definition that repeats a secret is not the one that the server lists, so its tool cannot be called.
        for definition in report.tools.values_mut() {
            let scrubbed = self.without_secrets(&definition.to_string(), given).await?;
            *definition = serde_json::from_str(&scrubbed).unwrap_or_default();
        }
        Ok(report)
    }

    /// Changes a server's settings with `change`.
    pub async fn edit_mcp_server(
        &self,
        name: &ServerName,
        change: impl FnOnce(&mut McpServer),
    ) -> Result<McpServer, Error> {
        let mut server = self.mcp_server(name).await?.server;
        change(&mut server);
        check(&server)?;
        self.store.put_mcp_server(self.tenant(), &server, SystemClock.now()).await?;
        Ok(server)
    }

    /// Removes a server with its grants, tools, requests and sealed values.
    pub async fn remove_mcp_server(&self, name: &ServerName) -> Result<(), Error> {
        if !self.store.remove_mcp_server(self.tenant(), name).await? {
            return Err(no_server(name));
        }
        self.forget_values(name, None).await
    }

    /// Removes the sealed values of a server: those of one agent, or all.
    async fn forget_values(&self, name: &ServerName, agent: Option<&AgentId>) -> Result<(), Error> {
        let prefix = format!("mcp.{name}.");
        for card in self.store.secrets(self.tenant()).await? {
            let is_meant = agent.is_none() || card.place.agent.as_ref() == agent;
            if is_meant && card.place.name.as_str().starts_with(&prefix) {
                self.store.remove_secret(&card.place).await?;
            }
        }
        Ok(())
    }

    /// Connects to a server and stores the tools that it lists now. If each user has a login, this user's is
    /// used.
    pub async fn probe_mcp_server(
        &self,
        name: &ServerName,
        user: Option<&UserId>,
    ) -> Result<ServerReport, Error> {
        let server = self.mcp_server(name).await?.server;
        let report = match self.mcp_hub()?.probe(self.tenant(), &server, user, Vec::new()).await {
            Ok(report) => self.scrubbed(report, &[]).await?,
            Err(error) => {
                let why = self.without_secrets(&error.to_string(), &[]).await?;
                return Err(Error::failed(why).hint(login::advice(&server)));
            }
        };
        let offers = (report.resources, report.prompts);
        if offers != (server.resources, server.prompts) {
            let keep = |server: &mut McpServer| (server.resources, server.prompts) = offers;
            self.edit_mcp_server(name, keep).await?;
        }
        self.store.list_mcp_tools(self.tenant(), name, &report.tools, SystemClock.now()).await?;
        Ok(report)
    }

    /// Accepts exactly these definitions, as they were shown; returns the names of those that have changed
    /// since.
    pub async fn accept_mcp_tools(&self, shown: &[McpTool]) -> Result<Vec<String>, Error> {
        let mut changed = Vec::new();
        for tool in shown {
            if !self.store.accept_mcp_tool(self.tenant(), tool, SystemClock.now()).await? {
                changed.push(tool.name.clone());
            }
        }
        Ok(changed)
    }

    /// Grants access to an agent or a user, replacing its grant. An agent may have variables or headers of
    /// its own, with these values.
    pub async fn grant_mcp(
        &self,
        grant: &McpGrant,
        values: Vec<(String, SecretString)>,
    ) -> Result<(), Error> {
        self.mcp_server(&grant.server).await?;
        if let McpSubject::Agent(agent) = &grant.subject
            && agent.as_str() != DEFAULT_AGENT
        {
            self.must_have_agent(agent.as_str()).await?;
        }
        self.keep_own_values(grant, values).await?;
        Ok(self.store.put_mcp_grant(self.tenant(), grant, SystemClock.now()).await?)
    }

    /// Seals the values of variables or headers that an agent has of its own.
    async fn keep_own_values(
        &self,
        grant: &McpGrant,
        values: Vec<(String, SecretString)>,
    ) -> Result<(), Error> {
        let (server, overrides) = (&grant.server, &grant.config_overrides);
        if overrides.env.is_empty() && overrides.headers.is_empty() && values.is_empty() {
            return Ok(());
        }
        let McpSubject::Agent(agent) = &grant.subject else {
            return Err(Error::invalid("only an agent has variables or headers of its own")
                .hint("a server added with `--oauth --per-user` has a login for each user"));
        };
        let (kind, names, others, declared) = match self.mcp_server(server).await?.server.transport {
            McpTransport::Stdio(program) => {
                (SecretKind::Env, &overrides.env, &overrides.headers, program.env)
            }
            McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) => {
                (SecretKind::Header, &overrides.headers, &overrides.env, endpoint.headers)
            }
        };
        if let Some(name) = others.first() {
            return Err(Error::invalid(format!("`{name}`: a program has variables, an address has headers")));
        }
        // Another variable could make the program run something else, such as `LD_PRELOAD`.
        if let Some(name) = names.iter().find(|name| !declared.contains(name)) {
            return Err(Error::invalid(format!("MCP server `{server}` has no variable or header `{name}`"))
                .hint("an agent has values of its own only for names that the server was added with"));
        }
        let vault = self.vault().await?;
        for name in names {
            let secret =
                secret_name(server, kind, name).map_err(|error| Error::invalid(error.to_string()))?;
            let place =
                SecretPlace { tenant: self.tenant().clone(), agent: Some(agent.clone()), name: secret };
            match values.iter().find(|(given, _)| given == name) {
                Some((_, value)) => vault.put_secret(&place, value, SystemClock.now()).await?,
                None if vault.secret(&place).await?.is_some() => {}
                None => return Err(Error::invalid(format!("`{name}` has no value")).hint("give it")),
            }
        }
        Ok(())
    }

    /// Revokes the access of an agent or a user, with its own values. Takes effect with the next call.
    pub async fn revoke_mcp(&self, server: &ServerName, subject: &McpSubject) -> Result<(), Error> {
        match self.store.remove_mcp_grant(self.tenant(), server, subject).await? {
            true => {
                if let McpSubject::Agent(agent) = subject {
                    self.forget_values(server, Some(agent)).await?;
                }
                Ok(())
            }
            false => Err(Error::not_found(format!("`{subject}` has no grant for the MCP server `{server}`"))
                .hint(format!("`clawsmith mcp show {server}` lists its grants"))),
        }
    }

    /// The requests for access, newest first.
    pub async fn mcp_requests(&self) -> Result<Vec<McpRequest>, Error> {
        Ok(self.store.mcp_requests(self.tenant()).await?)
    }

    /// Asks for access to a server.
    pub async fn request_mcp(&self, wish: AccessWish) -> Result<McpRequest, Error> {
        let AccessWish { server, user, subject, tools, reason } = wish;
        if let McpSubject::User(other) = &subject
            && *other != user
        {
            return Err(Error::invalid("access can be asked for an agent or for yourself"));
        }
        let (id, at) = (AccessRequestId::new(), SystemClock.now());
        let request = McpRequest { id, server, user, subject, tools, reason, at, review: None };
        self.store.add_mcp_request(self.tenant(), &request).await?;
        Ok(request)
    }

    /// Answers a request for access. If it is approved, the grant is written with the answer.
    pub async fn review_mcp_request(
        &self,
        id: AccessRequestId,
        (approved, by): (bool, UserId),
        note: Option<String>,
    ) -> Result<McpRequest, Error> {
        if !self.mcp_requests().await?.iter().any(|request| request.id == id) {
            return Err(Error::not_found(format!("there is no request `{id}`"))
                .hint("`clawsmith mcp requests` shows those there are"));
        }
        let review = McpReview { approved, by, note, at: SystemClock.now() };
        Ok(self.store.review_mcp_request(self.tenant(), id, &review).await?)
    }
}

impl App {
    /// Checks that the visitor may define this server, and replace the one of its name. Programs on this
    /// machine and private addresses are for the owner of the deployment to define, other addresses for an
    /// administrator.
    pub async fn may_define_server(&self, visitor: &Visitor, server: &McpServer) -> Result<(), Error> {
        visitor.may(Permission::ManageMcp)?;
        let servers = self.store.mcp_servers(&visitor.tenant).await?;
        let before = servers.iter().find(|before| before.name == server.name);
        let is_public = |server: &McpServer| match &server.transport {
            McpTransport::Stdio(_) => false,
            McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) => !endpoint.private,
        };
        if is_public(server) && before.is_none_or(is_public) {
            return Ok(());
        }
        visitor.may(Permission::DefinePrograms)?;
        if visitor.tenant == *self.setup().tenant() {
            return Ok(());
        }
        Err(Error::invalid("programs and private addresses are for the owner of the deployment to define")
            .refusing())
    }
}

/// Refuses names without values. An already sealed value is sent only where it went before: to the same
/// origin, or to the same program with the same arguments.
fn check_values(
    server: &McpServer,
    values: &[(String, SecretString)],
    before: Option<&McpServer>,
) -> Result<(), Error> {
    let goes_to = |server: &McpServer| match &server.transport {
        McpTransport::Stdio(program) => (program.command.clone(), program.args.clone()),
        McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) => {
            let origin: Vec<&str> = endpoint.url.splitn(4, '/').take(3).collect();
            (origin.join("/").to_lowercase(), Vec::new())
        }
    };
    let names = |server: &McpServer| match &server.transport {
        McpTransport::Stdio(program) => program.env.clone(),
        McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) => endpoint.headers.clone(),
    };
    let known = before.filter(|before| goes_to(before) == goes_to(server)).map(names).unwrap_or_default();
    let has_value = |name: &String| values.iter().any(|(given, _)| given == name) || known.contains(name);
    match names(server).iter().find(|name| !has_value(name)) {
        None => Ok(()),
        Some(name) => Err(Error::invalid(format!("MCP server `{}`: `{name}` has no value", server.name))
            .hint("give it; a stored secret is not sent to another address or program")),
    }
}

/// A wish for access to a server.
#[derive(Debug)]
pub struct AccessWish {
    /// The server.
    pub server: ServerName,
    /// The user who asks.
    pub user: UserId,
    /// The agent or user to get access.
    pub subject: McpSubject,
    /// The requested tools; `None` means all.
    pub tools: Option<Vec<String>>,
    /// The reason for the request.
    pub reason: String,
}

/// A client that is one caller: the user who starts `clawsmith mcp serve`.
pub struct OneClient {
    executor: Executor,
    caller: Caller,
    approvals: Option<Arc<dyn ClientApprovals>>,
    changes: Vec<watch::Receiver<u64>>,
}

impl OneClient {
    /// A client that acts as `caller` and answers no approvals.
    pub fn new(executor: Executor, caller: Caller, app: &App) -> Self {
        Self { executor, caller, approvals: None, changes: app.tool_changes() }
    }

    /// The client is asked for the approvals of its calls, and answers them in the name of `by`.
    #[must_use]
    pub fn answering(mut self, app: &App, by: String) -> Self {
        self.approvals = Some(Arc::new(AnsweringClient { app: app.clone(), by }));
        self
    }
}

/// Answers the approvals of a client's calls in the name of its user.
pub struct AnsweringClient {
    /// The application of the client's tenant.
    pub app: App,
    /// The name under which answers are recorded.
    pub by: String,
}

#[async_trait]
impl ClientApprovals for AnsweringClient {
    async fn pending(&self, id: ApprovalId) -> Result<Approval, String> {
        let found = self.app.find_approval(&id.to_string()).await.map_err(|error| error.to_string())?;
        let found = found.filter(|approval| approval.state == ApprovalState::Pending);
        found.ok_or_else(|| format!("approval `{id}` is not pending"))
    }

    async fn answer(&self, approval: &Approval, answer: ClientAnswer) -> Result<(), String> {
        let verdict = match answer {
            ClientAnswer::Approve(values) if approval.request.input.is_some() => {
                Verdict::Values(InputValues { values, allow_secrets: false })
            }
            ClientAnswer::Approve(_) => Verdict::Once,
            ClientAnswer::Deny => Verdict::Deny { reason: None },
            ClientAnswer::Dismiss => Verdict::Dismiss,
        };
        let answered = self.app.answer_found(approval, verdict, &self.by).await;
        answered.map(drop).map_err(|error| error.to_string())
    }
}

#[async_trait]
impl Clients for OneClient {
    async fn served(&self, _parts: Option<&Parts>) -> Result<Served, String> {
        let (executor, caller) = (self.executor.clone(), self.caller.clone());
        Ok(Served { executor, caller, approvals: self.approvals.clone() })
    }

    fn changes(&self) -> Vec<watch::Receiver<u64>> {
        self.changes.clone()
    }
}

/// Opens the sealed values of servers, with keys that are read when first needed.
struct SealedValues {
    store: Arc<dyn claw_core::store::Store>,
    keys: KeySource,
    vault: OnceCell<Vault>,
}

#[async_trait]
impl McpSecrets for SealedValues {
    async fn secret(
        &self,
        tenant: &TenantId,
        agent: Option<&AgentId>,
        name: &SecretName,
    ) -> Result<Option<SecretString>, StoreError> {
        let open = || Vault::open(Arc::clone(&self.store), self.keys.clone());
        let vault = self.vault.get_or_try_init(open).await?;
        let place = |agent: Option<&AgentId>| SecretPlace {
            tenant: tenant.clone(),
            agent: agent.cloned(),
            name: name.clone(),
        };
        if agent.is_some()
            && let Some(own) = vault.secret(&place(agent)).await?
        {
            return Ok(Some(own));
        }
        vault.secret(&place(None)).await
    }

    async fn seal(
        &self,
        tenant: &TenantId,
        name: &SecretName,
        value: Option<&SecretString>,
    ) -> Result<(), StoreError> {
        let place = SecretPlace { tenant: tenant.clone(), agent: None, name: name.clone() };
        let Some(value) = value else { return self.store.remove_secret(&place).await.map(drop) };
        let open = || Vault::open(Arc::clone(&self.store), self.keys.clone());
        let vault = self.vault.get_or_try_init(open).await?;
        vault.put_secret(&place, value, SystemClock.now()).await
    }
}

fn no_server(name: &ServerName) -> Error {
    Error::not_found(format!("there is no MCP server `{name}`"))
        .hint("`clawsmith mcp list` shows those there are")
}

/// The built-in tool whose name or alias begins with `prefix`.
fn spelled_by(prefix: &str) -> Option<String> {
    let tools = super::catalogue();
    let names = tools
        .iter()
        .flat_map(|meta| meta.aliases.iter().map(ToString::to_string).chain([meta.name.to_string()]));
    names.chain(claw_mcp::OWN_TOOLS.map(str::to_owned)).find(|name| name.starts_with(prefix))
}

/// Rejects settings that cannot work, before anything is tried.
fn check(server: &McpServer) -> Result<(), Error> {
    let wrong = |what: String| Err(Error::invalid(format!("MCP server `{}`: {what}", server.name)));
    if !(1..=3600).contains(&server.timeout_secs) {
        return wrong("a call may take 1 to 3600 seconds".to_owned());
    }
    if let Some(prefix) = &server.prefix
        && !(prefix.len() <= 32
            && prefix.starts_with(|c: char| c.is_ascii_alphabetic())
            && prefix.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))
    {
        return wrong(format!(
            "`{prefix}` cannot begin the names of tools; start with a letter, then at most 31 letters, digits, `_` or `-`"
        ));
    }
    // A tool of the server could then be called like a built-in one.
    if let Some(prefix) = &server.prefix
        && let Some(name) = spelled_by(prefix)
    {
        return wrong(format!("`{prefix}` begins the name of the tool `{name}`; use another prefix"));
    }
    match &server.transport {
        McpTransport::Stdio(McpProgram { command, read, write, .. }) => {
            if command.trim().is_empty() {
                return wrong("it has no command".to_owned());
            }
            match read.iter().chain(write).find(|path| !path.starts_with('/')) {
                Some(path) => wrong(format!("`{path}` is no absolute path")),
                None => Ok(()),
            }
        }
        McpTransport::Http(McpEndpoint { url, .. }) | McpTransport::Sse(McpEndpoint { url, .. }) => {
            match url.starts_with("https://") || url.starts_with("http://") {
                true => Ok(()),
                false => wrong(format!("`{url}` is no address; it starts with https:// or http://")),
            }
        }
    }
}

/// Advice for a server that cannot be reached.
fn hint(server: &McpServer) -> String {
    match &server.transport {
        McpTransport::Stdio(program) => {
            let mut grants = Vec::new();
            if !program.network {
                grants.push("`--network` lets it reach other machines");
            }
            grants.push("`--read DIR` shows it a directory, such as that of its program");
            grants.push("`--env NAME=VALUE` gives it a variable");
            format!("it runs in the sandbox: {}", grants.join("; "))
        }
        McpTransport::Http(_) => {
            "look at the address; `--sse` speaks the older transport; `--header NAME=VALUE` logs in"
                .to_owned()
        }
        McpTransport::Sse(_) => {
            "look at the address; without `--sse` the newer transport is spoken".to_owned()
        }
    }
}

/// Returns the accepted and the pending definition as text, for comparison by a person.
pub fn definition_change(tool: &McpTool) -> (String, String) {
    let shown = |definition: Option<&serde_json::Value>| {
        definition.and_then(|value| serde_json::to_string_pretty(value).ok()).unwrap_or_default()
    };
    (shown(tool.accepted.as_ref()), shown(tool.proposed.as_ref()))
}
