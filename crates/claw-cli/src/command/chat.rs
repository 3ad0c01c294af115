//! `clawsmith chat`: talking to an agent, and seeing what it says and does.
//!
//! The question goes into the queue like every other, in a lane of its conversation: this process takes it from
//! there, and if it dies, the next chat in the conversation goes on from where it stopped. What is shown is read
//! from the conversation's log, as any other client would.

mod interactive;
mod markdown;
mod speech;
mod view;

use std::convert::Infallible;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use claw_core::message::Part;
use claw_core::store::Process;
use claw_core::tool::Caller;
use claw_registry::Asking;
use clawsmith::app::{App, ModelChoice, Sessions, SessionsOptions, private_lane, workspace_session};

use self::view::View;
use super::tools::{approve, read, workspace};
use crate::caller::CallerArgs;
use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::with_app;
use crate::output::{complain, tell, visible};

/// No question is longer.
const MOST_BYTES: usize = 1024 * 1024;

/// What to say, to whom, and where.
#[derive(Debug, Args)]
#[command(
    after_help = "The answer goes to standard output as it comes; which tools are called goes to standard \
error. With `--json` everything goes to standard output, one event a line. A conversation goes on where it was: \
there is one for each agent, user and workspace, unless `--session` names another.

A message that is one of the words of a conversation (`/undo`, `/cost`, `/tools`, `/policy`, `/help`) is done, not said.

Where a call needs an approval you are asked on a terminal; elsewhere it is refused, unless `--wait` lets it \
wait for `clawsmith approvals`. Ctrl-C ends the run: what was said is kept.

Exit codes: 0 answered, 1 the run failed, 2 usage, 4 a limit ended the run, 130 stopped.

Examples:
  clawsmith chat
  clawsmith chat -m 'show me'
  clawsmith chat -m 'what is in README.md?' --workspace ~/project
  echo 'list the files' | clawsmith chat
  clawsmith chat -m hello --json"
)]
pub(crate) struct Chat {
    /// What to say, once [default: what standard input holds; on a terminal, a conversation].
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// The directory that the agent works in; not `/` and not the home directory itself [default: the current
    /// directory].
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Work in the agent's own workspace for this user, below the data directory.
    #[arg(long, conflicts_with = "workspace")]
    managed: bool,
    /// Play this script instead of asking a model.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Where an approval is needed and nobody sits at this terminal, wait for one from another
    /// (`clawsmith approvals`).
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    caller: CallerArgs,
}

impl Chat {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let setup = self.caller.load(session)?;
        let workspace = match self.managed {
            true => PathBuf::from("/"),
            false => workspace(self.workspace.as_deref(), &session.around)?,
        };
        let mut caller = self.caller.caller(setup.config(), &session.around, &workspace)?;
        let text = match self.is_interactive(session) {
            true => None,
            false => Some(self.message()?),
        };
        with_app(&setup, async |app| {
            if self.managed {
                caller.workspace = setup.managed_workspace(&caller)?;
            }
            if !self.caller.names_session() {
                caller.session = workspace_session(&caller, None)?;
                caller.channel = "cli".into();
                setup.config().sandbox.sandboxing().apply(&mut caller);
            }
            match text {
                Some(text) => self.ask(session, app, (caller, text)).await,
                None => interactive::run(&self, session, app, caller).await,
            }
        })
    }

    /// Whether somebody sits there who wants to talk.
    fn is_interactive(&self, session: &Session) -> bool {
        let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        self.message.is_none() && terminal && !session.out.json
    }

    /// Sends one message and shows its answer.
    async fn ask(&self, session: &mut Session, app: &App, (caller, text): (Caller, String)) -> Outcome {
        let mut talk = Talk::start(self, app, caller, None).await?;
        if let Some(words) = interactive::word_in(&text) {
            let done = interactive::by_itself(words, session, app, &talk).await;
            talk.end().await?;
            return done.map(|()| ExitCode::SUCCESS);
        }
        talk.view.introduce(&mut session.out, &*talk.sessions.model(&talk.caller).await?)?;
        let asking = match self.wait || approve::can_ask() {
            true => Asking::Watched,
            false => Asking::Impossible,
        };
        let run = talk.sessions.send(&talk.caller, vec![Part::text(text)], asking).await?;
        let ended = tokio::select! {
            ended = talk.view.follow(&mut session.out, run) => ended,
            never = interrupted(&talk.sessions, &talk.caller) => match never {},
        };
        talk.end().await?;
        Ok(ExitCode::from(ended?))
    }

    fn message(&self) -> Result<String, Failure> {
        let text = match &self.message {
            Some(text) => text.clone(),
            None if std::io::stdin().is_terminal() => {
                return Err(Failure::usage("there is nothing to say").hint("clawsmith chat -m 'show me'"));
            }
            None => {
                let bytes = read(std::io::stdin().lock())
                    .map_err(|error| Failure::usage("standard input cannot be read").because(error))?;
                String::from_utf8(bytes).map_err(|_| Failure::usage("standard input is not UTF-8"))?
            }
        };
        if text.trim().is_empty() {
            return Err(Failure::usage("there is nothing to say").hint("clawsmith chat -m 'show me'"));
        }
        if text.len() > MOST_BYTES {
            let failure =
                Failure::usage(format!("a message of {} bytes is longer than {MOST_BYTES}", text.len()));
            return Err(failure.hint("put it into a file of the workspace and ask about the file"));
        }
        Ok(text)
    }
}

