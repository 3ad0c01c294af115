//! A trace in words, and as data for programs.

use std::fmt;

use claw_core::tool::Effects;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::{Decision, Kind, Mark, Reason, Rule, Step, Trace};
use crate::entry::Entry;

/// The judgement of one step on a tool, in words.
pub(super) struct Words<'a> {
    trace: &'a Trace,
    step: Step,
}

impl<'a> Words<'a> {
    pub(super) fn new(trace: &'a Trace, step: Step) -> Self {
        Self { trace, step }
    }

    /// The source of the mark: a profile, an entry, or a whole list.
    fn speaker(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.trace.rule(self.step), self.trace.entry(self.step)) {
            (Rule::Unset, _) => write!(f, "the {}, which is not set,", self.step.name()),
            (Rule::Replaced(profile), _) => write!(f, "`tools.profile` (`{}`)", profile.name()),
            (Rule::Profile { at, profile }, _) => write!(f, "`{at}` (`{}`)", profile.name()),
            // In an allow list all named effects count together.
            (Rule::List(list), Some(entry)) if entry.is_effect() && self.step.kind() != Kind::Deny => {
                write!(f, "`{}` (effects {})", list.at(), list.effects())
            }
            (Rule::List(list), Some(entry)) => write!(f, "`{}` entry `{entry}`", list.at()),
            (Rule::List(list), None) => write!(f, "`{}`", list.at()),
        }
    }
}

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.speaker(f)?;
        let mark = self.trace.mark(self.step);
        f.write_str(match mark {
            Mark::Unset => " says nothing",
            Mark::Replaced => " is replaced by the provider's profile",
            Mark::Exempt => " does not apply to a standing tool",
            Mark::Includes => " includes it",
            Mark::Keeps(_) => " keeps it",
            Mark::Drops if self.step.kind() == Kind::Profile => " does not include it",
            Mark::Drops | Mark::Silent => " does not name it",
            Mark::Denies(_) => " denies it",
            Mark::Narrows(_) => " narrows it",
            Mark::Adds(_) => " adds it",
            Mark::Barred(_) => " cannot add it, since `tools.deny_wins` is set",
        })?;
        match self.trace.taken_by(self.step) {
            Effects::NONE => Ok(()),
            taken => write!(f, ", taking away {taken}"),
        }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Reason::Open => f.write_str("no step removes it")?,
            Reason::By(step) => self.words(step).fmt(f)?,
            Reason::Unregistered => return f.write_str("there is no such tool"),
        }
        for (step, mark, _) in self.steps() {
            if matches!(mark, Mark::Narrows(_)) && self.decided_by() != Some(step) {
                write!(f, "; {}", self.words(step))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Decision {
    /// Writes a line per tool: `+` or `-`, its name, and the deciding step in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.iter().map(|(meta, _)| meta.name.as_str().len()).max().unwrap_or_default();
        for (i, (meta, verdict)) in self.iter().enumerate() {
            let (gap, sign) = (if i == 0 { "" } else { "\n" }, if verdict.allowed { '+' } else { '-' });
            write!(f, "{gap}{sign} {:<width$}  {}", meta.name.as_str(), verdict.trace)?;
        }
        Ok(())
    }
}

impl Serialize for Decision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(meta, verdict)| (&meta.name, verdict)))
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.steps()).finish()
    }
}

impl Serialize for Trace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Line<'a> {
            step: Step,
            list: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            entry: Option<&'a Entry>,
            mark: &'static str,
            #[serde(skip_serializing_if = "nothing")]
            takes: Effects,
            present: bool,
        }
        fn nothing(effects: &Effects) -> bool {
            effects.is_empty()
        }
        let line = |(step, mark, present): (Step, Mark, bool)| Line {
            step,
            list: self.rule(step).at(),
            entry: self.entry(step),
            mark: mark.name(),
            takes: self.taken_by(step),
            present,
        };
        let mut trace = serializer.serialize_struct("Trace", 3)?;
        trace.serialize_field("decided_by", &self.decided_by())?;
        trace.serialize_field("words", &self.to_string())?;
        trace.serialize_field("steps", &self.steps().map(line).collect::<Vec<_>>())?;
        trace.end()
    }
}
