//! `clawsmith tools call`: one call as an agent makes it, through every check.

use std::convert::Infallible;
use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use claw_core::message::is_mark;
use claw_core::tool::{Output, Progress};
use claw_registry::{Asking, CallError};
use claw_terminal::{Live, can_ask, complain, on_interrupt, style, tell, visible};
use clawsmith::app;
use clawsmith::app::call::{MadeCall, PersonalCall, reply_json};
use clawsmith::app::caller::local_workspace;
use clawsmith::app::question::RequestedApprovals;
use tokio_util::sync::CancellationToken;

use super::approve;
use crate::caller::CallerArgs;
use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};
use crate::opened::runtime;

/// More than any call may take; read no further.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// The tool to call, and its caller.
#[derive(Debug, Args)]
pub(crate) struct CallTool {
    /// The tool's name, or an alias.
    pub(super) name: String,
    /// The arguments: JSON, `@FILE` to read a file, or `-` to read standard input [default: `{}`].
    #[arg(value_name = "JSON", conflicts_with = "args")]
    pub(super) given: Option<String>,
    /// The arguments, as an option.
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// The directory that the tool's files are in; not `/` and not the home directory itself [default: the
    /// current directory].
    #[arg(long, value_name = "DIR")]
    pub(super) workspace: Option<PathBuf>,
    /// Work in the agent's own workspace for this user, below the data directory, where context files and memory
    /// are kept in the store.
    #[arg(long, conflicts_with = "workspace")]
    managed: bool,
    /// The timeout, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    #[command(flatten)]
    options: CallOptions,
    /// Names the grants that a failed call lacked.
    #[arg(skip)]
    pub(super) test: bool,
    /// Leaves out the lines that mark a result as data: a person reads it.
    #[arg(skip)]
    pub(super) plain: bool,
}

/// Options of every call.
#[derive(Debug, Args)]
pub(crate) struct CallOptions {
    /// Without a terminal, wait for approvals given with `clawsmith approvals`.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    pub(super) caller: CallerArgs,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "it is not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| !duration.is_zero() && *duration <= Duration::from_secs(86_400))
        .ok_or_else(|| "use more than 0 and at most 86400 seconds".to_owned())
}

impl CallTool {
    /// Creates a call for a command of its own, with output for people.
    pub(crate) fn of(name: &str, args: Option<String>, options: CallOptions) -> Self {
        Self {
            name: name.to_owned(),
            given: args,
            args: None,
            workspace: None,
            managed: false,
            timeout: None,
            options,
            test: false,
            plain: true,
        }
    }

    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let setup = self.options.caller.load(session)?;
        let workspace = match self.managed {
            true => PathBuf::from("/"),
            false => local_workspace(self.workspace.as_deref(), &session.around)?,
        };
        let mut caller = self.options.caller.caller(&setup, &workspace)?;
        let args = arguments(self.given.as_deref().or(self.args.as_deref()).unwrap_or("{}"))?;
        let live = Arc::new(Live::new(session.out.json));
        let (listener, mut asked) = RequestedApprovals::new();
        let by = caller.user.as_ref().map_or_else(|| "cli".to_owned(), ToString::to_string);
        let made = runtime()?.block_on(async {
            let app = setup.open().await.map_err(app::Error::refusing)?;
            if self.managed {
                caller.workspace = setup.managed_workspace(&caller)?;
            }
            let cancel = CancellationToken::new();
            let shown = Arc::clone(&live);
            let call = PersonalCall {
                caller,
                tool: self.name.clone(),
                args,
                timeout: self.timeout,
                asking: if self.options.wait || can_ask() { Asking::Possible } else { Asking::Impossible },
                listener,
                progress: Progress::to(move |text| shown.show(text)),
                cancel: cancel.clone(),
                names_grants: self.test,
            };
            let answers = async {
                while let Some(question) = asked.recv().await {
                    approve::put(&app, question, by.clone()).await;
                }
                std::future::pending::<Infallible>().await
            };
            let note = "\nstopping the call; press Ctrl-C again to quit at once";
            let made = tokio::select! {
                made = app.call_tool(call) => made,
                never = on_interrupt(Some(note), async || cancel.cancel()) => match never {},
                never = answers => match never {},
            };
            app.close().await;
            made
        })?;
        live.end();
        self.report(session, &made, live.has_shown())
    }

    /// Prints the reply: the output on standard output, all else on standard error.
    fn report(&self, session: &mut Session, made: &MadeCall, streamed: bool) -> Outcome {
        let reply = &made.reply;
        let code = ExitCode::from(match &reply.outcome {
            Ok(_) => 0,
            Err(CallError::Failed(_)) => 1,
            Err(CallError::Refused(_) | CallError::Waiting(_)) => 3,
        });
        if session.out.json {
            session.out.json(&reply_json(reply))?;
        } else {
            match &reply.outcome {
                // It was shown while it came; how it ended is left to say.
                Ok(Output { for_user: Some(ending), .. }) if streamed => {
                    session.out.styled(style::QUIET, &visible(ending))?;
                }
                Ok(output) if self.plain => {
                    let text = output.model_text();
                    let lines: Vec<&str> = text.lines().filter(|line| !is_mark(line)).collect();
                    session.out.foreign(&lines.join("\n"))?;
                }
                Ok(output) => session.out.foreign(&output.model_text())?,
                Err(CallError::Failed(error)) => complain("error", error.for_model()),
                Err(error @ CallError::Waiting(_)) => complain("waiting", error),
                Err(CallError::Refused(refusal)) => {
                    complain(&format!("refused ({})", refusal.step.name()), refusal);
                    made.advice(&self.options.caller.flags()).iter().for_each(tell);
                }
            }
            if let Some(setting) = reply.setting() {
                tell(format_args!("  to allow it: {setting}"));
            }
            // The output stands before the notes, also where both go to the same terminal.
            session.out.flush()?;
            reply.notes.iter().for_each(|note| tell(format_args!("note: {note}")));
        }
        made.grant_advice().iter().for_each(tell);
        Ok(code)
    }
}

/// The text of the arguments, wherever it is. It is read as JSON on the road, like a model's.
fn arguments(given: &str) -> Result<String, Failure> {
    let (what, read) = match given.strip_prefix('@') {
        Some(path) => (format!("`{path}`"), std::fs::File::open(path).and_then(read)),
        None if given == "-" => ("standard input".to_owned(), read(std::io::stdin().lock())),
        None => return Ok(given.to_owned()),
    };
    let bytes = read.map_err(|error| Failure::usage(format!("{what} cannot be read")).because(error))?;
    if bytes.len() as u64 > MOST_BYTES {
        let most = MOST_BYTES / (1024 * 1024);
        return Err(Failure::usage(format!("{what} is larger than {most} MiB, the limit for arguments")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::usage(format!("{what} is not UTF-8 from byte {at} on; arguments are JSON in UTF-8"))
    })
}

/// Reads a source, up to one byte more than is allowed.
pub(crate) fn read(source: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
