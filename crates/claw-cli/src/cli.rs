//! The command line as a whole.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser};
use claw_core::UserId;
use claw_terminal::{Out, complain};
use clawsmith::app::{Error, Kind, Setup};
use clawsmith::config::Surroundings;

use crate::command as commands;
use crate::exit_code::{Failure, Outcome};

/// Tools for AI agents, and one guarded road that every call takes.
///
/// For each call, Clawsmith authorises the caller, applies rate limits, validates the arguments, decides by policy
/// and records the call. Then it runs the tool through guarded ports, scrubs the result and caps its size.
#[derive(Debug, Parser)]
#[command(name = "clawsmith", version, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

/// The options of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Globals {
    /// Configuration file to use instead of the project's and your own [default: `$CLAWSMITH_CONFIG`].
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON, for programs.
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// Lay out tables and prose for a terminal of so many columns.
    #[arg(long, global = true, value_name = "N", hide = true)]
    pub(crate) columns: Option<u16>,
}

commands::subcommands! {
    enum Command {
        /// Talk to an agent, and watch it use the tools.
        Chat(commands::chat::Chat),
        /// Set up a model: answer a few questions, test the key and write the configuration.
        Onboard(commands::onboard::Onboard),
        /// List, show, call and export tools.
        #[command(subcommand)]
        Tools(commands::tools::Tools),
        /// Fetch a web page, or search the web.
        #[command(subcommand)]
        Web(commands::web::Web),
        /// Explain, check and compare which tools agents get.
        #[command(subcommand)]
        Policy(commands::policy::Policy),
        /// Set agents up: list, show, add, change and remove them, and their context files.
        #[command(subcommand)]
        Agent(commands::agent::AgentCommand),
        /// See, accept, publish and grant the skills that agents use.
        #[command(subcommand)]
        Skills(commands::skills::Skills),
        /// Remove secrets from a stream: standard input to standard output.
        Scrub(commands::scrub::Scrub),
        /// Explain a shell command, and whether it is allowed.
        #[command(subcommand)]
        Shell(commands::shell::Shell),
        /// Find sessions again: list, show, rename, fork and remove them.
        #[command(subcommand)]
        Sessions(commands::sessions::Sessions),
        /// List and answer pending approvals.
        #[command(subcommand)]
        Approvals(commands::approvals::Approvals),
        /// List the runs of agents, and stop one in any process.
        #[command(subcommand)]
        Runs(commands::runs::Runs),
        /// Use the tools of MCP servers, and offer Clawsmith's tools to MCP clients.
        #[command(subcommand)]
        Mcp(commands::mcp::Mcp),
        /// Serve agents and tools over HTTP.
        Serve(commands::serve::Serve),
        /// Create, list and revoke the API keys of programs.
        #[command(subcommand)]
        ApiKeys(commands::api_keys::ApiKeys),
        /// Manage the users with network access, and their roles.
        #[command(subcommand)]
        Users(commands::users::Users),
        /// Manage the tenants, whose data is separate.
        #[command(subcommand)]
        Tenants(commands::users::Tenants),
        /// Show and test the sandbox for commands, and run a command in it.
        #[command(subcommand)]
        Sandbox(commands::sandbox::Sandbox),
        /// Store secrets encrypted: set, list and remove them, and rotate their keys.
        #[command(subcommand)]
        Secrets(commands::secrets::Secrets),
        /// Give programs credentials that agents never see: add, list, test and remove them.
        #[command(subcommand)]
        Credentials(commands::credentials::Credentials),
        /// Show and verify the ledger of refused, intended and completed calls.
        #[command(subcommand)]
        Ledger(commands::ledger::Ledger),
        /// List, show and undo the changes that tools made in files.
        #[command(subcommand)]
        Undo(commands::undo::Undo),
        /// Search and manage agents' memory: import, list, show, index, export and forget.
        #[command(subcommand)]
        Memory(commands::memory::Memory),
        /// Search and manage the knowledge graph: show, add, merge, import, export and forget.
        #[command(subcommand)]
        Graph(commands::graph::Graph),
        /// Manage the store: status, schema, copies and backups.
        #[command(subcommand)]
        Db(commands::db::Db),
        /// Check and show the configuration.
        #[command(subcommand)]
        Config(commands::config::ConfigCommand),
        /// Examine the setup: problems, and how to fix each.
        Doctor(commands::doctor::Doctor),
        /// See it work: real calls in a temporary directory, half a minute to read.
        Tour(commands::tour::Tour),
        /// Print completions for a shell.
        Completions(commands::completions::Completions),
    }
}

