//! The file as written: its keys and their positions.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use claw_core::did_you_mean::nearest;
use serde::Deserialize as _;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Problem, ProblemPlace, Problems};
use super::schema::{Child, Node};
use super::{Config, load};

/// A file larger than this is not a configuration.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// A file that was read and has no unknown keys.
#[derive(Clone, Default)]
pub(super) struct Document {
    pub(super) path: PathBuf,
    text: String,
    pub(super) table: toml::Table,
    /// Every value by its path.
    keys: Vec<Key>,
    /// Every text in a list, by the list's path.
    entries: Vec<(String, String, Range<usize>)>,
}

// Its text may hold a password.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document").field("path", &self.path).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
struct Key {
    path: String,
    span: Range<usize>,
}

impl Document {
    /// The file as it was read.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Reads a file and refuses unknown keys.
    pub(super) fn read(path: &Path) -> Result<Self, Problems> {
        let whole =
            |message: String| Problem { message, place: ProblemPlace::WholeFile { file: path.to_owned() } };
        let size = std::fs::metadata(path).map_err(|error| whole(format!("cannot be read: {error}")))?.len();
        if size > MOST_BYTES {
            return Err(whole(format!("has {size} bytes, which is too large for a configuration")).into());
        }
        let bytes = std::fs::read(path).map_err(|error| whole(format!("cannot be read: {error}")))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            whole(format!("line {line} is not UTF-8; save the file as UTF-8"))
        })?;
        Self::parse(path, text)
    }

    /// Parses a text that may not be in the file yet.
    pub(super) fn parse(path: &Path, text: String) -> Result<Self, Problems> {
        let mut document = Self { path: path.to_owned(), ..Self::default() };
        let mut unknown = Vec::new();
        match DeTable::parse(&text) {
            Ok(table) => document.walk(table.get_ref(), &mut Vec::new(), Some(Node::root()), &mut unknown),
            Err(error) => return Err(located(path, &text, &error).into()),
        }
        document.text = text;
        if !unknown.is_empty() {
            unknown.sort_by_key(|(_, span)| span.start);
            let problem = |(message, span)| Problem { message, place: document.place(span) };
            return Err(Problems(unknown.into_iter().map(problem).collect()));
        }
        let located = |error: toml::de::Error| Problems::from(located(path, &document.text, &error));
        // Read once as a configuration for errors with their places, once as a table to be merged.
        toml::Deserializer::parse(&document.text).and_then(Config::deserialize).map_err(located)?;
        document.table = toml::from_str(&document.text).map_err(located)?;
        Ok(document)
    }

    fn walk(
        &mut self,
        table: &DeTable<'_>,
        path: &mut Vec<String>,
        node: Option<Node>,
        unknown: &mut Vec<(String, Range<usize>)>,
    ) {
        for (key, value) in table {
            let name: &str = key.get_ref();
            let node = match node.map(|node| node.child(name)) {
                Some(Child::Known(node)) => Some(node),
                Some(Child::Anything) | None => None,
                Some(Child::Unknown(names)) => {
                    unknown.push((unknown_key(name, &path.join("."), &names), key.span()));
                    continue;
                }
            };
            path.push(name.to_owned());
            self.keys.push(Key { path: path.join("."), span: key.span() });
            self.value(value, path, node, unknown);
            path.pop();
        }
    }

    fn value(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        path: &mut Vec<String>,
        node: Option<Node>,
        unknown: &mut Vec<(String, Range<usize>)>,
    ) {
        match value.get_ref() {
            DeValue::Table(table) if node.is_none_or(Node::is_object) => {
                self.walk(table, path, node, unknown);
            }
            DeValue::Array(items) => {
                let list = path.join(".");
                for item in items {
                    if let DeValue::String(text) = item.get_ref() {
                        self.entries.push((list.clone(), text.to_string(), item.span()));
                    }
                }
            }
            _ => {}
        }
    }

    /// The line in which a key is set.
    pub(super) fn line_of(&self, path: &str) -> Option<usize> {
        let key = self.keys.iter().find(|key| key.path == path)?;
        Some(self.text[..key.span.start.min(self.text.len())].matches('\n').count() + 1)
    }

    /// Returns the place of a list's entry; of the list if the entry is not found, of the file if neither is.
    pub(super) fn place_of(&self, list: &str, entry: &str) -> ProblemPlace {
        let found = self.entries.iter().find(|(at, text, _)| at == list && text == entry);
        match found.map(|(_, _, span)| span.clone()).or_else(|| Some(self.key(list)?.span.clone())) {
            Some(span) => self.place(span),
            None => ProblemPlace::WholeFile { file: self.path.clone() },
        }
    }

    /// Returns whether the file has this key or one below it.
    pub(super) fn says(&self, path: &str) -> bool {
        let below = |key: &&Key| key.path.starts_with(&format!("{path}."));
        self.keys.iter().any(|key| key.path == path) || self.keys.iter().any(|key| below(&key))
    }

    /// Returns whether a list of the file has this entry.
    pub(super) fn has_entry(&self, list: &str, entry: &str) -> bool {
        self.entries.iter().any(|(at, text, _)| at == list && text == entry)
    }

    fn key(&self, path: &str) -> Option<&Key> {
        let covers = |key: &&Key| {
            path.strip_prefix(key.path.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.keys.iter().filter(covers).max_by_key(|key| key.path.len())
    }

    fn place(&self, span: Range<usize>) -> ProblemPlace {
        ProblemPlace::of(&self.path, &self.text, span)
    }
}

pub(super) fn unknown_key(key: &str, within: &str, names: &[&str]) -> String {
    let within = if within.is_empty() { String::new() } else { format!(" in `{within}`") };
    let hint = match nearest(key, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => "there are no keys below this one".to_owned(),
        None => {
            format!("there are {}", names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", "))
        }
    };
    format!("unknown key `{key}`{within}; {hint}")
}

fn located(path: &Path, text: &str, error: &toml::de::Error) -> Problem {
    let message = load::reworded(error.message());
    let place = match error.span() {
        Some(span) => ProblemPlace::of(path, text, span),
        None => ProblemPlace::WholeFile { file: path.to_owned() },
    };
    Problem { message, place }
}
