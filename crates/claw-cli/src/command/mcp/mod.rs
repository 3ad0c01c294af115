//! `clawsmith mcp`: other people's tool servers, and our tools for other people's agents.

mod add;
mod login;
mod serve;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use claw_core::counted::counted;
use claw_core::store::{McpGrant, McpSubject, McpToolState, McpTransport};
use claw_core::{AccessRequestId, AgentId, ServerName};
use claw_terminal::{Cell, tell, visible};
use clawsmith::app::mcp::{
    AccessWish, ServerView, definition_diff, given_value, grant_words, login_words, tool_about,
};
use clawsmith::app::words::time;

use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};

/// The operations on MCP servers.
#[derive(Debug, Subcommand)]
pub(crate) enum Mcp {
    /// Add a server: connect to it, accept the tools that it lists, and grant it to the default agent.
    Add(add::Add),
    /// Add the MCP servers listed in a file in the `mcpServers` format, which other MCP clients use.
    Import(add::Import),
    /// List the servers, with their tools and grants.
    List,
    /// Show one server: its settings, tools and grants.
    Show(Named),
    /// Log in to a server by OAuth.
    Login(login::Login),
    /// Forget the login at a server.
    Logout(login::Logout),
    /// Connect to a server, and print its description of itself.
    Test(Named),
    /// List the tools of a server and whether they can be called.
    Tools(Named),
    /// Show the definitions that changed since they were accepted, and accept them.
    Pin(Pin),
    /// Let an agent or a user use a server.
    Grant(Grant),
    /// Revoke a grant; takes effect with the next call.
    Revoke(Revoke),
    /// Ask for access to a server, for an agent or for yourself.
    Request(Ask),
    /// List the requests for access.
    Requests,
    /// Approve or reject a request for access.
    Review(Review),
    /// Enable a server.
    Enable(Named),
    /// Disable a server: nobody can use it, and all its data is kept.
    Disable(Named),
    /// Remove a server with its grants, tools, requests and secrets.
    Remove(Named),
    /// Offer Clawsmith's tools to an MCP client on standard input and output.
    Serve(serve::Serve),
}

/// A server.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The server's name.
    name: ServerName,
}

#[derive(Debug, Args)]
pub(crate) struct Pin {
    #[command(flatten)]
    server: Named,
    /// The tool to show or accept [default: all].
    tool: Option<String>,
    /// Accept the definitions that are shown.
    #[arg(long)]
    accept: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Grant {
    /// The server's name.
    name: ServerName,
    /// The agent or user: `agent:NAME` or `user:NAME`.
    subject: McpSubject,
    /// A tool to allow, by the server's name for it [default: all].
    #[arg(long, value_name = "TOOL")]
    allow: Vec<String>,
    /// A tool that may not be used.
    #[arg(long, value_name = "TOOL")]
    deny: Vec<String>,
    /// The timeout of one call, in seconds, instead of the server's.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u32>,
    /// A variable only for this agent's program: `NAME=VALUE`, or `NAME` to take it from this environment.
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// A header only for this agent's requests: `NAME=VALUE`, or `NAME` to take it from this environment.
    #[arg(long, value_name = "NAME[=VALUE]")]
    header: Vec<String>,
    /// Refuse access, regardless of other grants.
    #[arg(long)]
    disabled: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// The server's name.
    name: ServerName,
    /// The agent or user: `agent:NAME` or `user:NAME`.
    subject: McpSubject,
}

#[derive(Debug, Args)]
pub(crate) struct Ask {
    /// The server's name.
    name: ServerName,
    /// The agent that is to get access [default: yourself].
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,
    /// A requested tool [default: all].
    #[arg(long, value_name = "TOOL")]
    tool: Vec<String>,
    /// The reason for the request.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct Review {
    /// The request's id.
    id: AccessRequestId,
    /// Approve it: the grant is written at once.
    #[arg(long, conflicts_with = "reject", required_unless_present = "reject")]
    approve: bool,
    /// Reject it.
    #[arg(long)]
    reject: bool,
    /// A reason or remark.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

impl Mcp {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::Add(add) => add.run(session),
            Self::Import(import) => import.run(session),
            Self::List => list(session),
            Self::Show(Named { name }) => show(session, &name),
            Self::Login(login) => login.run(session),
            Self::Logout(logout) => logout.run(session),
            Self::Test(Named { name }) => test(session, &name),
            Self::Tools(Named { name }) => {
                let view = session.app(async |app| app.mcp_server(&name).await)?;
                print_tools(session, &view)
            }
            Self::Pin(pin) => pin.run(session),
            Self::Grant(grant) => grant.run(session),
            Self::Revoke(Revoke { name, subject }) => {
                session.app(async |app| app.revoke_mcp(&name, &subject).await)?;
                let revoked = serde_json::json!({ "server": name, "revoked": subject.to_string() });
                session.told(&revoked, format_args!("{subject} can no longer use {name}"))
            }
            Self::Request(ask) => ask.run(session),
            Self::Requests => requests(session),
            Self::Review(Review { id, approve, note, .. }) => {
                let by = session.user(None)?;
                let reviewed =
                    session.app(async |app| app.review_mcp_request(id, approve, by, note).await)?;
                let how = if approve { "approved" } else { "rejected" };
                session
                    .told(&reviewed, format_args!("request {id} is {how}; the user who made it is notified"))
            }
            Self::Enable(Named { name }) => switch(session, &name, true),
            Self::Disable(Named { name }) => switch(session, &name, false),
            Self::Remove(Named { name }) => {
                session.app(async |app| app.remove_mcp_server(&name).await)?;
                session.told(&serde_json::json!({ "removed": name }), format_args!("{name} is removed"))
            }
            Self::Serve(serve) => serve.run(session),
        }
    }
}

