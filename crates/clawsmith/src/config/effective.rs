//! The effective configuration, key by key, with the source of each value.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::find::{FoundBy, NAME, Surroundings, of_user};
use super::load::{Loaded, is_added};

/// A key with its value and origin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    /// The key's path, such as `tools.profile`.
    pub key: String,
    /// The key's value.
    pub value: Value,
    /// The source that set it.
    #[serde(flatten)]
    pub origin: Origin,
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// The default.
    Default,
    /// The file, in this line.
    File {
        /// The line, counted from 1.
        line: usize,
    },
    /// The user's own file, below a project's.
    User {
        /// The line, counted from 1.
        line: usize,
    },
    /// The user's own file and the project's: lists that take something away are added to each other.
    Both {
        /// The line of the project's file, counted from 1.
        line: usize,
        /// The line of the user's own file, counted from 1.
        user_line: usize,
    },
    /// A variable.
    Env {
        /// The variable's name.
        variable: String,
        /// The value is a list that takes something away: the entries of the files hold too.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        adds: bool,
    },
}

impl fmt::Display for Origin {
    /// Names the source for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => write!(f, "default"),
            Self::File { line } => write!(f, "file, line {line}"),
            Self::User { line } => write!(f, "your file, line {line}"),
            Self::Both { line, user_line } => write!(f, "file, line {line}, and your file, line {user_line}"),
            Self::Env { variable, adds: false } => write!(f, "${variable}"),
            Self::Env { variable, adds: true } => write!(f, "${variable}, and files"),
        }
    }
}

impl Loaded {
    /// Every key of the effective configuration, sorted.
    pub fn settings(&self) -> Result<Vec<Setting>, serde_json::Error> {
        let mut settings = Vec::new();
        self.flatten(String::new(), serde_json::to_value(&self.config)?, &mut settings);
        settings.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(settings)
    }

    fn flatten(&self, key: String, value: Value, settings: &mut Vec<Setting>) {
        match value {
            Value::Object(fields) if key.is_empty() || !fields.is_empty() => {
                for (name, value) in fields {
                    let key = if key.is_empty() { name } else { format!("{key}.{name}") };
                    self.flatten(key, value, settings);
                }
            }
            // An empty map says nothing.
            Value::Object(_) => {}
            value => {
                let origin = self.origin(&key);
                settings.push(Setting { key, value, origin });
            }
        }
    }

    /// Names the place in which a person sets this key, in backticks: the variable or the file that sets it now, else
    /// the file in force; beside a project's file it is the user's own.
    pub fn place_to_set(&self, key: &str, around: &Surroundings) -> String {
        if let Some(set) = self.overrides.iter().rev().find(|set| set.covers(key)) {
            return format!("`${}`", set.variable);
        }
        let named = self.found.as_ref().filter(|found| found.by != FoundBy::Project);
        let file = match named {
            None if self.file_of(key).says(key) => Some(self.file_of(key).path.clone()),
            None => of_user(around),
            Some(found) => Some(found.path.clone()),
        };
        format!("`{}`", file.unwrap_or_else(|| NAME.into()).display())
    }

    fn origin(&self, key: &str) -> Origin {
        if let Some(set) = self.overrides.iter().rev().find(|set| set.covers(key)) {
            let in_file = self.document.line_of(key).is_some()
                || self.user.as_ref().is_some_and(|user| user.line_of(key).is_some());
            return Origin::Env { variable: set.variable.clone(), adds: is_added(key) && in_file };
        }
        let of_user = self.user.as_ref().and_then(|user| user.line_of(key));
        match (self.document.line_of(key), of_user) {
            (Some(line), Some(user_line)) if is_added(key) => Origin::Both { line, user_line },
            (Some(line), _) => Origin::File { line },
            (None, Some(line)) => Origin::User { line },
            (None, None) => Origin::Default,
        }
    }
}
