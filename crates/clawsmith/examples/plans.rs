//! A tool's plan and a rehearsal of it: they tell the effects of a call before it does anything.

use clawsmith::{
    AgentId, Ask, Call, Caller, Effect, Facts, Group, Meta, Need, Output, Plan, RehearsedVerdict, Request,
    SessionKey, Tool, ToolError, Toolbox, port::WriteMode,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Writes a greeting to a file.
struct Greet;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The person to greet.
    name: String,
    /// Where to write it.
    path: String,
}

impl Tool for Greet {
    type Args = Args;
    const META: Meta = Meta::new("greet", Group::Fs)
        .effects(&[Effect::Read, Effect::Write])
        .needs(&[Need::Files])
        .about("Write a greeting to a file.");

    // Pure: it touches nothing. What it does not name here, the files port refuses later.
    fn plan(&self, _: &Facts, args: &Args) -> Plan {
        Plan::write(&args.path)
    }

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let text = format!("Hello, {}!\n", args.name);
        call.files()?.write(&args.path, &text, WriteMode::Overwrite).await?;
        Ok(Output::text(format!("wrote `{}`", args.path)))
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let workspace = tempfile::tempdir()?;
    let toolbox = Toolbox::builder().tool(Greet).build()?;
    let caller =
        Caller::new(AgentId::new("demo")?, SessionKey::new("example:8")?, workspace.path().canonicalize()?);
    let facts = caller.facts("greet");
    let args = Args { name: "Ann".to_owned(), path: "hello.txt".to_owned() };
    assert_eq!(Greet.plan(&facts, &args).asks, [Ask::Write { path: "hello.txt".to_owned() }]);

    // The same by the road: the verdict on the plan, and nothing has happened.
    let offer = toolbox.offer(caller).await;
    for (path, expected) in [("hello.txt", RehearsedVerdict::Allow), ("/etc/motd", RehearsedVerdict::Deny)] {
        let request = Request::new("greet", json!({ "name": "Ann", "path": path }));
        let rehearsal =
            toolbox.rehearse(&offer, request).await.map_err(|refusal| anyhow::anyhow!("{refusal}"))?;
        println!("{path}: {:?} {} {}", rehearsal.verdict, rehearsal.effects, rehearsal.plan);
        assert_eq!(rehearsal.verdict, expected);
    }
    assert!(!workspace.path().join("hello.txt").exists());

    let request = Request::new("greet", json!({ "name": "Ann", "path": "hello.txt" }));
    println!("{}", toolbox.execute(&offer, request).await.model_text());
    assert_eq!(std::fs::read_to_string(workspace.path().join("hello.txt"))?, "Hello, Ann!\n");
    Ok(())
}
