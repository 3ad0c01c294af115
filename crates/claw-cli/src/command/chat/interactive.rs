//! A chat at the terminal: messages, and commands that begin with `/`.

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;

use claw_core::counted::counted;
use claw_core::message::Part;
use claw_core::nearest::nearest;
use claw_core::store::{Role, Usage};
use claw_core::tool::Caller;
use claw_policy::explain::explain;
use claw_policy::pipeline::Subject;
use claw_registry::Asking;
use claw_terminal::style::QUIET;
use claw_terminal::{Cell, Entry, Heard, Names, Table, complain, tell, tell_styled, visible};
use clawsmith::app::mode::{self, Mode};
use clawsmith::app::session_list::{short_id, shortened};
use clawsmith::app::words::cost;
use clawsmith::app::{App, ChosenSession, ModelChoice, SessionChoice, SessionView};

use super::{Chat, MOST_BYTES, Talk, attached, kept_mode, line_editor, unread};
use crate::cli::Session;
use crate::command::{sessions, undo};
use crate::exit_code::{Failure, Outcome};

const HELP: &[(&str, &str)] = &[
    ("/tools", "what the agent may call now"),
    ("/policy [TOOL]", "why a tool is allowed or not"),
    ("/mode [MODE]", "how much is done without asking: plan, ask, edits, configured"),
    ("/undo", "take back what the last call of this session changed in files"),
    ("/model [PROVIDER[/MODEL]]", "who answers, or let another one answer from now on"),
    ("/new", "begin a new session"),
    ("/sessions", "sessions of this directory"),
    ("/resume SESSION", "go on with another session"),
    ("/rename TITLE", "give this session a title"),
    ("/cost", "what this session cost so far"),
    ("/image PATH", "show a picture with what you say next"),
    ("/help", "this"),
    ("/quit", "go (or Ctrl-D); the session is kept"),
];

/// Keys, for `/help`.
const KEYS: &str = "@path attaches a file · Tab completes · Alt-Enter or \\ at the end of a line: a new line · Ctrl-C stops the answer";

/// The number of last messages shown when a session resumes, and the characters of each.
const RECAP: usize = 2;
const RECAP_CHARACTERS: usize = 160;

