//! `clawsmith tools call`: one call, by the road that every call takes.

use std::convert::Infallible;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use claw_core::CallId;
use claw_core::message::is_mark;
use claw_core::tool::{Output, Progress, ToolError};
use claw_policy::explain::explain;
use claw_policy::pipeline::{Subject, ToolSet};
use claw_registry::{
    Arguments, Asking, CallError, Executor, Offer, OfferOptions, Refusal, Reply, Request, Step,
};
use claw_terminal::{Live, complain, style, tell, visible};
use clawsmith::app::{self, App, Hooks};
use clawsmith::config::Surroundings;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::approve::{self, Questions};
use super::runtime;
use crate::caller::CallerArgs;
use crate::cli::Session;
use crate::failure::{Failure, Outcome};

/// More than any call may take; read no further.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// The tool to call, and its caller.
#[derive(Debug, Args)]
pub(crate) struct CallTool {
    /// The tool, or another name it answers to.
    pub(super) name: String,
    /// The arguments: JSON, `@FILE` to read a file, or `-` to read standard input [default: `{}`].
    #[arg(value_name = "JSON", conflicts_with = "args")]
    pub(super) given: Option<String>,
    /// The arguments, as an option.
    #[arg(long, value_name = "JSON")]
    pub(super) args: Option<String>,
    /// The directory that the tool's files are in; not `/` and not the home directory itself [default: the
    /// current directory].
    #[arg(long, value_name = "DIR")]
    pub(super) workspace: Option<PathBuf>,
    /// Work in the agent's own workspace for this user, below the data directory, where context files and memory
    /// are kept in the store.
    #[arg(long, conflicts_with = "workspace")]
    pub(super) managed: bool,
    /// The timeout, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) timeout: Option<Duration>,
    /// If an approval is needed and nobody sits at this terminal, wait for one from another (`clawsmith
    /// approvals`).
    #[arg(long)]
    pub(super) wait: bool,
    #[command(flatten)]
    pub(super) caller: CallerArgs,
    /// Names the grant that a failed call lacked.
    #[arg(skip)]
    pub(super) test: bool,
    /// Leaves out the lines that mark a result as data: a person reads it.
    #[arg(skip)]
    pub(super) plain: bool,
}

/// Options of the commands for one tool, besides its arguments.
#[derive(Debug, Args)]
pub(crate) struct CallOptions {
    /// If an approval is needed and nobody sits at this terminal, wait for one from another (`clawsmith
    /// approvals`).
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    caller: CallerArgs,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "it is no number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| !duration.is_zero() && *duration <= Duration::from_secs(86_400))
        .ok_or_else(|| "use more than 0 and at most 86400 seconds".to_owned())
}

