//! Problems of a configuration, each with its place and a suggestion.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// A problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The problem, and what to try.
    pub message: String,
    /// The problem's place.
    #[serde(flatten)]
    pub place: ProblemPlace,
}

/// The place of a problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ProblemPlace {
    /// A place in the file.
    File {
        /// The file's path.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The column, in characters, counted from 1.
        column: usize,
        /// The number of characters marked.
        width: usize,
        /// The whole line.
        text: String,
    },
    /// The file as a whole.
    WholeFile {
        /// The file's path.
        file: PathBuf,
    },
    /// A variable.
    Variable {
        /// The variable's name.
        variable: String,
    },
}

/// The longest part of a line shown.
const SHOWN: usize = 160;

impl ProblemPlace {
    /// The place of a byte range in a file's text.
    pub(super) fn of(file: &Path, text: &str, span: Range<usize>) -> Self {
        let start = floor(text, span.start.min(text.len()));
        let end = floor(text, span.end.clamp(start, text.len()));
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        Self::File {
            file: file.to_owned(),
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            width: text[start..end.min(line_end)].chars().count().max(1),
            text: text[line_start..line_end].trim_end_matches('\r').to_owned(),
        }
    }
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = &self.message;
        match &self.place {
            ProblemPlace::WholeFile { file } => write!(f, "{}: {message}", file.display()),
            ProblemPlace::Variable { variable } => write!(f, "${variable}: {message}"),
            ProblemPlace::File { file, line, column, width, text } => {
                write!(f, "{}:{line}:{column}: {message}", file.display())?;
                if *column > SHOWN {
                    return Ok(());
                }
                let shown: String =
                    text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
                let margin = line.to_string();
                let (gap, before) = (" ".repeat(margin.len()), " ".repeat(column - 1));
                let carets = "^".repeat((*width).min(SHOWN + 1 - column));
                write!(f, "\n {gap} |\n {margin} | {shown}\n {gap} | {before}{carets}")
            }
        }
    }
}

/// All problems of a configuration: nothing runs until they are fixed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Masks the passwords in URLs; every character keeps its place.
    pub(super) fn without_passwords(mut self) -> Self {
        for problem in &mut self.0 {
            problem.message = hidden(&problem.message);
            if let ProblemPlace::File { text, .. } = &mut problem.place {
                *text = hidden(text);
            }
        }
        self
    }
}

/// The example after the scheme in a message about database URLs.
const EXAMPLE: &str = "user@host/name";

/// Replaces possible passwords by stars: all of a database's URL after its scheme, and the part before the
/// `@` of others.
fn hidden(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        let end =
            after.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`')).unwrap_or(after.len());
        let (url, after) = after.split_at(end);
        let is_database = ["postgres://", "postgresql://"].iter().any(|scheme| before.ends_with(scheme));
        let secret = match is_database {
            true if url == EXAMPLE => 0,
            true => url.len(),
            false => url.rfind('@').unwrap_or(0),
        };
        shown.push_str(before);
        shown.extend(url[..secret].chars().map(|_| '*'));
        shown.push_str(&url[secret..]);
        rest = after;
    }
    shown + rest
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            let gap = if i == 0 { "" } else { "\n" };
            write!(f, "{gap}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}
