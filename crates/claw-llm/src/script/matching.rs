//! Matches turns against a conversation, and captures the values that a turn may use.

use claw_core::message::{Part, ToolResult, is_mark};
use claw_core::port::{Choice, Question};
use claw_core::store::Role;
use claw_core::tool::Block;
use regex::{Captures, Regex};

/// The parts of a conversation that conditions look at.
pub(super) struct Conversation<'a> {
    question: &'a Question,
    /// The user's last words.
    pub(super) said: String,
    image: bool,
    /// Number of answers since.
    round: usize,
    /// Results of the last answer's calls.
    results: Vec<Heard<'a>>,
    /// Results of all calls since the user's last words.
    all: Vec<Heard<'a>>,
}

/// A result as a script reads it.
#[derive(Clone)]
struct Heard<'a> {
    told: &'a ToolResult,
    text: String,
}

impl<'a> Conversation<'a> {
    pub(super) fn of(question: &'a Question) -> Self {
        let turns = &question.turns;
        let spoke = turns.iter().rposition(|turn| turn.role == Role::User);
        let last = spoke.and_then(|at| turns.get(at));
        let since = turns.get(spoke.map_or(0, |at| at + 1)..).unwrap_or_default();
        let answered = since.iter().rposition(|turn| turn.role == Role::Assistant).map_or(0, |at| at + 1);
        let heard = |turn: &'a claw_core::message::Turn| {
            turn.parts.iter().filter_map(|part| match part {
                Part::Result(told) => Some(Heard { told, text: text_of(&told.content) }),
                _ => None,
            })
        };
        Self {
            question,
            said: last.map(|turn| turn.words()).unwrap_or_default(),
            image: last.is_some_and(|turn| turn.parts.iter().any(|p| matches!(p, Part::Image(_)))),
            round: since.iter().filter(|turn| turn.role == Role::Assistant).count(),
            results: since.iter().skip(answered).flat_map(heard).collect(),
            all: since.iter().flat_map(heard).collect(),
        }
    }
}

/// The text of a result, without the markers that label it as data.
fn text_of(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        Block::Resource { text, .. } => text.as_deref(),
        Block::Image(_) | Block::Attachment(_) => None,
    });
    let lines = texts.flat_map(str::lines).filter(|line| !is_mark(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// The condition of a turn. All given fields must match.
#[derive(Debug, Default)]
pub(super) struct When {
    pub(super) said: Option<String>,
    pub(super) said_matches: Option<Regex>,
    pub(super) system: Option<String>,
    pub(super) result: Option<String>,
    pub(super) result_matches: Option<Regex>,
    pub(super) result_of: Option<String>,
    pub(super) result_failed: Option<bool>,
    pub(super) offered: Vec<String>,
    pub(super) not_offered: Vec<String>,
    pub(super) may_call: Option<bool>,
    pub(super) image: Option<bool>,
    pub(super) round: Option<usize>,
    pub(super) time: Option<u32>,
    pub(super) first: Option<u32>,
}

/// The captured values of a conversation that a turn may use.
pub(super) struct Captured<'a> {
    said: &'a str,
    said_groups: Option<Captures<'a>>,
    result: &'a str,
    result_groups: Option<Captures<'a>>,
    all: &'a [Heard<'a>],
}

impl Captured<'_> {
    pub(super) fn said(&self) -> &str {
        self.said
    }

    pub(super) fn result(&self) -> &str {
        self.result
    }

    pub(super) fn said_group(&self, name: &str) -> &str {
        group(self.said_groups.as_ref(), name)
    }

    pub(super) fn result_group(&self, name: &str) -> &str {
        group(self.result_groups.as_ref(), name)
    }

    /// The tool's last result since the user's last words.
    pub(super) fn result_of(&self, tool: &str) -> &str {
        self.all.iter().rfind(|heard| heard.told.tool == tool).map_or("", |heard| &heard.text)
    }
}

fn group<'a>(captures: Option<&'a Captures<'_>>, name: &str) -> &'a str {
    let Some(captures) = captures else { return "" };
    let found = match name.parse() {
        Ok(number) => captures.get(number),
        Err(_) => captures.name(name),
    };
    found.map_or("", |found| found.as_str())
}

impl When {
    /// Returns the captured values if the condition holds, apart from `time` and `first`.
    pub(super) fn fits<'a>(&self, conversation: &'a Conversation<'_>) -> Option<Captured<'a>> {
        let question = conversation.question;
        let said = conversation.said.as_str();
        let offers = |name: &String| question.tools.iter().any(|spec| spec.name.as_str() == name);
        let fine = self.round_fits(conversation)
            && self.said.as_ref().is_none_or(|words| contains(said, words))
            && self.system.as_ref().is_none_or(|words| {
                contains(&question.system.stable, words) || contains(&question.system.changing, words)
            })
            && self.offered.iter().all(offers)
            && !self.not_offered.iter().any(offers)
            && self.may_call.is_none_or(|may| may == (question.choice != Choice::None))
            && self.image.is_none_or(|image| image == conversation.image);
        if !fine {
            return None;
        }
        let said_groups = match &self.said_matches {
            Some(regex) => Some(regex.captures(said)?),
            None => None,
        };
        let (result, result_groups) = if self.wants_result() {
            conversation.results.iter().rev().find_map(|heard| self.result_fits(heard))?
        } else {
            (conversation.all.last().map_or("", |heard| heard.text.as_str()), None)
        };
        Some(Captured { said, said_groups, result, result_groups, all: &conversation.all })
    }

    /// Returns whether the turn is played the `n`-th time that it fits.
    pub(super) fn counts(&self, n: u32) -> bool {
        self.time.is_none_or(|time| time == n) && self.first.is_none_or(|first| n <= first)
    }

    /// Returns whether the round matches. A turn that matches only the user's words answers them once: after
    /// the results of its calls, another turn has to continue.
    fn round_fits(&self, conversation: &Conversation<'_>) -> bool {
        match self.round {
            Some(round) => round == conversation.round,
            None => {
                let answers_words = self.said.is_some() || self.said_matches.is_some();
                !answers_words || self.wants_result() || conversation.round == 0
            }
        }
    }

    fn wants_result(&self) -> bool {
        self.result.is_some()
            || self.result_matches.is_some()
            || self.result_of.is_some()
            || self.result_failed.is_some()
    }

    fn result_fits<'a>(&self, heard: &'a Heard<'_>) -> Option<(&'a str, Option<Captures<'a>>)> {
        let fine = self.result_of.as_ref().is_none_or(|tool| *tool == heard.told.tool)
            && self.result_failed.is_none_or(|failed| failed == heard.told.failed)
            && self.result.as_ref().is_none_or(|words| contains(&heard.text, words));
        if !fine {
            return None;
        }
        match &self.result_matches {
            Some(regex) => Some((&heard.text, Some(regex.captures(&heard.text)?))),
            None => Some((&heard.text, None)),
        }
    }
}

/// Searches without regard to case.
fn contains(text: &str, words: &str) -> bool {
    text.to_lowercase().contains(&words.to_lowercase())
}
