//! All skills of a tenant and a workspace: the one that a name means where several tiers have it, and an index to search
//! them by.

use std::collections::HashMap;
use std::sync::Arc;

use claw_core::SkillName;
use claw_core::rank_texts::SearchIndex;
use claw_core::skill::{SkillCard, SkillPackage, SkillState, SkillTier};
use claw_core::store::{SkillAccess, StoredSkill};
use claw_core::tool::{Caller, Digest, ToolError};

use super::super::local::{LocalSkill, Origin};
use super::{Stored, unaccepted};

/// The skills for callers of one tenant and workspace.
pub(super) struct View {
    stored: Arc<Stored>,
    local: Vec<LocalSkill>,
    /// The skills by tier and then by name.
    entries: Vec<Entry>,
    /// Positions in `entries`, the first tier first.
    by_name: HashMap<String, Vec<usize>>,
    index: SearchIndex,
}

/// A skill and its place.
pub(super) struct Entry {
    pub(super) card: SkillCard,
    pub(super) place: EntryPlace,
}

/// The place that a skill is read from.
pub(super) enum EntryPlace {
    Local(Origin),
    Stored(StoredSkill),
    BuiltIn(SkillPackage),
}

impl View {
    pub(super) fn new(stored: Arc<Stored>, local: Vec<LocalSkill>, built_in: &[SkillPackage]) -> Self {
        let mut entries: Vec<Entry> = local.iter().map(|skill| of_local(skill, &stored)).collect();
        entries.extend(stored.skills.iter().map(of_stored));
        entries.extend(built_in.iter().map(of_built_in));
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, entry) in entries.iter().enumerate() {
            by_name.entry(entry.card.name.clone()).or_default().push(at);
        }
        let texts = entries.iter().map(|entry| (entry.card.name.as_str(), entry.card.description.as_str()));
        let index = SearchIndex::new(texts);
        Self { stored, local, entries, by_name, index }
    }

    /// Returns whether the view was made from these skills.
    pub(super) fn is_of(&self, stored: &Arc<Stored>, local: &[LocalSkill]) -> bool {
        Arc::ptr_eq(&self.stored, stored) && self.local == local
    }

    pub(super) fn is_accepted(&self, digest: &Digest) -> bool {
        self.stored.accepted.contains(digest)
    }

    /// The skill that this name means for the caller.
    pub(super) fn chosen(&self, name: &str, caller: &Caller) -> Option<&Entry> {
        self.entries.get(self.position(name, caller)?)
    }

    fn position(&self, name: &str, caller: &Caller) -> Option<usize> {
        self.by_name.get(name)?.iter().copied().find(|at| may_use(&self.entries[*at], caller))
    }

    fn is_chosen(&self, at: usize, caller: &Caller) -> bool {
        self.position(&self.entries[at].card.name, caller) == Some(at)
    }

    pub(super) fn usable(&self, caller: &Caller) -> Vec<SkillCard> {
        let chosen = (0..self.entries.len()).filter(|at| self.is_chosen(*at, caller));
        chosen.map(|at| self.entries[at].card.clone()).collect()
    }

    pub(super) fn search(&self, caller: &Caller, query: &str, limit: usize) -> Vec<SkillCard> {
        let found = self.index.best(query, limit, |at| self.is_chosen(at, caller));
        found.into_iter().map(|at| self.entries[at].card.clone()).collect()
    }

    /// Returns all skills that the caller may know of, with the reason if one cannot be used.
    pub(super) fn inventory(&self, caller: &Caller) -> Vec<SkillCard> {
        let mut cards = Vec::new();
        for entry in &self.entries {
            let mut card = entry.card.clone();
            if card.state == SkillState::Usable {
                if !may_use(entry, caller) {
                    continue;
                }
                if let Some(chosen) =
                    self.chosen(&card.name, caller).filter(|chosen| !std::ptr::eq(*chosen, entry))
                {
                    card.state = SkillState::Shadowed { by: chosen.card.tier };
                }
            }
            cards.push(card);
        }
        cards
    }

    /// Says why there is no skill of this name for the caller.
    pub(super) fn missing(&self, name: &SkillName, caller: &Caller) -> ToolError {
        let of_name = self.by_name.get(name.as_str()).into_iter().flatten();
        let states: Vec<_> = of_name.map(|at| &self.entries[*at].card.state).collect();
        if states.contains(&&SkillState::Unaccepted) {
            return unaccepted(name);
        }
        if let Some(SkillState::Invalid { why }) =
            states.iter().find(|state| matches!(state, SkillState::Invalid { .. }))
        {
            return ToolError::invalid(format!("skill `{name}` cannot be used: {why}"));
        }
        let near = self.search(caller, name.as_str(), 1).pop();
        let error = ToolError::not_found(format!("there is no skill `{name}`"));
        match near {
            Some(near) => error.try_instead(format!("did you mean `{}`?", near.name)),
            None => error.try_instead("find one with `skill_search`"),
        }
    }
}

fn may_use(entry: &Entry, caller: &Caller) -> bool {
    if entry.card.state != SkillState::Usable {
        return false;
    }
    match &entry.place {
        EntryPlace::Stored(skill) => skill.access(&caller.agent, caller.user.as_ref()) != SkillAccess::None,
        EntryPlace::Local(_) | EntryPlace::BuiltIn(_) => true,
    }
}

fn of_local(skill: &LocalSkill, stored: &Stored) -> Entry {
    let (description, digest, state) = match &skill.read {
        Ok(read) => {
            let is_trusted = skill.tier != SkillTier::Workspace || stored.accepted.contains(&read.digest);
            let state = if is_trusted { SkillState::Usable } else { SkillState::Unaccepted };
            (read.manifest.description.clone(), Some(read.digest), state)
        }
        Err(why) => (String::new(), None, SkillState::Invalid { why: why.clone() }),
    };
    let source = skill.origin.path().display().to_string();
    let card = SkillCard { name: skill.name.clone(), description, tier: skill.tier, source, digest, state };
    Entry { card, place: EntryPlace::Local(skill.origin.clone()) }
}

fn of_stored(skill: &StoredSkill) -> Entry {
    let card = SkillCard {
        name: skill.name.to_string(),
        description: skill.current.manifest.description.clone(),
        tier: SkillTier::Store,
        source: format!("version {}", skill.current.version),
        digest: Some(skill.current.digest),
        state: SkillState::Usable,
    };
    Entry { card, place: EntryPlace::Stored(skill.clone()) }
}

fn of_built_in(package: &SkillPackage) -> Entry {
    let card = SkillCard {
        name: package.manifest.name.to_string(),
        description: package.manifest.description.clone(),
        tier: SkillTier::BuiltIn,
        source: "this program".to_owned(),
        digest: Some(package.digest()),
        state: SkillState::Usable,
    };
    Entry { card, place: EntryPlace::BuiltIn(package.clone()) }
}
