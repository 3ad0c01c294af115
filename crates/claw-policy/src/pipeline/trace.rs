//! The trace of a verdict, step by step.

use std::fmt;
use std::sync::Arc;

use claw_core::tool::{Effects, Profile};
use smol_str::SmolStr;

use super::decide::State;
use super::trace_text::Words;
use super::{Kind, Step};
use crate::entry::{Entry, List};

/// The configuration of a step, for one caller.
#[derive(Debug, Clone)]
pub enum Rule {
    /// Nothing.
    Unset,
    /// A profile that the provider's profile replaces.
    Replaced(Profile),
    /// A profile.
    Profile {
        /// The profile's configuration key.
        at: SmolStr,
        /// The profile.
        profile: Profile,
    },
    /// A list.
    List(Arc<List>),
}

pub(crate) type Rules = [Rule; Step::COUNT];

impl Rule {
    pub(super) fn allow(list: Option<&Arc<List>>) -> Self {
        list.map_or(Self::Unset, |list| Self::List(Arc::clone(list)))
    }

    pub(super) fn unless_empty(list: Option<&Arc<List>>) -> Self {
        Self::allow(list.filter(|list| !list.entries().is_empty()))
    }

    /// The list, if the rule is one.
    pub fn list(&self) -> Option<&List> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// The configuration key.
    pub fn at(&self) -> Option<&str> {
        match self {
            Self::Unset => None,
            Self::Replaced(_) => Some("tools.profile"),
            Self::Profile { at, .. } => Some(at),
            Self::List(list) => Some(list.at()),
        }
    }
}

/// The judgement of one step on a tool, regardless of the other steps. A number is the entry's index in the
/// list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Nothing is configured here.
    Unset,
    /// The provider's profile applies instead.
    Replaced,
    /// A standing tool is exempt from this step.
    Exempt,
    /// The profile includes it.
    Includes,
    /// This entry keeps it.
    Keeps(u32),
    /// Neither profile nor list names it.
    Drops,
    /// The list does not name it.
    Silent,
    /// This entry denies it.
    Denies(u32),
    /// This entry removes an effect; the tool stays.
    Narrows(u32),
    /// This entry adds it, if it is not there.
    Adds(u32),
    /// This entry would add it, but a deny list names it and `deny_wins` is set.
    Barred(u32),
}

impl Mark {
    /// The index of the matching entry.
    pub const fn entry(self) -> Option<usize> {
        match self {
            Self::Keeps(rule)
            | Self::Denies(rule)
            | Self::Narrows(rule)
            | Self::Adds(rule)
            | Self::Barred(rule) => Some(rule as usize),
            _ => None,
        }
    }

    /// The mark's name in listings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unset => "unset",
            Self::Replaced => "replaced",
            Self::Exempt => "exempt",
            Self::Includes => "includes",
            Self::Keeps(_) => "keeps",
            Self::Drops => "drops",
            Self::Silent => "silent",
            Self::Denies(_) => "denies",
            Self::Narrows(_) => "narrows",
            Self::Adds(_) => "adds",
            Self::Barred(_) => "barred",
        }
    }
}

/// The reason for the final decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// No step removed it.
    Open,
    /// This step removed it, or brought it back.
    By(Step),
    /// There is no such tool.
    Unregistered,
}

/// The steps that led to a verdict.
#[derive(Clone)]
pub struct Trace {
    pub(super) rules: Arc<Rules>,
    pub(super) marks: [Mark; Step::COUNT],
    pub(super) reason: Reason,
    /// The effects that deny lists can remove from the tool.
    pub(super) removable: Effects,
}

impl Trace {
    /// The reason for the decision.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The step that decided, if one did.
    pub fn decided_by(&self) -> Option<Step> {
        match self.reason {
            Reason::By(step) => Some(step),
            Reason::Open | Reason::Unregistered => None,
        }
    }

    /// The mark of a step.
    pub fn mark(&self, step: Step) -> Mark {
        self.marks[step as usize]
    }

    /// The configuration of a step.
    pub fn rule(&self, step: Step) -> &Rule {
        &self.rules[step as usize]
    }

    /// The entry by which a step names the tool.
    pub fn entry(&self, step: Step) -> Option<&Entry> {
        self.rule(step).list()?.entries().get(self.mark(step).entry()?)
    }

    /// The effects that a step removes, while the tool itself could stay.
    pub fn taken_by(&self, step: Step) -> Effects {
        match self.rule(step).list() {
            Some(list) if step.kind() == Kind::Deny => list.effects().common(self.removable),
            _ => Effects::NONE,
        }
    }

    /// The effects that all steps together remove.
    pub fn taken(&self) -> Effects {
        Step::ALL.into_iter().fold(Effects::NONE, |taken, step| taken.and(self.taken_by(step)))
    }

    /// Each configured step, its mark, and whether the tool is there after it.
    pub fn steps(&self) -> impl Iterator<Item = (Step, Mark, bool)> {
        let apply = |state: &mut State, (step, mark): (Step, Mark)| {
            *state = state.after(step, mark);
            Some((step, mark, state.present))
        };
        let marks = Step::ALL.into_iter().zip(self.marks);
        marks.scan(State::START, apply).filter(|(_, mark, _)| *mark != Mark::Unset)
    }

    /// A step's judgement in words: "`tools.deny` entry `group:runtime` denies it".
    pub fn words(&self, step: Step) -> impl fmt::Display {
        Words::new(self, step)
    }
}
