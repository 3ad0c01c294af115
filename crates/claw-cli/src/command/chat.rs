//! `clawsmith chat`: talking to an agent, and watching its answers and calls.
//!
//! The display reads the session's log, as any other client would.

mod interactive;
mod remote;
mod slash_commands;
mod view;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use claw_core::JobId;
use claw_core::counted::counted;
use claw_core::message::Part;
use claw_core::tool::Caller;
use claw_gateway::client::Approvals;
use claw_registry::Asking;
use claw_terminal::style::QUIET;
use claw_terminal::{LineEditor, Names, Out, can_ask, is_piped, tell, tell_styled, visible};
use clawsmith::app::attached_files::{self, Attachment};
use clawsmith::app::caller::local_workspace;
use clawsmith::app::chat::{ChatOptions, LocalChat};
use clawsmith::app::mode::Mode;
use clawsmith::app::{App, ModelChoice, SessionChoice, Setup};

use self::view::View;
use super::tools::read;
use crate::caller::CallerArgs;
use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};
use crate::opened::with_app;

/// The longest message, in bytes.
const MOST_BYTES: usize = 1024 * 1024;

/// The note on the first Ctrl-C where the second one ends the program.
const STOPPING: &str = "\nstopping; press Ctrl-C again to quit at once";

/// A message to an agent, or an interactive chat.
#[derive(Debug, Args)]
pub(crate) struct Chat {
    /// The message [default: standard input; at a terminal, an interactive chat].
    #[arg(value_name = "MESSAGE", conflicts_with = "message")]
    words: Option<String>,
    /// The message, as an option.
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Resume the latest session of the directory.
    #[arg(long = "continue", conflicts_with_all = ["resume", "new", "session"])]
    go_on: bool,
    /// Resume this session, by its id, title or key [default: chosen from a list].
    #[arg(long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["new", "session"])]
    resume: Option<String>,
    /// Begin a new session.
    #[arg(long, conflicts_with = "session")]
    new: bool,
    /// The model that answers, instead of the agent's.
    #[arg(long, value_name = "PROVIDER[/MODEL]")]
    model: Option<String>,
    /// A picture to send with the message; may be given several times.
    #[arg(long, value_name = "PATH")]
    image: Vec<PathBuf>,
    /// The mode: `plan` only reads, `ask` asks before each change, `edits` asks before commands only,
    /// `configured` follows the configuration [default: the one of the session's last run, or `configured`].
    #[arg(long, value_name = "MODE")]
    mode: Option<Mode>,
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
    /// Without a terminal, wait for approvals given with `clawsmith approvals`.
    #[arg(long)]
    wait: bool,
    /// Talk with a gateway (`clawsmith serve`): the session lives there, and its agents answer.
    #[arg(
        long,
        value_name = "URL",
        conflicts_with_all = ["go_on", "model", "image", "mode", "workspace", "managed", "script", "user", "channel",
            "chat", "profile", "provider", "subagent", "request_allow"]
    )]
    connect: Option<String>,
    /// The environment variable that holds the gateway's API key [default: CLAWSMITH_API_KEY].
    #[arg(long, value_name = "NAME", requires = "connect")]
    key_env: Option<String>,
    #[command(flatten)]
    caller: CallerArgs,
}

impl Chat {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        if let Some(url) = &self.connect {
            return remote::run(&self, session, url);
        }
        let setup = self.caller.load(session)?;
        let workspace = match self.managed {
            true => PathBuf::from("/"),
            false => local_workspace(self.workspace.as_deref(), &session.around)?,
        };
        let mut caller = self.caller.caller(&setup, &workspace)?;
        let message = match self.is_interactive(session) {
            true => None,
            false => Some(self.message()?),
        };
        with_app(&setup, async |app| {
            if self.managed {
                caller.workspace = setup.managed_workspace(&caller)?;
            }
            let mut chosen = None;
            if self.caller.session.is_none() {
                caller.channel = "cli".into();
                let choice = self.choice(session, app, &caller, message.as_ref()).await?;
                let found = app.choose_session(&caller, &choice, message.is_none()).await?;
                caller.session = found.session.clone();
                setup.config().sandbox.sandboxing().apply(&mut caller);
                chosen = Some(found);
            }
            let talk = Talk::start(&self, app, caller, session.out.json).await?;
            match message {
                Some(message) => self.ask(session, app, talk, message).await,
                None => interactive::run(&self, session, app, talk, chosen).await,
            }
        })
    }

    /// Returns the chosen session.
    async fn choice(
        &self,
        session: &mut Session,
        app: &App,
        caller: &Caller,
        message: Option<&Message>,
    ) -> Result<SessionChoice, Failure> {
        Ok(match &self.resume {
            Some(name) if !name.is_empty() => SessionChoice::Named(name.clone()),
            Some(_) => interactive::choose(session, app, caller).await?,
            None if self.go_on => SessionChoice::Continue,
            None if self.new => SessionChoice::New,
            // A word that sees to a session means the latest one.
            None => match message {
                Some(message) if slash_commands::command_in(&message.text).is_none() => SessionChoice::New,
                _ => SessionChoice::Latest,
            },
        })
    }

    fn said(&self) -> Option<&String> {
        self.message.as_ref().or(self.words.as_ref())
    }

    /// Returns whether a person is at the terminal and gave no message.
    fn is_interactive(&self, session: &Session) -> bool {
        let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        self.said().is_none() && terminal && !session.out.json
    }

    /// Handling of calls that need an approval at a gateway.
    fn remote_approvals(&self) -> Approvals {
        if self.wait || can_ask() { Approvals::Watch } else { Approvals::Refuse }
    }

    /// Sends one message and shows its answer.
    async fn ask(&self, session: &mut Session, app: &App, mut talk: Talk, message: Message) -> Outcome {
        if let Some(command) = slash_commands::command_in(&message.text) {
            let done = slash_commands::by_itself(command, session, app, &talk).await;
            talk.end().await?;
            return done.map(|()| ExitCode::SUCCESS);
        }
        talk.view.introduce(&mut session.out, &talk.chat.answerer().await?)?;
        let mut parts = Vec::new();
        for path in &self.image {
            parts.push(attached(talk.chat.picture(path).await?));
        }
        parts.extend(talk.said(&message.text).await?);
        parts.extend(message.piped.as_deref().map(attached_files::piped));
        let asking = if self.wait || can_ask() { Asking::Watched } else { Asking::Impossible };
        let run = talk.chat.send(parts, asking).await?;
        let ended = talk.follow(&mut session.out, run, Some(STOPPING)).await;
        talk.view.tell_usage(&mut session.out, run).await?;
        talk.end().await?;
        Ok(ExitCode::from(ended?))
    }

    /// Returns the message, and the input piped in with it.
    fn message(&self) -> Result<Message, Failure> {
        let nothing = || Failure::usage("the message is empty").hint("clawsmith chat -m 'show me'");
        let (text, piped) = match self.said() {
            Some(text) if is_piped() => {
                (text.clone(), Some(whole_input()?).filter(|text| !text.trim().is_empty()))
            }
            Some(text) => (text.clone(), None),
            None if std::io::stdin().is_terminal() => return Err(nothing()),
            None => (whole_input()?, None),
        };
        if text.trim().is_empty() {
            return Err(nothing());
        }
        let bytes = text.len() + piped.as_ref().map_or(0, String::len);
        if bytes > MOST_BYTES {
            let failure =
                Failure::usage(format!("the message has {bytes} bytes; at most {MOST_BYTES} are allowed"));
            return Err(failure.hint("put it into a file of the workspace and ask about the file"));
        }
        Ok(Message { text, piped })
    }
}

