//! `clawsmith chat`: talking to an agent, and seeing what it says and does.
//!
//! The question goes into the queue like every other, in a lane of its conversation: this process takes it from
//! there, and if it dies, the next chat in the conversation goes on from where it stopped. What is shown is read
//! from the conversation's log, as any other client would.

mod interactive;
mod markdown;
mod speech;
mod talk;
mod view;

use std::convert::Infallible;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use claw_agent::{Peer, Worker};
use claw_core::message::Part;
use claw_core::tool::{Caller, Digest};
use claw_core::{JobId, SessionKey};
use claw_registry::Asking;
use claw_store::Backend;

use self::talk::{Instead, Talk};
use super::tools::{approve, read, runtime, workspace};
use crate::caller::CallerArgs;
use crate::cli::Session;
use crate::compose;
use crate::config::Loaded;
use crate::failure::{Failure, Outcome};
use crate::output::tell;

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

Exit codes: 0 answered, 1 the run failed, 2 usage, 130 stopped.

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
        let loaded = self.caller.load(session)?;
        let workspace = workspace(self.workspace.as_deref(), &session.around)?;
        let mut caller = self.caller.caller(&loaded.config, &session.around, &workspace)?;
        if !self.caller.names_session() {
            caller.session = self.conversation(&caller, None)?;
            caller.channel = "cli".into();
            loaded.config.sandbox.sandboxing().apply(&mut caller);
        }
        let text = match self.is_interactive(session) {
            true => None,
            false => Some(self.message()?),
        };
        runtime()?.block_on(async {
            let store = compose::store(&loaded, &session.around).await?;
            let ended = match text {
                Some(text) => self.ask(session, &loaded, &store, (caller, text)).await,
                None => interactive::run(&self, session, &loaded, &store, caller).await,
            };
            store.disconnect().await;
            ended
        })
    }

    /// Whether somebody sits there who wants to talk.
    fn is_interactive(&self, session: &Session) -> bool {
        let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        self.message.is_none() && terminal && !session.out.json
    }

    /// One question, and its answer.
    async fn ask(
        &self,
        session: &mut Session,
        loaded: &Loaded,
        backend: &Arc<dyn Backend>,
        (caller, text): (Caller, String),
    ) -> Outcome {
        let mut talk = Talk::start(self, (session, loaded), backend, caller, &Instead::default()).await?;
        if let Some(words) = interactive::word_in(&text) {
            let done = interactive::by_itself(words, session, (loaded, backend), &talk).await;
            talk.end().await?;
            return done.map(|()| ExitCode::SUCCESS);
        }
        talk.view.introduce(&mut session.out, &*talk.model().await?)?;
        let asking = if self.wait { Asking::Possible } else { approve::asking() };
        let run = talk.say(vec![Part::text(text)], asking).await?;
        let ended = tokio::select! {
            ended = talk.view.follow(&mut session.out, run) => ended,
            never = interrupted(&talk.worker, run) => match never {},
        };
        talk.end().await?;
        Ok(ExitCode::from(ended?))
    }

    /// The conversation of this agent, user and workspace; another one where it is named.
    fn conversation(&self, caller: &Caller, other: Option<&str>) -> Result<SessionKey, Failure> {
        let workspace = &caller.workspace;
        let name = workspace.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let digest = Digest::of_bytes(workspace.as_os_str().as_encoded_bytes()).to_string();
        let digest = digest.strip_prefix("sha256:").unwrap_or(&digest).chars().take(8);
        let mut chat: String = name.chars().take(40).chain(['-']).chain(digest).collect();
        if let Some(other) = other {
            chat.push('-');
            chat.push_str(other);
        }
        let user = caller.user.as_ref().map_or("me", |user| user.as_str());
        claw_agent::key(&caller.agent, "cli", Peer::Direct { user, chat: Some(&chat) })
            .map_err(|error| Failure::usage(error.to_string()).hint("name one with `--session KIND:NAME`"))
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

/// Ctrl-C ends the run; a second one ends the program.
async fn interrupted(worker: &Worker, run: JobId) -> Infallible {
    if tokio::signal::ctrl_c().await.is_err() {
        return std::future::pending().await;
    }
    tell("\nstopping; press Ctrl-C again to quit at once");
    worker.abort(run);
    match tokio::signal::ctrl_c().await {
        Ok(()) => std::process::exit(130),
        Err(_) => std::future::pending().await,
    }
}
