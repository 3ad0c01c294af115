//! How many tokens a tool costs, for tools that come at run time.

use serde_json::Value;

/// About how many tokens a schema, or a whole tool, costs in a request.
pub fn estimate_tokens(value: &Value) -> usize {
    value.to_string().len() / 4
}
