//! Annotations of a server's tools, as effects for the policy.

use claw_core::tool::{Effect, Effects};
use serde_json::Value;

/// Returns the effects that a server's annotations declare; all of them if there are none.
///
/// The annotations were accepted with the rest of the definition, and a change of them stops the tool.
pub(crate) fn effects(annotations: Option<&Value>) -> Effects {
    let hint = |name: &str| annotations.and_then(|hints| hints.get(name)).and_then(Value::as_bool);
    let network =
        if hint("openWorldHint") == Some(false) { Effects::NONE } else { Effects::of(&[Effect::Network]) };
    match (hint("readOnlyHint"), hint("destructiveHint")) {
        (Some(true), _) => Effects::of(&[Effect::Read]).and(network),
        (_, Some(false)) => Effects::of(&[Effect::Read, Effect::Write]).and(network),
        _ => Effects::ALL,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn undeclared_effects_are_all_effects() {
        for annotations in
            [json!(null), json!({}), json!({"readOnlyHint": "yes"}), json!({"idempotentHint": true})]
        {
            assert_eq!(effects(Some(&annotations)), Effects::ALL, "{annotations}");
        }
        assert_eq!(effects(None), Effects::ALL);
        let read = effects(Some(&json!({"readOnlyHint": true, "openWorldHint": false})));
        assert_eq!(read, Effects::of(&[Effect::Read]));
        let open = effects(Some(&json!({"readOnlyHint": true})));
        assert_eq!(open, Effects::of(&[Effect::Read, Effect::Network]));
    }
}
