//! Decides which tools one caller gets: each step makes a mark on a tool, and the marks decide.

use std::sync::Arc;

use claw_core::tool::{Effects, Meta};

use super::trace::Rules;
use super::{Decision, Kind, Mark, Reason, Rule, Step, ToolSet, Trace, Verdict};
use crate::entry::List;
use crate::profile;

/// A policy prepared for one caller: each list is already matched with the tools.
#[derive(Debug, Clone)]
pub struct View<'t> {
    tools: &'t ToolSet,
    rules: Arc<Rules>,
    hits: [Vec<Option<u32>>; Step::COUNT],
    deny_wins: bool,
}

impl<'t> View<'t> {
    pub(super) fn new(tools: &'t ToolSet, rules: Rules, deny_wins: bool) -> Self {
        let hits = Step::ALL.map(|step| match &rules[step as usize] {
            Rule::List(list) => list.hits(tools, step.kind().list_use()),
            _ => Vec::new(),
        });
        Self { tools, rules: Arc::new(rules), hits, deny_wins }
    }

    /// Decides on every tool.
    pub fn decide(&self) -> Decision {
        let verdict = |(place, meta): (usize, &Arc<Meta>)| (Arc::clone(meta), self.at(place));
        Decision(self.tools.iter().enumerate().map(verdict).collect())
    }

    /// Decides on the tool of this name or alias. One that is not in the set is refused.
    pub fn judge(&self, name: &str) -> Verdict {
        match self.tools.place(name).filter(|place| *place < self.tools.len()) {
            Some(place) => self.at(place),
            None => self.refuse(),
        }
    }

    /// Decides on a tool that is in the catalogue but not in this build.
    pub(crate) fn suppose(&self, name: &str) -> Verdict {
        self.tools.place(name).map_or_else(|| self.refuse(), |place| self.at(place))
    }

    /// The lists that apply, in order.
    pub(crate) fn lists(&self) -> impl Iterator<Item = (Step, &Arc<List>)> {
        Step::ALL.into_iter().zip(self.rules.iter()).filter_map(|(step, rule)| match rule {
            Rule::List(list) => Some((step, list)),
            _ => None,
        })
    }

    pub(super) fn refuse(&self) -> Verdict {
        let trace = Trace { reason: Reason::Unregistered, ..self.trace(Effects::NONE) };
        Verdict { allowed: false, effects: Effects::NONE, trace }
    }

    fn trace(&self, removable: Effects) -> Trace {
        let marks = [Mark::Unset; Step::COUNT];
        Trace { rules: Arc::clone(&self.rules), marks, reason: Reason::Open, removable }
    }

    /// Decides on a tool: each step makes a mark, and the marks decide.
    pub(crate) fn at(&self, place: usize) -> Verdict {
        let meta = self.tools.meta(place);
        let mut trace = self.trace(meta.effects.common(meta.removable));
        let mut state = State::START;
        for step in Step::ALL {
            let mark = match self.mark(step, place, &trace) {
                Mark::Adds(rule) if self.deny_wins && state.denied.is_some() => Mark::Barred(rule),
                mark => mark,
            };
            state = state.after(step, mark);
            trace.marks[step as usize] = mark;
        }
        trace.reason = state.reason;
        let effects = if state.present { meta.effects.without(trace.taken()) } else { Effects::NONE };
        Verdict { allowed: state.present, effects, trace }
    }

    /// The judgement of one step on a tool.
    fn mark(&self, step: Step, place: usize, trace: &Trace) -> Mark {
        let meta = self.tools.meta(place);
        let list = match &self.rules[step as usize] {
            Rule::Unset => return Mark::Unset,
            Rule::Replaced(_) => return Mark::Replaced,
            _ if meta.standing && step.kind().spares_standing() => return Mark::Exempt,
            Rule::Profile { profile, .. } if profile::includes(*profile, meta) => return Mark::Includes,
            Rule::Profile { .. } => return Mark::Drops,
            Rule::List(list) => list,
        };
        match (step.kind(), self.hits[step as usize][place]) {
            (Kind::Deny, Some(rule)) => Mark::Denies(rule),
            (Kind::Deny, None) => list.first_effect(trace.taken_by(step)).map_or(Mark::Silent, Mark::Narrows),
            (Kind::AlsoAllow, hit) => hit.map_or(Mark::Silent, Mark::Adds),
            (Kind::Profile | Kind::Allow, hit) => hit.map_or(Mark::Drops, Mark::Keeps),
        }
    }
}

/// The state of a tool after a step. The decision and its explanation both use [`State::after`].
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    pub(super) present: bool,
    denied: Option<Step>,
    reason: Reason,
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
            // Whatever removed it before, the deny list is what excludes it now.
            Mark::Barred(_) => self.reason = self.denied.map_or(self.reason, Reason::By),
            _ => {}
        }
        self
    }
}
