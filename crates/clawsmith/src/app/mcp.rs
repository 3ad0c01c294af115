//! MCP servers: adding and removing them, who may use them, and the definitions of their tools.

mod clients;
mod collisions;
mod granting;
mod import;
mod login;
mod loopback;
mod requests;
mod values;
mod view;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use claw_core::port::Clock as _;
use claw_core::store::{
    McpEndpoint, McpGrant, McpProgram, McpServer, McpSubject, McpTool, McpTransport, Topic,
};
use claw_core::{AgentId, ServerName, UserId};
use claw_host::SystemClock;
use claw_mcp::{ConnectionView, Hub, HubOptions, ServerReport, WeakHub};
use claw_policy::sandbox_mode::SandboxMode;
use secrecy::SecretString;
use tokio::sync::{OnceCell, watch};

use self::values::{SealedValues, ValuesOf, check_values, keeps_place};
use super::access::{Permission, Visitor};
use super::{App, Error, real};

pub use claw_mcp as protocol;
pub use clients::{AnsweringClient, OneClient};
pub use login::{ListedTools, is_per_user, login_words};
pub use loopback::LoginCallback;
pub use requests::{AccessFollower, AccessWish};
pub use values::given_value;
pub use view::{ServerView, definition_diff, grant_words, tool_about};

/// The directory of servers that are programs, beside the agents' workspaces. No tenant can have this name.
const DIRECTORY: &str = ".mcp";
/// The agent that `mcp add` grants a server to.
const DEFAULT_AGENT: &str = "default";

/// The timeouts of a call that a server or a grant may have, in seconds.
const TIMES: RangeInclusive<u32> = 1..=3600;

