//! Finds probable mistakes in a policy: entries that cannot be parsed, name nothing known, change nothing, or
//! bring back what another list denies.
//!
//! The effect of an entry is not guessed from its text. The policy decides for every kind of caller that it
//! can tell apart, and an entry that no decision needed is reported.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use smol_str::SmolStr;

use crate::config::{PolicyConfig, SubagentTools};
use crate::entry::{BadEntry, Entry, List, Target};
use crate::group;
use crate::pipeline::{Kind, Policy, ToolSet};
use claw_core::did_you_mean::{misspelt, nearest};

mod survey;

use survey::Surveyed;

/// The start of the names of tools of MCP servers, unless a server has another one.
const MCP_TOOLS: &str = "mcp_";

/// A probable mistake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Finding {
    /// The severity.
    pub severity: Severity,
    /// The list's configuration key.
    pub list: SmolStr,
    /// The entry as written; empty if the finding is about the whole list.
    pub entry: SmolStr,
    /// The problem, and what to try.
    pub message: String,
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The policy does not do what it says, and is not used: an entry cannot be parsed, or its name is misspelt.
    Error,
    /// The policy may not do what was intended.
    Warning,
    /// The entry could be removed without any change.
    Note,
}

/// All probable mistakes in a policy, the worst first.
pub fn lint(config: &PolicyConfig, tools: &ToolSet) -> Vec<Finding> {
    let policy = match Policy::compile(config) {
        Ok(policy) => policy,
        Err(error) => return error.0.iter().map(Finding::unreadable).collect(),
    };
    let lists = survey::survey(config, &policy, tools);
    let written = lists.values().filter(|surveyed| !is_default(&surveyed.list));
    let mut findings = Vec::from_iter(written.flat_map(|surveyed| ListLint { tools, surveyed }.findings()));
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// The errors of a policy alone: what [`lint`] returns with [`Severity::Error`], without computing any decision.
pub fn errors(config: &PolicyConfig, tools: &ToolSet) -> Vec<Finding> {
    let policy = match Policy::compile(config) {
        Ok(policy) => policy,
        Err(error) => return error.0.iter().map(Finding::unreadable).collect(),
    };
    let lists = survey::lists(config, &policy, tools);
    let written = lists.values().filter(|surveyed| !is_default(&surveyed.list));
    written.flat_map(|surveyed| ListLint { tools, surveyed }.errors()).collect()
}

/// Returns whether a list is a default for subagents: such a list may name tools that a build does not have.
fn is_default(list: &List) -> bool {
    let is = |default: &[&str]| list.entries().iter().map(Entry::text).eq(default.iter().copied());
    match list.at() {
        "tools.subagents.deny" => is(&SubagentTools::DENY),
        "tools.subagents.leaf_deny" => is(&SubagentTools::LEAF_DENY),
        _ => false,
    }
}

/// Lints one list.
struct ListLint<'a> {
    tools: &'a ToolSet,
    surveyed: &'a Surveyed,
}