impl CallTool {
    /// Creates a call for a command of its own, with output for people.
    pub(crate) fn of(name: &str, args: &Value, options: CallOptions) -> Self {
        Self {
            name: name.to_owned(),
            given: Some(args.to_string()),
            args: None,
            workspace: None,
            managed: false,
            timeout: None,
            wait: options.wait,
            caller: options.caller,
            test: false,
            plain: true,
        }
    }

    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let setup = self.caller.load(session)?;
        let mut caller = if self.managed {
            self.caller.caller(setup.config(), &session.around, Path::new("/"))?
        } else {
            let workspace = workspace(self.workspace.as_deref(), &session.around)?;
            self.caller.caller(setup.config(), &session.around, &workspace)?
        };
        let args = arguments(self.given.as_deref().or(self.args.as_deref()).unwrap_or("{}"))?;
        let live = Arc::new(Live::new(session.out.json));
        let (questions, mut asked) = Questions::new();
        let token_budget = setup.config().limits.tool_tokens.map(|tokens| tokens as usize);
        let by = caller.user.as_ref().map_or_else(|| "cli".to_owned(), ToString::to_string);
        let (executor, tools, offer, reply, missing) = runtime()?.block_on(async {
            let app = setup.open().await.map_err(app::Error::refusing)?;
            if self.managed {
                caller.workspace = setup.managed_workspace(&caller)?;
            }
            let hooks = Hooks { listener: Some(questions), owner_answers: true, ..Hooks::default() };
            let toolbox = app.toolbox(hooks).await.map_err(|error| match error.kind() {
                app::Kind::Invalid => error,
                _ => error.refusing(),
            })?;
            let executor = toolbox.executor().clone();
            let options = OfferOptions { token_budget, ..OfferOptions::default() };
            let offer = executor.offer_with(caller, options).await;
            let cancel = CancellationToken::new();
            let request = Request {
                tool: self.name.clone(),
                args: Arguments::Text(args),
                call: CallId::new(),
                model_id: None,
                run: None,
                cancel: cancel.clone(),
                progress: Progress::to({
                    let live = Arc::clone(&live);
                    move |text| live.show(text)
                }),
                timeout: self.timeout,
                within: None,
                asking: match self.wait || claw_terminal::can_ask() {
                    true => Asking::Possible,
                    false => Asking::Impossible,
                },
                narrowing: None,
                inputs: None,
            };
            let answers = async {
                while let Some(question) = asked.recv().await {
                    approve::put(&app, question, by.clone()).await;
                }
                std::future::pending::<Infallible>().await
            };
            let reply = tokio::select! {
                reply = executor.execute(&offer, request) => reply,
                never = interrupt(cancel) => match never {},
                never = answers => match never {},
            };
            let missing = match self.test {
                true => lacking(&app, &offer, &reply).await?,
                false => Vec::new(),
            };
            let tools = executor.registry_for(offer.caller()).await.tool_set();
            app.close().await;
            Ok::<_, Failure>((executor, tools, offer, reply, missing))
        })?;
        live.end();
        let code = self.report(session, (&executor, &tools, &offer), &reply, live.has_shown())?;
        for grant in missing {
            let flag = if grant == "network" { "--network".to_owned() } else { format!("--path {grant}") };
            tell(format_args!("missing grant: {grant}\n  try: clawsmith tools edit {} {flag}", reply.tool));
        }
        Ok(code)
    }

    /// Prints the reply: the output on standard output, all else on standard error.
    fn report(
        &self,
        session: &mut Session,
        (executor, tools, offer): (&Executor, &ToolSet, &Offer),
        reply: &Reply,
        streamed: bool,
    ) -> Outcome {
        let code = ExitCode::from(match &reply.outcome {
            Ok(_) => 0,
            Err(CallError::Failed(_)) => 1,
            Err(CallError::Refused(_) | CallError::Waiting(_)) => 3,
        });
        if session.out.json {
            session.out.json(&as_json(reply))?;
            return Ok(code);
        }
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
                self.hints((executor, tools, offer), reply, refusal).iter().for_each(tell);
            }
        }
        if let Some(setting) = reply.setting() {
            tell(format_args!("  to allow it: {setting}"));
        }
        // The output stands before the notes, also where both go to the same terminal.
        session.out.flush()?;
        reply.notes.iter().for_each(|note| tell(format_args!("note: {note}")));
        Ok(code)
    }

    /// Returns what a person can do about a refusal; the model was told what it can do.
    fn hints(
        &self,
        (executor, tools, offer): (&Executor, &ToolSet, &Offer),
        reply: &Reply,
        refusal: &Refusal,
    ) -> Vec<String> {
        let name = &reply.tool;
        match refusal.step {
            Step::Find | Step::Authorise => {
                let caller = offer.caller();
                if tools.find_absent(name).is_some() {
                    return vec![format!("  `{name}` is known but not in this build"), list_hint()];
                }
                let known = tools.find(name).is_some();
                if !known {
                    return vec![list_hint()];
                }
                let explained = explain(&executor.policy(), tools, &Subject::from(caller.as_ref()), name);
                let reason = explained.verdict.trace.to_string();
                vec![
                    format!("  policy: {reason}"),
                    format!("  try: clawsmith policy explain {name}{}", self.caller.flags()),
                ]
            }
            Step::Validate => vec![format!("  try: clawsmith tools show {name}")],
            Step::Judge if approve::is_unasked(&refusal.reason) => vec![approve::NOBODY_HERE.to_owned()],
            Step::Limit | Step::Judge | Step::Record => Vec::new(),
        }
    }
}

