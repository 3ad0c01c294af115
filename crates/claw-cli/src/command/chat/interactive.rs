//! A chat at the terminal: messages, and commands that begin with `/`.

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;

use claw_core::counted::counted;
use claw_core::message::Part;
use claw_core::store::Role;
use claw_core::tool::Caller;
use claw_registry::Asking;
use claw_terminal::style::QUIET;
use claw_terminal::{Entry, Heard, Names, complain, tell, tell_styled, visible};
use clawsmith::app::mode::{self, Mode};
use clawsmith::app::session_list::{short_id, shortened};
use clawsmith::app::{App, ChosenSession, ModelChoice, SessionChoice, SessionView};

use super::slash_commands::{HELP, SlashCommand, told, unknown_command};
use super::{Chat, MOST_BYTES, Talk, attached, kept_mode, line_editor, unread};
use crate::cli::Session;
use crate::command::sessions;
use crate::exit_code::{Failure, Outcome};

/// The number of last messages shown when a session resumes, and the characters of each.
const RECAP: usize = 2;
const RECAP_CHARACTERS: usize = 160;

/// Chats until the person leaves.
pub(super) async fn run(
    chat: &Chat,
    session: &mut Session,
    app: &App,
    talk: Talk,
    chosen: Option<ChosenSession>,
) -> Outcome {
    welcome(session, app, &talk, chosen.as_ref()).await?;
    let names = names(&talk).await;
    let mut lines = line_editor(app.setup(), session, names, &talk.chat.caller().workspace)?;
    let mut chatting = Chatting { app, talk, chosen, pictures: Vec::new() };
    for path in &chat.image {
        chatting.pictures.push(attached(chatting.talk.chat.picture(path).await?));
    }
    loop {
        let agent = &chatting.talk.chat.caller().agent;
        let prompt = match chatting.talk.chat.mode() {
            Mode::Configured => agent.to_string(),
            mode => format!("{agent} ({mode})"),
        };
        lines.put(&chatting.talk.view.take_typed());
        match lines.entry(&prompt).await.map_err(unread)? {
            Entry::End => break,
            Entry::Message(text) => chatting.say(session, &text).await?,
            Entry::Command { word, rest } => {
                if let Err(failure) = chatting.obey(session, SlashCommand { word: &word, rest: &rest }).await
                {
                    complain("error", failure);
                }
            }
        }
        session.out.flush()?;
    }
    drop(chatting.chosen);
    chatting.talk.end().await?;
    Ok(ExitCode::SUCCESS)
}

/// An interactive chat.
struct Chatting<'a> {
    app: &'a App,
    talk: Talk,
    /// The session while this terminal has it.
    chosen: Option<ChosenSession>,
    /// Pictures that go with the next message.
    pictures: Vec<Part>,
}

impl Chatting<'_> {
    /// Sends a message and shows the answer. Ctrl-C ends the answer, and not the program.
    async fn say(&mut self, session: &mut Session, text: &str) -> Result<(), Failure> {
        if text.len() > MOST_BYTES {
            complain(
                "not sent",
                format_args!("the message has {} bytes; at most {MOST_BYTES} are allowed", text.len()),
            );
            return Ok(());
        }
        let said = match self.talk.said(text).await {
            Ok(said) => said,
            Err(error) => {
                complain("not sent", error);
                return Ok(());
            }
        };
        let mut parts = std::mem::take(&mut self.pictures);
        parts.extend(said);
        let run = self.talk.chat.send(parts, Asking::Watched).await?;
        if self.talk.follow(&mut session.out, run, None).await? == 130 {
            tell("Stopped. The partial answer is saved.");
        }
        Ok(())
    }

    /// Runs a command.
    async fn obey(&mut self, session: &mut Session, command: SlashCommand<'_>) -> Result<(), Failure> {
        let (app, chat) = (self.app, &mut self.talk.chat);
        match (command.word, command.rest) {
            ("image", path) => {
                let picture = chat.picture(Path::new(path)).await?;
                tell_styled(
                    QUIET,
                    format_args!("attached {}; it is sent with your next message", picture.told),
                );
                self.pictures.push(picture.part);
            }
            ("new", _) => {
                self.move_to(&SessionChoice::New).await?;
                let id = short_id(&self.talk.chat.caller().session);
                session.out.line(format_args!("a new session: {id}"))?;
            }
            ("resume", "") => {
                return Err(Failure::usage("which session?").hint("/sessions lists all sessions"));
            }
            ("resume", name) => {
                self.move_to(&SessionChoice::Named(name.to_owned())).await?;
                if self.talk.chat.mode() == Mode::Configured {
                    let mode = kept_mode(app, self.talk.chat.caller()).await?;
                    self.talk.chat.set_mode(mode);
                }
                let earlier = self.chosen.as_ref().and_then(|chosen| chosen.earlier.as_ref());
                recap(session, app, &self.talk, earlier).await?;
            }
            ("rename", title) => {
                let renamed = app.rename_session(chat.caller(), &chat.caller().session, title).await;
                renamed.map_err(|error| error.hint("send a message first: it creates the session"))?;
                session.out.line("renamed")?;
            }
            ("sessions", _) => {
                let list = app.session_list(chat.caller(), Some(&chat.caller().workspace)).await?;
                sessions::table(session, &list)?;
            }
            ("mode", "") => {
                for one in Mode::ALL {
                    let sign = if one == chat.mode() { "*" } else { " " };
                    session.out.line(format_args!("{sign} {:<11}{}", one.name(), one.about()))?;
                }
            }
            ("mode", wanted) => {
                let wanted = mode::parse(wanted)?;
                chat.set_mode(wanted);
                session.out.line(format_args!("{wanted}: {}", wanted.about()))?;
            }
            ("model", "") => session.out.line(chat.answerer().await?)?,
            ("model", wanted) => {
                let ended = chat.use_model(ModelChoice::parse(wanted)).await?;
                let answerer = chat.answerer().await?;
                self.talk.refresh(ended).await?;
                session.out.line(format_args!("the model is now {answerer}"))?;
            }
            _ => match told(command, session, app, &self.talk).await {
                Some(done) => done?,
                None => return Err(unknown_command(command.word)),
            },
        }
        Ok(())
    }

    /// Continues the chat in another session.
    async fn move_to(&mut self, choice: &SessionChoice) -> Result<(), Failure> {
        let found = self.app.choose_session(self.talk.chat.caller(), choice, true).await?;
        let ended = self.talk.chat.move_to(&found).await?;
        self.chosen = Some(found);
        self.talk.refresh(ended).await
    }
}

