//! Invalid arguments, as data and as the text that a model reads.

use std::fmt;

use claw_core::tool::ToolError;
use serde_json::{Value, json};

pub(super) const CUT_OFF: &str =
    "they may have been cut off; make the call again, long content in several shorter calls";

/// Invalid arguments. The `Display` text is for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgsError {
    /// The problems, at most eight.
    pub problems: Vec<Problem>,
    /// Advice on what to try.
    pub advice: Option<String>,
    /// Repairs made before the rest was found invalid.
    pub notes: Vec<String>,
}

/// A problem in the arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problem {
    /// The path, such as `edits[0].old_text`; empty for the arguments as a whole.
    pub path: String,
    /// The expected value.
    pub expected: String,
    /// The given value, shortened.
    pub got: String,
    /// The probable intention: a name or an option.
    pub nearest: Option<String>,
    /// The problem as a sentence.
    pub message: String,
}

impl ArgsError {
    pub(super) fn too_large(max: usize) -> Self {
        Self::whole(format!("the arguments are more than {max} bytes long"))
            .advising("send less at once, in several calls")
    }

    pub(super) fn too_deep(max: usize) -> Self {
        Self::whole(format!("the arguments are nested more than {max} levels deep"))
            .advising("send them flatter")
    }

    pub(super) fn cut_off(line: usize, column: usize) -> Self {
        Self::whole(format!("the arguments are JSON that ends too early, at line {line} column {column}"))
            .advising(CUT_OFF)
    }

    pub(super) fn too_costly() -> Self {
        Self::whole("checking these arguments against the tool's schema would take too long".into())
            .advising("send less at once, or less deeply nested")
    }

    /// The message of `serde_json` tells what it expected and where, and quotes nothing of the text.
    pub(super) fn malformed(error: &serde_json::Error) -> Self {
        Self::whole(format!("the arguments are not valid JSON: {error}"))
            .advising("send one JSON object; quotes and line breaks inside of strings need a backslash")
    }

    fn whole(message: String) -> Self {
        let problem = Problem { message, ..Problem::default() };
        Self { problems: vec![problem], advice: None, notes: Vec::new() }
    }

    fn advising(mut self, advice: &str) -> Self {
        self.advice = Some(advice.into());
        self
    }

    fn summary(&self) -> String {
        let messages: Vec<_> = self.problems.iter().map(|problem| problem.message.as_str()).collect();
        messages.join("; ")
    }
}

impl fmt::Display for ArgsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary())?;
        self.advice.iter().try_for_each(|advice| write!(f, "; {advice}"))?;
        if !self.notes.is_empty() {
            write!(f, " (otherwise {})", self.notes.join(", "))?;
        }
        Ok(())
    }
}

impl std::error::Error for ArgsError {}

impl From<ArgsError> for ToolError {
    fn from(error: ArgsError) -> Self {
        let problem = |p: &Problem| json!({ "field": p.path, "expected": p.expected, "got": p.got, "nearest": p.nearest });
        let details = error.problems.iter().map(problem).collect();
        let told = ToolError::invalid(error.summary()).with_details(Value::Array(details));
        match error.advice {
            Some(advice) => told.try_instead(advice),
            None => told,
        }
    }
}