fn switch(session: &mut Session, name: &ServerName, enabled: bool) -> Outcome {
    let edited =
        session.app(async |app| app.edit_mcp_server(name, |server| server.enabled = enabled).await)?;
    session.told(&edited, format_args!("{name} is {}", if enabled { "enabled" } else { "disabled" }))
}

fn list(session: &mut Session) -> Outcome {
    let servers = session.existing_app(async |app| app.mcp_servers().await)?.unwrap_or_default();
    session.list(
        &servers,
        "no MCP servers; `clawsmith mcp add NAME URL` or `-- COMMAND` adds one",
        &[
            ("name", &|view| Cell::strong(&view.server.name)),
            ("transport", &|view| Cell::new(view.server.transport.name())),
            ("state", &state_of),
            ("tools", &|view| Cell::new(view.accepted())),
            ("granted to", &|view| Cell::new(view.grantees())),
        ],
    )
}

fn state_of(view: &ServerView) -> Cell {
    match (view.server.enabled, view.waiting(None).unwrap_or_default().len()) {
        (false, _) => Cell::quiet("disabled"),
        (true, 0) => Cell::good("enabled"),
        (true, waiting) => Cell::warning(format!("{} to accept", counted(waiting, "tool"))),
    }
}

fn show(session: &mut Session, name: &ServerName) -> Outcome {
    let me = session.user(None)?;
    let (view, login) = session.app(async |app| {
        let view = app.mcp_server(name).await?;
        app.mcp_login(&view.server, Some(&me)).await.map(|login| (view, login))
    })?;
    if session.out.json {
        return session.told(&view, "");
    }
    let (server, out) = (&view.server, &mut session.out);
    let yes = |is: bool| Some(if is { "yes" } else { "no" }.to_owned());
    out.heading(server.name.as_str())?;
    match &server.transport {
        McpTransport::Stdio(program) => {
            let command: Vec<_> = std::iter::once(&program.command).chain(&program.args).cloned().collect();
            out.fields([
                ("program", Some(command.join(" "))),
                ("variables", Some(program.env.join(", "))),
                ("network", yes(program.network)),
                ("may read", Some(program.read.join(", "))),
                ("may write", Some(program.write.join(", "))),
            ])?;
        }
        McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) => {
            let login = endpoint.oauth.as_ref().map(|oauth| login_words(name, oauth, login.as_ref()));
            out.fields([
                ("address", Some(endpoint.url.clone())),
                ("transport", Some(server.transport.name().to_owned())),
                ("headers", Some(endpoint.headers.join(", "))),
                ("login", login),
            ])?;
        }
    }
    out.fields([
        ("enabled", yes(server.enabled)),
        ("call timeout", Some(format!("{} s", server.timeout_secs))),
    ])?;
    out.fields(view.grants.iter().map(|grant| ("grant", Some(grant_words(grant)))))?;
    print_tools(session, &view)
}

fn print_tools(session: &mut Session, view: &ServerView) -> Outcome {
    session.list(
        &view.tools,
        "the server lists no tools",
        &[
            ("tool", &|tool| Cell::strong(&tool.name)),
            ("called as", &|tool| {
                let called = clawsmith::app::mcp::protocol::tool_name(&view.server, &tool.name);
                Cell::new(called.map(|name| name.to_string()).unwrap_or_default())
            }),
            ("state", &|tool| match tool.state() {
                McpToolState::Accepted => Cell::good("accepted"),
                McpToolState::Changed => Cell::bad("changed"),
                McpToolState::New => Cell::warning("new"),
                McpToolState::Gone => Cell::quiet("gone"),
            }),
            ("about", &|tool| Cell::quiet(tool_about(tool))),
        ],
    )
}

