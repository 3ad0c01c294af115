//! `sessions_history`: reads messages of one of the caller's sessions, in parts from its end.

use claw_core::port::{TalkLine, Words};
use claw_core::store::Role;
use claw_core::tool::{Ask, Call, Effect, Facts, Group, Meta, Need, Output, Plan, Tool, ToolError};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Longest part of a text that is shown.
const TEXT_BYTES: usize = 4_000;
/// Longest part of a call's arguments or result that is shown.
const CALL_BYTES: usize = 500;

#[derive(Default)]
pub(crate) struct SessionsHistory;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Key of the session, as `sessions_list` shows it.
    session_key: String,
    /// The most messages to return, counted from the latest.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    /// Only messages before the one with this number.
    #[schemars(range(min = 1))]
    before: Option<u64>,
    /// Also show tool calls and their results.
    #[serde(default)]
    include_tools: bool,
}

fn twenty() -> usize {
    20
}

impl Tool for SessionsHistory {
    type Args = Args;
    const META: Meta = Meta::new("sessions_history", Group::Sessions)
        .effects(&[Effect::Read])
        .needs(&[Need::Talks])
        .about("Read the latest messages of a session of `sessions_list`, or earlier ones.");

    fn plan(&self, _: &Facts, args: &Args) -> Plan {
        Plan::of(&Self::META).asking(Ask::Session { session: args.session_key.clone(), sends: false })
    }

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let session = super::session(&args.session_key)?;
        let limit = args.limit.clamp(1, 100);
        let said = call.talks()?.history(&session, args.before, limit).await?;
        let Some(said) = said else { return Err(super::not_there(&session)) };
        let lines: Result<Vec<String>, ToolError> =
            said.iter().filter_map(|line| shown(line, args.include_tools).transpose()).collect();
        let mut lines = lines?;
        if lines.is_empty() {
            lines.push("the session has no messages".to_owned());
        }
        let next = said.first().map(|first| first.seq).filter(|first| *first > 1);
        lines.extend(next.map(|next| format!("there is more; next: before = {next}")));
        let details = json!({ "session": session, "first": said.first().map(|line| line.seq), "next": next });
        Ok(Output::text(lines.join("\n\n")).with_details(details))
    }
}

/// A message as the model reads it; `None` if nothing of it is wanted.
fn shown(line: &TalkLine, tools: bool) -> Result<Option<String>, ToolError> {
    let words: Vec<String> = line.words.iter().filter_map(|words| piece(words, tools)).collect();
    if words.is_empty() {
        return Ok(None);
    }
    let at = Timestamp::from_millisecond(line.at.0).map_err(ToolError::internal)?;
    let who = match line.role {
        Role::Assistant => "agent",
        role => role.name(),
    };
    Ok(Some(format!("#{} {who}, {at}:\n{}", line.seq, words.join("\n"))))
}

fn piece(words: &Words, tools: bool) -> Option<String> {
    match words {
        Words::Text { text } => Some(cut(text, TEXT_BYTES)),
        Words::Image(image) => Some(image.to_string()),
        Words::Call { tool, args } => {
            tools.then(|| format!("[called {tool} with {}]", cut(args, CALL_BYTES)))
        }
        Words::Result { tool, text, failed } => tools.then(|| {
            let end = if *failed { "failed" } else { "gave" };
            format!("[{tool} {end}: {}]", cut(text, CALL_BYTES))
        }),
    }
}

fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most);
    format!("{} [cut after {end} of {} bytes]", &text[..end], text.len())
}

#[cfg(test)]
mod tests;
