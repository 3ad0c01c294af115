//! How a verdict came about, step by step.

use std::fmt;
use std::sync::Arc;

use claw_core::tool::{Effects, Profile};
use smol_str::SmolStr;

use super::words::Words;
use super::{Kind, Step};
use crate::entry::{Entry, List};

/// What is configured at a step, for one caller.
#[derive(Debug, Clone)]
pub enum Rule {
    /// Nothing.
    Unset,
    /// A profile that the provider's replaces.
    Replaced(Profile),
    /// A profile.
    Profile {
        /// Where it stands.
        at: SmolStr,
        /// Which one.
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

    /// The list, where it is one.
    pub fn list(&self) -> Option<&List> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// Where it stands in the configuration.
    pub fn at(&self) -> Option<&str> {
        match self {
            Self::Unset => None,
            Self::Replaced(_) => Some("tools.profile"),
            Self::Profile { at, .. } => Some(at),
            Self::List(list) => Some(list.at()),
        }
    }
}

/// What a step says of one tool, whatever the other steps say. A number is the entry's place in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Nothing is configured here.
    Unset,
    /// The provider's profile stands instead.
    Replaced,
    /// A standing tool is not asked for here.
    Exempt,
    /// The profile includes it.
    Includes,
    /// This entry keeps it.
    Keeps(u32),
    /// Neither profile nor list names it.
    Drops,
    /// The list does not speak of it.
    Silent,
    /// This entry denies it.
    Denies(u32),
    /// This entry takes an effect away; the tool stays.
    Narrows(u32),
    /// This entry adds it, if it is not there.
    Adds(u32),
    /// This entry would add it, but a deny list names it and denying wins.
    Barred(u32),
}

impl Mark {
    /// The place of the entry that speaks.
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

    /// What listings call it.
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

/// What decided in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// No step removed it.
    Open,
    /// This step removed it, or brought it back.
    By(Step),
    /// There is no such tool.
    Unregistered,
}

/// Where a tool stands after a step. The decision and its explanation both go through [`State::after`].
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    pub(super) present: bool,
    pub(super) denied: Option<Step>,
    pub(super) reason: Reason,
}

impl State {
    pub(super) const START: Self = Self { present: true, denied: None, reason: Reason::Open };

    pub(super) fn after(mut self, step: Step, mark: Mark) -> Self {
        let present = match mark {
            Mark::Drops | Mark::Denies(_) => false,
            Mark::Adds(_) => true,
            _ => self.present,
        };
        if present != self.present {
            (self.present, self.reason) = (present, Reason::By(step));
        }
        match mark {
            Mark::Denies(_) => self.denied = self.denied.or(Some(step)),
            // Whatever else removed it, the deny list is what keeps it away now.
            Mark::Barred(_) => self.reason = self.denied.map_or(self.reason, Reason::By),
            _ => {}
        }
        self
    }
}

/// How a verdict came about.
#[derive(Clone)]
pub struct Trace {
    pub(super) rules: Arc<Rules>,
    pub(super) marks: [Mark; Step::COUNT],
    pub(super) reason: Reason,
    /// The effects that deny lists can take from the tool.
    pub(super) removable: Effects,
}

impl Trace {
    /// What decided in the end.
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

    /// What a step says of the tool.
    pub fn mark(&self, step: Step) -> Mark {
        self.marks[step as usize]
    }

    /// What is configured at a step.
    pub fn rule(&self, step: Step) -> &Rule {
        &self.rules[step as usize]
    }

    /// The entry by which a step speaks of the tool.
    pub fn entry(&self, step: Step) -> Option<&Entry> {
        self.rule(step).list()?.entries().get(self.mark(step).entry()?)
    }

    /// The effects that a step takes away, while the tool itself could stay.
    pub fn taken_by(&self, step: Step) -> Effects {
        match self.rule(step).list() {
            Some(list) if step.kind() == Kind::Deny => list.effects().common(self.removable),
            _ => Effects::NONE,
        }
    }

    /// The effects that all steps together take away.
    pub fn taken(&self) -> Effects {
        Step::ALL.into_iter().fold(Effects::NONE, |taken, step| taken.and(self.taken_by(step)))
    }

    /// Each step at which something is set, what it says, and whether the tool is there after it.
    pub fn steps(&self) -> impl Iterator<Item = (Step, Mark, bool)> {
        let apply = |state: &mut State, (step, mark): (Step, Mark)| {
            *state = state.after(step, mark);
            Some((step, mark, state.present))
        };
        let marks = Step::ALL.into_iter().zip(self.marks);
        marks.scan(State::START, apply).filter(|(_, mark, _)| *mark != Mark::Unset)
    }

    /// What a step says, in words: "`tools.deny` entry `group:runtime` denies it".
    pub fn words(&self, step: Step) -> impl fmt::Display {
        Words::new(self, step)
    }
}
