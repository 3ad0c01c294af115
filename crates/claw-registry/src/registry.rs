//! The shelf of tools: who is on it, under which names, and whether it can be used here.
//!
//! Reading is lock-free: a reader holds one immutable shelf while writers put a new one in its place.
//! Nothing is built to be listed; a tool that lacks what it needs is listed with the reason, never dropped.
//! The registry runs nothing: whoever wants to call a tool goes through the
//! [`Executor`](crate::Executor).

mod discover;
mod shelf;

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use claw_core::port::{Confinement, World};
use claw_core::tool::{AnyTool, Caller, Meta, Need, Section, ToolSource, Unavailable};
use claw_core::{InvalidId, ToolName};
use claw_policy::pipeline::ToolSet;
use serde::Serialize;

pub use discover::{Discovered, Discovery};
pub(crate) use shelf::{Built, Entry};
use shelf::{Maker, Shelf};

/// What a lazy factory is given: for whom the tool is made, and in which world.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Who would call it.
    pub caller: &'a Caller,
    /// What there is to reach.
    pub world: &'a World,
}

/// Makes a tool when it is first wanted, or says why it cannot.
pub type Factory = dyn Fn(&Context<'_>) -> Result<Arc<dyn AnyTool>, Unavailable> + Send + Sync;

/// Whether a listed tool can be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", content = "reason", rename_all = "snake_case")]
pub enum Status {
    /// It can.
    Ready,
    /// It is registered but cannot work here.
    Unavailable(String),
    /// The catalogue knows it, this build does not have it.
    NotInBuild,
}

/// What is said of tools whose files are confined by the guard alone.
const BY_TEXT: &str = "files are confined by the text of their paths; a link is followed wherever it leads";

/// One line of a listing.
#[derive(Debug, Clone, Serialize)]
pub struct Listing {
    /// What is known of the tool.
    #[serde(flatten)]
    pub meta: Arc<Meta>,
    /// Whether it can be used.
    #[serde(flatten)]
    pub status: Status,
    /// What one should know before relying on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
}

/// A tool that was not put on the shelf.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// The name is taken.
    #[error("a tool called `{0}` is registered already; unregister it first or use another name")]
    NameTaken(ToolName),
    /// The name is another tool's alias; taking it would lead calls and policy entries astray.
    #[error("`{name}` is an alias of `{taken_by}`; use another name")]
    NameIsAlias {
        /// The name.
        name: ToolName,
        /// Where it leads.
        taken_by: ToolName,
    },
    /// There is a source of that name.
    #[error("a source called `{0}` is attached already; detach it first or use another name")]
    SourceTaken(String),
    /// An alias is another tool's name or alias.
    #[error("`{alias}` cannot be an alias of `{tool}`: it already leads to `{taken_by}`")]
    AliasTaken {
        /// The alias.
        alias: String,
        /// Whose it was to be.
        tool: ToolName,
        /// Where it leads.
        taken_by: ToolName,
    },
    /// An alias is not of a form that a model could call.
    #[error(transparent)]
    BadAlias(#[from] InvalidId),
}

/// All tools of a deployment, or those that one agent has on top of them.
pub struct Registry {
    shelf: ArcSwap<Shelf>,
    writing: Mutex<()>,
    world: World,
    base: Option<Arc<Registry>>,
    /// The policy's view of this shelf and its base, kept until either changes.
    tools: ArcSwap<Option<(Version, Arc<ToolSet>)>>,
}

/// Which state of a registry (and of the one beneath it) something was computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(u64);

impl Registry {
    /// An empty registry in this world.
    pub fn new(world: World) -> Self {
        Self::with_base(world, None)
    }

    /// What one agent has on top of `base`. Nothing is copied: what is not here is looked up there, and a
    /// tool of the same name here stands in front.
    pub fn over(base: Arc<Registry>) -> Self {
        Self::with_base(base.world.clone(), Some(base))
    }

    fn with_base(world: World, base: Option<Arc<Registry>>) -> Self {
        Self {
            shelf: ArcSwap::default(),
            writing: Mutex::new(()),
            world,
            base,
            tools: ArcSwap::from_pointee(None),
        }
    }

    /// Puts a tool on the shelf under its own metadata.
    pub fn register(&self, tool: Arc<dyn AnyTool>) -> Result<(), RegisterError> {
        self.register_with(tool, |_| {})
    }

    /// Puts a tool on the shelf with metadata changed by `change`, which overrides what the tool says.
    pub fn register_with(
        &self,
        tool: Arc<dyn AnyTool>,
        change: impl FnOnce(&mut Meta),
    ) -> Result<(), RegisterError> {
        let mut meta = tool.meta().clone();
        change(&mut meta);
        self.put(Entry::ready(meta, tool))
    }

    /// Puts a tool on the shelf that is made for each caller when it is first wanted.
    pub fn register_factory(
        &self,
        meta: Meta,
        factory: impl Fn(&Context<'_>) -> Result<Arc<dyn AnyTool>, Unavailable> + Send + Sync + 'static,
    ) -> Result<(), RegisterError> {
        self.put(Entry::new(meta, Maker::PerCaller(Box::new(factory))))
    }

    fn put(&self, entry: Entry) -> Result<(), RegisterError> {
        if let Some(taken_by) = self.base.as_ref().and_then(|base| base.alias_of(entry.meta.name.as_str())) {
            return Err(RegisterError::NameIsAlias { name: entry.meta.name.clone(), taken_by });
        }
        self.write(|shelf| shelf.insert(Arc::new(entry)))
    }

    /// Makes a tool of the catalogue known that this build does not have: it is listed, not callable.
    pub fn know(&self, absent: impl IntoIterator<Item = Meta>) {
        let absent: Vec<_> = absent.into_iter().map(Arc::new).collect();
        self.write(|shelf| shelf.absent.extend(absent));
    }

    /// Takes a tool off the shelf; says whether it was there.
    pub fn unregister(&self, name: &str) -> bool {
        self.write(|shelf| shelf.remove(name))
    }

    /// Takes everything off the shelf.
    pub fn clear(&self) {
        self.write(Shelf::clear);
    }

    /// Adds a source of tools that changes at run time, and takes what it has now. Tools whose names are
    /// taken are left out and returned with the reason.
    pub fn attach(&self, source: Arc<dyn ToolSource>) -> Vec<RegisterError> {
        let name = source.name().to_owned();
        let added = self.write(|shelf| {
            let free = shelf.sources.iter().all(|other| other.name() != name);
            if free {
                shelf.sources.push(source);
            }
            free
        });
        if added { self.refresh(&name) } else { vec![RegisterError::SourceTaken(name)] }
    }

    /// Takes what a source has now in place of what it had. The source is asked before anything is locked, so
    /// one that is slow holds nobody up.
    pub fn refresh(&self, source: &str) -> Vec<RegisterError> {
        let found = self.shelf.load().sources.iter().find(|s| s.name() == source).cloned();
        let Some(found) = found else { return Vec::new() };
        let tools = shelf::unharmed(|| found.tools()).and_then(|tools| tools);
        self.write(|shelf| shelf.replace(source, tools))
    }

    /// Removes a source and its tools; says whether it was there.
    pub fn detach(&self, source: &str) -> bool {
        self.write(|shelf| shelf.detach(source))
    }

    /// Whether a tool answers to this name or alias, here or beneath.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// How many tools there are, here and beneath, those of the catalogue not counted.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every tool with what is known of it, by name. Builds nothing.
    pub fn list(&self) -> Vec<Listing> {
        let entries = self.entries();
        let mut list: Vec<_> = entries
            .iter()
            .map(|entry| {
                let status = match self.lacking(entry) {
                    None => Status::Ready,
                    Some(reason) => Status::Unavailable(reason),
                };
                Listing { meta: Arc::clone(&entry.meta), status, note: self.note(entry) }
            })
            .collect();
        for meta in self.absent() {
            list.push(Listing { meta, status: Status::NotInBuild, note: None });
        }
        list.sort_by(|a, b| a.meta.name.cmp(&b.meta.name));
        list
    }

    /// The same by section, in the order people read them. Builds nothing.
    pub fn list_by_section(&self) -> Vec<(Section, Vec<Listing>)> {
        let mut list = self.list();
        list.sort_by_key(|line| (line.meta.group.rank(), line.meta.heading(), line.meta.name.clone()));
        let mut sections: Vec<(Section, Vec<Listing>)> = Vec::new();
        for line in list {
            let heading = line.meta.heading();
            match sections.last_mut() {
                Some((section, lines)) if *section == heading => lines.push(line),
                _ => sections.push((heading, vec![line])),
            }
        }
        sections
    }

    /// The sources that could not give their tools, with the reason.
    pub fn failed_sources(&self) -> Vec<(String, String)> {
        self.shelf.load().failed.clone()
    }

    /// What there is to reach.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Changes whenever a tool comes or goes.
    pub fn version(&self) -> Version {
        // Each only ever rises, so their sum differs whenever one of them does.
        let base = self.base.as_ref().map_or(0, |base| base.version().0);
        Version(self.shelf.load().version + base)
    }

    /// What the policy decides over: every tool here and beneath, and the catalogue's absent ones.
    pub fn tool_set(&self) -> Arc<ToolSet> {
        let version = self.version();
        if let Some((known, tools)) = self.tools.load().as_ref()
            && *known == version
        {
            return Arc::clone(tools);
        }
        let metas = self.entries().into_iter().map(|entry| Arc::clone(&entry.meta));
        let tools = Arc::new(ToolSet::new(metas, self.absent()));
        self.tools.store(Arc::new(Some((version, Arc::clone(&tools)))));
        tools
    }

    /// The tool of this name, or else of this alias: the agent's own first, and names before aliases.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Entry>> {
        self.named(name).or_else(|| self.named(self.alias_of(name)?.as_str()))
    }

    /// The tool of exactly this name: the agent's own first.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<Entry>> {
        self.shelf.load().entries.get(name).cloned().or_else(|| self.base.as_ref()?.named(name))
    }

    fn alias_of(&self, name: &str) -> Option<ToolName> {
        self.shelf.load().alias_of(name).cloned().or_else(|| self.base.as_ref()?.alias_of(name))
    }

    /// Why this tool cannot work here.
    pub(crate) fn lacking(&self, entry: &Entry) -> Option<String> {
        let need = entry.meta.needs.iter().find_map(|need| Some((need, self.world.lacks(*need)?)));
        let need = need.map(|(need, reason)| format!("needs `{}`: {reason}", need.name()));
        need.or_else(|| entry.defect()).or_else(|| self.source_failure(entry))
    }

    /// What one should know before relying on a tool.
    fn note(&self, entry: &Entry) -> Option<&'static str> {
        let bridge = self.world.bridge.as_ref().filter(|_| entry.meta.needs.contains(&Need::Files))?;
        (bridge.confinement() == Confinement::Text).then_some(BY_TEXT)
    }

    fn source_failure(&self, entry: &Entry) -> Option<String> {
        let here = self.shelf.load().failure(entry).map(str::to_owned);
        here.or_else(|| self.base.as_ref()?.source_failure(entry))
    }

    fn entries(&self) -> Vec<Arc<Entry>> {
        let shelf = self.shelf.load();
        let mut entries: Vec<_> = shelf.entries.values().cloned().collect();
        if let Some(base) = &self.base {
            entries.extend(
                base.entries().into_iter().filter(|entry| !shelf.entries.contains_key(&entry.meta.name)),
            );
            entries.sort_by(|a, b| a.meta.name.cmp(&b.meta.name));
        }
        entries
    }

    fn absent(&self) -> Vec<Arc<Meta>> {
        let shelf = self.shelf.load();
        let beneath = self.base.as_ref().map(|base| base.absent()).unwrap_or_default();
        let absent = shelf.absent.iter().cloned().chain(beneath);
        absent.filter(|meta| self.find(meta.name.as_str()).is_none()).collect()
    }

    fn write<T>(&self, change: impl FnOnce(&mut Shelf) -> T) -> T {
        let _one_writer = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut shelf = Shelf::clone(&self.shelf.load());
        let result = change(&mut shelf);
        shelf.version += 1;
        self.shelf.store(Arc::new(shelf));
        result
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("len", &self.len())
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
