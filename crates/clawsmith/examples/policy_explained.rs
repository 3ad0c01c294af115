//! A policy, what it allows, and why.

use clawsmith::{AgentId, Caller, PolicyConfig, Request, SessionKey, Subject, Toolbox};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let mut policy = PolicyConfig::default();
    policy.tools.deny = vec!["group:agents".into(), "effect:network".into()];
    let toolbox = Toolbox::builder().policy(policy).build()?;

    let caller = Caller::new(AgentId::new("demo")?, SessionKey::new("example:3")?, "/srv/demo");
    let tools = toolbox.registry().tool_set();
    let decision = toolbox.policy().decide(&tools, &Subject::from(&caller));
    for (meta, verdict) in decision.iter() {
        let word = if verdict.allowed { "allowed" } else { "refused" };
        println!("{:<16} {word}: {}", meta.name.as_str(), verdict.trace);
    }

    // A tool that is not offered cannot be called, even by a model that knows its name.
    let offer = toolbox.offer(caller).await;
    let reply = toolbox.execute(&offer, Request::new("agents_list", json!({}))).await;
    println!("\nagents_list: {}", reply.model_text());
    Ok(())
}
