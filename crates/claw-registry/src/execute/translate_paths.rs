//! Translates paths in the arguments of a call: a workspace path as commands see it means the same file for
//! every tool.

use std::path::{Component, Path};

use claw_core::tool::Caller;
use serde_json::Value;

use claw_schema::validate::Checked;

/// Fields of arguments that hold paths of the workspace.
const PATHS: [&str; 6] = ["path", "paths", "directory", "root", "working_dir", "file_path"];

/// Makes paths that begin with the sandbox's name of the workspace relative to it, with a note.
pub(super) fn translate_paths(caller: &Caller, checked: &mut Checked) {
    let Some(shown) = caller.shown_workspace.as_deref() else { return };
    // If this is also the workspace's own path, there is nothing to translate.
    if caller.workspace.starts_with(shown) {
        return;
    }
    let Value::Object(fields) = &mut checked.args else { return };
    for (name, value) in fields.iter_mut().filter(|(name, _)| PATHS.contains(&name.as_str())) {
        let items = match value {
            Value::Array(items) => items.iter_mut().collect(),
            value => vec![value],
        };
        for item in items {
            if let Some(inside) = item.as_str().and_then(|path| relative(path, shown)) {
                checked.notes.push(format!("`{name}`: `{shown}` is the workspace"));
                *item = Value::String(inside);
            }
        }
    }
}

/// The path below `shown`; `None` if it is not below it.
fn relative(path: &str, shown: &str) -> Option<String> {
    let below = Path::new(path).strip_prefix(shown).ok()?;
    let climbs = below.components().any(|part| part == Component::ParentDir);
    let below = below.to_str().filter(|_| !climbs)?;
    Some(if below.is_empty() { ".".to_owned() } else { below.to_owned() })
}

#[cfg(test)]
mod tests {
    use claw_core::{AgentId, SessionKey};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_has_the_name_that_commands_know_it_by() {
        let mut caller =
            Caller::new(AgentId::new("a").unwrap(), SessionKey::new("cli:x").unwrap(), "/srv/project");
        let translated = |caller: &Caller, args: Value| {
            let mut checked = Checked { args, notes: Vec::new() };
            translate_paths(caller, &mut checked);
            (checked.args, checked.notes.len())
        };
        let args = json!({ "path": "/workspace/a/b.txt", "content": "/workspace/a" });
        assert_eq!(translated(&caller, args.clone()), (args.clone(), 0));
        caller.shown_workspace = Some("/workspace".into());
        assert_eq!(translated(&caller, args), (json!({ "path": "a/b.txt", "content": "/workspace/a" }), 1));
        for (sent, expected) in [
            ("/workspace", "."),
            ("/workspace/", "."),
            ("/workspace//a", "a"),
            ("/workspaces/a", "/workspaces/a"),
            ("/workspace/../etc/passwd", "/workspace/../etc/passwd"),
            ("workspace/a", "workspace/a"),
            ("/etc/passwd", "/etc/passwd"),
        ] {
            assert_eq!(translated(&caller, json!({ "directory": sent })).0["directory"], expected, "{sent}");
        }
        assert_eq!(
            translated(&caller, json!({ "paths": ["/workspace/a", "b"] })).0["paths"],
            json!(["a", "b"])
        );
        caller.workspace = "/workspace/me".into();
        assert_eq!(translated(&caller, json!({ "path": "/workspace/a" })).0["path"], "/workspace/a");
    }
}
