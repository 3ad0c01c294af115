//! Entries of policy lists, and the lists.
//!
//! An entry that cannot be parsed is refused when the policy is compiled: a deny list that silently lost an
//! entry would allow what it was written to deny. An entry that names nothing known is accepted, since MCP
//! servers and custom tools come and go; `policy lint` reports it.

use std::collections::BTreeSet;
use std::fmt;

use claw_core::tool::{Effect, Effects, Meta};
use serde::{Serialize, Serializer};
use smol_str::SmolStr;

use crate::group;
use crate::pipeline::ToolSet;
use claw_core::did_you_mean::nearest;

/// An entry, as written and as parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    text: SmolStr,
    target: Target,
}

/// The tools that an entry names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The tool of this name or alias.
    Tool(SmolStr),
    /// Tools whose name or alias matches.
    Tools(Pattern),
    /// The members of the group of this name.
    Group(SmolStr),
    /// The members of groups whose name matches.
    Groups(Pattern),
    /// Tools with this effect.
    Effect(Effect),
    /// Nothing: an entry of a message's list that cannot be parsed allows nothing.
    Unreadable,
}

/// The kind of list: it gives tools or takes them. Effects mean different things in the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// The list gives tools.
    Allow,
    /// The list takes tools.
    Deny,
}

/// The reason why an entry cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// It is empty.
    #[error("an entry is empty; name a tool, a `group:` or an `effect:`, or remove it")]
    Empty,
    /// `group:` and nothing after it.
    #[error("`{0}` names no group; write one after the colon, such as `group:fs`")]
    NoGroup(SmolStr),
    /// `effect:` and a word that is not an effect.
    #[error("`{text}` is not an effect; {}", hint(.near, "use read, write, execute, network, spend, message, spawn or admin"))]
    NotAnEffect {
        /// The entry as written.
        text: SmolStr,
        /// The probable intention.
        near: Option<String>,
    },
    /// A colon after a word that is neither `group` nor `effect`.
    #[error("`{text}` is not a kind of entry; {}", hint(.near, "write a tool's name, `group:NAME` or \
                                                                `effect:NAME`"))]
    NoSuchKind {
        /// The entry as written.
        text: SmolStr,
        /// The probable intention.
        near: Option<String>,
    },
    /// Characters that no name contains.
    #[error("`{0}` can match no name; use letters, digits, `_` and `-`, and `*` for any characters")]
    BadName(SmolStr),
}

fn hint(near: &Option<String>, otherwise: &str) -> String {
    near.as_ref().map_or_else(|| otherwise.to_owned(), |near| format!("did you mean `{near}`?"))
}

impl Entry {
    /// Parses an entry.
    pub fn parse(text: &str) -> Result<Self, EntryError> {
        let target = match text.split_once(':') {
            None => Self::tool(text)?,
            Some(("group", name)) => Self::group(text, name)?,
            Some(("effect", name)) => Self::effect(text, name)?,
            Some((kind, rest)) => return Err(no_such_kind(text, kind, rest)),
        };
        Ok(Self { text: text.into(), target })
    }

    fn tool(text: &str) -> Result<Target, EntryError> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'*');
        match text {
            "" => Err(EntryError::Empty),
            _ if !text.bytes().all(fits) => Err(EntryError::BadName(text.into())),
            _ if text.contains('*') => Ok(Target::Tools(Pattern::new(text))),
            _ => Ok(Target::Tool(text.into())),
        }
    }

    fn group(text: &str, name: &str) -> Result<Target, EntryError> {
        let misfit = |c: char| c.is_whitespace() || c.is_control() || "?[]{}!,".contains(c);
        match name {
            "" | "mcp:" => Err(EntryError::NoGroup(text.into())),
            _ if name.contains(misfit) => Err(EntryError::BadName(text.into())),
            _ if name.contains('*') => Ok(Target::Groups(Pattern::new(name))),
            _ => Ok(Target::Group(group::canonical(name).into())),
        }
    }

    fn effect(text: &str, name: &str) -> Result<Target, EntryError> {
        name.parse().map(Target::Effect).map_err(|_| {
            let near = nearest(name, Effect::ALL.map(Effect::name));
            EntryError::NotAnEffect { text: text.into(), near: near.map(|near| format!("effect:{near}")) }
        })
    }

    /// The entry as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the entry names an effect.
    pub fn is_effect(&self) -> bool {
        matches!(self.target, Target::Effect(_))
    }

    /// The tools that the entry names.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Calls `hit` with the index of each tool that the entry names, in a list of this use whose entries name
    /// these effects altogether.
    pub(crate) fn each(&self, tools: &ToolSet, list: (Use, Effects), mut hit: impl FnMut(usize)) {
        match (&self.target, list) {
            (Target::Tool(name), _) => tools.place(name).into_iter().for_each(hit),
            (Target::Tools(pattern), _) => {
                let names = tools.names_from(pattern.head());
                names.filter(|(name, _)| pattern.fits(name)).for_each(|(_, place)| hit(place));
            }
            (Target::Group(name), _) => tools.members(name).iter().copied().for_each(hit),
            (Target::Groups(pattern), _) => tools
                .groups()
                .filter(|(name, _)| pattern.fits(name))
                .for_each(|(_, places)| places.iter().copied().for_each(&mut hit)),
            (Target::Effect(_), (Use::Allow, together)) => {
                tools.places(|meta| meta.effects.within(together)).for_each(hit);
            }
            (Target::Effect(effect), (Use::Deny, _)) => {
                let stays = |meta: &Meta| meta.removable.has(*effect);
                tools.places(|meta| meta.effects.has(*effect) && !stays(meta)).for_each(hit);
            }
            (Target::Unreadable, _) => {}
        }
    }
}

