//! `agents_list`: lists the configured agents.

use claw_core::tool::{Call, Cost, Effect, Group, Meta, Need, Output, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Default)]
pub(crate) struct AgentsList;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {}

impl Tool for AgentsList {
    type Args = Args;
    const META: Meta = Meta::new("agents_list", Group::Agents)
        .effects(&[Effect::Read])
        .cost(Cost::Light)
        .needs(&[Need::Agents])
        .about("List the configured agents: id, name and what each is for.");

    async fn run(&self, call: &Call, _: Args) -> Result<Output, ToolError> {
        let agents = call.agents()?.list().await?;
        let me = &call.caller().agent;
        let lines: Vec<String> = agents
            .iter()
            .map(|agent| {
                let you = if agent.id == *me { ", you" } else { "" };
                format!("{} ({}{you}): {}", agent.id, agent.name, agent.about)
            })
            .collect();
        let text = if lines.is_empty() { "no agents are configured".to_owned() } else { lines.join("\n") };
        Ok(Output::text(text).with_details(json!({ "agents": agents, "you": me })))
    }
}

#[cfg(test)]
mod tests;
