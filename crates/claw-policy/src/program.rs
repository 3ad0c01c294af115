//! Which arguments a credentialed program may be given.
//!
//! A pattern is tried from the start of each argument, over that argument and those after it, with a blank between
//! them: `auth\s+` finds `gh auth login`, and not the words "auth flow" inside one argument, whose own blanks do
//! not count as blanks.

mod presets;
mod route;

use regex::{Regex, RegexBuilder};
use serde::Serialize;

pub use presets::{OPEN_VARIABLES, PRESETS, Preset, preset};
pub use route::{Route, as_script};

/// How much memory a pattern may take once it is compiled.
const PATTERN_BYTES: usize = 256 * 1024;

/// What stands for a blank inside an argument: nothing that a pattern's `\s` finds.
const INNER_BLANK: char = '\u{fffe}';

/// Which arguments are refused, ready to be asked.
#[derive(Debug, Clone)]
pub struct ArgumentRules(Vec<(Which, Regex)>);

/// Which list of a program's settings a pattern stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// What the program may not do.
    DenyArgs,
    /// What would make it tell its credentials.
    DenyVerbose,
}

impl Which {
    /// The list as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DenyArgs => "deny_args",
            Self::DenyVerbose => "deny_verbose",
        }
    }
}

/// A pattern that is none. Nothing of its program can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("pattern {} of `{}`, `{pattern}`, cannot be used: {why}", at + 1, which.name())]
pub struct BadPattern {
    /// In which list.
    pub which: Which,
    /// At which place in it, counted from 0.
    pub at: usize,
    /// As it is written.
    pub pattern: String,
    /// What is wrong with it.
    pub why: String,
}

/// Why arguments are refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeniedArguments {
    /// By which list.
    pub which: Which,
    /// By which pattern, as it is written.
    pub pattern: String,
    /// From which argument on, counted from 1.
    pub at: usize,
}

/// How many options are taken both with and without the word behind them; of further ones it is taken for a value.
const UNCLEAR: u32 = 8;

/// The arguments as they are, and without their options. Whether the word behind an option is its value only the
/// program knows, so both are looked at.
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
                // A bit that is set leaves the word; what has no bit is a value.
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
    /// Reads the patterns.
    pub fn compile(deny_args: &[String], deny_verbose: &[String]) -> Result<Self, BadPattern> {
        let lists = [(Which::DenyArgs, deny_args), (Which::DenyVerbose, deny_verbose)];
        let mut rules = Vec::new();
        for (which, patterns) in lists {
            for (at, pattern) in patterns.iter().enumerate() {
                let bad = |why: String| BadPattern { which, at, pattern: pattern.clone(), why };
                if pattern.is_empty() {
                    return Err(bad("it is empty, and would refuse everything".to_owned()));
                }
                // The group keeps an alternation together.
                let anchored = format!("^(?:{pattern})");
                let rule = RegexBuilder::new(&anchored).size_limit(PATTERN_BYTES).build();
                // The pattern alone must be one too: `a)(b` would be made whole by the group.
                let alone = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build();
                let rule = alone.and(rule).map_err(|error| bad(last_line(&error.to_string())))?;
                rules.push((which, rule));
            }
        }
        Ok(Self(rules))
    }

    /// Why these arguments are refused; `None` where they are not. They are looked at as they are and, since a program
    /// finds its words wherever its options stand, without their options too.
    pub fn check<A: AsRef<str>>(&self, arguments: &[A]) -> Option<DeniedArguments> {
        let masked = |argument: &A| argument.as_ref().replace(char::is_whitespace, &INNER_BLANK.to_string());
        let masked: Vec<String> = arguments.iter().map(masked).collect();
        let whole: Vec<(usize, &str)> = masked.iter().map(String::as_str).enumerate().collect();
        readings(&whole).iter().find_map(|reading| self.denies(reading))
    }

    /// Whether a pattern is found from the start of one of these arguments on; each has its place.
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

/// The pattern without what was put around it.
fn written(rule: &Regex) -> String {
    let pattern = rule.as_str();
    pattern.strip_prefix("^(?:").and_then(|rest| rest.strip_suffix(')')).unwrap_or(pattern).to_owned()
}

/// A regex error draws a picture; its last line says what is wrong.
fn last_line(error: &str) -> String {
    let line = error.lines().last().unwrap_or(error);
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests;