/// The grants that a failed call of a custom tool lacked.
async fn lacking(app: &App, offer: &Offer, reply: &Reply) -> Result<Vec<String>, Failure> {
    let Ok(output) = &reply.outcome else { return Ok(Vec::new()) };
    let exit = output.details.as_ref().and_then(|details| details["exit"].as_i64());
    let exit = exit.and_then(|exit| i32::try_from(exit).ok());
    Ok(app.missing_grants(offer.caller(), &reply.tool, exit, &output.model_text()).await?)
}

/// Stops the call on Ctrl-C; a second one ends the program.
async fn interrupt(cancel: CancellationToken) -> Infallible {
    if tokio::signal::ctrl_c().await.is_err() {
        return std::future::pending().await;
    }
    tell("\nstopping the call; press Ctrl-C again to quit at once");
    cancel.cancel();
    match tokio::signal::ctrl_c().await {
        Ok(()) => std::process::exit(130),
        Err(_) => std::future::pending().await,
    }
}

/// Resolves the workspace. A whole disk or a whole home is rejected.
pub(crate) fn workspace(asked: Option<&Path>, around: &Surroundings) -> Result<PathBuf, Failure> {
    let path = around.directory.join(asked.unwrap_or(Path::new("")));
    let shown = path.display();
    let real = path
        .canonicalize()
        .map_err(|error| Failure::usage(format!("the workspace `{shown}` cannot be used")).because(error))?;
    if !real.is_dir() {
        return Err(Failure::usage(format!("the workspace `{shown}` is not a directory")));
    }
    let home = around.home().and_then(|home| home.canonicalize().ok());
    let what = match real.parent() {
        None => "the whole disk",
        Some(_) if home.as_ref() == Some(&real) => "the home directory itself",
        Some(_) if home.is_some_and(|home| home.starts_with(&real)) => "above the home directory",
        Some(_) => return Ok(real),
    };
    let failure = Failure::usage(format!("`{}` is {what}, which is never a workspace", real.display()));
    Err(failure.hint("change to a project's directory, or name one with `--workspace DIR`"))
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
        return Err(Failure::usage(format!("{what} holds more than {most} MiB, which are no arguments")));
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

fn list_hint() -> String {
    "  try: clawsmith tools list".to_owned()
}

fn as_json(reply: &Reply) -> Value {
    let mut json = json!({
        "call": reply.call,
        "tool": reply.tool,
        "notes": reply.notes,
        "took_ms": reply.took.as_secs_f64() * 1000.0,
    });
    let (status, key, value) = match &reply.outcome {
        Ok(output) => ("done", "output", json!(output)),
        Err(CallError::Failed(error)) => ("failed", "error", failure(error)),
        Err(CallError::Refused(refusal)) => ("refused", "refusal", refused(refusal)),
        Err(CallError::Waiting(waiting)) => ("waiting", "approval", json!(waiting.approval)),
    };
    json["status"] = json!(status);
    json[key] = value;
    json
}

fn failure(error: &ToolError) -> Value {
    json!({
        "kind": error.kind,
        "message": error.message,
        "advice": error.advice,
        "setting": error.setting,
        "details": error.details,
    })
}

fn refused(refusal: &Refusal) -> Value {
    json!({
        "step": refusal.step,
        "reason": refusal.reason,
        "advice": refusal.advice,
        "setting": refusal.setting,
        "details": refusal.details,
        "retry_after_ms": refusal.retry_after.map(|after| after.as_millis() as u64),
    })
}
