//! `session_status`: tells this session's agent, user, channel, model, usage, calls and pending approvals.

use claw_core::port::{SessionStatus as Figures, TalkFigures};
use claw_core::store::Usage;
use claw_core::tool::{
    Call, Caller, Cost, Effect, Group, Meta, Need, Output, PeerKind, Profile, Tool, ToolError,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::format;

#[derive(Default)]
pub(crate) struct SessionStatus;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {}

impl Tool for SessionStatus {
    type Args = Args;
    const META: Meta = Meta::new("session_status", Group::Sessions)
        .effects(&[Effect::Read])
        .cost(Cost::Light)
        .profiles(&[Profile::Minimal])
        .needs(&[Need::Sessions])
        .about(
            "Get this session's agent, user, channel, model, workspace, time, messages, tokens, cost, tool calls and \
             pending approvals.",
        );

    async fn run(&self, call: &Call, _: Args) -> Result<Output, ToolError> {
        let caller = call.caller();
        let figures = call.sessions()?.status().await?;
        let time = Timestamp::from_millisecond(call.clock().now().0).map_err(ToolError::internal)?;
        let details = json!({
            "session": caller.session,
            "agent": caller.agent,
            "user": caller.user,
            "channel": caller.channel,
            "chat_id": caller.chat_id,
            "peer_kind": caller.peer_kind,
            "provider": caller.provider,
            "model": caller.model,
            "workspace": caller.workspace,
            "time": time,
            "status": figures,
        });
        Ok(Output::text(describe(caller, time, &figures)).with_details(details))
    }
}

fn describe(caller: &Caller, time: Timestamp, figures: &Figures) -> String {
    let user = caller.user.as_ref().map_or("nobody in particular", |user| user.as_str());
    let chat = caller.chat_id.as_ref().map(|chat| format!(", chat {chat}")).unwrap_or_default();
    let peer = match caller.peer_kind {
        PeerKind::Direct => "one person",
        PeerKind::Group => "a group",
    };
    let calls = figures.calls;
    let mut lines = vec![
        format!("session: {}", caller.session),
        format!("agent: {}, for {user}", caller.agent),
        format!("channel: {}{chat}, {peer}", caller.channel),
        format!("model: {}", model(caller, figures)),
        format!("workspace: {}", caller.workspace.display()),
        format!("time: {time}"),
        format!(
            "calls: {} done, {} failed, {} refused, {} open",
            calls.done, calls.failed, calls.refused, calls.open
        ),
        format!("tools: {} offered, {} more to be searched", figures.tools_offered, figures.tools_deferred),
        format!("approvals: {} pending", figures.approvals_pending),
    ];
    if let Some(talk) = &figures.talk {
        lines.extend(said(talk, caller));
    }
    lines.join("\n")
}

/// The model of the caller, else the one that answered last.
fn model(caller: &Caller, figures: &Figures) -> String {
    let last = figures.talk.as_ref().and_then(|talk| talk.model.as_ref());
    match (&caller.provider, &caller.model, last) {
        (Some(provider), Some(model), _) => format!("{provider}/{}", model.name),
        (_, _, Some((provider, model))) => format!("{provider}/{model}"),
        (Some(provider), None, None) => format!("one of {provider}"),
        (None, _, None) => "not known".to_owned(),
    }
}

/// Describes messages, usage and cost.
fn said(talk: &TalkFigures, caller: &Caller) -> [String; 4] {
    let Usage { answers, tokens, cost } = talk.usage;
    let window = caller.model.as_ref().map(|model| model.context).filter(|window| *window > 0);
    let context = match window {
        Some(window) => {
            let percent = talk.context_used.saturating_mul(100) / window;
            format!("context: {} of {window} tokens at the last answer ({percent}%)", talk.context_used)
        }
        None => format!("context: {} tokens at the last answer", talk.context_used),
    };
    let cached = tokens.cache_read + tokens.cache_write;
    let dollars = cost / 1_000_000;
    [
        format!("messages: {}, {} of the model", talk.messages, format::count(answers, "answer", "answers")),
        format!(
            "tokens: {} read, {cached} cached, {} written; cost: ${dollars}.{:06}",
            tokens.input,
            tokens.output,
            cost % 1_000_000
        ),
        context,
        format!("background commands: {} running", talk.processes),
    ]
}

#[cfg(test)]
mod tests;
