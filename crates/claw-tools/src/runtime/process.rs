//! `process`: controls commands of this session that run in the background.

mod keys;

use std::time::Duration;

use claw_core::port::{Awaited, Expected, Printed, ProcessCard, ProcessState, Size, UnixMillis};
use claw_core::store::ProcessEnd;
use claw_core::tool::{
    Ask, Call, Effect, Effects, Facts, Group, Input, Meta, Need, Output, Plan, Tool, ToolError,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::exec;

/// Bytes of output that are shown at a time by default.
const SHOWN: u32 = 16 * 1024;
/// The longest wait of one call, in seconds.
const LONGEST: u32 = 600;

#[derive(Default)]
pub(crate) struct Process;

#[derive(Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Action {
    List,
    Poll,
    Write,
    Keys,
    Resize,
    Wait,
    Kill,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// `list` all; of one command `poll` the output, `write` text, press `keys`, `resize` the terminal, `wait`, `kill`.
    action: Action,
    /// Command id from `exec` or `list`; required except for `list`.
    id: Option<String>,
    /// For `write`: the text, exactly; a line ends with a line break. Text for a shell is judged like a
    /// command.
    text: Option<String>,
    /// For `write`: close the command's input after the text.
    #[serde(default)]
    end: bool,
    /// For `keys`, only with `pty`: key names such as `Enter`, `Tab`, `Escape`, `Up`, `C-c`, `F1`, or single
    /// characters.
    #[serde(default)]
    keys: Vec<String>,
    /// For `poll` and `wait`: byte to start at, as an earlier call returned it. If left out, the newest output.
    offset: Option<u64>,
    /// For `poll`: most bytes to return.
    #[schemars(range(min = 1, max = 262_144))]
    max_bytes: Option<u32>,
    /// For `wait`: a regular expression to find in the output. If left out, waits until the command ends.
    pattern: Option<String>,
    /// For `wait`: time limit, 30 if not given.
    #[schemars(range(min = 1, max = 600))]
    timeout_seconds: Option<u32>,
    /// For `resize`: width in characters.
    #[schemars(range(min = 1, max = 1000))]
    columns: Option<u16>,
    /// For `resize`: height in lines.
    #[schemars(range(min = 1, max = 1000))]
    rows: Option<u16>,
}

/// The action with its arguments.
enum Command {
    List,
    Poll { id: String, from: Option<u64>, most: usize },
    Send(Input),
    Resize { id: String, size: Size },
    Wait { id: String, expected: Expected, limit: Duration },
    Kill { id: String },
}

impl TryFrom<&Args> for Command {
    type Error = ToolError;

    fn try_from(args: &Args) -> Result<Self, ToolError> {
        if args.action == Action::List {
            return Ok(Self::List);
        }
        let lacks = |what: &str, action: &str| ToolError::invalid(format!("`{action}` needs `{what}`"));
        let id = args.id.clone().ok_or_else(|| {
            ToolError::invalid("no command is named").try_instead("give its `id`; `list` shows the ids")
        })?;
        Ok(match args.action {
            Action::List => Self::List,
            Action::Poll => {
                let most = args.max_bytes.unwrap_or(SHOWN) as usize;
                Self::Poll { id, from: args.offset, most }
            }
            Action::Write => {
                let text = match (&args.text, args.end) {
                    (Some(text), _) => text.clone(),
                    (None, true) => String::new(),
                    (None, false) => return Err(lacks("text", "write")),
                };
                Self::Send(Input { process: id, text, keys: false, end: args.end })
            }
            Action::Keys if args.keys.is_empty() => return Err(lacks("keys", "keys")),
            Action::Keys => {
                let text = args.keys.iter().map(|key| keys::sent(key)).collect::<Result<_, _>>()?;
                Self::Send(Input { process: id, text, keys: true, end: false })
            }
            Action::Resize => {
                let (Some(columns), Some(rows)) = (args.columns, args.rows) else {
                    return Err(lacks("columns` and `rows", "resize"));
                };
                Self::Resize { id, size: Size { columns, rows } }
            }
            Action::Wait => {
                let expected = Expected { pattern: args.pattern.clone(), from: args.offset };
                let limit = Duration::from_secs(args.timeout_seconds.unwrap_or(30).min(LONGEST).into());
                Self::Wait { id, expected, limit }
            }
            Action::Kill => Self::Kill { id },
        })
    }
}

impl Tool for Process {
    type Args = Args;
    const META: Meta = Meta::new("process", Group::Runtime)
        // Text typed into a running program can do whatever that program can.
        .effects(&[Effect::Read, Effect::Write, Effect::Execute, Effect::Network])
        .removable(&[Effect::Write, Effect::Network])
        .needs(&[Need::Processes])
        .timeout_secs(LONGEST + 60)
        .about("List, read, write to and stop background commands.");

