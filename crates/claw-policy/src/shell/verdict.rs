//! The verdict on a command: allow, ask or deny, the rule and the part behind it, and the commands found.

use std::fmt;

use claw_core::tool::Effects;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use smol_str::SmolStr;

/// A part of the command, as byte positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct Span {
    /// Start.
    pub start: usize,
    /// End, exclusive.
    pub end: usize,
}

/// The decision on a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It may run.
    Allow,
    /// A person decides; if nobody can be asked, it is refused.
    Ask,
    /// It may not run.
    Deny,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// A rule's objection to a part of the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule, such as `destructive.rm-recursive`.
    pub rule: SmolStr,
    /// The rule's decision.
    pub verdict: Decision,
    /// The part of the command.
    pub span: Span,
    /// The text of that part.
    pub part: String,
    /// The reason, for a person.
    pub reason: String,
    /// The reason and what to try instead, for the model.
    pub advice: String,
}

/// Longest part that is shown, in characters.
const TOLD: usize = 160;

impl fmt::Display for Finding {
    /// Writes the rule, its reason and the part.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, reason, .. } = self;
        let mut part: String = self.part.chars().take(TOLD).collect();
        if part.len() < self.part.len() {
            part.push_str("...");
        }
        write!(f, "rule `{rule}`: {reason}, in `{}`", part.replace('\n', " \u{23ce} "))
    }
}

/// A simple command that would run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Simple {
    /// The program and its arguments.
    pub argv: Vec<Argument>,
    /// Effects that it may have.
    pub effects: Effects,
    /// Position in the script.
    pub span: Span,
}

impl fmt::Display for Simple {
    /// Writes a line that a shell would read; unknown parts are `<?>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.argv.is_empty() {
            return f.write_str("(redirection)");
        }
        for (i, argument) in self.argv.iter().enumerate() {
            let text = argument.to_string();
            let special = |c: char| c.is_whitespace() || "'\"\\$`|&;(){}#!".contains(c);
            let blank = if i == 0 { "" } else { " " };
            match text.is_empty() || text.contains(special) {
                true => write!(f, "{blank}'{}'", text.replace('\'', "'\\''").replace('\n', "\u{23ce}"))?,
                false => write!(f, "{blank}{text}")?,
            }
        }
        Ok(())
    }
}

impl Simple {
    /// Returns whether this command may become these arguments at run time. Programs are compared by their
    /// last path component.
    pub fn covers<S: AsRef<str>>(&self, argv: &[S]) -> bool {
        match (self.argv.split_first(), argv.split_first()) {
            (Some((program, rest)), Some((ran, arguments))) => {
                let name = |text: &str| text.rsplit('/').next().unwrap_or(text).to_owned();
                let same = match program.known() {
                    Some(text) => name(text) == name(ran.as_ref()),
                    None => true,
                };
                same && covers(rest, arguments)
            }
            (None, None) => true,
            _ => false,
        }
    }
}

fn covers<S: AsRef<str>>(patterns: &[Argument], argv: &[S]) -> bool {
    // The suffixes of the arguments that the patterns so far leave.
    let mut left = vec![false; argv.len() + 1];
    left[0] = true;
    for pattern in patterns {
        let mut next = vec![false; argv.len() + 1];
        if pattern.many {
            let from = left.iter().position(|left| *left).unwrap_or(argv.len() + 1);
            next.iter_mut().skip(from).for_each(|slot| *slot = true);
        } else {
            for (at, word) in argv.iter().enumerate() {
                next[at + 1] = left[at] && pattern.fits(word.as_ref());
            }
        }
        left = next;
    }
    left[argv.len()]
}

/// An argument as far as it is known before the command runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Argument {
    /// The text. A NUL, which no argument can contain, stands for a part known only at run time.
    text: String,
    /// It may become several arguments or none: a pattern, or an expansion without quotes.
    many: bool,
}

/// The character in an argument's text for an unknown part.
pub(super) const UNKNOWN: char = '\0';

impl Argument {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), many: false }
    }

    pub(super) fn unknown() -> Self {
        Self { text: UNKNOWN.to_string(), many: false }
    }

    pub(super) fn some_unknown() -> Self {
        Self { text: UNKNOWN.to_string(), many: true }
    }

    pub(super) fn with_many(mut self, many: bool) -> Self {
        self.many = many;
        self
    }

    /// The text of the argument, if it is known.
    pub fn known(&self) -> Option<&str> {
        (!self.many && !self.text.contains(UNKNOWN)).then_some(self.text.as_str())
    }

    /// The text, with patterns as written and unknown parts as NUL.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether it may become several arguments or none.
    pub fn is_many(&self) -> bool {
        self.many
    }

    /// Returns whether it may turn out to begin with a dash though none is written.
    pub(super) fn may_be_option(&self) -> bool {
        self.text.starts_with(UNKNOWN)
    }

    /// Returns whether it is an option that is known only at run time. The letters in `valued` take a value,
    /// which may be joined to them: an unknown part after such a letter is its value.
    pub(super) fn is_unclear_option(&self, valued: &str) -> bool {
        let Some((head, _)) = self.text.split_once(UNKNOWN) else { return false };
        match head.strip_prefix(['-', '+']) {
            Some(long) if long.starts_with('-') => !long.contains('='),
            Some(letters) => !letters.contains('=') && !letters.contains(|letter| valued.contains(letter)),
            None => false,
        }
    }

    fn fits(&self, word: &str) -> bool {
        let mut pieces = self.text.split(UNKNOWN);
        let first = pieces.next().unwrap_or("");
        let Some(mut rest) = word.strip_prefix(first) else { return false };
        let mut pieces = pieces.peekable();
        if pieces.peek().is_none() {
            return rest.is_empty();
        }
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_none() {
                return rest.ends_with(piece);
            }
            match rest.find(piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        true
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text.replace(UNKNOWN, "<?>"))
    }
}

impl Serialize for Argument {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.known() {
            Some(text) => serializer.serialize_str(text),
            None => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("unknown", &self.to_string())?;
                map.end()
            }
        }
    }
}

/// The verdict on a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The decision.
    pub decision: Decision,
    /// All findings, the strictest first.
    pub findings: Vec<Finding>,
    /// The simple commands found, in order.
    pub commands: Vec<Simple>,
    /// Files that redirections read: `< .env`.
    pub reads: Vec<Argument>,
}

impl Verdict {
    /// The finding that decided; `None` if the command is allowed.
    pub fn finding(&self) -> Option<&Finding> {
        self.findings.first()
    }

    /// Returns whether one of the commands found may become these arguments.
    pub fn covers<S: AsRef<str>>(&self, argv: &[S]) -> bool {
        self.commands.iter().any(|simple| simple.covers(argv))
    }

    /// The effects of all commands together.
    pub fn effects(&self) -> Effects {
        self.commands.iter().fold(Effects::NONE, |all, simple| all.and(simple.effects))
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let finding = self.finding();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("verdict", &self.decision)?;
        map.serialize_entry("rule", &finding.map(|finding| &finding.rule))?;
        map.serialize_entry("reason", &finding.map(|finding| &finding.reason))?;
        map.serialize_entry("advice", &finding.map(|finding| &finding.advice))?;
        map.serialize_entry("part", &finding.map(|finding| &finding.part))?;
        map.serialize_entry("span", &finding.map(|finding| finding.span))?;
        map.serialize_entry("commands", &self.commands)?;
        map.serialize_entry("findings", &self.findings)?;
        map.end()
    }
}
