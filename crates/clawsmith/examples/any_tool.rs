//! A tool whose name and schema are known only at run time, and the list of all tools by section.

use std::sync::Arc;

use async_trait::async_trait;
use clawsmith::{
    AgentId, AnyTool, Call, Caller, Facts, Group, Meta, Output, Plan, Registry, Request, Section, SessionKey,
    Spec, ToolError, ToolName, Toolbox, catalogue,
};
use serde_json::{Value, json};

/// A fixed answer, described by data.
struct Answer {
    meta: Meta,
    spec: Spec,
    text: String,
}

impl Answer {
    fn of(definition: &Value) -> anyhow::Result<Self> {
        let name = ToolName::new(definition["name"].as_str().unwrap_or_default())?;
        let meta = Meta::of(name, Group::named("answers")).effects(&[]).about("Answer a question.");
        let spec = Spec::with_schema(&meta, definition["schema"].clone());
        Ok(Self { meta, spec, text: definition["text"].as_str().unwrap_or_default().to_owned() })
    }
}

#[async_trait]
impl AnyTool for Answer {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn plan(&self, _facts: &Facts, _args: &Value) -> Result<Plan, ToolError> {
        Ok(Plan::of(&self.meta))
    }

    async fn run_erased(&self, _call: &Call, args: Value) -> Result<Output, ToolError> {
        Ok(Output::text(format!("{}: {}", args["to"].as_str().unwrap_or_default(), self.text)))
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let definition = json!({
        "name": "opening_hours",
        "text": "nine to five",
        "schema": { "type": "object", "properties": { "to": { "type": "string" } }, "required": ["to"] },
    });
    let toolbox = Toolbox::builder().any_tool(Arc::new(Answer::of(&definition)?)).build()?;
    let caller = Caller::new(AgentId::new("demo")?, SessionKey::new("example:10")?, "/srv/demo");
    let offer = toolbox.offer(caller).await;
    let ask = |args| toolbox.execute(&offer, Request::new("opening_hours", args));
    assert_eq!(ask(json!({ "to": "Ada" })).await.model_text(), "Ada: nine to five");
    // The schema holds for it as for any tool.
    println!("{}", ask(json!({ "from": "Ada" })).await.model_text());

    let registry: &Registry = toolbox.registry();
    for (section, tools) in registry.list_by_section() {
        let section: Section = section;
        println!(
            "{section:?}: {}",
            tools.iter().map(|tool| tool.meta.name.as_str()).collect::<Vec<_>>().join(", ")
        );
    }
    println!("the catalogue has {} tools, this build or not", catalogue().len());
    Ok(())
}
