//! `clawsmith chat`: talking to an agent, and watching its answers and calls.
//!
//! The message goes into the queue like every other, in a lane of its session: this process takes it from
//! there, and if it dies, the next chat in the session resumes where it stopped. The display reads the
//! session's log, as any other client would.

mod interactive;
mod remote;
mod view;

use std::convert::Infallible;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use claw_core::message::Part;
use claw_core::port::Model;
use claw_core::store::Process;
use claw_core::tool::Caller;
use claw_gateway::client::Approvals;
use claw_registry::Asking;
use claw_terminal::{Completion, Heard, LineEditor, complain, tell, visible};
use clawsmith::app::attach::{self, Attachment};
use clawsmith::app::completion::{self, Names};
use clawsmith::app::mode::Mode;
use clawsmith::app::shown_session::{Answerer, LocalSession};
use clawsmith::app::{App, ModelChoice, SessionChoice, Sessions, SessionsOptions, Setup, private_lane};
use rustix::fs::FileType;

use self::view::View;
use super::tools::{read, workspace};
use crate::caller::CallerArgs;
use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::with_app;

/// The longest message, in bytes.
const MOST_BYTES: usize = 1024 * 1024;

/// A message to an agent, or an interactive chat.
#[derive(Debug, Args)]
pub(crate) struct Chat {
    /// The message [default: standard input; at a terminal, an interactive chat].
    #[arg(value_name = "MESSAGE", conflicts_with = "message")]
    words: Option<String>,
    /// The message, as an option.
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Go on with the latest session of the directory.
    #[arg(long = "continue", conflicts_with_all = ["resume", "new", "session"])]
    go_on: bool,
    /// Go on with this session, by its id, title or key [default: chosen from a list].
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
    /// The actions allowed without asking: `plan` (read only), `ask` (before each write), `edits` (commands
    /// only), `configured`.
    #[arg(long, value_name = "MODE", default_value_t = Mode::Configured)]
    mode: Mode,
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
    /// If an approval is needed and nobody sits at this terminal, wait for one from another (`clawsmith
    /// approvals`).
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
            false => workspace(self.workspace.as_deref(), &session.around)?,
        };
        let mut caller = self.caller.caller(setup.config(), &session.around, &workspace)?;
        let message = match self.is_interactive(session) {
            true => None,
            false => Some(self.message()?),
        };
        with_app(&setup, async |app| {
            if self.managed {
                caller.workspace = setup.managed_workspace(&caller)?;
            }
            let mut chosen = None;
            if !self.caller.names_session() {
                caller.channel = "cli".into();
                let choice = self.choice(session, app, &caller, message.as_ref()).await?;
                let found = app.choose_session(&caller, &choice, message.is_none()).await?;
                caller.session = found.session.clone();
                setup.config().sandbox.sandboxing().apply(&mut caller);
                chosen = Some(found);
            }
            match message {
                Some(message) => self.ask(session, app, (caller, message)).await,
                None => interactive::run(&self, session, app, (caller, chosen)).await,
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
                Some(message) if interactive::word_in(&message.text).is_none() => SessionChoice::New,
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
        match self.wait || claw_terminal::can_ask() {
            true => Approvals::Watch,
            false => Approvals::Refuse,
        }
    }

    fn instead(&self) -> Option<ModelChoice> {
        self.model.as_deref().map(ModelChoice::parse)
    }

    /// Sends one message and shows its answer.
    async fn ask(&self, session: &mut Session, app: &App, (caller, message): (Caller, Message)) -> Outcome {
        let mut talk = Talk::start(self, app, caller, self.instead().as_ref(), session.out.json).await?;
        if let Some(words) = interactive::word_in(&message.text) {
            let done = interactive::by_itself(words, session, app, &talk).await;
            talk.end().await?;
            return done.map(|()| ExitCode::SUCCESS);
        }
        let model = talk.sessions.model(&talk.caller).await?;
        talk.view.introduce(&mut session.out, &Answerer::of(&*model))?;
        let mut parts = Vec::new();
        for path in &self.image {
            parts.push(picture(&talk.caller.workspace.join(path), &*model)?.part);
        }
        parts.push(Part::text(&message.text));
        let named = attach::named_in(&message.text, &talk.caller.workspace)?;
        parts.extend(named.into_iter().map(|attached| attached.part));
        parts.extend(message.piped.as_deref().map(attach::piped));
        let asking = match self.wait || claw_terminal::can_ask() {
            true => Asking::Watched,
            false => Asking::Impossible,
        };
        let run = talk.sessions.send(&talk.caller, parts, asking).await?;
        let ended = tokio::select! {
            ended = talk.view.follow(&mut session.out, run) => ended,
            never = interrupted(&talk.sessions, &talk.caller) => match never {},
        };
        talk.view.tell_usage(&mut session.out, run).await?;
        talk.end().await?;
        Ok(ExitCode::from(ended?))
    }

    /// Returns the message, and the input piped in with it.
    fn message(&self) -> Result<Message, Failure> {
        let nothing = || Failure::usage("the message is empty").hint("clawsmith chat -m 'show me'");
        let (text, piped) = match self.said() {
            Some(text) => (text.clone(), piped()?),
            None if std::io::stdin().is_terminal() => return Err(nothing()),
            None => (whole_input()?, None),
        };
        if text.trim().is_empty() {
            return Err(nothing());
        }
        let bytes = text.len() + piped.as_ref().map_or(0, String::len);
        if bytes > MOST_BYTES {
            let failure = Failure::usage(format!("a message of {bytes} bytes is longer than {MOST_BYTES}"));
            return Err(failure.hint("put it into a file of the workspace and ask about the file"));
        }
        Ok(Message { text, piped })
    }
}

/// A message, and the input piped in with it.
struct Message {
    text: String,
    piped: Option<String>,
}

/// Attaches a picture, if the model accepts any.
fn picture(path: &Path, model: &dyn Model) -> Result<Attachment, Failure> {
    let card = model.card();
    if !card.images {
        let message = format!("`{}/{}` takes no images", card.provider, card.model);
        return Err(Failure::usage(message).hint(format!(
            "choose another model with `--model` or `/model`; if it does take images, set \
             `models.providers.{}.models.\"{}\".images = true`",
            card.provider, card.model
        )));
    }
    Ok(attach::picture(path)?)
}

/// Reads the input piped in beside a message; `None` if there is none. An input that stays silent is not
/// waited for.
fn piped() -> Result<Option<String>, Failure> {
    let stdin = std::io::stdin();
    let kind = rustix::fs::fstat(&stdin).map(|found| FileType::from_raw_mode(found.st_mode));
    if !matches!(kind, Ok(FileType::Fifo | FileType::RegularFile)) {
        return Ok(None);
    }
    let wait = rustix::event::Timespec { tv_sec: 3, tv_nsec: 0 };
    let mut waiting = [rustix::event::PollFd::new(&stdin, rustix::event::PollFlags::IN)];
    if !matches!(rustix::event::poll(&mut waiting, Some(&wait)), Ok(1..)) {
        tell("nothing came by standard input within 3 s; going on without it");
        return Ok(None);
    }
    Ok(Some(whole_input()?).filter(|text| !text.trim().is_empty()))
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
    editor.complete_with(move |line, at| {
        let found = completion::complete(line, at, &names, &workspace).into_iter();
        found
            .map(|completion::Completion { start, value, about, is_whole }| Completion {
                start,
                value,
                about,
                is_whole,
            })
            .collect()
    });
    Ok(editor)
}

/// A line that was read, or why there is none.
fn heard(read: std::io::Result<Heard>) -> Result<Heard, Failure> {
    read.map_err(|error| Failure::failed("the terminal cannot be read").because(error))
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
        json: bool,
    ) -> Result<Self, Failure> {
        let options = SessionsOptions {
            lanes: vec![private_lane(&caller.session)],
            script: chat.script.clone(),
            instead: instead.map(|choice| (caller.agent.clone(), choice.clone())),
            owner_answers: true,
            ..SessionsOptions::default()
        };
        let sessions = app.sessions(options).await?;
        sessions.set_mode(chat.mode);
        tell_lost(sessions.lost(), &caller);
        let shown = LocalSession::new(&sessions, app, &caller).await?;
        let view = View::new(Box::new(shown), json);
        Ok(Self { sessions, caller, view })
    }

    /// Ends it once its runs have ended.
    async fn end(self) -> Result<(), Failure> {
        match self.sessions.end(None).await? {
            0 => {}
            1 => tell("1 background command was ended"),
            count => tell(format_args!("{count} background commands were ended")),
        }
        Ok(())
    }
}

/// Lists the background commands of programs that died.
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
        tell(format_args!("{} background commands of other sessions were lost as well", elsewhere.len()));
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
