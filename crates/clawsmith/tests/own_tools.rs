//! Tools of a program that embeds the whole application: agents get them on the same road as built-in tools.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails loudly")]

use clawsmith::app::{App, Hooks, Setup};
use clawsmith::config::Surroundings;
use clawsmith::policy::explain::Presence;
use clawsmith::{AgentId, Call, Caller, Group, Meta, Output, Request, SessionKey, Tool, ToolError};
use serde_json::json;
use tempfile::TempDir;

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

/// Opens an application with the tool and this configuration; the default agent is its caller.
async fn open(home: &TempDir, config: &str) -> (App, Caller) {
    let file = home.path().join("config.toml");
    std::fs::write(&file, config).unwrap();
    let around = Surroundings {
        directory: home.path().to_owned(),
        variables: vec![("HOME".into(), home.path().into())],
    };
    let app = Setup::load(Some(&file), &around).unwrap().open().await.unwrap().with_tool(Greet);
    let session = SessionKey::new("example:1").unwrap();
    (app, Caller::new(AgentId::new("default").unwrap(), session, home.path()))
}

/// Calls the tool as the default agent.
async fn called(config: &str) -> (bool, String) {
    let home = tempfile::tempdir().unwrap();
    let (app, caller) = open(&home, config).await;
    let toolbox = app.toolbox(Hooks::default()).await.unwrap();
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

#[tokio::test(flavor = "multi_thread")]
async fn listings_and_explanations_know_a_tool_of_the_program() {
    let home = tempfile::tempdir().unwrap();
    let (app, caller) = open(&home, "[tools]\ndeny = [\"greet\"]\n").await;
    let registry = app.registry_of(&caller).await.unwrap();
    assert!(registry.has("greet"));
    let explained = app.explain_tool(&caller, "greet").await.unwrap();
    assert_eq!(explained.presence, Presence::Here);
    assert!(!explained.verdict.allowed && explained.to_string().contains("tools.deny"), "{explained}");
    app.close().await;
}