fn test(session: &mut Session, name: &ServerName) -> Outcome {
    let me = session.user(None)?;
    let report = session.app(async |app| app.probe_mcp_server(name, Some(&me)).await)?;
    session.shown(&report, |out| {
        Ok(out.fields([
            ("server", Some(report.server.clone().unwrap_or_else(|| "unknown".to_owned()))),
            ("protocol", Some(report.protocol.clone())),
            ("tools", Some(report.tools.len().to_string())),
            ("instructions", report.instructions.clone()),
        ])?)
    })
}

impl Pin {
    fn run(self, session: &mut Session) -> Outcome {
        let name = self.server.name;
        let view = session.app(async |app| app.mcp_server(&name).await)?;
        let waiting = view.waiting(self.tool.as_deref())?;
        session.shown(&waiting, |out| {
            if waiting.is_empty() {
                out.line("no definition differs from the accepted one")?;
            }
            for tool in &waiting {
                out.heading(&visible(&tool.name))?;
                out.diff(&visible(&definition_diff(tool)))?;
            }
            Ok(())
        })?;
        if !self.accept {
            if !waiting.is_empty() {
                tell(format_args!("to accept these definitions: `clawsmith mcp pin {name} --accept`"));
            }
            return Ok(ExitCode::SUCCESS);
        }
        let other = session.app(async |app| app.accept_mcp_tools(&waiting).await)?;
        if other.is_empty() {
            tell(format_args!("accepted: {}", counted(waiting.len(), "definition")));
            return Ok(ExitCode::SUCCESS);
        }
        let names = other.join(", ");
        Err(Failure::failed(format!(
            "these definitions changed while they were shown, so they were not accepted: {names}"
        ))
        .hint(format!("look at them again with `clawsmith mcp pin {name}`")))
    }
}

impl Grant {
    fn run(self, session: &mut Session) -> Outcome {
        let values = |given: &[String]| {
            given.iter().map(|text| given_value(&session.around, text)).collect::<Result<Vec<_>, _>>()
        };
        let (env, headers) = (values(&self.env)?, values(&self.header)?);
        let names = |values: &[(String, _)]| values.iter().map(|(name, _)| name.clone()).collect();
        let mut grant = McpGrant::new(self.name, self.subject);
        (grant.config_overrides.env, grant.config_overrides.headers) = (names(&env), names(&headers));
        grant.tool_allow = (!self.allow.is_empty()).then_some(self.allow);
        grant.tool_deny = self.deny;
        grant.config_overrides.timeout_secs = self.timeout;
        grant.enabled = !self.disabled;
        session.app(async |app| app.grant_mcp(&grant, env.into_iter().chain(headers).collect()).await)?;
        session.told(&grant, format_args!("{}: {}", grant.server, visible(&grant_words(&grant))))
    }
}

impl Ask {
    fn run(self, session: &mut Session) -> Outcome {
        let user = session.user(None)?;
        let subject = self.agent.map_or_else(|| McpSubject::User(user.clone()), McpSubject::Agent);
        let tools = (!self.tool.is_empty()).then_some(self.tool);
        let wish = AccessWish { server: self.name, user, subject, tools, reason: self.reason };
        let request = session.app(async |app| app.request_mcp(wish).await)?;
        session.told(
            &request,
            format_args!(
                "request {} is pending; the administrators are notified, and you are notified of their answer",
                request.id
            ),
        )
    }
}

fn requests(session: &mut Session) -> Outcome {
    let requests = session.existing_app(async |app| app.mcp_requests().await)?.unwrap_or_default();
    session.list(
        &requests,
        "no requests for access",
        &[
            ("id", &|request| Cell::strong(request.id)),
            ("server", &|request| Cell::new(&request.server)),
            ("for", &|request| Cell::new(&request.subject)),
            ("tools", &|request| {
                Cell::new(request.tools.as_ref().map_or_else(|| "all".to_owned(), |tools| tools.join(", ")))
            }),
            ("reason", &|request| Cell::new(&request.reason)),
            ("state", &|request| match &request.review {
                None => Cell::warning("pending"),
                Some(review) if review.approved => Cell::good(format!("approved by {}", review.by)),
                Some(review) => Cell::bad(format!("rejected by {}", review.by)),
            }),
            ("asked", &|request| Cell::quiet(time(request.at))),
        ],
    )
}
