//! `publish_skill`: copies a skill directory of the workspace into the store, so that others can find and use
//! it.

use std::fmt::Write as _;

use claw_core::port::SkillRequest;
use claw_core::store::SkillVisibility;
use claw_core::tool::{Ask, Call, Effect, Facts, Group, Meta, Need, Output, Plan, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Default)]
pub(crate) struct PublishSkill;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Directory of the skill, relative to the workspace, such as `skills/pdf-forms`.
    path: String,
    /// Visible to the user only, or to the whole tenant. Only for a new skill.
    #[serde(default)]
    visibility: SkillVisibility,
}

impl Tool for PublishSkill {
    type Args = Args;
    const META: Meta = Meta::new("publish_skill", Group::Skills)
        .effects(&[Effect::Read, Effect::Write])
        .needs(&[Need::Skills])
        .about("Publish a skill directory of the workspace, so that it can be found and used. Needs a person's approval.");

    fn plan(&self, _: &Facts, args: &Args) -> Plan {
        Plan::of(&Self::META).asking(Ask::Publish { path: args.path.clone() })
    }

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let request = SkillRequest { path: args.path, visibility: args.visibility };
        let published = call.skills()?.publish(&request).await?;
        let mut text = format!(
            "skill `{}` is published as version {} ({})",
            published.name, published.version, published.visibility
        );
        if !published.findings.is_empty() {
            let _ = write!(text, "; a person was shown these lines:");
            for finding in &published.findings {
                let _ = write!(text, "\n- {finding}");
            }
        }
        Ok(Output::text(text).with_details(json!(published)))
    }
}

#[cfg(test)]
mod tests;
