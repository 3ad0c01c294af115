//! The tools of the documents, as far as a policy looks at them, for tests.

use std::sync::Arc;

use claw_core::tool::{Effect, Group, Meta, Profile, Source};
use smol_str::SmolStr;

use super::ToolSet;
use crate::config::PolicyConfig;

use Effect::{Admin, Execute, Message, Network, Read, Spawn, Spend, Write};

/// All tools, with those of one MCP server, one custom tool, and some that this build does not have.
pub(crate) fn tools() -> ToolSet {
    let extra = [github(), custom()];
    ToolSet::new(TOOLS.iter().cloned().chain(extra).map(Arc::new), ABSENT.iter().cloned().map(Arc::new))
}

/// A policy from its JSON.
#[track_caller]
pub(crate) fn config(json: serde_json::Value) -> PolicyConfig {
    serde_json::from_value(json).unwrap()
}

/// A tool of an MCP server: its effects are unknown.
fn github() -> Meta {
    let mut meta = Meta::new("mcp_github_issues", Group::Mcp(SmolStr::new_static("github")));
    meta.source = Source::Mcp { server: SmolStr::new_static("github") };
    meta
}

fn custom() -> Meta {
    Meta::new("deploy", Group::Custom).source(Source::Custom)
}

const fn tool(name: &'static str, group: Group, effects: &[Effect]) -> Meta {
    Meta::new(name, group).effects(effects).source(Source::Core)
}

const TOOLS: &[Meta] = &[
    tool("read_file", Group::Fs, &[Read]).aliases(&["read"]),
    tool("write_file", Group::Fs, &[Write]).aliases(&["write"]),
    tool("list_files", Group::Fs, &[Read]),
    tool("edit", Group::Fs, &[Read, Write]).aliases(&["edit_file"]),
    tool("search", Group::Fs, &[Read]),
    tool("glob", Group::Fs, &[Read]),
    tool("exec", Group::Runtime, &[Read, Write, Execute, Network]).removable(&[Write, Network]),
    tool("credentialed_exec", Group::Runtime, &[Execute, Network]),
    tool("process", Group::Runtime, &[Read, Execute]),
    tool("web_search", Group::Web, &[Network]),
    tool("web_fetch", Group::Web, &[Network]),
    tool("memory_search", Group::Memory, &[Read]),
    tool("memory_get", Group::Memory, &[Read]),
    tool("sessions_list", Group::Sessions, &[Read]),
    tool("sessions_history", Group::Sessions, &[Read]),
    tool("sessions_send", Group::Sessions, &[Message]),
    tool("spawn", Group::Sessions, &[Spawn, Spend]).aliases(&["sessions_spawn"]),
    tool("subagents", Group::Sessions, &[Read, Spawn]),
    tool("session_status", Group::Sessions, &[Read]),
    tool("knowledge_graph_search", Group::Knowledge, &[Read]),
    tool("skill_search", Group::Knowledge, &[Read]),
    tool("cron", Group::Automation, &[Write, Spend]),
    tool("datetime", Group::Automation, &[]),
    tool("gateway", Group::Automation, &[Admin]),
    tool("message", Group::Messaging, &[Message]),
    tool("create_forum_topic", Group::Messaging, &[Message, Network]),
    tool("delegate", Group::Delegation, &[Spawn, Spend]),
    tool("handoff", Group::Delegation, &[Spawn]),
    tool("delegate_search", Group::Delegation, &[Read]),
    tool("evaluate_loop", Group::Delegation, &[Spawn, Spend]),
    tool("team_tasks", Group::Teams, &[Read, Write]),
    tool("team_message", Group::Teams, &[Message]),
    tool("create_image", Group::MediaGen, &[Network, Spend]),
    tool("create_audio", Group::MediaGen, &[Network, Spend]),
    tool("create_video", Group::MediaGen, &[Network, Spend]),
    tool("tts", Group::MediaGen, &[Network, Spend]).also_in(&[Group::Media]),
    tool("image", Group::Media, &[Network, Spend]).profiles(&[Profile::Coding]),
    tool("read_image", Group::MediaRead, &[Read, Spend]),
    tool("read_audio", Group::MediaRead, &[Read, Spend]),
    tool("read_document", Group::MediaRead, &[Read, Spend]),
    tool("read_video", Group::MediaRead, &[Read, Spend]),
    tool("use_skill", Group::Skills, &[Read]),
    tool("publish_skill", Group::Skills, &[Write]),
    tool("browser", Group::Ui, &[Network]).profiles(&[Profile::Coding]),
    tool("nodes", Group::Nodes, &[Admin]),
    tool("agents_list", Group::Agents, &[Read]),
    tool("read_artifact", Group::Tools, &[Read]).standing(),
];

const ABSENT: &[Meta] =
    &[tool("canvas", Group::Ui, &[Write]), tool("whatsapp_login", Group::Automation, &[Network, Admin])];
