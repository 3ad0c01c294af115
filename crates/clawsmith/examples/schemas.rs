//! The same tools, as three providers want them.

use clawsmith::{AgentId, Caller, Dialect, SessionKey, Toolbox};

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let toolbox = Toolbox::builder().build()?;
    let caller = Caller::new(AgentId::new("demo")?, SessionKey::new("example:4")?, "/srv/demo");
    let offer = toolbox.offer(caller).await;

    for provider in ["openai", "anthropic", "google-vertex"] {
        let tools = offer.render(Dialect::for_provider(provider));
        println!("{provider}: {} tools, the first is", tools.len());
        if let Some(tool) = tools.first() {
            println!("{}\n", serde_json::to_string_pretty(tool)?);
        }
    }
    println!("all of them cost about {} tokens", offer.tokens());
    Ok(())
}
