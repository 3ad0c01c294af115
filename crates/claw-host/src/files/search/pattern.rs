//! The compiled search pattern.

use claw_core::port::Search;
use claw_core::tool::ToolError;
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};

/// The most memory a compiled pattern may take, in bytes.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(in super::super) struct Pattern {
    pub(super) matcher: RegexMatcher,
    pub(super) multiline: bool,
    /// True if the pattern tests for word boundaries next to a hit. Then the neighbouring character must not
    /// be secret either.
    pub(super) looks_around: bool,
}

impl Pattern {
    pub(in super::super) fn new(search: &Search) -> Result<Self, ToolError> {
        if search.pattern.is_empty() {
            return Err(ToolError::invalid("the pattern is empty").try_instead("say what to search for"));
        }
        let looks_around = looks_around(search)?;
        let mut builder = RegexMatcherBuilder::new();
        builder
            .case_smart(search.case.is_none())
            .case_insensitive(search.case == Some(false))
            .word(search.word)
            .fixed_strings(search.literal)
            .multi_line(true)
            .crlf(true)
            .line_terminator(if search.multiline { None } else { Some(b'\n') })
            .size_limit(MOST_BYTES)
            .dfa_size_limit(MOST_BYTES);
        let matcher = builder.build(&search.pattern).map_err(|error| refuse(search, &error))?;
        Ok(Self { matcher, multiline: search.multiline, looks_around })
    }
}

/// Returns whether the pattern contains a word boundary.
fn looks_around(search: &Search) -> Result<bool, ToolError> {
    if search.literal {
        return Ok(search.word);
    }
    // Parsed as it was written, so that a mistake is told where it was made.
    let parsed = regex_syntax::parse(&search.pattern).map_err(|error| {
        let (what, place) = match &error {
            regex_syntax::Error::Parse(error) => (error.kind().to_string(), error.span().start.offset),
            regex_syntax::Error::Translate(error) => (error.kind().to_string(), error.span().start.offset),
            other => (other.to_string(), 0),
        };
        let character = search.pattern.get(..place).map_or(1, |before| before.chars().count() + 1);
        no_regex(&search.pattern, &format!("{what}, at character {character}"))
    })?;
    Ok(search.word || parsed.properties().look_set().contains_word())
}

fn refuse(search: &Search, error: &grep_regex::Error) -> ToolError {
    let pattern = &search.pattern;
    match error.kind() {
        ErrorKind::NotAllowed(_) => ToolError::invalid(format!(
            "`{pattern}` contains a line break, but files are searched line by line"
        ))
        .try_instead("search with `multiline`"),
        _ => no_regex(pattern, &error.to_string()),
    }
}

fn no_regex(pattern: &str, why: &str) -> ToolError {
    ToolError::invalid(format!("`{pattern}` is not a regular expression: {why}"))
        .try_instead("fix it, or search for the text itself with `literal`")
}

#[cfg(test)]
mod tests;
