//! A conversation at the terminal: lines to say, and words that begin with `/` to see to it.

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;

use claw_core::MessageId;
use claw_core::image::{self, Image};
use claw_core::message::Part;
use claw_core::port::Model;
use claw_core::store::UsageFilter;
use claw_core::tool::Caller;
use claw_policy::explain::explain;
use claw_policy::pipeline::Subject;
use claw_registry::Asking;
use clawsmith::app::{App, ModelChoice, Sessions, workspace_session};
use reedline::{
    FileBackedHistory, Prompt, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus, Reedline,
    Signal,
};

use super::{Chat, MOST_BYTES, Talk, stop};
use crate::cli::Session;
use crate::command::undo;
use crate::failure::{Failure, Outcome};
use crate::output::{Cell, Table, complain, tell};

/// How many lines are remembered.
const LINES: usize = 1000;
/// No picture is larger.
const MOST_PICTURE: u64 = 10 * 1024 * 1024;

const HELP: &[(&str, &str)] = &[
    ("/tools", "what the agent may call now"),
    ("/policy [TOOL]", "why a tool is allowed or not"),
    ("/undo", "take back what the last call of this conversation changed in files"),
    ("/model [PROVIDER[/MODEL]]", "who answers, or let another one answer from now on"),
    ("/new", "begin a new conversation"),
    ("/cost", "what this conversation cost so far"),
    ("/image PATH", "show a picture with what you say next"),
    ("/help", "this"),
    ("/quit", "go (or Ctrl-D); the conversation is kept"),
];

/// Talks until the person goes.
pub(super) async fn run(chat: &Chat, session: &mut Session, app: &App, caller: Caller) -> Outcome {
    let mut instead: Option<ModelChoice> = None;
    let mut talk = Talk::start(chat, app, caller, None).await?;
    welcome(session, &talk).await?;
    let mut lines = Lines::new(app, session)?;
    let mut pictures = Vec::new();
    loop {
        let line = match lines.next(&talk.caller).await? {
            Heard::Line(line) => line,
            Heard::Nothing => continue,
            Heard::End => break,
        };
        let line = line.trim();
        if matches!(line, "exit" | "quit") {
            tell("going; the conversation is kept (`/exit` and `/quit` do the same)");
            break;
        }
        let Some(command) = line.strip_prefix('/') else {
            if line.is_empty() {
                continue;
            }
            if line.len() > MOST_BYTES {
                complain("not said", format_args!("{} bytes are more than {MOST_BYTES}", line.len()));
                continue;
            }
            let mut parts = std::mem::take(&mut pictures);
            parts.push(Part::text(line));
            answer(session, &mut talk, parts).await?;
            continue;
        };
        let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let done = match (word, rest.trim()) {
            ("quit" | "exit" | "q", _) => break,
            ("image", path) => picture(&talk.caller.workspace, path).map(|picture| pictures.push(picture)),
            ("new", _) => {
                let mut caller = talk.caller.clone();
                caller.session = workspace_session(&caller, Some(&MessageId::new().to_string()[24..]))?;
                app.setup().config().sandbox.sandboxing().apply(&mut caller);
                talk.end().await?;
                talk = Talk::start(chat, app, caller, instead.as_ref()).await?;
                session.out.line(format_args!("a new conversation: {}", talk.caller.session))
            }
            ("model", "") => {
                let model = talk.sessions.model(&talk.caller).await?;
                session.out.line(name(&*model))
            }
            ("model", wanted) => {
                let other = ModelChoice::parse(wanted);
                match talk.sessions.model_named(&talk.caller, &other).await {
                    Ok(model) => {
                        let caller = talk.caller.clone();
                        talk.end().await?;
                        instead = Some(other);
                        talk = Talk::start(chat, app, caller, instead.as_ref()).await?;
                        session.out.line(format_args!("{} answers from now on", name(&*model)))
                    }
                    Err(error) => Err(error.into()),
                }
            }
            words => match told(words, session, app, &talk).await {
                Some(done) => done,
                None => Err(Failure::usage(format!("there is no `/{word}`")).hint("/help")),
            },
        };
        if let Err(failure) = done {
            complain("error", failure);
        }
        session.out.flush()?;
    }
    talk.end().await?;
    Ok(ExitCode::SUCCESS)
}