    fn plan(&self, _: &Facts, args: &Args) -> Plan {
        match Command::try_from(args) {
            Ok(Command::Send(input)) => {
                let effects = Effects::of(&[Effect::Read, Effect::Execute]);
                Plan { effects, asks: vec![Ask::Input(input)], given: None }
            }
            Ok(Command::Resize { .. } | Command::Kill { .. }) => Plan::read().with(Effect::Execute),
            // Invalid arguments do nothing.
            Ok(Command::List | Command::Poll { .. } | Command::Wait { .. }) | Err(_) => Plan::read(),
        }
    }

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let processes = call.processes()?;
        Ok(match Command::try_from(&args)? {
            Command::List => listed(&processes.list().await?, call.clock().now()),
            Command::Poll { id, from, most } => polled(&processes.read(&id, from, most).await?),
            Command::Send(input) => sent(&processes.send(&input).await?),
            Command::Resize { id, size } => {
                let card = processes.resize(&id, size).await?;
                let text = format!("`{}` has {} columns and {} rows", card.name(), size.columns, size.rows);
                Output::text(text).with_details(json!(card))
            }
            Command::Wait { id, expected, limit } => {
                waited(&processes.wait(&id, &expected, limit).await?, &expected, limit)
            }
            Command::Kill { id } => {
                let card = processes.kill(&id).await?;
                Output::text(format!("`{}`: {}", card.name(), state(card.state))).with_details(json!(card))
            }
        })
    }
}

fn listed(cards: &[ProcessCard], now: UnixMillis) -> Output {
    if cards.is_empty() {
        return Output::text("nothing runs in the background").with_details(json!([]));
    }
    let line = |card: &ProcessCard| {
        let since = now.since(card.started).as_secs();
        let terminal = if card.terminal { ", on a terminal" } else { "" };
        let (name, state, printed) = (card.name(), state(card.state), card.printed);
        format!("{name}  {state}, started {since} s ago{terminal}, {printed} bytes printed: {}", card.command)
    };
    let lines: Vec<String> = cards.iter().map(line).collect();
    Output::text(lines.join("\n")).with_details(json!(cards))
}

fn polled(printed: &Printed) -> Output {
    let mut text = String::new();
    if printed.dropped > 0 {
        text.push_str(&format!("[{} bytes before this are no longer kept]\n", printed.dropped));
    }
    text.push_str(&printed.text);
    let is_whole = text.is_empty() || text.ends_with('\n');
    if !is_whole && printed.unfinished.is_empty() {
        text.push('\n');
    }
    if !printed.unfinished.is_empty() {
        text.push_str(&format!("{}\n[that line is not finished]\n", printed.unfinished));
    }
    let left = printed.card.printed.saturating_sub(printed.next);
    let more = if left > 0 { format!(", {left} bytes follow") } else { String::new() };
    let state = state(printed.card.state);
    text.push_str(&format!("[{state}; bytes {} to {}{more}]", printed.from, printed.next));
    Output::text(text).for_user(state).with_details(json!(printed))
}

fn sent(card: &ProcessCard) -> Output {
    let text =
        format!("sent to `{}`; what it prints from now on begins at offset {}", card.name(), card.printed);
    Output::text(text).with_details(json!(card))
}

fn waited(awaited: &Awaited, expected: &Expected, limit: Duration) -> Output {
    let (name, state) = (awaited.card.name(), state(awaited.card.state));
    let text = match (&awaited.matched, &expected.pattern, awaited.card.state) {
        (Some(matched), _, _) => {
            format!("`{name}` printed:\n{matched}\n[{state}; continue from offset {}]", awaited.next)
        }
        (None, Some(pattern), ProcessState::Ended(_)) => {
            format!("`{name}` printed nothing that matches `{pattern}`: {state}")
        }
        (None, None, ProcessState::Ended(_)) => format!("`{name}`: {state}"),
        (None, pattern, ProcessState::Running) => {
            let what = match pattern {
                Some(pattern) => format!("printed nothing that matches `{pattern}`"),
                None => "has not ended".to_owned(),
            };
            format!("`{name}` {what} within {} s, and still runs", limit.as_secs())
        }
    };
    Output::text(text).for_user(state).with_details(json!(awaited))
}

/// Describes whether the process runs or how it ended.
fn state(state: ProcessState) -> String {
    match state {
        ProcessState::Running => "running".to_owned(),
        ProcessState::Ended(ProcessEnd::Killed) => "killed".to_owned(),
        ProcessState::Ended(ProcessEnd::Lost) => "lost: its exit status is unknown".to_owned(),
        ProcessState::Ended(ProcessEnd::Exited { code: Some(code), .. }) => {
            format!("ended with exit code {code}")
        }
        ProcessState::Ended(ProcessEnd::Exited { code: None, signal: Some(signal) }) => {
            format!("ended by signal {signal}{}", exec::name(signal))
        }
        ProcessState::Ended(ProcessEnd::Exited { code: None, signal: None }) => "ended".to_owned(),
    }
}

#[cfg(test)]
mod tests;
