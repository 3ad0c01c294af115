//! `clawsmith mcp add` and `import`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use claw_core::ServerName;
use claw_core::counted::counted;
use claw_core::store::{McpEndpoint, McpOAuth, McpProgram, McpServer, McpTransport};
use claw_terminal::{complain, tell};
use clawsmith::app::mcp::{NewServer, given_value};

use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};

/// The server to be added.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// The name, which is part of the names of its tools.
    name: ServerName,
    /// The address of a server that is reached over HTTP.
    #[arg(conflicts_with = "command", required_unless_present = "command")]
    url: Option<String>,
    /// Use the older HTTP+SSE transport.
    #[arg(long, requires = "url")]
    sse: bool,
    /// The server needs an OAuth login; log in with `clawsmith mcp login NAME` once it is added.
    #[arg(long, requires = "url")]
    oauth: bool,
    /// Each user logs in for themselves, instead of one login for all.
    #[arg(long, requires = "oauth")]
    per_user: bool,
    /// The id of an OAuth client that is registered already, or the HTTPS address of its metadata.
    #[arg(long, value_name = "ID", requires = "oauth")]
    client_id: Option<String>,
    /// A scope that the login requests, besides those that the server asks for itself.
    #[arg(long, value_name = "SCOPE", requires = "oauth")]
    scope: Vec<String>,
    /// A header of every request: `NAME=VALUE`, or `NAME` to take the value from the variable of that name.
    #[arg(long, value_name = "NAME[=VALUE]", requires = "url")]
    header: Vec<String>,
    /// A variable of the program: `NAME=VALUE`, or `NAME` to take the value from this environment.
    #[arg(long, value_name = "NAME[=VALUE]", requires = "command")]
    env: Vec<String>,
    /// Let the program reach other machines.
    #[arg(long, requires = "command")]
    network: bool,
    /// A directory or file that the program may read.
    #[arg(long, value_name = "PATH", requires = "command")]
    read: Vec<String>,
    /// A directory or file that the program may read and write.
    #[arg(long, value_name = "PATH", requires = "command")]
    write: Vec<String>,
    /// The timeout of one call, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u32,
    /// The prefix of its tools' names [default: `mcp_NAME_`].
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// Tools that the server lists later wait until a person accepts them.
    #[arg(long)]
    ask_new: bool,
    /// The program and its arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The file of servers.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// A JSON file with `mcpServers`.
    file: PathBuf,
}

impl Add {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let new = self.server(session)?;
        let name = new.server.name.clone();
        let (view, report) = session.app(async |app| app.add_and_grant_mcp_server(new).await)?;
        let tools = counted(view.accepted(), "tool");
        let with = report.as_ref().map(|it| format!(": {tools}, protocol {}", it.protocol));
        let granted = if view.grants.is_empty() { "nobody".to_owned() } else { view.grantees() };
        let words = format!("{name} is added{}, granted to {granted}", with.unwrap_or_default());
        let told = session.told(&view, words)?;
        if !session.out.json && report.is_none() {
            tell(format_args!("log in with `clawsmith mcp login {name}`"));
        } else if !session.out.json && !view.waiting(None)?.is_empty() {
            tell(format_args!(
                "some definitions must be accepted first: `clawsmith mcp pin {name}` shows them"
            ));
        }
        Ok(told)
    }

    fn server(self, session: &Session) -> Result<NewServer, Failure> {
        let name = self.name;
        let given = if self.url.is_some() { &self.header } else { &self.env };
        let values =
            given.iter().map(|text| given_value(&session.around, text)).collect::<Result<Vec<_>, _>>()?;
        let names: Vec<String> = values.iter().map(|(name, _)| name.clone()).collect();
        let mut command = self.command.into_iter();
        let transport = match (self.url, command.next()) {
            (Some(url), _) => {
                // A person who adds a server here owns the deployment, so its address may be a private one.
                let oauth =
                    McpOAuth { per_user: self.per_user, client_id: self.client_id, scopes: self.scope };
                let oauth = self.oauth.then_some(oauth);
                let endpoint = McpEndpoint { url, headers: names, private: true, oauth };
                if self.sse { McpTransport::Sse(endpoint) } else { McpTransport::Http(endpoint) }
            }
            (None, Some(program)) => McpTransport::Stdio(McpProgram {
                command: program,
                args: command.collect(),
                env: names,
                network: self.network,
                read: self.read,
                write: self.write,
            }),
            (None, None) => return Err(Failure::usage("give an address, or a program after `--`")),
        };
        let server = McpServer {
            name,
            transport,
            timeout_secs: self.timeout,
            prefix: self.prefix,
            accept_new: !self.ask_new,
            resources: false,
            prompts: false,
            enabled: true,
        };
        Ok(NewServer { server, values })
    }
}

impl Import {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let text = session.text_of(&self.file)?;
        let imported = session.app(async |app| app.import_mcp_servers(&text).await)?;
        let (mut added, mut code) = (Vec::new(), ExitCode::SUCCESS);
        for (name, view) in imported {
            match view {
                Ok(view) => added.push(view),
                Err(error) => {
                    code = ExitCode::FAILURE;
                    complain(name.as_str(), error);
                }
            }
        }
        session.shown(&added, |out| {
            Ok(added.iter().try_for_each(|view| {
                let tools = counted(view.accepted(), "tool");
                out.line(format_args!("{} is added: {tools}", view.server.name))
            })?)
        })?;
        Ok(code)
    }
}
