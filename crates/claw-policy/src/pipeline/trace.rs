//! How a verdict came about, step by step.

use std::fmt;
use std::sync::Arc;

use claw_core::tool::Profile;
use serde::{Serialize, Serializer};
use smol_str::SmolStr;

use crate::entry::List;

/// The steps, in the order they are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Step {
    /// `tools.profile`
    Profile,
    /// `tools.by_provider.{provider}.profile`, which replaces the former.
    ProviderProfile,
    /// `tools.allow`
    GlobalAllow,
    /// `tools.by_provider.{provider}.allow`
    ProviderAllow,
    /// `agents.{agent}.allow`
    AgentAllow,
    /// `agents.{agent}.by_provider.{provider}.allow`
    AgentProviderAllow,
    /// `tools.groups.{chat}.allow`
    GroupAllow,
    /// `tools.deny`
    GlobalDeny,
    /// `agents.{agent}.deny`
    AgentDeny,
    /// `tools.also_allow`
    GlobalAlsoAllow,
    /// `agents.{agent}.also_allow`
    AgentAlsoAllow,
    /// `tools.subagents.deny`
    SubagentDeny,
    /// `tools.subagents.leaf_deny`
    LeafDeny,
    /// The allow list that came with the message.
    RequestAllow,
}

/// What a step does with tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Keeps what a profile includes.
    Profile,
    /// Keeps what a list names.
    Allow,
    /// Removes what a list names.
    Deny,
    /// Adds what a list names.
    AlsoAllow,
}

impl Step {
    /// How many there are.
    pub const COUNT: usize = 14;

    /// All steps in order.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Profile,
        Self::ProviderProfile,
        Self::GlobalAllow,
        Self::ProviderAllow,
        Self::AgentAllow,
        Self::AgentProviderAllow,
        Self::GroupAllow,
        Self::GlobalDeny,
        Self::AgentDeny,
        Self::GlobalAlsoAllow,
        Self::AgentAlsoAllow,
        Self::SubagentDeny,
        Self::LeafDeny,
        Self::RequestAllow,
    ];

    /// What it does with tools.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Profile | Self::ProviderProfile => Kind::Profile,
            Self::GlobalAllow
            | Self::ProviderAllow
            | Self::AgentAllow
            | Self::AgentProviderAllow
            | Self::GroupAllow
            | Self::RequestAllow => Kind::Allow,
            Self::GlobalDeny | Self::AgentDeny | Self::SubagentDeny | Self::LeafDeny => Kind::Deny,
            Self::GlobalAlsoAllow | Self::AgentAlsoAllow => Kind::AlsoAllow,
        }
    }

    /// What listings call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Profile => "profile",
            Self::ProviderProfile => "provider profile",
            Self::GlobalAllow => "global allow",
            Self::ProviderAllow => "provider allow",
            Self::AgentAllow => "agent allow",
            Self::AgentProviderAllow => "agent and provider allow",
            Self::GroupAllow => "group allow",
            Self::GlobalDeny => "global deny",
            Self::AgentDeny => "agent deny",
            Self::GlobalAlsoAllow => "global also_allow",
            Self::AgentAlsoAllow => "agent also_allow",
            Self::SubagentDeny => "subagent deny",
            Self::LeafDeny => "leaf deny",
            Self::RequestAllow => "request allow",
        }
    }
}

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

/// How a verdict came about.
#[derive(Clone)]
pub struct Trace {
    rules: Arc<Rules>,
    marks: [Mark; Step::COUNT],
    reason: Reason,
}

impl Trace {
    pub(super) fn new(rules: Arc<Rules>, marks: [Mark; Step::COUNT], reason: Reason) -> Self {
        Self { rules, marks, reason }
    }

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

    /// The entry by which a step speaks of the tool, as written.
    pub fn entry(&self, step: Step) -> Option<&str> {
        match self.rule(step) {
            Rule::List(list) => list.entries().get(self.mark(step).entry()?).map(|entry| entry.text()),
            _ => None,
        }
    }

    /// Each step that has something to say, with what it says.
    pub fn steps(&self) -> impl Iterator<Item = (Step, Mark)> {
        Step::ALL.into_iter().map(|step| (step, self.mark(step))).filter(|(_, mark)| *mark != Mark::Unset)
    }

    /// What a step says, in words: "`tools.deny` entry `group:runtime` denies it".
    pub fn words(&self, step: Step) -> Words<'_> {
        Words { trace: self, step }
    }
}

/// What one step says of a tool, in words.
pub struct Words<'a> {
    trace: &'a Trace,
    step: Step,
}

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = self.trace.mark(self.step);
        let rule = self.trace.rule(self.step);
        let at = rule.at().unwrap_or_default();
        match (rule, self.trace.entry(self.step)) {
            (Rule::Unset, _) => return write!(f, "nothing is set for the {}", self.step.name()),
            (Rule::Replaced(profile), _) => {
                return write!(f, "`{at}` (`{}`) is replaced by the provider's", profile.name());
            }
            (Rule::Profile { profile, .. }, _) => write!(f, "`{at}` (`{}`)", profile.name())?,
            (Rule::List(_), Some(entry)) => write!(f, "`{at}` entry `{entry}`")?,
            (Rule::List(_), None) => write!(f, "`{at}`")?,
        }
        f.write_str(match mark {
            Mark::Unset | Mark::Replaced => "",
            Mark::Exempt => " does not apply to a standing tool",
            Mark::Includes => " includes it",
            Mark::Keeps(_) => " keeps it",
            Mark::Drops if self.step.kind() == Kind::Profile => " does not include it",
            Mark::Drops => " does not name it",
            Mark::Silent => " does not speak of it",
            Mark::Denies(_) => " denies it",
            Mark::Narrows(_) => " takes effects from it",
            Mark::Adds(_) => " adds it",
            Mark::Barred(_) => " cannot add it, since `tools.deny_wins` is set",
        })
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Reason::Open => f.write_str("no step removes it"),
            Reason::By(step) => self.words(step).fmt(f),
            Reason::Unregistered => f.write_str("there is no such tool"),
        }
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.steps()).finish()
    }
}

impl Serialize for Trace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Line<'a> {
            step: Step,
            list: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            entry: Option<&'a str>,
            mark: &'static str,
        }
        #[derive(Serialize)]
        struct Lines<'a> {
            decided_by: Option<Step>,
            words: String,
            steps: Vec<Line<'a>>,
        }
        let line = |(step, mark): (Step, Mark)| Line {
            step,
            list: self.rule(step).at(),
            entry: self.entry(step),
            mark: mark.name(),
        };
        let steps = self.steps().map(line).collect();
        Lines { decided_by: self.decided_by(), words: self.to_string(), steps }.serialize(serializer)
    }
}