/// Does what a word says that needs no terminal; `None` where it is no such word.
async fn told(
    (word, rest): (&str, &str),
    session: &mut Session,
    app: &App,
    talk: &Talk,
) -> Option<Result<(), Failure>> {
    Some(match word {
        "help" | "?" => help(session),
        "tools" => tools(session, talk).await,
        "policy" => policy(session, talk, rest).await,
        "undo" => undo::last_of(session, app, &talk.caller.session).await,
        "cost" => cost(session, talk).await,
        _ => return None,
    })
}

/// The word that a message is, where it is one of those that see to the conversation.
pub(super) fn word_in(message: &str) -> Option<(&str, &str)> {
    let line = message.trim().strip_prefix('/').filter(|line| !line.contains('\n'))?;
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let is_known = |(known, _): &(&str, &str)| known.split(' ').next() == Some(format!("/{word}").as_str());
    (HELP.iter().any(is_known) || word == "exit").then(|| (word, rest.trim()))
}

/// Does what a word says, said where no conversation is held.
pub(super) async fn by_itself(
    words: (&str, &str),
    session: &mut Session,
    app: &App,
    talk: &Talk,
) -> Result<(), Failure> {
    let word = words.0;
    let only_there = || {
        Failure::usage(format!("`/{word}` works in a conversation at a terminal only")).hint("clawsmith chat")
    };
    // Programs are told of changes; the rest is for people.
    if session.out.json && word != "undo" {
        return Err(only_there());
    }
    told(words, session, app, talk).await.unwrap_or_else(|| Err(only_there()))
}

async fn welcome(session: &mut Session, talk: &Talk) -> Result<(), Failure> {
    let model = talk.sessions.model(&talk.caller).await?;
    talk.view.introduce(&mut session.out, &*model)?;
    let (agent, workspace) = (&talk.caller.agent, talk.caller.workspace.display());
    let line = format!("{agent} with {} in {workspace}; /help says what there is", name(&*model));
    session.out.styled(crate::output::style::QUIET, &line)?;
    session.out.flush()
}

/// Says something and shows the answer. Ctrl-C ends the answer, and not the program.
async fn answer(session: &mut Session, talk: &mut Talk, parts: Vec<Part>) -> Result<(), Failure> {
    let run = talk.sessions.send(&talk.caller, parts, Asking::Watched).await?;
    let ended = tokio::select! {
        ended = talk.view.follow(&mut session.out, run) => ended,
        never = interrupted(&talk.sessions, &talk.caller) => match never {},
    };
    if ended? == 130 {
        tell("stopped; what was said is kept");
    }
    session.out.flush()
}

async fn interrupted(sessions: &Sessions, caller: &Caller) -> std::convert::Infallible {
    loop {
        if tokio::signal::ctrl_c().await.is_err() {
            return std::future::pending().await;
        }
        stop(sessions, caller).await;
    }
}

fn help(session: &mut Session) -> Result<(), Failure> {
    let mut table = Table::new(["", ""]);
    for (word, about) in HELP {
        table.row([Cell::strong(word), Cell::new(about)]);
    }
    session.out.table(&table)
}

async fn tools(session: &mut Session, talk: &Talk) -> Result<(), Failure> {
    let offer = talk.sessions.deployment().executor.offer(talk.sessions.answered(&talk.caller).await?).await;
    let mut table = Table::new(["tool", "effects", "what it does"]);
    for meta in offer.metas() {
        let about = meta.about.split(['.', '\n']).next().unwrap_or_default();
        table.row([Cell::strong(&meta.name), Cell::new(meta.effects), Cell::new(about)]);
    }
    session.out.table(&table)
}

