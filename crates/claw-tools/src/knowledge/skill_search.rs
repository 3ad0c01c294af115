//! `skill_search`: finds skills that are not in the prompt, by their purpose.

use std::fmt::Write as _;

use claw_core::tool::{Call, Cost, Effect, Group, Meta, Need, Output, Profile, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Most results: more would crowd out the conversation.
const MOST: usize = 20;

#[derive(Default)]
pub(crate) struct SkillSearch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Task the skill should help with, or its name.
    query: String,
    /// The most skills to return.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 20))]
    max_results: usize,
}

fn five() -> usize {
    5
}

impl Tool for SkillSearch {
    type Args = Args;
    const META: Meta = Meta::new("skill_search", Group::Knowledge)
        .effects(&[Effect::Read])
        .cost(Cost::Light)
        .profiles(&[Profile::Messaging])
        .needs(&[Need::Skills])
        .about("Search the available skills. Use one with `use_skill`.");

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let query = args.query.trim();
        if query.is_empty() {
            return Err(
                ToolError::invalid("`query` is empty").try_instead("say what the skill should help with")
            );
        }
        let found = call.skills()?.search(query, args.max_results.clamp(1, MOST)).await?;
        let mut text = match found.len() {
            0 => format!("no skill matches `{query}`; try other words for what it should help with"),
            1 => "1 skill found; use it with `use_skill`:".to_owned(),
            count => format!("{count} skills found; use one with `use_skill`:"),
        };
        for card in &found {
            let _ = write!(text, "\n- {} ({}): {}", card.name, card.tier, card.description);
        }
        Ok(Output::text(text).with_details(json!({ "skills": found })))
    }
}

#[cfg(test)]
mod tests;
