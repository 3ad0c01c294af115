//! Progress of a running call, and a call that is cancelled.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use clawsmith::{
    AgentId, Call, Caller, Effect, Facts, Group, Meta, Output, Plan, Progress, Request, SessionKey, Tool,
    ToolError, Toolbox, UserId,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Counts aloud.
struct Count;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// How far.
    to: u32,
}

impl Tool for Count {
    type Args = Args;
    const META: Meta = Meta::new("count", Group::Automation).effects(&[Effect::Read]).about("Count aloud.");

    fn plan(&self, _: &Facts, _: &Args) -> Plan {
        Plan::read()
    }

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        for number in 1..=args.to {
            call.progress().tell(&format!("{number}\n"));
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(1)) => {}
                () = call.cancel().cancelled() => return Err(ToolError::failed(format!("stopped at {number}"))),
            }
        }
        Ok(Output::text(format!("counted to {}", args.to)))
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let toolbox = Toolbox::builder().tool(Count).build()?;
    let caller = Caller::new(AgentId::new("demo")?, SessionKey::new("example:7")?, "/srv/demo")
        .for_user(UserId::new("ann")?);
    let offer = toolbox.offer(caller).await;

    let told = Arc::new(Mutex::new(String::new()));
    let heard = Arc::clone(&told);
    let progress = Progress::to(move |text| {
        if let Ok(mut heard) = heard.lock() {
            heard.push_str(text);
        }
    });
    let request = Request::new("count", json!({ "to": 3 })).with_progress(progress);
    let reply = toolbox.execute(&offer, request).await;
    println!("{}", reply.model_text());
    assert_eq!(told.lock().map(|told| told.clone()).ok().as_deref(), Some("1\n2\n3\n"));

    // Whoever waits gives up.
    let stop = CancellationToken::new();
    let request = Request::new("count", json!({ "to": 1_000_000 })).cancelled_by(stop.clone());
    let (reply, ()) = tokio::join!(toolbox.execute(&offer, request), async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        stop.cancel();
    });
    println!("{}", reply.model_text());
    assert!(!reply.is_done());
    Ok(())
}
