//! Explains why a caller has or lacks a tool, and what would have to change.
//!
//! Everything here is derived from the [`Trace`] of the decision itself.

use std::fmt;

use claw_core::tool::{Effects, Profile};
use serde::Serialize;
use smol_str::SmolStr;

use crate::entry::{Entry, List, Target, Use};
use crate::pipeline::{Kind, Mark, Policy, Rule, Step, Subject, ToolSet, Trace, Verdict};
use crate::profile;
use claw_core::did_you_mean::nearest;

/// The reason why a caller has or lacks a tool.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// The tool's name; for an unknown one, the requested name.
    pub tool: SmolStr,
    /// The agent in question.
    pub agent: SmolStr,
    /// Tells whether the tool exists.
    pub presence: Presence,
    /// The policy's verdict; for a tool that is not in this build, the hypothetical one.
    pub verdict: Verdict,
    /// Ways to reverse the verdict. Each is complete by itself.
    pub ways: Vec<Vec<Change>>,
    /// Changes that would restore the effects that the policy removes.
    pub restore: Vec<Change>,
}

/// The existence of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// It exists.
    Here,
    /// It is in the catalogue, but not in this build.
    NotInThisBuild,
    /// It is unknown.
    Unknown {
        /// The probable intention.
        near: Option<SmolStr>,
    },
}

/// A change to the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Add an entry to a list.
    Add {
        /// The entry.
        entry: SmolStr,
        /// The list's configuration key.
        list: SmolStr,
    },
    /// Remove an entry from a list.
    Remove {
        /// The entry.
        entry: SmolStr,
        /// The list's configuration key.
        list: SmolStr,
    },
    /// Set another profile.
    SetProfile {
        /// The profile's configuration key.
        at: SmolStr,
        /// The new profile.
        profile: Profile,
    },
    /// Set `tools.deny_wins`.
    DenyWins,
}

/// Explains a policy's verdict on the tool of this name or alias.
pub fn explain(policy: &Policy, tools: &ToolSet, subject: &Subject<'_>, tool: &str) -> Explanation {
    let agent = subject.agent.into();
    let verdict = policy.view(tools, subject).suppose(tool);
    let Some(meta) = tools.find(tool).or_else(|| tools.find_absent(tool)) else {
        let near = nearest(tool, tools.names().map(|(name, _)| name)).map(SmolStr::from);
        let presence = Presence::Unknown { near };
        return Explanation {
            tool: tool.into(),
            agent,
            presence,
            verdict,
            ways: Vec::new(),
            restore: Vec::new(),
        };
    };
    let advice =
        Advice { tools, tool: meta.name.as_str(), trace: &verdict.trace, deny_wins: policy.deny_wins() };
    Explanation {
        tool: meta.name.as_str().into(),
        agent,
        presence: if tools.find(tool).is_some() { Presence::Here } else { Presence::NotInThisBuild },
        ways: if verdict.allowed { vec![advice.to_deny()] } else { advice.to_allow() },
        restore: if verdict.allowed { advice.to_restore() } else { Vec::new() },
        verdict,
    }
}

/// Derives from a trace what would have to change.
struct Advice<'a> {
    tools: &'a ToolSet,
    tool: &'a str,
    trace: &'a Trace,
    deny_wins: bool,
}

