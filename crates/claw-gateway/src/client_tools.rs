//! Tools of a client, in OpenAI's two forms: their definitions, the choice among them, and calls of them.
//!
//! The id of a call names the run that made it, so that a client that sends only messages continues the right session.

use clawsmith::app::{ClientChoice, ClientTool, ClientTools};
use clawsmith::{CallId, JobId, ToolName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::ApiError;

/// The start of a call's id.
const PREFIX: &str = "call_";

/// A tool of a client, as chat completions declare it.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ChatTool {
    /// `function`.
    #[serde(rename = "type")]
    kind: String,
    function: Option<Function>,
}

/// A tool of a client, as responses declare it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ResponseTool {
    /// `function`.
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    description: Option<String>,
    /// JSON Schema of the arguments; an object.
    parameters: Option<Value>,
    /// Accepted and returned; the agent's model decides how strict it is.
    strict: Option<bool>,
}

/// A function of a client.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Function {
    name: String,
    description: Option<String>,
    /// JSON Schema of the arguments; an object.
    parameters: Option<Value>,
}

/// A call of a client's tool.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    /// `function`.
    #[serde(rename = "type", default = "function")]
    kind: String,
    pub(crate) function: CalledFunction,
}

/// The function that is called.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CalledFunction {
    pub(crate) name: String,
    /// The arguments, as JSON text: the model's words.
    pub(crate) arguments: String,
}

fn function() -> String {
    "function".to_owned()
}

impl ToolCall {
    /// A call of this run.
    pub(crate) fn new(run: JobId, call: CallId, name: String, arguments: String) -> Self {
        Self::with_id(id(run, call), name, arguments)
    }

    /// A call that the client names.
    pub(crate) fn with_id(id: String, name: String, arguments: String) -> Self {
        Self { id, kind: function(), function: CalledFunction { name, arguments } }
    }

    /// Returns whether it is this call.
    pub(crate) fn is_of(&self, call: CallId) -> bool {
        read_id(&self.id).is_some_and(|(_, of)| of == call)
    }
}

/// The id of a call for the client.
pub(crate) fn id(run: JobId, call: CallId) -> String {
    format!("{PREFIX}{run}_{call}")
}

/// The run and the call that an id names.
pub(crate) fn read_id(id: &str) -> Option<(JobId, CallId)> {
    let (run, call) = id.strip_prefix(PREFIX)?.split_once('_')?;
    Some((run.parse().ok()?, call.parse().ok()?))
}

/// The tools of a chat completion's client.
pub(crate) fn of_chat(tools: Vec<ChatTool>, choice: Option<&Value>) -> Result<ClientTools, ApiError> {
    let tool = |tool: ChatTool| {
        check_kind(&tool.kind)?;
        let Function { name, description, parameters } =
            tool.function.ok_or_else(|| ApiError::invalid("a tool has no `function`"))?;
        client_tool(&name, description, parameters)
    };
    chosen(tools.into_iter().map(tool).collect::<Result<_, _>>()?, choice)
}

/// The tools of a response's client.
pub(crate) fn of_responses(tools: &[ResponseTool], choice: Option<&Value>) -> Result<ClientTools, ApiError> {
    let tool = |tool: &ResponseTool| {
        check_kind(&tool.kind)?;
        let name = tool.name.as_deref().unwrap_or_default();
        client_tool(name, tool.description.clone(), tool.parameters.clone())
    };
    chosen(tools.iter().map(tool).collect::<Result<_, _>>()?, choice)
}

fn check_kind(kind: &str) -> Result<(), ApiError> {
    if kind == "function" {
        return Ok(());
    }
    let kind: String = kind.chars().take(50).collect();
    Err(ApiError::invalid(format!("tools of the type `{kind}` are not supported; declare a `function`")))
}

fn client_tool(
    name: &str,
    description: Option<String>,
    parameters: Option<Value>,
) -> Result<ClientTool, ApiError> {
    let name = ToolName::new(name).map_err(|error| ApiError::invalid(error.to_string()))?;
    let parameters = match parameters {
        None | Some(Value::Null) => json!({ "type": "object", "properties": {} }),
        Some(Value::Object(empty)) if empty.is_empty() => json!({ "type": "object", "properties": {} }),
        Some(parameters) => parameters,
    };
    Ok(ClientTool { name, description: description.unwrap_or_default(), parameters })
}