/// A session that this process carries, and its view.
struct Talk {
    sessions: Sessions,
    caller: Caller,
    view: View,
}

impl Talk {
    async fn start(
        chat: &Chat,
        app: &App,
        caller: Caller,
        instead: Option<&ModelChoice>,
    ) -> Result<Self, Failure> {
        let options = SessionsOptions {
            lanes: vec![private_lane(&caller.session)],
            script: chat.script.clone(),
            instead: instead.map(|choice| (caller.agent.clone(), choice.clone())),
            ..SessionsOptions::default()
        };
        let sessions = app.sessions(options).await?;
        tell_lost(sessions.lost(), &caller);
        let view = View::new(&sessions, app, &caller).await?;
        Ok(Self { sessions, caller, view })
    }

    /// Ends it once its runs have ended.
    async fn end(self) -> Result<(), Failure> {
        match self.sessions.end().await? {
            0 => {}
            1 => tell("1 background command was ended"),
            count => tell(format_args!("{count} background commands were ended")),
        }
        Ok(())
    }
}

/// Names the background commands that ended with a program that is gone.
fn tell_lost(lost: &[Process], caller: &Caller) {
    let (here, elsewhere): (Vec<_>, Vec<_>) = lost
        .iter()
        .partition(|process| process.new.tenant == caller.tenant && process.new.session == caller.session);
    for process in here {
        let (id, command) = (process.new.id.name(), visible(&process.new.command));
        tell(format_args!(
            "lost: the background command `{id}` ended with the program that ran it: {command}"
        ));
    }
    if !elsewhere.is_empty() {
        tell(format_args!(
            "{} background commands of other conversations were lost as well",
            elsewhere.len()
        ));
    }
}

/// Stops the runs of the session.
async fn stop(sessions: &Sessions, caller: &Caller) {
    let by = caller.user.as_ref().map_or("cli", |user| user.as_str());
    if let Err(error) = sessions.stop(caller, by).await {
        complain("not stopped", error);
    }
}

/// Stops the runs on Ctrl-C; a second one ends the program.
async fn interrupted(sessions: &Sessions, caller: &Caller) -> Infallible {
    if tokio::signal::ctrl_c().await.is_err() {
        return std::future::pending().await;
    }
    tell("\nstopping; press Ctrl-C again to quit at once");
    stop(sessions, caller).await;
    match tokio::signal::ctrl_c().await {
        Ok(()) => std::process::exit(130),
        Err(_) => std::future::pending().await,
    }
}