impl Advice<'_> {
    /// Either fixes each step that removes the tool, or adds it with `also_allow` and fixes only what that
    /// cannot undo.
    fn to_allow(&self) -> Vec<Vec<Change>> {
        let (early, late): (Vec<_>, Vec<_>) =
            Step::ALL.into_iter().partition(|step| *step < Step::GlobalAlsoAllow);
        let late = self.mend(late);
        if self.trace.steps().any(|(_, mark, _)| matches!(mark, Mark::Adds(_))) {
            return vec![late];
        }
        let denying =
            early.iter().copied().filter(|step| self.deny_wins && step.kind() == Kind::Deny).collect();
        let mut added = self.mend(denying);
        if !self.trace.steps().any(|(_, mark, _)| matches!(mark, Mark::Barred(_))) {
            added.push(self.add("tools.also_allow"));
        }
        let direct = self.mend(early);
        // Only the shorter way, if the other one just adds to it.
        let within = |a: &[Change], b: &[Change]| a.iter().all(|change| b.contains(change));
        let ways = match (within(&direct, &added), within(&added, &direct)) {
            (true, _) => vec![direct],
            (false, true) => vec![added],
            (false, false) => vec![direct, added],
        };
        ways.into_iter().map(|way| [way, late.clone()].concat()).collect()
    }

    fn to_deny(&self) -> Vec<Change> {
        let added = self.trace.steps().any(|(_, mark, _)| matches!(mark, Mark::Adds(_)));
        let wins = (added && !self.deny_wins).then_some(Change::DenyWins);
        std::iter::once(self.add("tools.deny")).chain(wins).collect()
    }

    fn to_restore(&self) -> Vec<Change> {
        let takes = |step: Step| {
            let taken = self.trace.taken_by(step);
            self.remove(step, move |entry| matches!(entry.target(), Target::Effect(e) if taken.has(*e)))
        };
        Step::ALL.into_iter().flat_map(takes).collect()
    }

    /// Changes that would keep these steps from removing the tool.
    fn mend(&self, steps: Vec<Step>) -> Vec<Change> {
        let mend = |step| match (self.trace.mark(step), self.trace.rule(step)) {
            (Mark::Drops, Rule::Profile { at, profile }) => vec![self.widen(at, *profile)],
            (Mark::Drops, Rule::List(list)) => vec![self.add(list.at())],
            (Mark::Denies(_), Rule::List(list)) => self.remove(step, |entry| self.speaks(list, entry)),
            _ => Vec::new(),
        };
        steps.into_iter().flat_map(mend).collect()
    }

    fn speaks(&self, list: &List, entry: &Entry) -> bool {
        let place = self.tools.place(self.tool);
        place.is_some_and(|place| list.places(entry, Use::Deny, self.tools).contains(&place))
    }

    fn add(&self, list: &str) -> Change {
        Change::Add { entry: self.tool.into(), list: list.into() }
    }

    fn remove(&self, step: Step, matches: impl Fn(&Entry) -> bool) -> Vec<Change> {
        let Some(list) = self.trace.rule(step).list() else { return Vec::new() };
        let remove = |entry: &Entry| Change::Remove { entry: entry.text().into(), list: list.at().into() };
        list.entries().iter().filter(|entry| matches(entry)).map(remove).collect()
    }

    /// The narrowest profile that includes the tool and gives more than the current one.
    fn widen(&self, at: &str, from: Profile) -> Change {
        let wider = Profile::ALL.into_iter().take_while(|profile| *profile != from);
        let meta = self.tools.place(self.tool).map(|place| self.tools.meta(place));
        let fits = |profile: &Profile| meta.is_some_and(|meta| profile::includes(*profile, meta));
        Change::SetProfile { at: at.into(), profile: wider.filter(fits).last().unwrap_or(Profile::Full) }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add { entry, list } => write!(f, "add `{entry}` to `{list}`"),
            Self::Remove { entry, list } => write!(f, "remove `{entry}` from `{list}`"),
            Self::SetProfile { at, profile } => write!(f, "set `{at}` to `{}`", profile.name()),
            Self::DenyWins => f.write_str("set `tools.deny_wins` to true"),
        }
    }
}

impl Explanation {
    fn headline(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool, agent, verdict, .. } = self;
        match (&self.presence, verdict.allowed) {
            (Presence::Unknown { near: Some(near) }, _) => {
                return write!(f, "there is no tool `{tool}`; did you mean `{near}`?");
            }
            (Presence::Unknown { near: None }, _) => return write!(f, "there is no tool `{tool}`"),
            (Presence::NotInThisBuild, true) => {
                write!(f, "`{tool}` is not in this build; agent `{agent}` would have it: ")?;
            }
            (Presence::NotInThisBuild, false) => {
                write!(f, "`{tool}` is not in this build, and agent `{agent}` would not have it: ")?;
            }
            (Presence::Here, true) => write!(f, "agent `{agent}` has `{tool}`: ")?,
            (Presence::Here, false) => write!(f, "agent `{agent}` does not have `{tool}`: ")?,
        }
        write!(f, "{}", verdict.trace)
    }

    fn steps(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (step, _, present) in self.verdict.trace.steps() {
            let sign = if present { '+' } else { '-' };
            let (number, words) = (step as usize + 1, self.verdict.trace.words(step));
            write!(f, "\n  {sign} {number:>2} {}: {words}", step.name())?;
        }
        Ok(())
    }

    fn effects(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n\nits calls may have these effects: {}", self.verdict.effects)?;
        match self.verdict.trace.taken() {
            Effects::NONE => Ok(()),
            taken => write!(f, " (without {taken})"),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.headline(f)?;
        if matches!(self.presence, Presence::Unknown { .. }) {
            return Ok(());
        }
        f.write_str("\n")?;
        self.steps(f)?;
        if self.verdict.allowed {
            self.effects(f)?;
        }
        let goal = if self.verdict.allowed { "to take it away" } else { "to allow it" };
        for (i, way) in self.ways.iter().enumerate() {
            let lead = if i == 0 { goal } else { "or" };
            changes(f, lead, way)?;
        }
        changes(f, "to give back the removed effects", &self.restore)
    }
}

fn changes(f: &mut fmt::Formatter<'_>, lead: &str, changes: &[Change]) -> fmt::Result {
    if !changes.is_empty() {
        write!(f, "\n\n{lead}:")?;
    }
    changes.iter().try_for_each(|change| write!(f, "\n  {change}"))
}

#[cfg(test)]
mod tests;
