//! Tools of a program that embeds the whole application: agents get them on the same road as built-in tools.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails loudly")]

use clawsmith::app::{Hooks, Setup};
use clawsmith::config::Surroundings;
use clawsmith::{AgentId, Call, Caller, Group, Meta, Output, Request, SessionKey, Tool, ToolError};
use serde_json::json;

struct Greet;

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The person to greet.
    name: String,
}

impl Tool for Greet {
    type Args = Args;
    const META: Meta = Meta::new("greet", Group::named("demo")).effects(&[]).about("Say hello to someone.");

    async fn run(&self, _: &Call, args: Args) -> Result<Output, ToolError> {
        Ok(Output::text(format!("Hello, {}!", args.name)))
    }
}

/// Opens an application with the tool and this configuration, and calls the tool as the default agent.
async fn called(config: &str) -> (bool, String) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("config.toml");
    std::fs::write(&file, config).unwrap();
    let around = Surroundings {
        directory: home.path().to_owned(),
        variables: vec![("HOME".into(), home.path().into())],
    };
    let app = Setup::load(Some(&file), &around).unwrap().open().await.unwrap().with_tool(Greet);
    let toolbox = app.toolbox(Hooks::default()).await.unwrap();
    let session = SessionKey::new("example:1").unwrap();
    let caller = Caller::new(AgentId::new("default").unwrap(), session, home.path());
    let offer = toolbox.offer(caller).await;
    let reply = toolbox.execute(&offer, Request::new("greet", json!({ "name": "Ada" }))).await;
    let said = (reply.is_done(), reply.model_text());
    app.close().await;
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_of_the_program_is_called_like_a_built_in_one() {
    assert_eq!(called("").await, (true, "Hello, Ada!".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_holds_for_tools_of_the_program() {
    let (is_done, text) = called("[tools]\ndeny = [\"greet\"]\n").await;
    assert!(!is_done && text.contains("greet"), "{text}");
}
