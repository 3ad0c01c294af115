//! Checks that the argument schema of every built-in has a plain object at its root.
//!
//! Some providers refuse a root that is a union. A tool with many actions takes flat arguments with an
//! `action` field and turns them into a command itself.

use std::sync::Arc;

use claw_core::tool::AnyTool;
use serde_json::Value;

use crate::finding::Finding;

/// The file that findings point to: the generated page that shows every schema.
const WHERE: &str = "docs/tools.md";

pub(super) fn check(tools: &[Arc<dyn AnyTool>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for tool in tools {
        let spec = tool.spec();
        findings.extend(refuse(&spec.parameters).map(|what| {
            let says = format!("the arguments of `{}` {what}", spec.name);
            Finding::new(WHERE, 1, says)
        }));
    }
    findings
}

fn refuse(schema: &Value) -> Option<String> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Some("are not an object; make them a struct with named fields".to_owned());
    }
    if !schema.get("properties").is_some_and(Value::is_object) {
        return Some("have no `properties`; make them a struct with named fields".to_owned());
    }
    let union = ["oneOf", "anyOf", "allOf", "$ref"].into_iter().find(|key| schema.get(key).is_some())?;
    Some(format!(
        "have `{union}` at the root; use flat fields with an `action` and `TryFrom` in place of an enum"
    ))
}

#[cfg(test)]
mod tests;
