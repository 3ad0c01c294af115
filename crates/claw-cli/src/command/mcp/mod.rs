//! `clawsmith mcp`: other people's tool servers, and our tools for other people's agents.

mod add;
mod login;
mod serve;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use claw_core::store::{McpGrant, McpRequest, McpSubject, McpTool, McpToolState, McpTransport};
use claw_core::{AccessRequestId, ServerName};
use claw_registry::unified_diff;
use clawsmith::app::App;
use clawsmith::app::mcp::{AccessWish, ServerView, definition_change};
use serde::Serialize;

use super::ledger::time;
use crate::caller::user_of;
use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::{with_app, with_existing_app};
use crate::output::{Cell, Table, tell, visible};

/// The operations on MCP servers.
#[derive(Debug, Subcommand)]
pub(crate) enum Mcp {
    /// Add a server: connect to it, accept the tools that it lists, and grant it to the default agent.
    #[command(after_help = add::HELP)]
    Add(add::Add),
    /// Add the servers of an `mcpServers` file, as other clients keep them.
    #[command(after_help = "Examples:
  clawsmith mcp import ~/.config/other-client/mcp.json")]
    Import(add::Import),
    /// List the servers, with their tools and grants.
    #[command(after_help = "Examples:
  clawsmith mcp list --json")]
    List,
    /// Show one server: its settings, tools and grants.
    #[command(after_help = "Examples:
  clawsmith mcp show github")]
    Show(Named),
    /// Log in to a server by OAuth.
    #[command(after_help = login::HELP)]
    Login(login::Login),
    /// Forget the login at a server.
    #[command(after_help = "Examples:
  clawsmith mcp logout notion")]
    Logout(login::Logout),
    /// Connect to a server, and print its description of itself.
    #[command(after_help = "Examples:
  clawsmith mcp test github")]
    Test(Named),
    /// List the tools of a server and whether they can be called.
    #[command(after_help = "Examples:
  clawsmith mcp tools github")]
    Tools(Named),
    /// Show the definitions that changed since they were accepted, and accept them.
    #[command(after_help = "Examples:
  clawsmith mcp pin github
  clawsmith mcp pin github --accept")]
    Pin(Pin),
    /// Let an agent or a user use a server.
    #[command(after_help = "Examples:
  clawsmith mcp grant github agent:researcher --allow search_code
  clawsmith mcp grant github user:ann --deny delete_repository
  clawsmith mcp grant github agent:bot --header Authorization='Bearer ghp_of_the_bot'")]
    Grant(Grant),
    /// Revoke a grant; takes effect with the next call.
    #[command(after_help = "Examples:
  clawsmith mcp revoke github agent:researcher")]
    Revoke(Revoke),
    /// Ask for access to a server, for an agent or for yourself.
    #[command(after_help = "Examples:
  clawsmith mcp request github --reason 'release notes' --tool search_code")]
    Request(Ask),
    /// List the requests for access.
    #[command(after_help = "Examples:
  clawsmith mcp requests")]
    Requests,
    /// Approve or reject a request for access.
    #[command(after_help = "Examples:
  clawsmith mcp review 0198c1de-7a52-7cc0-8a7e-2f6f4e5b9d10 --approve
  clawsmith mcp review 0198c1de-7a52-7cc0-8a7e-2f6f4e5b9d10 --reject --note 'use the mirror'")]
    Review(Review),
    /// Enable a server.
    #[command(after_help = "Examples:
  clawsmith mcp enable github")]
    Enable(Named),
    /// Disable a server: nobody can use it, and all its data is kept.
    #[command(after_help = "Examples:
  clawsmith mcp disable github")]
    Disable(Named),
    /// Remove a server with its grants, tools, requests and sealed values.
    #[command(after_help = "Examples:
  clawsmith mcp remove github")]
    Remove(Named),
    /// Offer our tools to an MCP client on standard input and output.
    #[command(after_help = serve::HELP)]
    Serve(serve::Serve),
}

/// A server.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The server's name.
    name: String,
}

impl Named {
    fn id(&self) -> Result<ServerName, Failure> {
        server_name(&self.name)
    }
}

fn server_name(name: &str) -> Result<ServerName, Failure> {
    ServerName::new(name).map_err(|error| Failure::usage(error.to_string()))
}