/// Returns the names that Tab completes.
async fn names(talk: &Talk) -> Names {
    let offer = talk.chat.sessions().deployment().executor.offer(talk.chat.caller().clone()).await;
    Names {
        tools: offer.metas().iter().map(|meta| meta.name.to_string()).collect(),
        modes: Mode::ALL.map(|mode| mode.name().to_owned()).to_vec(),
        ..Names::of_commands(HELP)
    }
}

/// Lets the person choose a session from a list.
pub(super) async fn choose(
    session: &mut Session,
    app: &App,
    caller: &Caller,
) -> Result<SessionChoice, Failure> {
    let list = app.session_list(caller, Some(&caller.workspace)).await?;
    let can_choose = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if list.is_empty() || !can_choose {
        let what =
            if list.is_empty() { "there is no session in this directory yet" } else { "which session?" };
        return Err(Failure::usage(what).hint("clawsmith sessions list"));
    }
    sessions::table(session, &list)?;
    session.out.flush()?;
    let mut lines = line_editor(app.setup(), session, Names::default(), &caller.workspace)?;
    match lines.next("Session id".to_owned()).await.map_err(unread)? {
        Heard::Line(line) if line.trim().is_empty() => Ok(SessionChoice::Continue),
        Heard::Line(line) => Ok(SessionChoice::Named(line.trim().to_owned())),
        Heard::Nothing | Heard::End => Err(Failure::usage("no session was chosen")),
    }
}

async fn welcome(
    session: &mut Session,
    app: &App,
    talk: &Talk,
    chosen: Option<&ChosenSession>,
) -> Result<(), Failure> {
    let answerer = talk.chat.answerer().await?;
    talk.view.introduce(&mut session.out, &answerer)?;
    let Caller { agent, workspace, .. } = talk.chat.caller();
    let line = format!("Agent {agent} · {answerer} · {} · /help for commands", workspace.display());
    session.out.styled(QUIET, &line)?;
    recap(session, app, talk, chosen.and_then(|chosen| chosen.earlier.as_ref())).await
}

/// Prints which session resumes, and its last messages.
async fn recap(
    session: &mut Session,
    app: &App,
    talk: &Talk,
    earlier: Option<&SessionView>,
) -> Result<(), Failure> {
    if let Some(view) = earlier {
        let (about, last) = (visible(&view.about), sessions::ago(view.last));
        let (id, messages) = (&view.id, counted(view.messages, "message"));
        let line = format!("Session {id} resumed: {about} · {messages}, {last} · /new starts another");
        session.out.styled(QUIET, &line)?;
        for said in app.recap(talk.chat.caller(), &view.session, RECAP).await? {
            let who = if said.role == Role::User { "you" } else { "agent" };
            let text = shortened(&said.text, RECAP_CHARACTERS);
            session.out.styled(QUIET, &format!("  {who:<6} {}", visible(&text)))?;
        }
    }
    Ok(session.out.flush()?)
}
