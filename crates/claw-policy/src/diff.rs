//! The tools that each agent gains and loses by a change of policy.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use claw_core::tool::{Effects, SubagentDepth};
use serde::Serialize;
use smol_str::SmolStr;

use crate::config::PolicyConfig;
use crate::pipeline::{Policy, PolicyError, Subject, ToolSet, Verdict};

/// Changes by agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct Diff(pub Vec<Difference>);

/// Changes for one agent, in one kind of situation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Difference {
    /// The agent; `default` stands for all that neither policy names.
    pub agent: SmolStr,
    /// The situation; changes that apply in general are not repeated.
    pub when: When,
    /// Changes by tool.
    pub tools: BTreeMap<SmolStr, Delta>,
}

/// A kind of situation. A field that is not set matches anything.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, schemars::JsonSchema)]
pub struct When {
    /// The model's provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<SmolStr>,
    /// The group chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_group: Option<SmolStr>,
    /// The position in a tree of subagents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent: Option<Subagent>,
}

/// A position in a tree of subagents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Subagent {
    /// May start others.
    Inner,
    /// May not.
    Leaf,
}

/// The change of one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delta {
    /// It is available now.
    Gained,
    /// It is no longer available.
    Lost,
    /// It is still available, with other effects.
    Effects {
        /// Effects that it has only now.
        gained: Effects,
        /// Effects that it no longer has.
        lost: Effects,
    },
}

/// Compares two policies over the same tools.
pub fn diff(old: &PolicyConfig, new: &PolicyConfig, tools: &ToolSet) -> Result<Diff, PolicyError> {
    let (before, after) = (Policy::compile(old)?, Policy::compile(new)?);
    let situations = situations(old, new);
    let agents = &old.agent_names() | &new.agent_names();
    let compare = Comparison { before, after, tools };
    Ok(Diff(agents.into_iter().flat_map(|agent| compare.agent(agent, &situations)).collect()))
}

struct Comparison<'t> {
    before: Policy,
    after: Policy,
    tools: &'t ToolSet,
}

impl Comparison<'_> {
    /// Changes for an agent in each situation, without those that apply in a more general one.
    fn agent(&self, agent: &str, situations: &[When]) -> Vec<Difference> {
        let mut found: Vec<Difference> = Vec::new();
        for when in situations {
            let mut tools = self.changes(&when.subject(agent));
            for general in found.iter().filter(|found| when.is_case_of(&found.when)) {
                tools.retain(|tool, change| general.tools.get(tool) != Some(change));
            }
            if !tools.is_empty() {
                found.push(Difference { agent: agent.into(), when: when.clone(), tools });
            }
        }
        found
    }

    fn changes(&self, subject: &Subject<'_>) -> BTreeMap<SmolStr, Delta> {
        let before = self.before.decide(self.tools, subject);
        let after = self.after.decide(self.tools, subject);
        let mut changes = BTreeMap::new();
        for ((meta, old), (_, new)) in before.iter().zip(after.iter()) {
            if let Some(change) = Delta::between(old, new) {
                changes.insert(meta.name.as_str().into(), change);
            }
        }
        changes
    }
}

impl Delta {
    fn between(old: &Verdict, new: &Verdict) -> Option<Self> {
        match (old.allowed, new.allowed) {
            (false, false) => None,
            (false, true) => Some(Self::Gained),
            (true, false) => Some(Self::Lost),
            (true, true) if old.effects == new.effects => None,
            (true, true) => Some(Self::Effects {
                gained: new.effects.without(old.effects),
                lost: old.effects.without(new.effects),
            }),
        }
    }
}

/// Every kind of situation that either policy can tell apart, general ones first.
fn situations(old: &PolicyConfig, new: &PolicyConfig) -> Vec<When> {
    let options = |names: BTreeSet<&str>| {
        Vec::from_iter([None].into_iter().chain(names.into_iter().map(|name| Some(SmolStr::from(name)))))
    };
    let providers = options(&old.provider_names() | &new.provider_names());
    let chats = options(&old.chat_names() | &new.chat_names());
    let mut situations = Vec::new();
    for provider in &providers {
        for chat_group in &chats {
            for subagent in [None, Some(Subagent::Inner), Some(Subagent::Leaf)] {
                let (provider, chat_group) = (provider.clone(), chat_group.clone());
                situations.push(When { provider, chat_group, subagent });
            }
        }
    }
    situations.sort_by_key(When::conditions);
    situations
}

impl When {
    fn conditions(&self) -> usize {
        usize::from(self.provider.is_some())
            + usize::from(self.chat_group.is_some())
            + usize::from(self.subagent.is_some())
    }

    /// Returns whether every condition of `general` holds here too.
    fn is_case_of(&self, general: &Self) -> bool {
        (general.provider.is_none() || general.provider == self.provider)
            && (general.chat_group.is_none() || general.chat_group == self.chat_group)
            && (general.subagent.is_none() || general.subagent == self.subagent)
    }

    fn subject<'a>(&'a self, agent: &'a str) -> Subject<'a> {
        Subject {
            tenant: None,
            agent,
            provider: self.provider.as_deref(),
            chat_group: self.chat_group.as_deref(),
            subagent: match self.subagent {
                None => SubagentDepth::default(),
                Some(subagent) => SubagentDepth { depth: 1, leaf: subagent == Subagent::Leaf },
            },
            request_allow: None,
        }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(provider) = &self.provider {
            write!(f, " with provider `{provider}`")?;
        }
        if let Some(chat) = &self.chat_group {
            write!(f, " in chat `{chat}`")?;
        }
        match self.subagent {
            None => Ok(()),
            Some(Subagent::Inner) => f.write_str(" as a subagent"),
            Some(Subagent::Leaf) => f.write_str(" as a leaf subagent"),
        }
    }
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no agent gains or loses a tool");
        }
        for (i, difference) in self.0.iter().enumerate() {
            let gap = if i == 0 { "" } else { "\n" };
            write!(f, "{gap}agent `{}`{}:", difference.agent, difference.when)?;
            for (tool, change) in &difference.tools {
                match change {
                    Delta::Gained => write!(f, "\n  + {tool}")?,
                    Delta::Lost => write!(f, "\n  - {tool}")?,
                    Delta::Effects { gained, lost } => {
                        write!(f, "\n  ~ {tool}")?;
                        let mut part = |sign, effects: Effects| {
                            effects.iter().try_for_each(|effect| write!(f, " {sign}{effect}"))
                        };
                        part('+', *gained)?;
                        part('-', *lost)?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