#[derive(Debug, Args)]
pub(crate) struct Pin {
    #[command(flatten)]
    server: Named,
    /// The only tool [default: all].
    tool: Option<String>,
    /// Accept the definitions that are shown.
    #[arg(long)]
    accept: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Grant {
    /// The server's name.
    name: String,
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
    /// A variable that this agent's program has of its own: `NAME=VALUE`, or `NAME` to take it from this environment.
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// A header that this agent's requests have of their own: `NAME=VALUE`, or `NAME` to take it from this environment.
    #[arg(long, value_name = "NAME[=VALUE]")]
    header: Vec<String>,
    /// Refuse access, regardless of other grants.
    #[arg(long)]
    disabled: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// The server's name.
    name: String,
    /// The agent or user: `agent:NAME` or `user:NAME`.
    subject: McpSubject,
}

#[derive(Debug, Args)]
pub(crate) struct Ask {
    /// The server's name.
    name: String,
    /// The agent that is to get access [default: yourself].
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// A requested tool [default: all].
    #[arg(long, value_name = "TOOL")]
    tool: Vec<String>,
    /// The reason for the request.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

#[derive(Debug, Args)]
#[group(id = "answer", required = true, multiple = false, args = ["approve", "reject"])]
pub(crate) struct Review {
    /// The request's id.
    id: AccessRequestId,
    /// Approve it: the grant is written at once.
    #[arg(long)]
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
            Self::Show(named) => show(session, &named.id()?),
            Self::Login(login) => login.run(session),
            Self::Logout(logout) => logout.run(session),
            Self::Test(named) => test(session, &named.id()?),
            Self::Tools(named) => tools(session, &named.id()?),
            Self::Pin(pin) => pin.run(session),
            Self::Grant(grant) => grant.run(session),
            Self::Revoke(revoke) => {
                let (name, subject) = (server_name(&revoke.name)?, revoke.subject);
                let words = format!("{subject} can no longer use {name}");
                change(session, &words, async |app| Ok(app.revoke_mcp(&name, &subject).await?))
            }
            Self::Request(ask) => ask.run(session),
            Self::Requests => requests(session),
            Self::Review(review) => review.run(session),
            Self::Enable(named) => switch(session, &named.id()?, true),
            Self::Disable(named) => switch(session, &named.id()?, false),
            Self::Remove(named) => {
                let name = named.id()?;
                change(session, &format!("{name} is removed"), async |app| {
                    Ok(app.remove_mcp_server(&name).await?)
                })
            }
            Self::Serve(serve) => serve.run(session),
        }
    }
}

