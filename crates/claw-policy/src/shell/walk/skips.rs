//! Commands after which the shell may skip the following ones.
//!
//! `break` skips to the end of its loop, `return` to the end of its function. An expansion that fails ends
//! its line, function or `eval`, and the script continues after that. Whether it fails is not computed: it is
//! enough that it can.

use super::environment::Environment;
use crate::shell::syntax::{AssignedValue, Assignment, Command, Kind, Parameter, Part, Word};

/// The parts of a script that may be skipped.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Skips {
    pub(super) of_loop: bool,
    pub(super) of_function: bool,
    pub(super) of_line: bool,
}

impl Skips {
    pub(super) fn any(self) -> bool {
        self.of_loop || self.of_function || self.of_line
    }
}

/// Variables of the shell that cannot be set.
const FIXED: &[&str] = &["UID", "EUID", "PPID", "BASHOPTS", "SHELLOPTS", "BASH_VERSINFO"];

/// Returns whether a simple command can fail by its own words.
pub(super) fn may_fail(command: &Command, environment: &Environment) -> bool {
    let words: &mut dyn Iterator<Item = &Word> = match &command.kind {
        Kind::Simple { assignments, words } => {
            if assignments.iter().any(|assignment| assigns(assignment, environment)) {
                return true;
            }
            &mut words.iter()
        }
        Kind::For { words: Some(words), .. } => &mut words.iter(),
        Kind::Case { word, .. } => &mut std::iter::once(word),
        Kind::Test(words) => &mut words.iter(),
        Kind::Arithmetic(parts) if expands(parts) => return true,
        _ => &mut std::iter::empty(),
    };
    let targets = command.redirects.iter().map(|redirect| &redirect.target);
    words.chain(targets).any(|word| expands(&word.parts))
}

fn assigns(assignment: &Assignment, environment: &Environment) -> bool {
    let name = assignment.name.as_str();
    let value = match &assignment.value {
        AssignedValue::Word(word) => expands(&word.parts),
        AssignedValue::Array(words) => words.iter().any(|word| {
            matches!(word.parts.first(), Some(Part::Plain(text)) if text.starts_with('['))
                || expands(&word.parts)
        }),
    };
    value || assignment.indexed || FIXED.contains(&name) || environment.odd.contains(name)
}

fn expands(parts: &[Part]) -> bool {
    parts.iter().any(|part| match part {
        Part::Arithmetic(parts) => {
            let number = |text: &str| {
                let text = text.trim();
                text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() && !text.starts_with('0')
            };
            !matches!(parts.as_slice(), [Part::Plain(text)] if text.split(['+', '-', '*']).all(number))
        }
        Part::Double(parts) => expands(parts),
        Part::Parameter(parameter) => parameter_fails(parameter),
        _ => false,
    })
}

fn parameter_fails(parameter: &Parameter) -> bool {
    let plain = |index: &Vec<Part>| {
        let is_place =
            |text: &str| text == "@" || text == "*" || text.bytes().all(|byte| byte.is_ascii_digit());
        matches!(index.as_slice(), [Part::Plain(text)] if is_place(text))
    };
    const SAFE: &[&str] =
        &["", "len", ":-", "-", ":+", "+", "#", "##", "%", "%%", "/", "//", "^", "^^", ",", ",,"];
    let operator = parameter.operator.as_str();
    !SAFE.contains(&operator)
        || parameter.index.as_ref().is_some_and(|index| !plain(index))
        || expands(&parameter.word)
}