/// The context of a command.
pub(crate) struct Session {
    pub(crate) globals: Globals,
    pub(crate) around: Surroundings,
    pub(crate) out: Out,
}

impl Session {
    /// Loads the configuration that applies. A project's file that nobody accepted is refused.
    pub(crate) fn load(&self) -> Result<Setup, Failure> {
        let mut setup = Setup::load(self.globals.config.as_deref(), &self.around)?;
        setup.local_user = true;
        Ok(setup)
    }

    /// The user that was named, or the one of this machine.
    pub(crate) fn user(&self, named: Option<UserId>) -> Result<UserId, Failure> {
        named.map_or_else(|| clawsmith::app::caller::local_user(&self.around), Ok).map_err(Failure::from)
    }

    /// The configuration whether it was accepted or not. Nothing is done under its rules.
    pub(crate) fn read(&self) -> Result<Setup, Failure> {
        Ok(Setup::read(self.globals.config.as_deref(), &self.around)?)
    }
}

/// The whole program.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match parsed(&arguments) {
        Ok(cli) => cli,
        // Help and version are no errors and have code 0; everything else has 2.
        Err(error) => {
            match error.use_stderr() && wants_json(&arguments) {
                true => report(&misused(&error), true),
                // Nothing is left to be done about standard output failing.
                false => drop(error.print()),
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    crate::log::hush_panics();
    crate::log::start(matches!(cli.command, Command::Serve(_)));
    let json = cli.globals.json;
    if let Some(columns) = cli.globals.columns {
        claw_terminal::fit_to(usize::from(columns.max(1)));
    }
    match execute(cli) {
        Ok(code) => code,
        Err(failure) => {
            if let Failure::Error(error) = &failure {
                report(error, json);
            }
            failure.code()
        }
    }
}

/// The command line as `--help` shows it.
pub fn command() -> clap::Command {
    crate::help::with_texts(Cli::command())
}

fn parsed(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = command();
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

fn execute(cli: Cli) -> Outcome {
    let around = Surroundings::of_process().map_err(|error| {
        Failure::usage("the current directory cannot be read")
            .because(error)
            .hint("change to one that exists")
    })?;
    let mut session = Session { out: Out::stdout(cli.globals.json), globals: cli.globals, around };
    let outcome = cli.command.run(&mut session);
    // Output before an error is part of the answer.
    let flushed = session.out.flush();
    let code = outcome?;
    flushed?;
    Ok(code)
}

/// Returns whether an invalid command line asks for JSON.
fn wants_json(arguments: &[OsString]) -> bool {
    arguments.iter().take_while(|word| *word != "--").any(|word| word == "--json")
}

/// Converts a command line error into a sentence and a hint.
fn misused(error: &clap::Error) -> Error {
    let text = error.render().to_string();
    let one_line = |part: &str| part.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let (mut what, mut hints) = (Vec::new(), Vec::new());
    for part in text.split("\n\n").map(str::trim).filter(|part| !part.is_empty()) {
        if let Some(error) = part.strip_prefix("error: ") {
            what.push(one_line(error));
        } else if let Some(tip) = part.strip_prefix("tip: ") {
            hints.push(one_line(tip));
        } else if let Some(usage) = part.strip_prefix("Usage: ") {
            hints.push(one_line(usage));
        } else if part.starts_with("For more information") {
            hints.push("`--help` says more".to_owned());
        } else {
            what.push(one_line(part));
        }
    }
    Error::invalid(what.join("; ")).hint(hints.join("; "))
}

fn report(error: &Error, json: bool) {
    if json {
        let mut told = serde_json::json!({ "error": error.what() });
        if let Some(hint) = error.advice() {
            told["hint"] = hint.into();
        }
        // Nothing is left to be done about standard error failing.
        let _ = writeln!(std::io::stderr(), "{told}");
        return;
    }
    complain(if error.kind() == Kind::Refused { "refused" } else { "error" }, error);
}