/// Makes a change and prints the result.
fn change<T: Serialize>(
    session: &mut Session,
    words: &str,
    work: impl AsyncFnOnce(&App) -> Result<T, Failure>,
) -> Outcome {
    let setup = session.load()?;
    let value = with_app(&setup, work)?;
    match session.out.json {
        true => session.out.json(&value)?,
        false => session.out.line(words)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn switch(session: &mut Session, name: &ServerName, enabled: bool) -> Outcome {
    let state = if enabled { "enabled" } else { "disabled" };
    change(session, &format!("{name} is {state}"), async |app| {
        Ok(app.edit_mcp_server(name, |server| server.enabled = enabled).await?)
    })
}

fn list(session: &mut Session) -> Outcome {
    let setup = session.load()?;
    let servers = with_existing_app(&setup, async |app| Ok(app.mcp_servers().await?))?.unwrap_or_default();
    if session.out.json {
        session.out.json(&servers)?;
        return Ok(ExitCode::SUCCESS);
    }
    if servers.is_empty() {
        session.out.line("no MCP servers; `clawsmith mcp add NAME URL` or `-- COMMAND` adds one")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["name", "transport", "state", "tools", "granted to"]);
    for view in &servers {
        let grants: Vec<_> = view.grants.iter().map(|grant| grant.subject.to_string()).collect();
        table.row([
            Cell::strong(&view.server.name),
            Cell::new(view.server.transport.name()),
            state_of(view),
            Cell::new(view.count(McpToolState::Accepted)),
            Cell::new(grants.join(", ")),
        ]);
    }
    session.out.table(&table)?;
    Ok(ExitCode::SUCCESS)
}

fn state_of(view: &ServerView) -> Cell {
    let waiting = view.count(McpToolState::Changed) + view.count(McpToolState::New);
    match (view.server.enabled, waiting) {
        (false, _) => Cell::quiet("disabled"),
        (true, 0) => Cell::good("enabled"),
        (true, waiting) => Cell::warning(format!("{waiting} tools wait for acceptance")),
    }
}

fn view_of(session: &Session, name: &ServerName) -> Result<ServerView, Failure> {
    let setup = session.load()?;
    with_app(&setup, async |app| Ok(app.mcp_server(name).await?))
}

fn show(session: &mut Session, name: &ServerName) -> Outcome {
    let (setup, me) = (session.load()?, login::me(session)?);
    let (view, login) = with_app(&setup, async |app| {
        let view = app.mcp_server(name).await?;
        let login = app.mcp_login(&view.server, Some(&me)).await?;
        Ok((view, login))
    })?;
    if session.out.json {
        session.out.json(&view)?;
        return Ok(ExitCode::SUCCESS);
    }
    let server = &view.server;
    session.out.heading(server.name.as_str())?;
    match &server.transport {
        McpTransport::Stdio(program) => {
            let mut command = vec![program.command.clone()];
            command.extend(program.args.iter().cloned());
            session.out.field("program", &visible(&command.join(" ")))?;
            session.out.field("variables", &program.env.join(", "))?;
            session.out.field("network", if program.network { "yes" } else { "no" })?;
            session.out.field("may read", &program.read.join(", "))?;
            session.out.field("may write", &program.write.join(", "))?;
        }
        McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) => {
            session.out.field("address", &visible(&endpoint.url))?;
            session.out.field("transport", server.transport.name())?;
            session.out.field("headers", &endpoint.headers.join(", "))?;
            if let Some(oauth) = &endpoint.oauth {
                session.out.field("login", &login::described(name, oauth, login.as_ref()))?;
            }
        }
    }
    session.out.field("enabled", if server.enabled { "yes" } else { "no" })?;
    session.out.field("time for a call", &format!("{} s", server.timeout_secs))?;
    for grant in &view.grants {
        session.out.field("grant", &described(grant))?;
    }
    print_tools(session, &view)
}

fn described(grant: &McpGrant) -> String {
    let mut words = vec![grant.subject.to_string()];
    if !grant.enabled {
        words.push("refused".to_owned());
    }
    if let Some(allow) = &grant.tool_allow {
        words.push(format!("only {}", allow.join(", ")));
    }
    if !grant.tool_deny.is_empty() {
        words.push(format!("not {}", grant.tool_deny.join(", ")));
    }
    visible(&words.join("; ")).into_owned()
}

fn tools(session: &mut Session, name: &ServerName) -> Outcome {
    let view = view_of(session, name)?;
    if session.out.json {
        session.out.json(&view.tools)?;
        return Ok(ExitCode::SUCCESS);
    }
    print_tools(session, &view)
}

fn print_tools(session: &mut Session, view: &ServerView) -> Outcome {
    let mut table = Table::new(["tool", "called as", "state", "about"]);
    for tool in &view.tools {
        let called = clawsmith::app::mcp::protocol::tool_name(&view.server, &tool.name);
        let called = called.map(|name| name.to_string()).unwrap_or_default();
        let about = tool.accepted.as_ref().or(tool.proposed.as_ref());
        let about = about.and_then(|definition| definition.get("description")).and_then(|text| text.as_str());
        let about: String =
            about.unwrap_or_default().lines().next().unwrap_or_default().chars().take(80).collect();
        let state = match tool.state() {
            McpToolState::Accepted => Cell::good("accepted"),
            McpToolState::Changed => Cell::bad("changed"),
            McpToolState::New => Cell::warning("new"),
            McpToolState::Gone => Cell::quiet("gone"),
        };
        table.row([
            Cell::strong(visible(&tool.name)),
            Cell::new(called),
            state,
            Cell::quiet(visible(&about)),
        ]);
    }
    match table.is_empty() {
        true => session.out.line("it lists no tools")?,
        false => session.out.table(&table)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn test(session: &mut Session, name: &ServerName) -> Outcome {
    let (setup, me) = (session.load()?, login::me(session)?);
    let report = with_app(&setup, async |app| Ok(app.probe_mcp_server(name, Some(&me)).await?))?;
    if session.out.json {
        session.out.json(&report)?;
        return Ok(ExitCode::SUCCESS);
    }
    session.out.field("server", &visible(report.server.as_deref().unwrap_or("it does not say")))?;
    session.out.field("protocol", &report.protocol)?;
    session.out.field("tools", &report.tools.len().to_string())?;
    if let Some(instructions) = &report.instructions {
        session.out.field("instructions", &visible(instructions))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Pin {
    fn run(self, session: &mut Session) -> Outcome {
        let name = self.server.id()?;
        let view = view_of(session, &name)?;
        let is_meant = |tool: &&McpTool| self.tool.as_ref().is_none_or(|only| *only == tool.name);
        let waits = |tool: &&McpTool| matches!(tool.state(), McpToolState::Changed | McpToolState::New);
        let waiting: Vec<McpTool> = view.tools.iter().filter(is_meant).filter(waits).cloned().collect();
        if session.out.json {
            session.out.json(&waiting)?;
        } else if waiting.is_empty() {
            session.out.line("every definition is the accepted one")?;
        }
        let shown = if session.out.json { &[][..] } else { &waiting[..] };
        for tool in shown {
            session.out.heading(&visible(&tool.name))?;
            let (before, after) = definition_change(tool);
            let diff = unified_diff(&tool.name, &before, &after, usize::MAX);
            // A difference that is too long to compare is shown whole.
            let diff = if diff.lines().count() > 3 { diff } else { format!("{diff}{after}") };
            for line in diff.lines() {
                session.out.diff_line(&visible(line))?;
            }
        }
        if !self.accept {
            if !waiting.is_empty() {
                tell(format_args!("`clawsmith mcp pin {name} --accept` accepts what is shown"));
            }
            return Ok(ExitCode::SUCCESS);
        }
        let setup = session.load()?;
        let other = with_app(&setup, async |app| Ok(app.accept_mcp_tools(&waiting).await?))?;
        if other.is_empty() {
            tell(format_args!("{} definitions are accepted", waiting.len()));
            return Ok(ExitCode::SUCCESS);
        }
        let names = other.join(", ");
        Err(Failure::failed(format!("these changed while they were shown, and are not accepted: {names}"))
            .hint("look at them again"))
    }
}

impl Grant {
    fn run(self, session: &mut Session) -> Outcome {
        let values = |given: &[String]| {
            given.iter().map(|text| add::value(session, text)).collect::<Result<Vec<_>, _>>()
        };
        let (env, headers) = (values(&self.env)?, values(&self.header)?);
        let names = |values: &[(String, _)]| values.iter().map(|(name, _)| name.clone()).collect();
        let mut grant = McpGrant::new(server_name(&self.name)?, self.subject);
        (grant.config_overrides.env, grant.config_overrides.headers) = (names(&env), names(&headers));
        grant.tool_allow = (!self.allow.is_empty()).then_some(self.allow);
        grant.tool_deny = self.deny;
        grant.config_overrides.timeout_secs = self.timeout;
        grant.enabled = !self.disabled;
        let words = format!("{}: {}", grant.server, described(&grant));
        change(session, &words, async |app| {
            app.grant_mcp(&grant, env.into_iter().chain(headers).collect()).await?;
            Ok(grant.clone())
        })
    }
}

impl Ask {
    fn run(self, session: &mut Session) -> Outcome {
        let user = user_of(&session.around).map_err(|error| Failure::usage(error.to_string()))?;
        let subject = match &self.agent {
            Some(agent) => format!("agent:{agent}").parse().map_err(Failure::usage)?,
            None => McpSubject::User(user.clone()),
        };
        let tools = (!self.tool.is_empty()).then_some(self.tool);
        let wish = AccessWish { server: server_name(&self.name)?, user, subject, tools, reason: self.reason };
        let setup = session.load()?;
        let request = with_app(&setup, async |app| Ok(app.request_mcp(wish).await?))?;
        match session.out.json {
            true => session.out.json(&request)?,
            false => session.out.line(format_args!(
                "request {} is pending; the administrators are told of it, and you of their answer",
                request.id
            ))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn requests(session: &mut Session) -> Outcome {
    let setup = session.load()?;
    let requests = with_existing_app(&setup, async |app| Ok(app.mcp_requests().await?))?.unwrap_or_default();
    if session.out.json {
        session.out.json(&requests)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["id", "server", "for", "tools", "reason", "state", "asked"]);
    for request in &requests {
        let McpRequest { id, server, subject, tools, reason, at, review, .. } = request;
        let state = match review {
            None => Cell::warning("pending"),
            Some(review) if review.approved => Cell::good(format!("approved by {}", review.by)),
            Some(review) => Cell::bad(format!("rejected by {}", review.by)),
        };
        let tools = tools.as_ref().map_or_else(|| "all".to_owned(), |tools| tools.join(", "));
        table.row([
            Cell::strong(id),
            Cell::new(server),
            Cell::new(subject),
            Cell::new(visible(&tools)),
            Cell::new(visible(reason)),
            state,
            Cell::quiet(time(*at)),
        ]);
    }
    match requests.is_empty() {
        true => session.out.line("no requests for access")?,
        false => session.out.table(&table)?,
    }
    Ok(ExitCode::SUCCESS)
}

impl Review {
    fn run(self, session: &mut Session) -> Outcome {
        let by = user_of(&session.around).map_err(|error| Failure::usage(error.to_string()))?;
        let how = if self.approve { "approved" } else { "rejected" };
        let words = format!("request {} is {how}; the user who asked is told of it", self.id);
        change(session, &words, async |app| {
            Ok(app.review_mcp_request(self.id, (self.approve, by), self.note).await?)
        })
    }
}
