//! Register a tool of your own and call it.

use clawsmith::{AgentId, Call, Caller, Group, Meta, Output, Request, SessionKey, Tool, ToolError, Toolbox};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

struct Greet;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The person to greet.
    name: String,
    /// The number of greetings.
    times: Option<u8>,
}

impl Tool for Greet {
    type Args = Args;
    const META: Meta = Meta::new("greet", Group::named("demo")).effects(&[]).about("Say hello to someone.");

    async fn run(&self, _call: &Call, args: Args) -> Result<Output, ToolError> {
        let times = args.times.unwrap_or(1);
        if times > 3 {
            return Err(
                ToolError::invalid(format!("{times} greetings are too many")).try_instead("ask for 3")
            );
        }
        Ok(Output::text(format!("Hello, {}!\n", args.name).repeat(times.into())))
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let toolbox = Toolbox::builder().tool(Greet).build()?;
    let caller = Caller::new(AgentId::new("demo")?, SessionKey::new("example:1")?, "/srv/demo");
    let offer = toolbox.offer(caller).await;

    for args in [
        json!({ "name": "Ada", "times": 2 }),
        // Slips that can mean only one thing are repaired, and the model is told.
        json!({ "Name": "Ada", "times": "2" }),
        // Mistakes that cannot be repaired are explained.
        json!({ "nmae": "Ada" }),
        // The tool's own errors come back with what to try.
        json!({ "name": "Ada", "times": 9 }),
    ] {
        println!("greet {args}");
        let reply = toolbox.execute(&offer, Request::new("greet", args)).await;
        println!("{}\n", reply.model_text());
    }
    Ok(())
}
