//! A chat at the terminal: messages, and commands that begin with `/`.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use claw_core::message::Part;
use claw_core::nearest::nearest;
use claw_core::port::Model;
use claw_core::store::{Role, Usage};
use claw_core::tool::Caller;
use claw_policy::explain::explain;
use claw_policy::pipeline::Subject;
use claw_registry::Asking;
use claw_terminal::style::QUIET;
use claw_terminal::{Cell, Heard, Table, complain, tell, tell_styled, visible};
use clawsmith::app::attach::{self, Attachment};
use clawsmith::app::completion::Names;
use clawsmith::app::mode::{self, Mode};
use clawsmith::app::session_list::{short_id, shortened};
use clawsmith::app::shown_session::Answerer;
use clawsmith::app::words::cost;
use clawsmith::app::{App, ChosenSession, ModelChoice, SessionChoice, SessionView, Sessions};

use super::{Chat, MOST_BYTES, Talk, heard, line_editor, picture, stop};
use crate::cli::Session;
use crate::command::{sessions, undo};
use crate::failure::{Failure, Outcome};

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

/// Chats until the person leaves.
pub(super) async fn run(
    chat: &Chat,
    session: &mut Session,
    app: &App,
    (caller, mut chosen): (Caller, Option<ChosenSession>),
) -> Outcome {
    let mut instead = chat.instead();
    let mut mode = chat.mode;
    let mut talk = Talk::start(chat, app, caller, instead.as_ref(), false).await?;
    welcome(session, app, &talk, chosen.as_ref()).await?;
    let mut lines = line_editor(app.setup(), session, names(&talk).await, &talk.caller.workspace)?;
    let mut pictures: Vec<Part> = Vec::new();
    for path in &chat.image {
        let model = talk.sessions.model(&talk.caller).await?;
        pictures.push(picture(&talk.caller.workspace.join(path), &*model)?.part);
    }
    loop {
        let prompt = match mode {
            Mode::Configured => talk.caller.agent.to_string(),
            mode => format!("{} ({mode})", talk.caller.agent),
        };
        lines.put(&talk.view.take_typed());
        let line = match heard(lines.next(prompt).await)? {
            Heard::Line(line) => line,
            Heard::Nothing => continue,
            Heard::End => break,
        };
        let line = line.trim();
        if matches!(line, "exit" | "quit") {
            tell("going; the session is kept (`/exit` and `/quit` do the same)");
            break;
        }
        let Some(command) = line.strip_prefix('/').filter(|_| !line.contains('\n')) else {
            if line.is_empty() {
                continue;
            }
            if line.len() > MOST_BYTES {
                complain("not said", format_args!("{} bytes are more than {MOST_BYTES}", line.len()));
                continue;
            }
            let attached = match attach::named_in(line, &talk.caller.workspace) {
                Ok(attached) => attached,
                Err(error) => {
                    complain("not said", error);
                    continue;
                }
            };
            let mut parts = std::mem::take(&mut pictures);
            parts.push(Part::text(line));
            for Attachment { part, told } in attached {
                tell_styled(QUIET, format_args!("attached {told}"));
                parts.push(part);
            }
            answer(session, &mut talk, parts).await?;
            continue;
        };
        let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let done: Result<(), Failure> = match (word, rest.trim()) {
            ("quit" | "exit" | "q", _) => break,
            ("image", path) => {
                let model = talk.sessions.model(&talk.caller).await?;
                picture(&talk.caller.workspace.join(path), &*model).map(|picture| {
                    tell_styled(
                        QUIET,
                        format_args!("attached {}; it goes with what you say next", picture.told),
                    );
                    pictures.push(picture.part);
                })
            }
            ("new", _) => match app.choose_session(&talk.caller, &SessionChoice::New, true).await {
                Ok(found) => {
                    talk = moved(chat, app, talk, (&found, instead.as_ref(), mode)).await?;
                    chosen = Some(found);
                    Ok(session.out.line(format_args!("a new session: {}", short_id(&talk.caller.session)))?)
                }
                Err(error) => Err(error.into()),
            },
            ("resume", "") => Err(Failure::usage("which session?").hint("/sessions lists them")),
            ("resume", name) => {
                let choice = SessionChoice::Named(name.to_owned());
                match app.choose_session(&talk.caller, &choice, true).await {
                    Ok(found) => {
                        talk = moved(chat, app, talk, (&found, instead.as_ref(), mode)).await?;
                        recap(session, app, &talk, found.earlier.as_ref()).await?;
                        chosen = Some(found);
                        Ok(())
                    }
                    Err(error) => Err(error.into()),
                }
            }
            ("rename", title) => match app.rename_session(&talk.caller, &talk.caller.session, title).await {
                Ok(()) => Ok(session.out.line("renamed")?),
                Err(error) => {
                    Err(Failure::from(error).hint("say something first; a session begins with a message"))
                }
            },
            ("sessions", _) => match app.session_list(&talk.caller, Some(&talk.caller.workspace)).await {
                Ok(list) => sessions::table(session, &list),
                Err(error) => Err(error.into()),
            },
            ("mode", "") => Mode::ALL.into_iter().try_for_each(|one| -> Result<(), Failure> {
                let sign = if one == mode { "*" } else { " " };
                Ok(session.out.line(format_args!("{sign} {:<11}{}", one.name(), one.about()))?)
            }),
            ("mode", wanted) => mode::parse(wanted).map_err(Failure::from).and_then(|wanted| {
                mode = wanted;
                talk.sessions.set_mode(wanted);
                Ok(session.out.line(format_args!("{wanted}: {}", wanted.about()))?)
            }),
            ("model", "") => {
                let model = talk.sessions.model(&talk.caller).await?;
                Ok(session.out.line(name(&*model))?)
            }
            ("model", wanted) => {
                let other = ModelChoice::parse(wanted);
                match talk.sessions.model_named(&talk.caller, &other).await {
                    Ok(model) => {
                        let caller = talk.caller.clone();
                        talk.end().await?;
                        instead = Some(other);
                        talk = Talk::start(chat, app, caller, instead.as_ref(), false).await?;
                        talk.sessions.set_mode(mode);
                        Ok(session.out.line(format_args!("{} answers from now on", name(&*model)))?)
                    }
                    Err(error) => Err(error.into()),
                }
            }
            words => match told(words, session, app, &talk).await {
                Some(done) => done,
                None => Err(no_word(word)),
            },
        };
        if let Err(failure) = done {
            complain("error", failure);
        }
        session.out.flush()?;
    }
    drop(chosen);
    talk.end().await?;
    Ok(ExitCode::SUCCESS)
}