async fn policy(session: &mut Session, talk: &Talk, tool: &str) -> Result<(), Failure> {
    let executor = &talk.sessions.deployment().executor;
    let (policy, tools) = (executor.policy(), executor.registry_for(&talk.caller).await.tool_set());
    let caller = talk.sessions.answered(&talk.caller).await?;
    let subject = Subject::from(&caller);
    if !tool.is_empty() {
        return session.out.foreign(&explain(&policy, &tools, &subject, tool).to_string());
    }
    let decision = policy.decide(&tools, &subject);
    let mut table = Table::new(["tool", "allowed", "why"]);
    for (meta, verdict) in decision.iter() {
        let allowed = if verdict.allowed { Cell::good("yes") } else { Cell::bad("no") };
        table.row([Cell::strong(&meta.name), allowed, Cell::new(&verdict.trace)]);
    }
    session.out.table(&table)
}

async fn cost(session: &mut Session, talk: &Talk) -> Result<(), Failure> {
    let filter = UsageFilter { session: Some(talk.caller.session.clone()), ..UsageFilter::default() };
    let usage = talk.sessions.deployment().store.usage(&talk.caller.tenant, &filter).await;
    let usage = usage.map_err(|error| Failure::failed("what it cost cannot be read").because(error))?;
    let tokens = usage.tokens;
    session.out.line(format_args!(
        "${}.{:06} for {} answers: {} tokens read, {} from the cache, {} written",
        usage.cost / 1_000_000,
        usage.cost % 1_000_000,
        usage.answers,
        tokens.input + tokens.cache_write,
        tokens.cache_read,
        tokens.output
    ))
}

fn picture(workspace: &Path, path: &str) -> Result<Part, Failure> {
    let path = workspace.join(path);
    let unread = || Failure::usage(format!("`{}` cannot be shown", path.display()));
    let size = path.metadata().map_err(|error| unread().because(error))?.len();
    if size > MOST_PICTURE {
        return Err(unread().hint(format!("it has {size} bytes, more than {MOST_PICTURE}")));
    }
    let bytes = std::fs::read(&path).map_err(|error| unread().because(error))?;
    match image::type_of(&bytes) {
        mime if image::IMAGE_TYPES.contains(&mime) => Ok(Part::Image(Image::new(mime, bytes))),
        other => Err(unread().hint(format!("it is {other}; models read {}", image::IMAGE_TYPES.join(", ")))),
    }
}

fn name(model: &dyn Model) -> String {
    let card = model.card();
    format!("{}/{}", card.provider, card.model)
}

/// What the person typed.
enum Heard {
    Line(String),
    /// Ctrl-C: the line is dropped.
    Nothing,
    /// Ctrl-D.
    End,
}

/// Reads lines, with those of earlier conversations behind the arrow keys.
struct Lines(Option<Reedline>);

impl Lines {
    fn new(app: &App, session: &Session) -> Result<Self, Failure> {
        let file = app.setup().data_dir()?.join("chat-history");
        // What was said is for its owner alone.
        let made = OpenOptions::new().create(true).append(true).mode(0o600).open(&file);
        let history = made.ok().and_then(|_| FileBackedHistory::with_file(LINES, file).ok());
        let editor = Reedline::create().with_ansi_colors(session.out.shows_styles());
        Ok(Self(Some(match history {
            Some(history) => editor.with_history(Box::new(history)),
            None => editor,
        })))
    }

    /// The next line. Reading a terminal cannot be stopped, so it has a thread of its own.
    async fn next(&mut self, caller: &Caller) -> Result<Heard, Failure> {
        let gone = || Failure::failed("the terminal cannot be read");
        let mut editor = self.0.take().ok_or_else(gone)?;
        let prompt = Agent(caller.agent.to_string());
        let read = tokio::task::spawn_blocking(move || {
            let read = editor.read_line(&prompt);
            (editor, read)
        });
        let (editor, read) = read.await.map_err(|error| gone().because(error))?;
        self.0 = Some(editor);
        match read.map_err(|error| gone().because(error))? {
            Signal::Success(line) => Ok(Heard::Line(line)),
            Signal::CtrlD => Ok(Heard::End),
            _ => Ok(Heard::Nothing),
        }
    }
}

/// The agent's name before each line.
struct Agent(String);

impl Prompt for Agent {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.0)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let found = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "nothing for ",
        };
        Cow::Owned(format!("({found}{}) ", search.term))
    }
}
