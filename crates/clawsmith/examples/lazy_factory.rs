//! A tool that is created for each caller, when it is first needed.

use std::path::PathBuf;

use clawsmith::{
    AgentId, Call, Caller, Group, Meta, Output, Request, SessionKey, Tool, ToolError, Toolbox, Unavailable,
    erase,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Knows where its caller works.
struct WorkspaceInfo {
    workspace: PathBuf,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArgs {}

impl Tool for WorkspaceInfo {
    type Args = NoArgs;
    const META: Meta =
        Meta::new("workspace_info", Group::named("demo")).effects(&[]).about("Say where the caller works.");

    async fn run(&self, _call: &Call, _args: NoArgs) -> Result<Output, ToolError> {
        Ok(Output::text(self.workspace.display().to_string()))
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let toolbox = Toolbox::builder().build()?;
    toolbox.registry().register_factory(WorkspaceInfo::META, |context| {
        let workspace = context.caller.workspace.clone();
        if workspace.as_os_str().is_empty() {
            return Err(Unavailable::because("the caller has no workspace; give it one"));
        }
        Ok(erase(WorkspaceInfo { workspace }))
    })?;

    for workspace in ["/srv/ada", "/srv/grace", ""] {
        let caller = Caller::new(AgentId::new("demo")?, SessionKey::new("example:2")?, workspace);
        let offer = toolbox.offer(caller).await;
        let reply = toolbox.execute(&offer, Request::new("workspace_info", json!({}))).await;
        println!("in `{workspace}`: {}", reply.model_text());
    }
    Ok(())
}