/// Applies `tool_choice`, which speaks of the client's tools: the agent's own are its affair.
fn chosen(mut tools: Vec<ClientTool>, choice: Option<&Value>) -> Result<ClientTools, ApiError> {
    let unknown = || {
        ApiError::invalid("`tool_choice` must be `auto`, `none`, `required`, or name a function in `tools`")
    };
    let choice = match choice {
        None | Some(Value::Null) => ClientChoice::Auto,
        Some(Value::String(mode)) => match mode.as_str() {
            "auto" => ClientChoice::Auto,
            "none" => return Ok(ClientTools::default()),
            "required" if !tools.is_empty() => ClientChoice::Required,
            _ => return Err(unknown()),
        },
        Some(choice) if choice["type"] == "allowed_tools" => {
            let allowed = if choice["allowed_tools"].is_object() { &choice["allowed_tools"] } else { choice };
            let names: Vec<&str> =
                allowed["tools"].as_array().ok_or_else(unknown)?.iter().filter_map(named).collect();
            tools.retain(|tool| names.contains(&tool.name.as_str()));
            return chosen(tools, Some(&allowed["mode"]));
        }
        Some(choice) => {
            let name = named(choice).ok_or_else(unknown)?;
            let tool = tools.iter().find(|tool| tool.name.as_str() == name).ok_or_else(unknown)?;
            ClientChoice::Named(tool.name.clone())
        }
    };
    Ok(ClientTools { tools, choice })
}

/// The name of a function, in either form.
fn named(choice: &Value) -> Option<&str> {
    choice["function"]["name"].as_str().or_else(|| choice["name"].as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Vec<ChatTool> {
        let tool = |name: &str| json!({ "type": "function", "function": { "name": name } });
        serde_json::from_value(json!([tool("one"), tool("two")])).unwrap()
    }

    #[track_caller]
    fn check(choice: Value, names: &[&str], expected: &ClientChoice) {
        let chosen = of_chat(tools(), Some(&choice)).unwrap();
        assert_eq!(chosen.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), names);
        assert_eq!(chosen.choice, *expected);
    }

    #[test]
    fn a_choice_speaks_of_the_clients_tools() {
        check(json!("auto"), &["one", "two"], &ClientChoice::Auto);
        check(Value::Null, &["one", "two"], &ClientChoice::Auto);
        check(json!("none"), &[], &ClientChoice::Auto);
        check(json!("required"), &["one", "two"], &ClientChoice::Required);
        let two = ClientChoice::Named(ToolName::new("two").unwrap());
        check(json!({ "type": "function", "function": { "name": "two" } }), &["one", "two"], &two);
        check(json!({ "type": "function", "name": "two" }), &["one", "two"], &two);
        let allowed =
            json!({ "mode": "required", "tools": [{ "type": "function", "function": { "name": "one" } }] });
        check(
            json!({ "type": "allowed_tools", "allowed_tools": allowed }),
            &["one"],
            &ClientChoice::Required,
        );
        for wrong in [json!("any"), json!({ "type": "function", "name": "three" }), json!(7), json!({})] {
            assert!(of_chat(tools(), Some(&wrong)).is_err(), "{wrong}");
        }
        assert!(of_chat(Vec::new(), Some(&json!("required"))).is_err());
    }

    #[test]
    fn refuses_what_is_no_function() {
        for wrong in [
            json!({ "type": "web_search" }),
            json!({ "type": "function" }),
            json!({ "type": "function", "function": { "name": "no name" } }),
        ] {
            let wrong: ChatTool = serde_json::from_value(wrong).unwrap();
            assert!(of_chat(vec![wrong], None).is_err());
        }
    }

    #[test]
    fn an_id_names_run_and_call() {
        let (run, call) = (JobId::new(), CallId::new());
        assert_eq!(read_id(&id(run, call)), Some((run, call)));
        for wrong in ["", "call_", "call_1", "call_1_2", "x"] {
            assert_eq!(read_id(wrong), None);
        }
    }
}
