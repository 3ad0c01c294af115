//! `session_status`: who talks to whom here, and what became of the calls so far.

use claw_core::port::SessionStatus as Figures;
use claw_core::tool::{
    Call, Caller, Cost, Effect, Group, Meta, Need, Output, PeerKind, Profile, Tool, ToolError,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

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
        .about("Get this session's agent, user, channel, workspace, time, tool calls and pending approvals.");

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
    let provider = caller.provider.as_deref().unwrap_or("not known");
    let calls = figures.calls;
    [
        format!("session: {}", caller.session),
        format!("agent: {}, for {user}", caller.agent),
        format!("channel: {}{chat}, {peer}", caller.channel),
        format!("provider: {provider}"),
        format!("workspace: {}", caller.workspace.display()),
        format!("time: {time}"),
        format!(
            "calls: {} done, {} failed, {} refused, {} open",
            calls.done, calls.failed, calls.refused, calls.open
        ),
        format!("tools: {} offered, {} more to be searched", figures.tools_offered, figures.tools_deferred),
        format!("approvals: {} pending", figures.approvals_pending),
    ]
    .join("\n")
}

#[cfg(test)]
mod tests;