impl ListLint<'_> {
    fn findings(&self) -> Vec<Finding> {
        if self.surveyed.list.entries().is_empty() && self.surveyed.kind == Kind::Allow {
            let message = "is empty, so it keeps no tool; leave the list out to keep all";
            return vec![self.finding(Severity::Warning, "", message)];
        }
        let entries = self.surveyed.list.entries();
        let matched: Vec<BTreeSet<usize>> = entries.iter().map(|entry| self.matched(entry)).collect();
        (0..entries.len()).filter_map(|place| self.judge(place, &matched)).collect()
    }

    fn errors(&self) -> Vec<Finding> {
        let unmatched = self.surveyed.list.entries().iter().filter(|entry| self.matched(entry).is_empty());
        let found = unmatched.filter_map(|entry| self.names_nothing(entry));
        found.filter(|finding| finding.severity == Severity::Error).collect()
    }

    /// The first problem of the entry at a place; `matched` has the tools that each entry of the list names.
    fn judge(&self, place: usize, matched: &[BTreeSet<usize>]) -> Option<Finding> {
        let (entry, own) = (&self.surveyed.list.entries()[place], &matched[place]);
        if own.is_empty() {
            return self.names_nothing(entry);
        }
        let here = own.iter().copied().filter(|tool| *tool < self.tools.len()).collect();
        self.covered(place, matched)
            .or_else(|| self.revives(entry, &here))
            .or_else(|| self.changes_nothing(entry, &here))
    }

    /// The tools that an entry names, including those that it would only narrow.
    fn matched(&self, entry: &Entry) -> BTreeSet<usize> {
        match (entry.target(), self.surveyed.kind) {
            (Target::Effect(effect), Kind::Deny) => {
                self.tools.places(|meta| meta.effects.has(*effect)).collect()
            }
            (_, kind) => self.surveyed.list.places(entry, kind.list_use(), self.tools),
        }
    }

    /// A misspelt name is an error. A name unlike any other may be that of a custom tool or of an MCP server, which come
    /// and go.
    fn names_nothing(&self, entry: &Entry) -> Option<Finding> {
        let (severity, message, near) = match entry.target() {
            Target::Tool(name) => match (self.is_slip(name), name.starts_with(MCP_TOOLS)) {
                (true, _) => (Severity::Error, "names no known tool", self.near_tool(name)),
                (false, true) => return None,
                (false, false) => (
                    Severity::Warning,
                    "names no built-in tool; only a custom tool or one of an MCP server can match",
                    None,
                ),
            },
            Target::Group(name) if group::comes_and_goes(name) && self.group_slip(name).is_none() => {
                return None;
            }
            Target::Group(name) if group::is_known(name) => {
                (Severity::Warning, "is a group without tools", None)
            }
            Target::Group(name) => (Severity::Error, "names no known group", self.near_group(name)),
            Target::Effect(_) => (Severity::Note, "matches no tool", None),
            Target::Tools(_) | Target::Groups(_) | Target::Unreadable => {
                (Severity::Warning, "matches no tool", None)
            }
        };
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Some(self.finding(severity, entry.text(), format!("{message}{hint}")))
    }

    /// Returns whether a name is a slip of a tool's, or a group's without `group:`.
    fn is_slip(&self, name: &str) -> bool {
        group::is_known(group::canonical(name))
            || misspelt(name, self.tools.names().map(|(name, _)| name)).is_some()
    }

    /// Returns the MCP server's group that a name is a slip of.
    fn group_slip(&self, name: &str) -> Option<String> {
        let servers =
            self.tools.groups().map(|(name, _)| name.to_owned()).filter(|name| group::comes_and_goes(name));
        misspelt(name, servers)
    }

    fn near_tool(&self, name: &str) -> Option<String> {
        if group::is_known(group::canonical(name)) {
            return Some(format!("group:{name}"));
        }
        nearest(name, self.tools.names().map(|(name, _)| name)).map(str::to_owned)
    }

    fn near_group(&self, name: &str) -> Option<String> {
        let here = self.tools.groups().map(|(name, _)| name.to_owned());
        let near = nearest(name, here.chain(group::known().map(Into::into)))?;
        Some(format!("group:{near}"))
    }

    /// Finds another entry of the same list that already names all its tools.
    fn covered(&self, place: usize, matched: &[BTreeSet<usize>]) -> Option<Finding> {
        let entries = self.surveyed.list.entries();
        let (entry, own) = (&entries[place], &matched[place]);
        // In an allow list, effects count together, so none of them covers another.
        let together = |other: &Entry| {
            self.surveyed.kind != Kind::Deny && entry.is_effect() && other.is_effect() && entry != other
        };
        let covers = |(i, (other, others)): &(usize, (&Entry, &BTreeSet<usize>))| {
            *i != place
                && (others.len() > own.len() || *i < place)
                && !together(other)
                && own.is_subset(others)
        };
        let (_, (other, _)) = entries.iter().zip(matched).enumerate().find(covers)?;
        let message = match other.is_effect() && self.surveyed.kind != Kind::Deny {
            _ if other == entry => "is listed twice".to_owned(),
            true => "changes nothing; the effects in the same list cover it".to_owned(),
            false => format!("changes nothing; `{other}` in the same list covers it"),
        };
        Some(self.finding(Severity::Note, entry.text(), message))
    }

    fn revives(&self, entry: &Entry, here: &BTreeSet<usize>) -> Option<Finding> {
        let (tool, why) = here.iter().find_map(|tool| Some((tool, self.surveyed.revived.get(tool)?)))?;
        let tool = &self.tools.meta(*tool).name;
        let message = format!("brings back `{tool}`, though {why}; set `tools.deny_wins` to forbid this");
        Some(self.finding(Severity::Warning, entry.text(), message))
    }

    fn changes_nothing(&self, entry: &Entry, here: &BTreeSet<usize>) -> Option<Finding> {
        let tool = here.first().filter(|_| here.is_disjoint(&self.surveyed.live))?;
        let why = self.surveyed.idle.get(tool)?;
        let message = match here.len() {
            1 => format!("changes nothing; {why}"),
            _ => format!("changes nothing; for `{}`, for example, {why}", self.tools.meta(*tool).name),
        };
        Some(self.finding(Severity::Note, entry.text(), message))
    }

    fn finding(&self, severity: Severity, entry: &str, message: impl Into<String>) -> Finding {
        Finding {
            severity,
            list: self.surveyed.list.at().into(),
            entry: entry.into(),
            message: message.into(),
        }
    }
}

impl Finding {
    fn unreadable(bad: &BadEntry) -> Self {
        let BadEntry { list, entry, why } = bad.clone();
        Self { severity: Severity::Error, list, entry, message: format!("cannot be read: {why}") }
    }
}

impl Finding {
    /// The finding without its severity, for callers that show that themselves.
    pub fn without_severity(&self) -> impl fmt::Display {
        fmt::from_fn(|f| {
            write!(f, "`{}`", self.list)?;
            if !self.entry.is_empty() {
                write!(f, " entry `{}`", self.entry)?;
            }
            write!(f, " {}", self.message)
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        write!(f, "{severity}: {}", self.without_severity())
    }
}

#[cfg(test)]
mod tests;