/// Tells what is attached to a message.
fn attached(attachment: Attachment) -> Part {
    tell_styled(QUIET, format_args!("attached {}", attachment.told));
    attachment.part
}

/// A message, and the input piped in with it.
struct Message {
    text: String,
    piped: Option<String>,
}

fn whole_input() -> Result<String, Failure> {
    let bytes = read(std::io::stdin().lock())
        .map_err(|error| Failure::usage("standard input cannot be read").because(error))?;
    String::from_utf8(bytes).map_err(|_| Failure::usage("standard input is not UTF-8"))
}

/// Edits lines, with those of earlier chats in the history, and completes these names and files.
fn line_editor(
    setup: &Setup,
    session: &Session,
    names: Names,
    workspace: &Path,
) -> Result<LineEditor, Failure> {
    let editor = LineEditor::new(&setup.data_dir()?.join("chat-history"), session.out.shows_styles());
    let workspace = workspace.to_owned();
    editor.complete_with(move |line, at| claw_terminal::complete(line, at, &names, &workspace));
    Ok(editor)
}

/// Why no line could be read.
fn unread(error: std::io::Error) -> Failure {
    Failure::failed("the terminal cannot be read").because(error)
}

/// A chat of this process, and its view.
struct Talk {
    chat: LocalChat,
    view: View,
}

impl Talk {
    async fn start(chat: &Chat, app: &App, caller: Caller, json: bool) -> Result<Self, Failure> {
        let model = chat.model.as_deref().map(ModelChoice::parse);
        let mode = match chat.mode {
            Some(mode) => mode,
            None => kept_mode(app, &caller).await?,
        };
        let options = ChatOptions { script: chat.script.clone(), model, mode };
        let chat = LocalChat::start(app, caller, options).await?;
        chat.lost().iter().for_each(tell);
        let view = View::new(Box::new(chat.shown().await?), json);
        Ok(Self { chat, view })
    }

    /// Shows what is new after the chat moved to another session or model.
    async fn refresh(&mut self, ended: usize) -> Result<(), Failure> {
        tell_ended(ended);
        self.chat.lost().iter().for_each(tell);
        self.view = View::new(Box::new(self.chat.shown().await?), false);
        Ok(())
    }

    /// The parts of a message: its text, and the files that it names. Tells which are attached, and which names are none.
    async fn said(&self, text: &str) -> Result<Vec<Part>, Failure> {
        let named = self.chat.named_in(text).await?;
        let parts = std::iter::once(Part::text(text)).chain(named.into_iter().map(attached)).collect();
        for name in attached_files::missing_in(text, &self.chat.caller().workspace) {
            tell_styled(QUIET, format_args!("`@{}` is not a file here; sent as text", visible(name)));
        }
        Ok(parts)
    }

    /// Shows a run until it is over; returns the exit code. Ctrl-C stops it.
    async fn follow(&mut self, out: &mut Out, run: JobId, note: Option<&str>) -> Result<u8, Failure> {
        self.view.follow(out, run, note, async || self.chat.stop().await).await
    }

    /// Ends it once its runs have ended.
    async fn end(self) -> Result<(), Failure> {
        tell_ended(self.chat.end().await?);
        Ok(())
    }
}

/// Returns the mode of the session's last run, and tells it if it narrows.
async fn kept_mode(app: &App, caller: &Caller) -> Result<Mode, Failure> {
    let mode = app.mode_of_last_run(caller).await?;
    if mode != Mode::Configured {
        let line = format!("mode `{mode}`, as in this session's last run; `--mode` or `/mode` sets another");
        tell_styled(QUIET, line);
    }
    Ok(mode)
}

fn tell_ended(commands: usize) {
    if commands > 0 {
        tell(format_args!("ended {}", counted(commands, "background command")));
    }
}