/// Continues the chat in another session.
async fn moved(
    chat: &Chat,
    app: &App,
    talk: Talk,
    (to, instead, mode): (&ChosenSession, Option<&ModelChoice>, Mode),
) -> Result<Talk, Failure> {
    let mut caller = talk.caller.clone();
    caller.session = to.session.clone();
    if let Some(workspace) = to.earlier.as_ref().and_then(|earlier| earlier.workspace.clone()) {
        caller.workspace = workspace;
    }
    app.setup().config().sandbox.sandboxing().apply(&mut caller);
    talk.end().await?;
    let talk = Talk::start(chat, app, caller, instead, false).await?;
    talk.sessions.set_mode(mode);
    Ok(talk)
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
    let offer = talk.sessions.deployment().executor.offer(talk.caller.clone()).await;
    let word = |known: &str| known.split(' ').next().unwrap_or_default().to_owned();
    Names {
        commands: HELP.iter().map(|(known, about)| (word(known), (*about).to_owned())).collect(),
        tools: offer.metas().iter().map(|meta| meta.name.to_string()).collect(),
        modes: Mode::ALL.map(|mode| mode.name().to_owned()).to_vec(),
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
    match heard(lines.next("Session id".to_owned()).await)? {
        Heard::Line(line) if line.trim().is_empty() => Ok(SessionChoice::Continue),
        Heard::Line(line) => Ok(SessionChoice::Named(line.trim().to_owned())),
        Heard::Nothing | Heard::End => Err(Failure::usage("no session was chosen")),
    }
}

/// Runs a command that needs no terminal; `None` if it is not such a command.
async fn told(
    (word, rest): (&str, &str),
    session: &mut Session,
    app: &App,
    talk: &Talk,
) -> Option<Result<(), Failure>> {
    Some(match word {
        "help" | "?" => help_of(session, HELP),
        "tools" => tools(session, talk).await,
        "policy" => policy(session, talk, rest).await,
        "undo" => undo::last_of(session, app, &talk.caller.session).await,
        "cost" => match talk.view.usage().await {
            Ok(usage) => cost_of(session, &usage),
            Err(error) => Err(error),
        },
        _ => return None,
    })
}

/// Returns the command that a message is, if it is one about the session.
pub(super) fn word_in(message: &str) -> Option<(&str, &str)> {
    let line = message.trim().strip_prefix('/').filter(|line| !line.contains('\n'))?;
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let is_known = |(known, _): &(&str, &str)| known.split(' ').next() == Some(format!("/{word}").as_str());
    (HELP.iter().any(is_known) || word == "exit").then(|| (word, rest.trim()))
}

/// Runs a command outside an interactive chat.
pub(super) async fn by_itself(
    words: (&str, &str),
    session: &mut Session,
    app: &App,
    talk: &Talk,
) -> Result<(), Failure> {
    let word = words.0;
    let only_there =
        || Failure::usage(format!("`/{word}` works in a session at a terminal only")).hint("clawsmith chat");
    // Programs are told of changes; the rest is for people.
    if session.out.json && word != "undo" {
        return Err(only_there());
    }
    told(words, session, app, talk).await.unwrap_or_else(|| Err(only_there()))
}

async fn welcome(
    session: &mut Session,
    app: &App,
    talk: &Talk,
    chosen: Option<&ChosenSession>,
) -> Result<(), Failure> {
    let model = talk.sessions.model(&talk.caller).await?;
    talk.view.introduce(&mut session.out, &Answerer::of(&*model))?;
    let (agent, workspace) = (&talk.caller.agent, talk.caller.workspace.display());
    let line = format!("Agent {agent} · {} · {workspace} · /help for commands", name(&*model));
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
        let line = format!(
            "Session {} resumed: {about} · {} messages, {last} · /new starts another",
            view.id, view.messages
        );
        session.out.styled(QUIET, &line)?;
        for said in app.recap(&talk.caller, &view.session, RECAP).await? {
            let who = if said.role == Role::User { "you" } else { "agent" };
            let text = shortened(&said.text, RECAP_CHARACTERS);
            session.out.styled(QUIET, &format!("  {who:<6} {}", visible(&text)))?;
        }
    }
    Ok(session.out.flush()?)
}

