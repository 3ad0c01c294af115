//! `workspace_dir`: tells the directory of the caller's files, or of its team's.

use std::path::Path;

use claw_core::tool::{Call, Cost, Effect, Group, Meta, Output, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Default)]
pub(crate) struct WorkspaceDir;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Workspace owner.
    #[serde(default)]
    context: Context,
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Context {
    #[default]
    User,
    Team,
}

impl Tool for WorkspaceDir {
    type Args = Args;
    const META: Meta = Meta::new("workspace_dir", Group::Workspace)
        .effects(&[Effect::Read])
        .cost(Cost::Light)
        .about("Get the path of the workspace directory: the user's, or the one shared with the team.");

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let path = match (args.context, &call.caller().shown_workspace) {
            (Context::User, Some(shown)) => shown.to_string(),
            (context, _) => directory(call, context)?.display().to_string(),
        };
        let details = json!({ "context": args.context, "path": path });
        Ok(Output::text(path).with_details(details))
    }
}

fn directory(call: &Call, context: Context) -> Result<&Path, ToolError> {
    let caller = call.caller();
    match context {
        Context::User => Ok(&caller.workspace),
        Context::Team => caller.team_workspace.as_deref().ok_or_else(|| {
            ToolError::not_found(format!("agent `{}` is in no team", caller.agent))
                .try_instead("use the workspace of context `user`")
        }),
    }
}

#[cfg(test)]
mod tests;
