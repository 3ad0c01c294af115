//! Keys set by environment: `CLAWSMITH_TOOLS__PROFILE=coding` is `tools.profile = "coding"`.
//!
//! Two underscores go one level down. A value is read as TOML if that gives the key's type, else as text; a
//! list may be written with commas. A variable with our prefix that names no key is refused, since a misspelt
//! `deny` that is silently ignored would open what it was written to close.

use std::fmt;

use claw_core::did_you_mean::nearest;
use toml::{Table, Value};

use super::find::Surroundings;
use super::problem::{Problem, ProblemPlace};
use super::schema::{Child, Node};

const PREFIX: &str = "CLAWSMITH_";
/// Variables that are ours and no keys.
pub(crate) const RESERVED: [&str; 5] =
    ["CLAWSMITH_API_KEY", "CLAWSMITH_CONFIG", KEYS, "CLAWSMITH_LOG", "CLAWSMITH_LOG_FORMAT"];
/// The variable with the keys of sealed values. It is not a configuration key, so that it is never shown.
pub const KEYS: &str = "CLAWSMITH_KEYS";

/// A key set by an environment variable.
#[derive(Clone, PartialEq)]
pub(super) struct Override {
    pub(super) variable: String,
    pub(super) path: Vec<String>,
    pub(super) value: Value,
}

// Its value may hold a password.
impl fmt::Debug for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Override").field("variable", &self.variable).finish_non_exhaustive()
    }
}

/// Returns every key that the environment sets. `file` gives the spelling of names that people chose.
pub(super) fn overrides(around: &Surroundings, file: &Table) -> Result<Vec<Override>, Vec<Problem>> {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for (name, value) in &around.variables {
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
        if RESERVED.contains(&name) {
            continue;
        }
        let read = match value.to_str() {
            Some(value) => read(name, value, file),
            None => Err("its value is not UTF-8".to_owned()),
        };
        let problem =
            |message| Problem { message, place: ProblemPlace::Variable { variable: name.to_owned() } };
        match read {
            Ok(set) => found.push(set),
            Err(message) => problems.push(problem(message)),
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

fn read(variable: &str, text: &str, file: &Table) -> Result<Override, String> {
    let (mut node, mut written) = (Some(Node::root()), Some(file));
    let mut path = Vec::new();
    for segment in variable[PREFIX.len()..].split("__") {
        let mut key = segment.to_lowercase();
        if node.is_none_or(Node::is_map) {
            key = written.and_then(|table| spelt(table, &key)).unwrap_or(key);
        }
        node = match node.map(|node| node.child(&key)) {
            Some(Child::Known(node)) => Some(node),
            Some(Child::Anything) | None => None,
            Some(Child::Unknown(names)) => return Err(unknown(variable, &path, &key, &names)),
        };
        written = written.and_then(|table| table.get(&key)?.as_table());
        path.push(key);
    }
    Ok(Override { variable: variable.to_owned(), path, value: value(text, node) })
}

/// A name as the file has it: variables have no lower case and no dashes.
fn spelt(table: &Table, key: &str) -> Option<String> {
    let plain = |text: &str| text.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    table.keys().find(|name| plain(name) == plain(key)).cloned()
}

fn unknown(variable: &str, path: &[String], key: &str, names: &[&str]) -> String {
    let variable_of = |name: &str| {
        let path: Vec<_> = path.iter().map(String::as_str).chain([name]).map(str::to_uppercase).collect();
        format!("{PREFIX}{}", path.join("__"))
    };
    if let Some(name) = names.iter().find(|name| key.starts_with(&format!("{name}_"))) {
        let meant = format!("{}__{}", variable_of(name), key[name.len() + 1..].to_uppercase());
        return format!("there is no such key; separate levels with two underscores: `{meant}`");
    }
    let reserved = RESERVED.iter().filter(|_| path.is_empty()).map(|name| &name[PREFIX.len()..]);
    let lower: Vec<String> = reserved.map(str::to_lowercase).collect();
    if let Some(near) = nearest(key, names.iter().copied().chain(lower.iter().map(String::as_str))) {
        return format!("there is no such key; did you mean `{}`?", variable_of(near));
    }
    if names.is_empty() {
        return format!("`{}` has no keys below it", path.join("."));
    }
    let all: Vec<_> = names.iter().map(|name| format!("`{}`", variable_of(name))).collect();
    format!("there is no such key ({variable} would set `{key}`); use one of {}", all.join(", "))
}

fn value(text: &str, node: Option<Node>) -> Value {
    let parsed = parse(text);
    let Some(node) = node else { return parsed.unwrap_or_else(|| text.into()) };
    match parsed {
        Some(value @ Value::String(_)) => value,
        Some(value @ (Value::Array(_) | Value::Table(_))) if node.takes("array") || node.is_object() => value,
        _ if node.takes("array") => {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            Value::Array(parts.map(Value::from).collect())
        }
        _ if node.takes("string") => text.into(),
        Some(value) => value,
        None => text.into(),
    }
}

fn parse(text: &str) -> Option<Value> {
    // One value and nothing after it: a line break would be more than a value.
    if text.contains(['\n', '\r']) && !text.trim_start().starts_with(['[', '"', '\'']) {
        return None;
    }
    let mut table: Table = toml::from_str(&format!("value = {text}")).ok()?;
    let value = table.remove("value")?;
    table.is_empty().then_some(value)
}
