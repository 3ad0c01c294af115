//! Commands of a chat, such as `/policy` and `/undo`: their list, and those that need no terminal.

use claw_core::counted::counted;
use claw_core::did_you_mean::nearest;
use claw_core::store::Usage;
use claw_policy::explain::explain;
use claw_policy::pipeline::Subject;
use claw_terminal::{Cell, Table};
use clawsmith::app::App;
use clawsmith::app::words::cost;

use super::Talk;
use crate::cli::Session;
use crate::command::undo;
use crate::exit_code::Failure;

/// The commands, with a line for `/help` each.
pub(super) const HELP: &[(&str, &str)] = &[
    ("/tools", "the tools that the agent may call now"),
    ("/policy [TOOL]", "why a tool is allowed or not"),
    ("/mode [MODE]", "show or set how much is done without asking: plan, ask, edits, configured"),
    ("/undo", "undo the file changes of this session's last call"),
    ("/model [PROVIDER[/MODEL]]", "show or change the model"),
    ("/new", "begin a new session"),
    ("/sessions", "list the sessions of this directory"),
    ("/resume SESSION", "resume another session"),
    ("/rename TITLE", "give this session a title"),
    ("/cost", "what this session cost so far"),
    ("/image PATH", "send a picture with your next message"),
    ("/help", "this"),
    ("/quit", "quit (or Ctrl-D); the session is kept"),
];

/// Keys, for `/help`.
const KEYS: &str = "@path attaches a file · Tab completes · Alt-Enter or \\ at the end of a line: a new line · Ctrl-C stops the answer";

/// A command of a chat, such as `/resume last`.
#[derive(Clone, Copy)]
pub(super) struct SlashCommand<'a> {
    /// The first word, without its slash.
    pub(super) word: &'a str,
    /// The rest of the line; may be empty.
    pub(super) rest: &'a str,
}

/// Runs a command that needs no terminal; `None` if it is not such a command.
pub(super) async fn told(
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
    let only_there = || {
        Failure::usage(format!("`/{word}` works only in an interactive chat at a terminal"))
            .hint("clawsmith chat")
    };
    // Programs are told of changes; the rest is for people.
    if session.out.json && word != "undo" {
        return Err(only_there());
    }
    told(command, session, app, talk).await.unwrap_or_else(|| Err(only_there()))
}

/// Returns the error for an unknown command.
pub(super) fn unknown_command(word: &str) -> Failure {
    let words: Vec<&str> = HELP.iter().filter_map(|(known, _)| known.split(' ').next()).collect();
    let failure = Failure::usage(format!("there is no `/{word}`"));
    match nearest(&format!("/{word}"), words.iter().copied()) {
        Some(near) => failure.hint(format!("did you mean `{near}`? /help lists all")),
        None => failure.hint("/help"),
    }
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
