//! `openai_compat_call`: sends a request to a configured endpoint, in that endpoint's own format.

use claw_core::port::EndpointRequest;
use claw_core::tool::{
    Ask, Call, Cost, Effect, Effects, Facts, Group, Meta, Need, Origin, Output, Plan, Tool, ToolError,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Default)]
pub(crate) struct OpenaiCompatCall;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Name of the endpoint. Leave out to list them.
    endpoint: Option<String>,
    /// Values for the placeholders in the endpoint's body, by name.
    #[serde(default)]
    values: Map<String, Value>,
    /// The whole request body, if the endpoint does not define one.
    body: Option<Map<String, Value>>,
    /// The field of the answer to return, as a JSON pointer like `/data/0`, instead of the endpoint's.
    read: Option<String>,
}

impl Tool for OpenaiCompatCall {
    type Args = Args;
    const META: Meta = Meta::new("openai_compat_call", Group::Ai)
        .effects(&[Effect::Network, Effect::Spend])
        .cost(Cost::Heavy)
        .needs(&[Need::Endpoints])
        .timeout_secs(600)
        .about("Send a request to a configured OpenAI-compatible endpoint and return a field of the answer.");

    /// The settings tell the origin of each endpoint; the port compares it with the origin that it really
    /// connects to.
    fn plan(&self, facts: &Facts, args: &Args) -> Plan {
        let origin = args.endpoint.as_ref().and_then(|name| facts.settings.get("origins")?.get(name));
        match origin.and_then(|origin| Origin::deserialize(origin).ok()) {
            Some(origin) => Plan::of(&Self::META).asking(Ask::Host { origin }),
            None => Plan { effects: Effects::NONE, asks: Vec::new(), given: None },
        }
    }

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let endpoints = call.endpoints()?;
        let Some(endpoint) = args.endpoint.filter(|name| !name.is_empty()) else {
            let cards = endpoints.list().await?;
            let lines = cards.iter().map(|card| {
                let takes = match &card.values {
                    Some(values) if values.is_empty() => "takes nothing".to_owned(),
                    Some(values) => format!("values: {}", values.join(", ")),
                    None => "takes a whole body".to_owned(),
                };
                format!("{}: {} ({takes})", card.name, card.about)
            });
            let text = lines.collect::<Vec<_>>().join("\n");
            return Ok(Output::text(text).with_details(json!({ "endpoints": cards })));
        };
        let request = EndpointRequest { endpoint, values: args.values, body: args.body, read: args.read };
        let answer = endpoints.send(&request).await?;
        let text = match &answer.value {
            Value::String(text) => text.clone(),
            value => serde_json::to_string_pretty(value).map_err(ToolError::internal)?,
        };
        let details = json!({ "endpoint": request.endpoint, "status": answer.status });
        Ok(Output::text(text).with_details(details))
    }
}

#[cfg(test)]
mod tests;
