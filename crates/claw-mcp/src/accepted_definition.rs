//! Definitions of a server's tools: the accepted ones, the check that a definition is still that, and their metadata for the
//! policy.

use claw_core::ServerName;
use claw_core::store::{McpServer, McpTool};
use claw_core::tool::{Cost, Digest, ErrorKind, Group, Meta, Need, Source, Spec, ToolError};
use serde_json::{Map, Value};
use smol_str::SmolStr;

use crate::annotations::effects;
use crate::tool_name::tool_name;

/// The parts of a definition that a model or a policy reads. Only these are pinned.
const PINNED: [&str; 6] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];
/// The longest description that a model is sent, in characters.
const LONGEST_ABOUT: usize = 4_096;

/// The definition of a tool as it is pinned.
pub(crate) fn pinned(tool: &rmcp::model::Tool) -> Value {
    let whole = serde_json::to_value(tool).unwrap_or_default();
    let Value::Object(mut whole) = whole else { return Value::Null };
    let parts = PINNED.iter().filter_map(|part| Some(((*part).to_owned(), whole.remove(*part)?)));
    Value::Object(parts.collect::<Map<_, _>>())
}

/// Checks that the definition that the server has `now` is the accepted one, whatever the store says.
pub(crate) fn check_accepted(
    server: &ServerName,
    tool: &str,
    accepted: Digest,
    now: Option<Digest>,
) -> Result<(), ToolError> {
    if now == Some(accepted) {
        return Ok(());
    }
    let message =
        format!("the definition of `{tool}` at MCP server `{server}` is not the one that was accepted");
    // A connection with values or a login of its own does not store what it lists: it would block the tool for everyone else.
    Err(ToolError::new(ErrorKind::Forbidden, message).try_instead(format!(
        "ask the administrator to run `clawsmith mcp test {server}`, which reads the definitions again, and then \
         `clawsmith mcp pin {server}`, which shows the difference"
    )))
}

/// Returns the metadata and the specification of an accepted tool; the error says why there is none. `longest` is the
/// longest time in seconds that any caller has for a call: each call is ended at its caller's own limit.
pub(crate) fn read(server: &McpServer, tool: &McpTool, longest: u32) -> Result<(Meta, Spec), String> {
    let definition = tool.accepted.as_ref().ok_or("nobody has accepted it")?;
    let name = tool_name(server, &tool.name).map_err(|error| error.to_string())?;
    let text = |key: &str| definition.get(key).and_then(Value::as_str);
    let mut meta = Meta::of(name, Group::Mcp(SmolStr::new(server.name.as_str())));
    meta.also_in = vec![Group::Named(SmolStr::new_static("mcp"))].into();
    meta.source = Source::Mcp { server: SmolStr::new(server.name.as_str()) };
    meta.effects = effects(definition.get("annotations"));
    meta.needs = vec![Need::Inputs].into();
    meta.cost = Cost::Normal;
    meta.timeout_secs = Some(timeout_secs(longest));
    meta.label = text("title").map(SmolStr::new);
    let about = text("description").unwrap_or_default();
    let cut: String = about.chars().take(LONGEST_ABOUT).collect();
    meta.about = SmolStr::new(if cut.is_empty() { tool.name.as_str() } else { cut.as_str() });
    let schema = definition.get("inputSchema").cloned().unwrap_or_default();
    let spec = Spec::with_schema(&meta, schema);
    Ok((meta, spec))
}

/// The seconds beyond the server's own timeout before the executor ends a call, so that the clearer message
/// comes first.
const GRACE: u32 = 15;

/// The seconds after which the executor ends a call that may take `longest` seconds.
pub(crate) const fn timeout_secs(longest: u32) -> u32 {
    longest.saturating_add(GRACE)
}

#[cfg(test)]
mod tests {
    use claw_core::ServerName;
    use claw_core::store::{McpProgram, McpTransport};
    use serde_json::json;

    use super::*;

    fn server() -> McpServer {
        McpServer::new(ServerName::new("s").unwrap(), McpTransport::Stdio(McpProgram::default()))
    }

    fn tool(definition: Value) -> McpTool {
        let name = ServerName::new("s").unwrap();
        McpTool { server: name, name: "t".into(), accepted: Some(definition), proposed: None, gone: false }
    }

    #[test]
    fn the_whole_schema_is_kept() {
        let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}});
        let (meta, spec) = read(&server(), &tool(json!({"name": "t", "inputSchema": schema})), 60).unwrap();
        assert_eq!(*spec.parameters, schema);
        assert_eq!(meta.name.as_str(), "mcp_s_t");
        assert_eq!(meta.group.name(), "mcp:s");
        assert!(meta.also_in.iter().any(|group| group.name() == "mcp"));
    }

    #[test]
    fn what_a_model_reads_is_pinned_and_nothing_else() {
        let listed: rmcp::model::Tool = serde_json::from_value(json!({
            "name": "t", "description": "d", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true},
            "_meta": {"time": 1}, "icons": [{"src": "https://x/y.png"}],
        }))
        .unwrap();
        let pinned = pinned(&listed);
        assert_eq!(
            pinned,
            json!({"name": "t", "description": "d", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}})
        );
    }
}