/// A server to be added, with the values of its variables or headers.
#[derive(Debug)]
pub struct NewServer {
    /// The server.
    pub server: McpServer,
    /// Variables of a program, headers of an address.
    pub values: Vec<(String, SecretString)>,
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
            threads: claw_mcp::default_threads(),
        }))
    }

    /// Returns a hub whose connections are shown with their servers for as long as it is used.
    pub(super) fn shown_hub(&self) -> Result<Hub, Error> {
        let hub = self.mcp_hub()?;
        let mut hubs = self.hubs.lock().unwrap_or_else(PoisonError::into_inner);
        hubs.retain(|known| known.upgrade().is_some());
        hubs.push(hub.downgrade());
        Ok(hub)
    }

    /// The connections of this process to the tenant's servers, by server.
    async fn mcp_connections(&self) -> Result<BTreeMap<ServerName, Vec<ConnectionView>>, Error> {
        let hubs: Vec<Hub> = {
            let hubs = self.hubs.lock().unwrap_or_else(PoisonError::into_inner);
            hubs.iter().filter_map(WeakHub::upgrade).collect()
        };
        let mut all: BTreeMap<ServerName, Vec<ConnectionView>> = BTreeMap::new();
        for (server, connections) in hubs.iter().flat_map(|hub| hub.states(self.tenant())) {
            all.entry(server).or_default().extend(connections);
        }
        for reason in all.values_mut().flatten().filter_map(|connection| connection.reason.as_mut()) {
            *reason = self.without_secrets(reason, &[]).await?;
        }
        Ok(all)
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
        let mut connections = self.mcp_connections().await?;
        let view = |server: McpServer| ServerView {
            connections: connections.remove(&server.name).unwrap_or_default(),
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
    /// lists. If the server cannot be reached, nothing is stored. A server that wants a login is stored without a
    /// connection: there is no report, and its tools are listed with the first login of an administrator. Values that
    /// agents have of their own go to no other address or program: while a grant has any, the server keeps its own.
    /// Grants stay as they are.
    pub async fn add_mcp_server(&self, new: NewServer) -> Result<(ServerView, Option<ServerReport>), Error> {
        let NewServer { mut server, values } = new;
        check(&server)?;
        self.check_reach(&server)?;
        self.check_prefix(&server).await?;
        let (tenant, name) = (self.tenant().clone(), server.name.clone());
        let before = self.mcp_servers().await?.into_iter().find(|view| view.server.name == name);
        let old = before.as_ref().map(|view| &view.server);
        check_values(&server, &values, old)?;
        self.check_own_values(&server, old).await?;
        let report = match login::wants_login(&server) {
            true => None,
            false => Some(self.first_report(&server, &values).await?),
        };
        if let Some(report) = &report {
            self.check_tool_names(&server, report).await?;
        }
        // A grant may have been written while the server was asked.
        self.check_own_values(&server, old).await?;
        if !keeps_place(&server, old) {
            // Values that no grant names any more would be sent by the next one that names them.
            self.forget_values(&name, ValuesOf::Agents).await?;
        }
        self.keep_values(&server, values).await?;
        let now = SystemClock.now();
        if let Some(report) = &report {
            (server.resources, server.prompts) = (report.resources, report.prompts);
        }
        self.store.put_mcp_server(&tenant, &server, now).await?;
        if let Some(report) = &report {
            self.store.list_mcp_tools(&tenant, &name, &report.tools, now).await?;
        }
        Ok((self.mcp_server(&name).await?, report))
    }

    /// Adds a server as [`Self::add_mcp_server`] does, for a person who owns the deployment: the default agent gets access to
    /// a server that was not there before.
    pub async fn add_and_grant_mcp_server(
        &self,
        new: NewServer,
    ) -> Result<(ServerView, Option<ServerReport>), Error> {
        let name = new.server.name.clone();
        let is_new = self.store.mcp_servers(self.tenant()).await?.iter().all(|server| server.name != name);
        let (view, report) = self.add_mcp_server(new).await?;
        if !is_new {
            return Ok((view, report));
        }
        let agent = AgentId::new(DEFAULT_AGENT).map_err(|error| Error::failed(error.to_string()))?;
        let grant = McpGrant::new(name.clone(), McpSubject::Agent(agent));
        self.store.put_mcp_grant(self.tenant(), &grant, SystemClock.now()).await?;
        Ok((self.mcp_server(&name).await?, report))
    }

    /// Adds the servers of an `mcpServers` file, and grants them, as [`Self::add_and_grant_mcp_server`] does; returns each with
    /// the reason if it was not added.
    pub async fn import_mcp_servers(
        &self,
        text: &str,
    ) -> Result<Vec<(ServerName, Result<ServerView, Error>)>, Error> {
        let mut added = Vec::new();
        for new in import::read_servers(text)? {
            let name = new.server.name.clone();
            added.push((name, self.add_and_grant_mcp_server(new).await.map(|(view, _)| view)));
        }
        Ok(added)
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

    /// Refuses to grant a server's program paths that agents must never reach.
    fn check_reach(&self, server: &McpServer) -> Result<(), Error> {
        let McpTransport::Stdio(program) = &server.transport else { return Ok(()) };
        let data = real(&self.setup().data_dir()?);
        for granted in program.read.iter().chain(&program.write) {
            let path = real(Path::new(granted));
            if path.starts_with(&data) || data.starts_with(&path) {
                return Err(Error::invalid(format!(
                    "MCP server `{}`: `{granted}` contains the data directory or is inside it",
                    server.name
                ))
                .hint("grant another directory"));
            }
        }
        Ok(())
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
        self.forget_values(name, ValuesOf::Everyone).await
    }

    /// Connects to a server and stores the tools that it lists now. If each user has a login, this user's is
    /// used.
    pub async fn probe_mcp_server(
        &self,
        name: &ServerName,
        user: Option<&UserId>,
    ) -> Result<ServerReport, Error> {
        let server = self.mcp_server(name).await?.server;
        let report = self.report_of(&server, user).await?;
        let offers = (report.resources, report.prompts);
        if offers != (server.resources, server.prompts) {
            let keep = |server: &mut McpServer| (server.resources, server.prompts) = offers;
            self.edit_mcp_server(name, keep).await?;
        }
        self.store.list_mcp_tools(self.tenant(), name, &report.tools, SystemClock.now()).await?;
        Ok(report)
    }

    /// Connects to a server as [`Self::probe_mcp_server`] does, and stores nothing.
    async fn report_of(&self, server: &McpServer, user: Option<&UserId>) -> Result<ServerReport, Error> {
        match self.mcp_hub()?.probe(self.tenant(), server, user, Vec::new()).await {
            Ok(report) => self.scrubbed(report, &[]).await,
            Err(error) => {
                let why = self.without_secrets(&error.to_string(), &[]).await?;
                Err(Error::failed(why).hint(login::advice(server)))
            }
        }
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
}

impl App {
    /// Checks that the visitor may define this server, and replace the one of its name. Programs on this machine and private
    /// addresses are for the owner of the deployment to define, other addresses for an administrator. With
    /// `mcp.tenant_admins` administrators define programs too.
    pub async fn may_define_server(&self, visitor: &Visitor, server: &McpServer) -> Result<(), Error> {
        visitor.may(Permission::ManageMcp)?;
        let servers = self.store.mcp_servers(&visitor.tenant).await?;
        let before = servers.iter().find(|before| before.name == server.name);
        let are_programs_open = self.setup().config().mcp.tenant_admins;
        let is_open = |server: &McpServer| match &server.transport {
            McpTransport::Stdio(_) => are_programs_open,
            McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) => !endpoint.private,
        };
        if is_open(server) && before.is_none_or(is_open) {
            return Ok(());
        }
        visitor.may(Permission::DefinePrograms)?;
        if visitor.tenant == *self.setup().tenant() {
            return Ok(());
        }
        Err(Error::invalid("only the owner of the deployment may define programs and private addresses")
            .hint("ask the owner, who can also set `mcp.tenant_admins` for programs")
            .refusing())
    }
}

fn no_server(name: &ServerName) -> Error {
    Error::not_found(format!("there is no MCP server `{name}`")).hint("`clawsmith mcp list` lists them")
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
    if !TIMES.contains(&server.timeout_secs) {
        return wrong("a call may take 1 to 3600 seconds".to_owned());
    }
    if let Some(prefix) = &server.prefix
        && !(prefix.len() <= 32
            && prefix.starts_with(|c: char| c.is_ascii_alphabetic())
            && prefix.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))
    {
        return wrong(format!(
            "`{prefix}` is not a valid prefix of tool names; start with a letter, followed by at most 31 letters, digits, `_` or `-`"
        ));
    }
    // A tool of the server could then be called like a built-in one.
    if let Some(prefix) = &server.prefix
        && let Some(name) = spelled_by(prefix)
    {
        return wrong(format!(
            "the name of the built-in tool `{name}` begins with the prefix `{prefix}`; use another prefix"
        ));
    }
    match &server.transport {
        McpTransport::Stdio(McpProgram { command, read, write, .. }) => {
            if command.trim().is_empty() {
                return wrong("the command is empty".to_owned());
            }
            match read.iter().chain(write).find(|path| !path.starts_with('/')) {
                Some(path) => wrong(format!("`{path}` is not an absolute path")),
                None => Ok(()),
            }
        }
        McpTransport::Http(McpEndpoint { url, .. }) | McpTransport::Sse(McpEndpoint { url, .. }) => {
            match url.starts_with("https://") || url.starts_with("http://") {
                true => Ok(()),
                false => wrong(format!("`{url}` is not an address; start it with https:// or http://")),
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
                grants.push("`--network` for the network");
            }
            grants.push("`--read DIR` for a directory, such as that of the program");
            grants.push("`--env NAME=VALUE` for a variable");
            format!("the program runs in the sandbox; grant what it needs: {}", grants.join("; "))
        }
        McpTransport::Http(_) => {
            "check the address; `--sse` uses the older transport; `--header NAME=VALUE` sends a login"
                .to_owned()
        }
        McpTransport::Sse(_) => "check the address; without `--sse` the newer transport is used".to_owned(),
    }
}