fn no_such_kind(text: &str, kind: &str, rest: &str) -> EntryError {
    let near = match kind {
        group::MCP => Some(format!("group:{text}")),
        _ => nearest(kind, ["group", "effect"]).map(|kind| format!("{kind}:{rest}")),
    };
    EntryError::NoSuchKind { text: text.into(), near }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// Text in which each `*` stands for any characters, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The text before the first star.
    head: SmolStr,
    /// The texts between stars, and after the last one.
    rest: Vec<SmolStr>,
}

impl Pattern {
    fn new(text: &str) -> Self {
        let mut parts = text.split('*').map(SmolStr::new);
        Self { head: parts.next().unwrap_or_default(), rest: parts.collect() }
    }

    /// The prefix of every matching name.
    pub fn head(&self) -> &str {
        &self.head
    }

    /// Returns whether a name matches.
    pub fn fits(&self, name: &str) -> bool {
        let Some(mut left) = name.strip_prefix(self.head()) else { return false };
        let Some((tail, middle)) = self.rest.split_last() else { return left.is_empty() };
        for part in middle {
            let Some(at) = left.find(part.as_str()) else { return false };
            left = &left[at + part.len()..];
        }
        left.ends_with(tail.as_str())
    }
}

/// A list of entries, and its configuration key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    at: SmolStr,
    entries: Vec<Entry>,
    effects: Effects,
}

impl List {
    fn new(at: &str, entries: Vec<Entry>) -> Self {
        let effects = entries.iter().filter_map(|e| match e.target {
            Target::Effect(effect) => Some(effect),
            _ => None,
        });
        Self { at: at.into(), effects: effects.collect(), entries }
    }

    /// Parses a list. Invalid entries are added to `bad`.
    pub(crate) fn parse(at: &str, entries: &[String], bad: &mut Vec<BadEntry>) -> Self {
        let good = entries.iter().filter_map(|text| {
            let refuse = |why| bad.push(BadEntry { list: at.into(), entry: text.into(), why });
            Entry::parse(text).map_err(refuse).ok()
        });
        Self::new(at, good.collect())
    }

    /// Parses an allow list that came with a message; an invalid entry allows nothing.
    pub(crate) fn of_request(entries: &[String]) -> Self {
        let unreadable = |text| Entry { text: SmolStr::new(text), target: Target::Unreadable };
        let entries = entries.iter().map(|text| Entry::parse(text).unwrap_or_else(|_| unreadable(text)));
        Self::new("request.allow", entries.collect())
    }

    /// The list's configuration key, such as `tools.by_provider.openai.allow`.
    pub fn at(&self) -> &str {
        &self.at
    }

    /// The entries, as written.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The effects that its entries name.
    pub fn effects(&self) -> Effects {
        self.effects
    }

    /// Indices of the tools that one of its entries names.
    pub(crate) fn places(&self, entry: &Entry, how: Use, tools: &ToolSet) -> BTreeSet<usize> {
        let mut places = BTreeSet::new();
        entry.each(tools, (how, self.effects), |place| {
            places.insert(place);
        });
        places
    }

    /// The first entry that names one of these effects.
    pub(crate) fn first_effect(&self, effects: Effects) -> Option<u32> {
        let names = |entry: &Entry| matches!(entry.target, Target::Effect(effect) if effects.has(effect));
        if effects.is_empty() { None } else { self.entries.iter().position(names).map(|rule| rule as u32) }
    }

    /// For each tool, the first entry that names it.
    pub(crate) fn hits(&self, tools: &ToolSet, how: Use) -> Vec<Option<u32>> {
        let mut hits = vec![None; tools.known()];
        for (rule, entry) in self.entries.iter().enumerate().rev() {
            entry.each(tools, (how, self.effects), |place| hits[place] = Some(rule as u32));
        }
        hits
    }
}

/// An entry that cannot be parsed, and its list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{list}`: {why}")]
pub struct BadEntry {
    /// The list's configuration key.
    pub list: SmolStr,
    /// The entry as written.
    pub entry: SmolStr,
    /// The problem.
    pub why: EntryError,
}

#[cfg(test)]
mod tests;
