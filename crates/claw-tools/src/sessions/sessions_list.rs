//! `sessions_list`: lists the caller's sessions with this agent, the latest first.

use claw_core::SessionKey;
use claw_core::port::{Talk, TalkPage, UnixMillis};
use claw_core::tool::{Call, Cost, Effect, Group, Meta, Need, Output, Tool, ToolError};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::format;

const MINUTE: i64 = 60_000;

#[derive(Default)]
pub(crate) struct SessionsList;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// The most sessions to return.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    /// Only sessions with a message in the last N minutes.
    #[schemars(range(min = 1))]
    active_minutes: Option<u32>,
    /// The `next` that the previous list gave.
    after: Option<String>,
}

fn twenty() -> usize {
    20
}

impl Tool for SessionsList {
    type Args = Args;
    const META: Meta = Meta::new("sessions_list", Group::Sessions)
        .effects(&[Effect::Read])
        .cost(Cost::Light)
        .needs(&[Need::Talks])
        .about(
            "List the sessions of this user (in a group: of this group) with this agent, the latest first.",
        );

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let limit = args.limit.clamp(1, 100);
        let since = args.active_minutes.map(|minutes| {
            UnixMillis(call.clock().now().0.saturating_sub(i64::from(minutes).saturating_mul(MINUTE)))
        });
        let after = args.after.as_deref().map(cursor).transpose()?;
        let mut talks = call.talks()?.list(&TalkPage { since, after, limit: limit + 1 }).await?;
        let is_more = talks.len() > limit;
        talks.truncate(limit);
        let next = talks.last().filter(|_| is_more).map(|last| format!("{}@{}", last.last.0, last.session));
        let mut lines: Vec<String> = Vec::with_capacity(talks.len() + 1);
        for talk in &talks {
            lines.push(line(talk, call.caller().session == talk.session)?);
        }
        if lines.is_empty() {
            lines.push("there are no sessions".to_owned());
        }
        lines.extend(next.as_ref().map(|next| format!("there are more; next: after = {next}")));
        Ok(Output::text(lines.join("\n")).with_details(json!({ "sessions": talks, "next": next })))
    }
}

fn line(talk: &Talk, is_this: bool) -> Result<String, ToolError> {
    let last = Timestamp::from_millisecond(talk.last.0).map_err(ToolError::internal)?;
    let this = if is_this { " (this one)" } else { "" };
    let chat = talk.chat.as_ref().map(|chat| format!(" {chat}")).unwrap_or_default();
    let state = match (talk.running, talk.waiting) {
        (true, 0) => ", answering".to_owned(),
        (true, waiting) => format!(", answering, {waiting} waiting"),
        (false, 0) => String::new(),
        (false, waiting) => format!(", {waiting} waiting"),
    };
    let Talk { session, channel, messages, .. } = talk;
    let messages = format::count(*messages, "message", "messages");
    Ok(format!("{session}{this}: {channel}{chat}, {messages}, last {last}{state}"))
}

/// Parses `after`: the time and key of the last session of the previous list.
fn cursor(text: &str) -> Result<(UnixMillis, SessionKey), ToolError> {
    let parse = || {
        let (last, session) = text.split_once('@')?;
        Some((UnixMillis(last.parse().ok()?), SessionKey::new(session).ok()?))
    };
    parse().ok_or_else(|| {
        let shown: String = text.chars().take(80).collect();
        ToolError::invalid(format!("`{shown}` is not a valid `after`"))
            .try_instead("pass the `next` of the previous list as `after`, or leave `after` out to start from the beginning")
    })
}

#[cfg(test)]
mod tests;
