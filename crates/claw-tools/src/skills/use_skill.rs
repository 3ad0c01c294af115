//! `use_skill`: returns the instructions of a skill and lists its files, which can then be read and run.

use std::fmt::Write as _;

use claw_core::SkillName;
use claw_core::port::OpenedSkill;
use claw_core::tool::{Call, Cost, Effect, Group, Meta, Need, Output, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::format;

/// Most files that are listed.
const LISTED: usize = 100;

#[derive(Default)]
pub(crate) struct UseSkill;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Name of the skill. Leave out with `end`.
    #[serde(default)]
    name: String,
    /// Stop using the skill: its `allowed-tools` no longer apply.
    #[serde(default)]
    end: bool,
}

impl Tool for UseSkill {
    type Args = Args;
    const META: Meta = Meta::new("use_skill", Group::Skills)
        .effects(&[Effect::Read])
        .cost(Cost::Light)
        .aliases(&["Skill"])
        .needs(&[Need::Skills])
        .about("Use a skill: returns its instructions and lists its files, which can then be read and run.");

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let skills = call.skills()?;
        if args.end {
            let ended = skills.end().await?;
            let text = match &ended {
                Some(name) => format!("skill `{name}` is no longer in use"),
                None => "no skill is in use that limits the tools".to_owned(),
            };
            return Ok(Output::text(text).with_details(json!({ "ended": ended })));
        }
        let name = args.name.trim();
        let name = SkillName::new(name).map_err(|error| {
            ToolError::invalid(error.to_string()).try_instead("find a skill with `skill_search`")
        })?;
        let skill = skills.open(&name).await?;
        let details = json!({
            "name": skill.manifest.name, "tier": skill.tier, "digest": skill.digest,
            "directory": skill.directory, "allowedTools": skill.manifest.allowed_tools,
            "files": skill.files.iter().map(|(path, _)| path).collect::<Vec<_>>(),
        });
        Ok(Output::text(told(&skill)).with_details(details))
    }
}

fn told(skill: &OpenedSkill) -> String {
    let manifest = &skill.manifest;
    let mut text = format!("Skill `{}` ({}) is in use. Its instructions:\n\n", manifest.name, skill.tier);
    text.push_str(skill.body.trim_end());
    text.push_str("\n\n---\n");
    if skill.files.is_empty() {
        text.push_str("It has no other files.");
    } else {
        let directory = skill.directory.display();
        let _ = write!(
            text,
            "Its files, read-only in `{directory}` (read with `read_file`, run with `exec`; write to the workspace):"
        );
        for (path, bytes) in skill.files.iter().take(LISTED) {
            let _ = write!(text, "\n- {path} ({})", format::count(*bytes, "byte", "bytes"));
        }
        if skill.files.len() > LISTED {
            let _ = write!(text, "\n- and {} more", skill.files.len() - LISTED);
        }
    }
    if let Some(compatibility) = &manifest.compatibility {
        let _ = write!(text, "\nIt is made for: {compatibility}");
    }
    if let Some(tools) = &manifest.allowed_tools {
        let tools = if tools.is_empty() { "none".to_owned() } else { tools.join(", ") };
        let _ = write!(
            text,
            "\nWhile it is in use only these tools may be called: {tools}. End it with `use_skill` and `end`."
        );
    }
    text
}

#[cfg(test)]
mod tests;
