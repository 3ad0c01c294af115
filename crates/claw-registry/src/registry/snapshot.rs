//! An immutable state of a registry.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use claw_core::ToolName;
use claw_core::tool::{Meta, ToolSource, Unavailable};
use smol_str::SmolStr;

use super::{Entry, RegisterError};

/// The tools, their aliases, and the sources of changing tools.
#[derive(Clone, Default)]
pub(super) struct Shelf {
    pub(super) version: u64,
    pub(super) entries: BTreeMap<ToolName, Arc<Entry>>,
    aliases: HashMap<SmolStr, ToolName>,
    pub(super) absent: Vec<Arc<Meta>>,
    pub(super) sources: Vec<Attached>,
    /// Sources that failed to give their tools, and why.
    pub(super) failed: Vec<(String, String)>,
}

/// A source of tools that changes at run time.
#[derive(Clone)]
pub(super) struct Attached {
    pub(super) source: Arc<dyn ToolSource>,
    /// The number of the newest applied reading; `None` before the first.
    applied: Option<u64>,
}

impl Attached {
    pub(super) fn new(source: Arc<dyn ToolSource>) -> Self {
        Self { source, applied: None }
    }
}

/// The tools that a source had when it was asked.
pub(super) struct Reading {
    pub(super) source: Arc<dyn ToolSource>,
    /// Increases with every reading, in the order in which the sources were asked.
    pub(super) number: u64,
    pub(super) tools: Result<Vec<Arc<Entry>>, Unavailable>,
}

impl Shelf {
    fn find(&self, name: &str) -> Option<&Arc<Entry>> {
        self.entries.get(name).or_else(|| self.entries.get(self.alias_of(name)?))
    }

    pub(super) fn alias_of(&self, name: &str) -> Option<&ToolName> {
        self.aliases.get(name)
    }

    pub(super) fn insert(&mut self, entry: Arc<Entry>) -> Result<(), RegisterError> {
        let name = &entry.meta.name;
        if self.entries.contains_key(name) {
            return Err(RegisterError::NameTaken(name.clone()));
        }
        if let Some(taken_by) = self.alias_of(name.as_str()) {
            return Err(RegisterError::NameIsAlias { name: name.clone(), taken_by: taken_by.clone() });
        }
        for alias in entry.meta.aliases.iter() {
            let alias = ToolName::new(alias)?;
            if let Some(other) = self.find(alias.as_str()) {
                let (alias, tool) = (alias.to_string(), name.clone());
                return Err(RegisterError::AliasTaken { alias, tool, taken_by: other.meta.name.clone() });
            }
        }
        for alias in entry.meta.aliases.iter() {
            self.aliases.insert(SmolStr::new(alias), name.clone());
        }
        self.entries.insert(name.clone(), entry);
        Ok(())
    }

    /// Removes the tool of this name, or else of this alias.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        let Some(name) = self.find(name).map(|entry| entry.meta.name.clone()) else { return false };
        self.entries.remove(&name);
        self.aliases.retain(|_, tool| *tool != name);
        true
    }

    pub(super) fn clear(&mut self) {
        *self = Self { version: self.version, ..Self::default() };
    }

    /// Applies the difference between a source's old and new tools. Returns the tools that were left out, and
    /// whether anything changed.
    pub(super) fn apply(&mut self, reading: Reading) -> (Vec<RegisterError>, bool) {
        let Reading { source, number, tools } = reading;
        let mut attached = self.sources.iter_mut();
        let Some(attached) = attached.find(|attached| Arc::ptr_eq(&attached.source, &source)) else {
            return (Vec::new(), false); // Detached while it was asked.
        };
        if attached.applied.is_some_and(|applied| applied > number) {
            return (Vec::new(), false); // It was asked again meanwhile, and answered sooner.
        }
        attached.applied = Some(number);
        let failed = match &tools {
            Ok(_) => None,
            Err(reason) => Some((source.name().to_owned(), reason.0.clone())),
        };
        let known = self.failed.iter().position(|(name, _)| name == source.name());
        let known = known.map(|at| self.failed.swap_remove(at));
        let mut changed = known != failed;
        self.failed.extend(failed);
        // A failing source keeps its tools listed, as unavailable and with the reason.
        let Ok(tools) = tools else { return (Vec::new(), changed) };
        let stays =
            |had: &Arc<Entry>| tools.iter().any(|new| had.meta.name == new.meta.name && had.is_same(new));
        let gone = self.names_of(source.name(), |had| !stays(had));
        changed |= !gone.is_empty();
        for name in gone {
            self.remove(name.as_str());
        }
        let mut errors = Vec::new();
        for new in tools {
            let had = self.entries.get(&new.meta.name);
            if had.is_some_and(|had| had.source == new.source && had.is_same(&new)) {
                continue;
            }
            match self.insert(new) {
                Ok(()) => changed = true,
                Err(error) => errors.push(error),
            }
        }
        (errors, changed)
    }

    /// The current error of this tool's source, if there is one.
    pub(super) fn failure(&self, entry: &Entry) -> Option<&str> {
        let (_, reason) = self.failed.iter().find(|(name, _)| entry.source.as_deref() == Some(name))?;
        Some(reason)
    }

    pub(super) fn detach(&mut self, source: &str) -> bool {
        let before = self.sources.len();
        self.sources.retain(|attached| attached.source.name() != source);
        self.failed.retain(|(name, _)| name != source);
        for name in self.names_of(source, |_| true) {
            self.remove(name.as_str());
        }
        self.sources.len() < before
    }

    /// The names of a source's tools that match.
    fn names_of(&self, source: &str, fits: impl Fn(&Arc<Entry>) -> bool) -> Vec<ToolName> {
        let its = self.entries.values().filter(|entry| entry.source.as_deref() == Some(source));
        its.filter(|entry| fits(entry)).map(|entry| entry.meta.name.clone()).collect()
    }
}