/// Sends a message and shows the answer. Ctrl-C ends the answer, and not the program.
async fn answer(session: &mut Session, talk: &mut Talk, parts: Vec<Part>) -> Result<(), Failure> {
    let run = talk.sessions.send(&talk.caller, parts, Asking::Watched).await?;
    let ended = tokio::select! {
        ended = talk.view.follow(&mut session.out, run) => ended,
        never = interrupted(&talk.sessions, &talk.caller) => match never {},
    };
    if ended? == 130 {
        tell("Stopped. The partial answer is saved.");
    }
    Ok(session.out.flush()?)
}

async fn interrupted(sessions: &Sessions, caller: &Caller) -> std::convert::Infallible {
    loop {
        if tokio::signal::ctrl_c().await.is_err() {
            return std::future::pending().await;
        }
        stop(sessions, caller).await;
    }
}

/// Shows the words of a chat, and its keys.
pub(super) fn help_of(session: &mut Session, words: &[(&str, &str)]) -> Result<(), Failure> {
    let mut table = Table::new(["", ""]);
    for (word, about) in words {
        table.row([Cell::strong(word), Cell::new(about)]);
    }
    session.out.table(&table)?;
    Ok(session.out.prose(KEYS)?)
}

async fn tools(session: &mut Session, talk: &Talk) -> Result<(), Failure> {
    let offer = talk.sessions.deployment().executor.offer(talk.sessions.answered(&talk.caller).await?).await;
    let mut table = Table::new(["tool", "effects", "what it does"]);
    for meta in offer.metas() {
        let about = meta.about.split(['.', '\n']).next().unwrap_or_default();
        table.row([Cell::strong(&meta.name), Cell::new(meta.effects), Cell::new(about)]);
    }
    Ok(session.out.table(&table)?)
}

async fn policy(session: &mut Session, talk: &Talk, tool: &str) -> Result<(), Failure> {
    let executor = &talk.sessions.deployment().executor;
    let (policy, tools) = (executor.policy(), executor.registry_for(&talk.caller).await.tool_set());
    let caller = talk.sessions.answered(&talk.caller).await?;
    let subject = Subject::from(&caller);
    if !tool.is_empty() {
        return Ok(session.out.foreign(&explain(&policy, &tools, &subject, tool).to_string())?);
    }
    let decision = policy.decide(&tools, &subject);
    let mut table = Table::new(["tool", "allowed", "why"]);
    for (meta, verdict) in decision.iter() {
        let allowed = if verdict.allowed { Cell::good("yes") } else { Cell::bad("no") };
        table.row([Cell::strong(&meta.name), allowed, Cell::new(&verdict.trace)]);
    }
    Ok(session.out.table(&table)?)
}

/// Tells what a session cost.
pub(super) fn cost_of(session: &mut Session, usage: &Usage) -> Result<(), Failure> {
    let tokens = usage.tokens;
    Ok(session.out.line(format_args!(
        "{} for {} answers: {} tokens read, {} from the cache, {} written",
        cost(usage.cost),
        usage.answers,
        tokens.input + tokens.cache_write,
        tokens.cache_read,
        tokens.output
    ))?)
}

fn name(model: &dyn Model) -> String {
    let card = model.card();
    format!("{}/{}", card.provider, card.model)
}