/// A command of a chat, such as `/resume last`.
#[derive(Clone, Copy)]
pub(super) struct SlashCommand<'a> {
    /// The first word, without its slash.
    pub(super) word: &'a str,
    /// The rest of the line; may be empty.
    pub(super) rest: &'a str,
}

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
            complain("not said", format_args!("{} bytes are more than {MOST_BYTES}", text.len()));
            return Ok(());
        }
        let said = match self.talk.said(text).await {
            Ok(said) => said,
            Err(error) => {
                complain("not said", error);
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
                tell_styled(QUIET, format_args!("attached {}; it goes with what you say next", picture.told));
                self.pictures.push(picture.part);
            }
            ("new", _) => {
                self.move_to(&SessionChoice::New).await?;
                let id = short_id(&self.talk.chat.caller().session);
                session.out.line(format_args!("a new session: {id}"))?;
            }
            ("resume", "") => {
                return Err(Failure::usage("which session?").hint("/sessions lists them"));
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
                renamed
                    .map_err(|error| error.hint("say something first; a session begins with a message"))?;
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
                session.out.line(format_args!("{answerer} answers from now on"))?;
            }
            _ => match told(command, session, app, &self.talk).await {
                Some(done) => done?,
                None => return Err(no_word(command.word)),
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

/// Returns the error for an unknown command.
fn no_word(word: &str) -> Failure {
    let words: Vec<&str> = HELP.iter().filter_map(|(known, _)| known.split(' ').next()).collect();
    let failure = Failure::usage(format!("there is no `/{word}`"));
    match nearest(&format!("/{word}"), words.iter().copied()) {
        Some(near) => failure.hint(format!("did you mean `{near}`? /help lists all")),
        None => failure.hint("/help"),
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

/// Runs a command that needs no terminal; `None` if it is not such a command.
async fn told(
    SlashCommand { word, rest }: SlashCommand<'_>,
    session: &mut Session,
    app: &App,
    talk: &Talk,
) -> Option<Result<(), Failure>> {
    Some(match word {
        "help" | "?" => help_of(session, HELP),
        "tools" => tools(session, talk).await,
        "policy" => policy(session, talk, rest).await,
        "undo" => undo::last_of(session, app, &talk.chat.caller().session).await,
        "cost" => match talk.view.usage().await {
            Ok(usage) => cost_of(session, &usage),
            Err(error) => Err(error),
        },
        _ => return None,
    })
}

/// Returns the command that a message is, if it is one about the session.
pub(super) fn command_in(message: &str) -> Option<SlashCommand<'_>> {
    let line = message.trim().strip_prefix('/').filter(|line| !line.contains('\n'))?;
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let is_known = |(known, _): &(&str, &str)| known.split(' ').next() == Some(format!("/{word}").as_str());
    (HELP.iter().any(is_known) || word == "exit").then(|| SlashCommand { word, rest: rest.trim() })
}

/// Runs a command outside an interactive chat.
pub(super) async fn by_itself(
    command: SlashCommand<'_>,
    session: &mut Session,
    app: &App,
    talk: &Talk,
) -> Result<(), Failure> {
    let word = command.word;
    let only_there =
        || Failure::usage(format!("`/{word}` works in a session at a terminal only")).hint("clawsmith chat");
    // Programs are told of changes; the rest is for people.
    if session.out.json && word != "undo" {
        return Err(only_there());
    }
    told(command, session, app, talk).await.unwrap_or_else(|| Err(only_there()))
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

/// Shows the words of a chat, and its keys.
pub(super) fn help_of(session: &mut Session, words: &[(&str, &str)]) -> Result<(), Failure> {
    let mut table = Table::new(["", ""]);
    words.iter().for_each(|(word, about)| table.row([Cell::strong(word), Cell::new(about)]));
    session.out.table(&table)?;
    Ok(session.out.prose(KEYS)?)
}

async fn tools(session: &mut Session, talk: &Talk) -> Result<(), Failure> {
    let sessions = talk.chat.sessions();
    let offer = sessions.deployment().executor.offer(sessions.answered(talk.chat.caller()).await?).await;
    let mut table = Table::new(["tool", "effects", "what it does"]);
    for meta in offer.metas() {
        let about = meta.about.split(['.', '\n']).next().unwrap_or_default();
        table.row([Cell::strong(&meta.name), Cell::new(meta.effects), Cell::new(about)]);
    }
    Ok(session.out.table(&table)?)
}

async fn policy(session: &mut Session, talk: &Talk, tool: &str) -> Result<(), Failure> {
    let (sessions, caller) = (talk.chat.sessions(), talk.chat.caller());
    let executor = &sessions.deployment().executor;
    let (policy, tools) = (executor.policy(), executor.registry_for(caller).await.tool_set());
    let caller = sessions.answered(caller).await?;
    let subject = Subject::from(&caller);
    if !tool.is_empty() {
        return Ok(session.out.foreign(&explain(&policy, &tools, &subject, tool).to_string())?);
    }
    let decision = policy.decide(&tools, &subject);
    let mut table = Table::new(["tool", "allowed", "why"]);
    for (meta, verdict) in decision.iter() {
        table.row([Cell::strong(&meta.name), Cell::yes(verdict.allowed), Cell::new(&verdict.trace)]);
    }
    Ok(session.out.table(&table)?)
}

/// Tells what a session cost.
pub(super) fn cost_of(session: &mut Session, usage: &Usage) -> Result<(), Failure> {
    let tokens = usage.tokens;
    Ok(session.out.line(format_args!(
        "{} for {}: {} read, {} from the cache, {} written",
        cost(usage.cost),
        counted(usage.answers, "answer"),
        counted(tokens.input + tokens.cache_write, "token"),
        tokens.cache_read,
        tokens.output
    ))?)
}
