//! The policy as one caller meets it.

use std::sync::Arc;

use claw_core::tool::{Effects, Meta};

use super::trace::Rules;
use super::{Decision, Kind, Mark, Reason, Rule, Step, ToolSet, Trace, Verdict};
use crate::entry::{List, Target, Use};
use crate::profile;

/// A policy made ready for one caller: each list already knows which of the tools it speaks of.
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

    /// What becomes of every tool there is.
    pub fn decide(&self) -> Decision {
        let verdict = |(place, meta): (usize, &Arc<Meta>)| (Arc::clone(meta), self.at(place));
        Decision(self.tools.iter().enumerate().map(verdict).collect())
    }

    /// What becomes of the tool of this name or alias. One that is not in the set is refused.
    pub fn judge(&self, name: &str) -> Verdict {
        match self.tools.place(name).filter(|place| *place < self.tools.len()) {
            Some(place) => self.at(place),
            None => self.refusal(),
        }
    }

    /// What would become of a tool that is known but not in this build.
    pub(crate) fn suppose(&self, name: &str) -> Verdict {
        self.tools.place(name).map_or_else(|| self.refusal(), |place| self.at(place))
    }

    /// The rules in the order they are applied.
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    fn refusal(&self) -> Verdict {
        let trace = Trace::new(Arc::clone(&self.rules), [Mark::Unset; Step::COUNT], Reason::Unregistered);
        Verdict { allowed: false, effects: Effects::NONE, trace }
    }

    /// The decision: each step leaves its mark, and the marks are what decides.
    pub(crate) fn at(&self, place: usize) -> Verdict {
        let meta = self.tools.meta(place);
        let mut marks = [Mark::Unset; Step::COUNT];
        let mut present = true;
        let mut denied = None;
        let mut taken = Effects::NONE;
        let mut reason = Reason::Open;
        for step in Step::ALL {
            let mark = self.mark(step, place, meta);
            let mark = match mark {
                Mark::Adds(rule) if denied.is_some() && self.deny_wins => Mark::Barred(rule),
                mark => mark,
            };
            match mark {
                Mark::Drops if present => (present, reason) = (false, Reason::By(step)),
                Mark::Denies(_) => {
                    denied = denied.or(Some(step));
                    if present {
                        (present, reason) = (false, Reason::By(step));
                    }
                }
                Mark::Adds(_) if !present => (present, reason) = (true, Reason::By(step)),
                // Whatever else removed it, the deny list is what keeps it away now.
                Mark::Barred(_) => reason = denied.map_or(reason, Reason::By),
                _ => {}
            }
            taken = taken.and(self.takes(step, meta));
            marks[step as usize] = mark;
        }
        let effects = if present { meta.effects.without(taken) } else { Effects::NONE };
        Verdict { allowed: present, effects, trace: Trace::new(Arc::clone(&self.rules), marks, reason) }
    }

    /// What one step says of a tool.
    fn mark(&self, step: Step, place: usize, meta: &Meta) -> Mark {
        let list = match &self.rules[step as usize] {
            Rule::Unset => return Mark::Unset,
            Rule::Replaced(_) => return Mark::Replaced,
            _ if meta.standing && step.kind().passes_standing() => return Mark::Exempt,
            Rule::Profile { profile, .. } if profile::includes(*profile, meta) => return Mark::Includes,
            Rule::Profile { .. } => return Mark::Drops,
            Rule::List(list) => list,
        };
        match (step.kind(), self.hits[step as usize][place]) {
            (Kind::Allow, Some(rule)) => Mark::Keeps(rule),
            (Kind::Deny, Some(rule)) => Mark::Denies(rule),
            (Kind::AlsoAllow, Some(rule)) => Mark::Adds(rule),
            (Kind::Profile | Kind::Allow, _) => Mark::Drops,
            (Kind::Deny, None) => narrowing(list, meta).map_or(Mark::Silent, Mark::Narrows),
            (Kind::AlsoAllow, None) => Mark::Silent,
        }
    }

    /// The effects that a step takes from a tool which can do without them.
    fn takes(&self, step: Step, meta: &Meta) -> Effects {
        match &self.rules[step as usize] {
            Rule::List(list) if step.kind() == Kind::Deny => taken(list, meta),
            _ => Effects::NONE,
        }
    }
}

fn taken(list: &List, meta: &Meta) -> Effects {
    list.effects().common(meta.effects).common(meta.removable)
}

/// The first entry of a deny list that takes an effect away.
fn narrowing(list: &List, meta: &Meta) -> Option<u32> {
    let taken = taken(list, meta);
    if taken.is_empty() {
        return None;
    }
    let takes = |target: &Target| matches!(target, Target::Effect(effect) if taken.has(*effect));
    list.entries().iter().position(|entry| takes(entry.target())).map(|rule| rule as u32)
}

impl Kind {
    fn list_use(self) -> Use {
        if self == Self::Deny { Use::Deny } else { Use::Allow }
    }

    fn passes_standing(self) -> bool {
        matches!(self, Self::Profile | Self::Allow)
    }
}
