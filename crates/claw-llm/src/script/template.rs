//! Texts with placeholders, such as `{{said.path}}`, that are filled from the conversation.

use serde_json::{Map, Value};

use super::matching::{Captured, When};

/// A text with placeholders.
#[derive(Debug)]
pub(super) struct Template(Vec<Chunk>);

#[derive(Debug)]
enum Chunk {
    Words(String),
    Said,
    SaidGroup(String),
    Result,
    ResultGroup(String),
    ResultOf(String),
}

impl Template {
    /// Parses a text. A placeholder that nothing could fill is refused; other braces are kept.
    pub(super) fn parse(text: &str, when: &When) -> Result<Self, String> {
        let mut chunks = Vec::new();
        let mut words = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("{{") {
            let (before, from) = rest.split_at(at);
            words.push_str(before);
            let inner = from[2..].split_once("}}").map(|(inner, _)| inner).filter(|inner| is_name(inner));
            let Some(inner) = inner else {
                words.push('{');
                rest = &from[1..];
                continue;
            };
            if !words.is_empty() {
                chunks.push(Chunk::Words(std::mem::take(&mut words)));
            }
            chunks.push(blank(inner, when)?);
            rest = &from[inner.len() + 4..];
        }
        words.push_str(rest);
        if !words.is_empty() {
            chunks.push(Chunk::Words(words));
        }
        Ok(Self(chunks))
    }

    pub(super) fn fill(&self, found: &Captured<'_>) -> String {
        let texts = self.0.iter().map(|chunk| match chunk {
            Chunk::Words(words) => words,
            Chunk::Said => found.said(),
            Chunk::SaidGroup(name) => found.said_group(name),
            Chunk::Result => found.result(),
            Chunk::ResultGroup(name) => found.result_group(name),
            Chunk::ResultOf(tool) => found.result_of(tool),
        });
        texts.collect()
    }
}

fn is_name(inner: &str) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    !inner.is_empty() && inner.chars().all(letters)
}

fn blank(inner: &str, when: &When) -> Result<Chunk, String> {
    let group = |name: &str, regex: Option<&regex::Regex>, key: &str| {
        let Some(regex) = regex else {
            return Err(format!("`{{{{{inner}}}}}` needs `when.{key}`, which this turn does not have"));
        };
        let known = match name.parse::<usize>() {
            Ok(number) => number < regex.captures_len(),
            Err(_) => regex.capture_names().flatten().any(|known| known == name),
        };
        if known {
            return Ok(name.to_owned());
        }
        let names = regex.capture_names().flatten().map(|name| format!("`{name}`")).collect::<Vec<_>>();
        let has = if names.is_empty() { "no named group".to_owned() } else { names.join(", ") };
        Err(format!("`when.{key}` has no group `{name}` for `{{{{{inner}}}}}`; it has {has}"))
    };
    match inner.split_once('.') {
        None if inner == "said" => Ok(Chunk::Said),
        None if inner == "result" => Ok(Chunk::Result),
        Some(("said", name)) => group(name, when.said_matches.as_ref(), "said_matches").map(Chunk::SaidGroup),
        Some(("result", name)) => {
            group(name, when.result_matches.as_ref(), "result_matches").map(Chunk::ResultGroup)
        }
        Some(("result_of", tool)) => Ok(Chunk::ResultOf(tool.to_owned())),
        _ => Err(format!(
            "`{{{{{inner}}}}}` is not a placeholder; use `said`, `said.GROUP`, `result`, `result.GROUP` or \
             `result_of.TOOL`"
        )),
    }
}

/// Arguments with placeholders.
#[derive(Debug)]
pub(super) enum ArgsTemplate {
    /// Any text.
    Text(Template),
    /// JSON whose strings have placeholders.
    Json(Tree),
}

#[derive(Debug)]
pub(super) enum Tree {
    Plain(Value),
    Text(Template),
    List(Vec<Tree>),
    Table(Vec<(String, Tree)>),
}

impl ArgsTemplate {
    pub(super) fn table(table: toml::Table, when: &When) -> Result<Self, String> {
        Ok(Self::Json(Tree::of(toml::Value::Table(table), when)?))
    }

    pub(super) fn fill(&self, found: &Captured<'_>) -> String {
        match self {
            Self::Text(template) => template.fill(found),
            Self::Json(tree) => tree.fill(found).to_string(),
        }
    }
}

impl Tree {
    fn of(value: toml::Value, when: &When) -> Result<Self, String> {
        Ok(match value {
            toml::Value::String(text) => Self::Text(Template::parse(&text, when)?),
            toml::Value::Integer(number) => Self::Plain(number.into()),
            toml::Value::Float(number) if number.is_finite() => Self::Plain(number.into()),
            toml::Value::Float(number) => return Err(format!("`{number}` is not a JSON number")),
            toml::Value::Boolean(yes) => Self::Plain(yes.into()),
            toml::Value::Datetime(time) => Self::Plain(time.to_string().into()),
            toml::Value::Array(items) => {
                Self::List(items.into_iter().map(|item| Self::of(item, when)).collect::<Result<_, _>>()?)
            }
            toml::Value::Table(table) => {
                let pairs = table.into_iter().map(|(key, value)| Ok((key, Self::of(value, when)?)));
                Self::Table(pairs.collect::<Result<_, String>>()?)
            }
        })
    }

    fn fill(&self, found: &Captured<'_>) -> Value {
        match self {
            Self::Plain(value) => value.clone(),
            Self::Text(template) => template.fill(found).into(),
            Self::List(items) => items.iter().map(|item| item.fill(found)).collect(),
            Self::Table(pairs) => {
                let pairs = pairs.iter().map(|(key, value)| (key.clone(), value.fill(found)));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }
}
