//! Rules for the arguments of a credentialed program.
//!
//! A pattern is tried from the start of each argument, over that argument and those after it, joined by
//! spaces: `auth\s+` finds `gh auth login`, but not the words "auth flow" inside one argument, whose own
//! spaces do not count.

mod presets;
mod route;

use regex::{Regex, RegexBuilder};
use serde::Serialize;

pub use presets::{OPEN_VARIABLES, PRESETS, Preset, preset};
pub use route::{Route, as_script};

/// Largest compiled size of a pattern, in bytes.
const PATTERN_BYTES: usize = 256 * 1024;

/// Replaces white space inside an argument: a pattern's `\s` does not match it.
const INNER_BLANK: char = '\u{fffe}';

/// Compiled patterns of refused arguments.
#[derive(Debug, Clone)]
pub struct ArgumentRules(Vec<(ArgumentList, Regex)>);

/// The list of a program's settings that a pattern is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentList {
    /// Actions that are forbidden.
    DenyArgs,
    /// Arguments that would make the program print its credentials.
    DenyVerbose,
}

impl ArgumentList {
    /// The list's name in the settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DenyArgs => "deny_args",
            Self::DenyVerbose => "deny_verbose",
        }
    }
}

/// An invalid pattern. Its program cannot be used at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("pattern {} of `{}`, `{pattern}`, cannot be used: {why}", at + 1, which.name())]
pub struct BadPattern {
    /// The list.
    pub which: ArgumentList,
    /// Index in the list.
    pub at: usize,
    /// The pattern as written.
    pub pattern: String,
    /// The problem.
    pub why: String,
}

/// The refusal of arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeniedArguments {
    /// The list.
    pub which: ArgumentList,
    /// The pattern as written.
    pub pattern: String,
    /// The first matching argument, counted from 1.
    pub at: usize,
}

/// Number of options that are tried both with and without the following word; for further ones it counts as
/// their value.
const UNCLEAR: u32 = 8;

/// The arguments as they are, and without their options. Only the program knows whether the word after an
/// option is its value, so both readings are returned.
fn readings<'a>(arguments: &[(usize, &'a str)]) -> Vec<Vec<(usize, &'a str)>> {
    let is_option =
        |at: usize| arguments.get(at).is_some_and(|(_, word)| word.len() > 1 && word.starts_with('-'));
    let unclear = |at: usize| {
        is_option(at) && !arguments[at].1.contains('=') && at + 1 < arguments.len() && !is_option(at + 1)
    };
    let count = (0..arguments.len()).filter(|at| unclear(*at)).count();
    let count = u32::try_from(count).unwrap_or(u32::MAX).min(UNCLEAR);
    let mut readings = vec![arguments.to_vec()];
    for choice in 0..1_u32 << count {
        let (mut reading, mut seen, mut at) = (Vec::new(), 0, 0);
        while at < arguments.len() {
            if !is_option(at) {
                reading.push(arguments[at]);
            } else if unclear(at) {
                // A set bit keeps the word as an operand; otherwise it counts as the option's value.
                at += usize::from(seen >= UNCLEAR || choice >> seen & 1 == 0);
                seen += 1;
            }
            at += 1;
        }
        readings.push(reading);
    }
    readings
}

impl ArgumentRules {
    /// Compiles the patterns.
    pub fn compile(deny_args: &[String], deny_verbose: &[String]) -> Result<Self, BadPattern> {
        let lists = [(ArgumentList::DenyArgs, deny_args), (ArgumentList::DenyVerbose, deny_verbose)];
        let mut rules = Vec::new();
        for (which, patterns) in lists {
            for (at, pattern) in patterns.iter().enumerate() {
                let bad = |why: String| BadPattern { which, at, pattern: pattern.clone(), why };
                if pattern.is_empty() {
                    return Err(bad("it is empty, and would refuse everything".to_owned()));
                }
                // The group keeps alternations together.
                let anchored = format!("^(?:{pattern})");
                let rule = RegexBuilder::new(&anchored).size_limit(PATTERN_BYTES).build();
                // The pattern must be valid by itself: the group would complete `a)(b`.
                let alone = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build();
                let rule = alone.and(rule).map_err(|error| bad(last_line(&error.to_string())))?;
                rules.push((which, rule));
            }
        }
        Ok(Self(rules))
    }

    /// Returns why these arguments are refused; `None` if they are not. They are checked as they are and also
    /// without their options, since a program finds its words wherever its options are.
    pub fn check<A: AsRef<str>>(&self, arguments: &[A]) -> Option<DeniedArguments> {
        let masked = |argument: &A| argument.as_ref().replace(char::is_whitespace, &INNER_BLANK.to_string());
        let masked: Vec<String> = arguments.iter().map(masked).collect();
        let whole: Vec<(usize, &str)> = masked.iter().map(String::as_str).enumerate().collect();
        readings(&whole).iter().find_map(|reading| self.denies(reading))
    }

    /// Finds the first pattern that matches from the start of one of these arguments on; each comes with its
    /// index.
    fn denies(&self, arguments: &[(usize, &str)]) -> Option<DeniedArguments> {
        let words: Vec<&str> = arguments.iter().map(|(_, word)| *word).collect();
        let joined = words.join(" ");
        let mut start = 0;
        for (at, argument) in arguments {
            let rest = &joined[start..];
            if let Some((which, rule)) = self.0.iter().find(|(_, rule)| rule.is_match(rest)) {
                return Some(DeniedArguments { which: *which, pattern: written(rule), at: at + 1 });
            }
            start += argument.len() + 1;
        }
        None
    }
}

/// The pattern without the added anchor and group.
fn written(rule: &Regex) -> String {
    let pattern = rule.as_str();
    pattern.strip_prefix("^(?:").and_then(|rest| rest.strip_suffix(')')).unwrap_or(pattern).to_owned()
}

/// A regex error includes a drawing; its last line tells the problem.
fn last_line(error: &str) -> String {
    let line = error.lines().last().unwrap_or(error);
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests;
