//! The registry of tools: their names and aliases, and whether they can be used here.
//!
//! Reading is lock-free: a reader holds one immutable shelf while writers replace it. Listing builds nothing;
//! a tool that lacks what it needs is listed with the reason, never dropped. The registry runs nothing: tools
//! are called through the [`Executor`](crate::Executor).

mod discover;
mod entry;
mod schemas;
mod snapshot;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use claw_core::port::{Confinement, World};
use claw_core::rank_texts::SearchIndex;
use claw_core::tool::{AnyTool, Caller, Meta, Need, Profile, Section, ToolSource, Unavailable};
use claw_core::{InvalidId, ToolName};
use claw_policy::pipeline::ToolSet;
use claw_policy::profile;
use serde::Serialize;

pub use discover::{Discovered, Discovery};
use entry::Maker;
pub(crate) use entry::{Built, Entry};
use schemas::Schemas;
use snapshot::{Attached, Reading, Shelf};

/// The arguments of a lazy factory: the caller and the world that the tool is made for.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The caller that the tool is made for.
    pub caller: &'a Caller,
    /// The ports that are available.
    pub world: &'a World,
}

/// Makes a tool when it is first needed, or returns why it cannot.
pub type Factory = dyn Fn(&Context<'_>) -> Result<Arc<dyn AnyTool>, Unavailable> + Send + Sync;

/// Availability of a listed tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", content = "reason", rename_all = "snake_case")]
pub enum Status {
    /// It can be used.
    Ready,
    /// It is registered but cannot be used here.
    Unavailable(String),
    /// It is in the catalogue but not in this build.
    NotInBuild,
}

/// The note for tools whose files are confined by the guard alone.
const BY_TEXT: &str = "access to files is limited to the allowed directories by comparing path names only, so a link can lead outside them";

/// A line of a listing.
#[derive(Debug, Clone, Serialize)]
pub struct Listing {
    /// The tool's metadata.
    #[serde(flatten)]
    pub meta: Arc<Meta>,
    /// Availability.
    #[serde(flatten)]
    pub status: Status,
    /// The profiles that include it.
    pub profiles: Vec<Profile>,
    /// A caveat about the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
}

impl Listing {
    fn new(meta: Arc<Meta>, status: Status, note: Option<&'static str>) -> Self {
        let includes = |profile: &Profile| profile::includes(*profile, &meta);
        Self { profiles: Profile::ALL.into_iter().filter(includes).collect(), meta, status, note }
    }
}

/// The reason why a tool was not registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// The name is taken.
    #[error("a tool called `{0}` is registered already; unregister it first or use another name")]
    NameTaken(ToolName),
    /// The name is another tool's alias; taking it would redirect calls and policy entries.
    #[error("`{name}` is an alias of `{taken_by}`; use another name")]
    NameIsAlias {
        /// The name.
        name: ToolName,
        /// The tool that has this alias.
        taken_by: ToolName,
    },
    /// A source of that name is attached.
    #[error("a source called `{0}` is attached already; detach it first or use another name")]
    SourceTaken(String),
    /// An alias is another tool's name or alias.
    #[error("`{alias}` cannot be an alias of `{tool}`: it already leads to `{taken_by}`")]
    AliasTaken {
        /// The alias.
        alias: String,
        /// The tool that was to get the alias.
        tool: ToolName,
        /// The tool that has this name or alias.
        taken_by: ToolName,
    },
    /// A model could not call an alias of this form.
    #[error(transparent)]
    BadAlias(#[from] InvalidId),
}

/// All tools of a deployment, or those that a tenant or an agent has on top of them.
pub struct Registry {
    own: Arc<Own>,
    world: World,
    base: Option<Arc<Registry>>,
    /// Compiled schemas, shared with the registry beneath.
    schemas: Arc<Schemas>,
    /// The policy's view of this shelf and its base, cached until either changes.
    tools: ArcSwap<Option<(Version, Arc<ToolSet>)>>,
    /// The search index over all tools here and beneath, cached until they change.
    index: ArcSwap<Option<(Version, Arc<ToolIndex>)>>,
}

/// Names and descriptions of tools, indexed for searching.
pub(crate) struct ToolIndex {
    names: Vec<ToolName>,
    texts: SearchIndex,
}

impl ToolIndex {
    /// The names of the best matches that `keep` accepts, best first.
    pub(crate) fn best(
        &self,
        query: &str,
        limit: usize,
        keep: impl Fn(&ToolName) -> bool,
    ) -> impl Iterator<Item = &ToolName> {
        let found = self.texts.best(query, limit, |at| keep(&self.names[at]));
        found.into_iter().map(|at| &self.names[at])
    }
}

/// A registry's own tools, without those beneath.
#[derive(Default)]
struct Own {
    shelf: ArcSwap<Shelf>,
    writing: Mutex<()>,
    /// Number of times that sources were asked for their tools.
    readings: AtomicU64,
}

/// The version of a registry (and of the one beneath it) that something was computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(u64);

impl Registry {
    /// An empty registry in this world.
    pub fn new(world: World) -> Self {
        Self::with(Arc::default(), world, None, Arc::default())
    }

    /// Tools on top of `base`. Nothing is copied: other names are looked up there, and a tool here shadows
    /// one of the same name there.
    pub fn over(base: Arc<Registry>) -> Self {
        let (world, schemas) = (base.world.clone(), Arc::clone(&base.schemas));
        Self::with(Arc::default(), world, Some(base), schemas)
    }

    /// The same tools with `from` beneath replaced by `to`. Writes to either show in both.
    pub(crate) fn moved(self: &Arc<Self>, from: &Arc<Registry>, to: &Arc<Registry>) -> Arc<Registry> {
        if Arc::ptr_eq(self, from) {
            return Arc::clone(to);
        }
        let Some(base) = &self.base else { return Arc::clone(self) };
        let (own, world, schemas) = (Arc::clone(&self.own), self.world.clone(), Arc::clone(&self.schemas));
        Arc::new(Self::with(own, world, Some(base.moved(from, to)), schemas))
    }

    fn with(own: Arc<Own>, world: World, base: Option<Arc<Registry>>, schemas: Arc<Schemas>) -> Self {
        let (tools, index) = (ArcSwap::from_pointee(None), ArcSwap::from_pointee(None));
        Self { own, world, base, schemas, tools, index }
    }

    /// Registers a tool under its own metadata.
    pub fn register(&self, tool: Arc<dyn AnyTool>) -> Result<(), RegisterError> {
        self.register_with(tool, |_| {})
    }

    /// Registers a tool with metadata modified by `change`.
    pub fn register_with(
        &self,
        tool: Arc<dyn AnyTool>,
        change: impl FnOnce(&mut Meta),
    ) -> Result<(), RegisterError> {
        let mut meta = tool.meta().clone();
        change(&mut meta);
        self.put(Entry::ready(meta, tool, &self.schemas))
    }

    /// Registers a tool that is made for each caller at first use.
    pub fn register_factory(
        &self,
        meta: Meta,
        factory: impl Fn(&Context<'_>) -> Result<Arc<dyn AnyTool>, Unavailable> + Send + Sync + 'static,
    ) -> Result<(), RegisterError> {
        self.put(Entry::new(meta, Maker::PerCaller(Box::new(factory)), &self.schemas))
    }

    fn put(&self, entry: Entry) -> Result<(), RegisterError> {
        if let Some(taken_by) = self.alias_beneath(entry.meta.name.as_str()) {
            return Err(RegisterError::NameIsAlias { name: entry.meta.name.clone(), taken_by });
        }
        self.write(|shelf| shelf.insert(Arc::new(entry)))
    }

    /// Adds tools of the catalogue that this build does not have: they are listed, but not callable.
    pub fn know(&self, absent: impl IntoIterator<Item = Meta>) {
        let absent: Vec<_> = absent.into_iter().map(Arc::new).collect();
        self.write(|shelf| shelf.absent.extend(absent));
    }

    /// Removes the tool of this name, or else of this alias; returns whether it was there. A call in an
    /// existing offer still works if a tool of the same definition is registered in its place.
    pub fn unregister(&self, name: &str) -> bool {
        self.write(|shelf| shelf.remove(name))
    }

    /// Removes all tools.
    pub fn clear(&self) {
        self.write(Shelf::clear);
    }

    /// Adds a source of tools that changes at run time, and registers its current tools. Tools whose names
    /// are taken are left out and returned with the reason.
    pub fn attach(&self, source: Arc<dyn ToolSource>) -> Vec<RegisterError> {
        let name = source.name().to_owned();
        let added = self.write(|shelf| {
            let free = shelf.sources.iter().all(|other| other.source.name() != name);
            if free {
                shelf.sources.push(Attached::new(source));
            }
            free
        });
        if added { self.refresh(&name) } else { vec![RegisterError::SourceTaken(name)] }
    }

    /// Asks a source for its tools and applies the difference. A tool whose definition is unchanged continues
    /// to work in existing offers, through the implementation that the source has now; one whose definition
    /// changed is refused there. Tools whose names are taken are left out and returned with the reason.
    ///
    /// The source is asked, and new schemas are compiled, before anything is locked: a slow source delays
    /// nobody.
    pub fn refresh(&self, source: &str) -> Vec<RegisterError> {
        let sources = self.own.shelf.load();
        let found = sources.sources.iter().find(|attached| attached.source.name() == source);
        let Some(source) = found.map(|attached| Arc::clone(&attached.source)) else { return Vec::new() };
        let number = self.own.readings.fetch_add(1, Ordering::Relaxed);
        let entry = |tool| Arc::new(Entry::of_source(source.name(), tool, &self.schemas));
        let read = || source.tools().map(|tools| tools.into_iter().map(entry).collect());
        let tools = entry::unharmed(read).and_then(|tools| tools);
        self.write_if(|shelf| shelf.apply(Reading { source, number, tools }))
    }

    /// Adds the tools of a layer, each as the entry that `entry` returns. A tool that would shadow another, or take its
    /// alias, is left out and returned with the reason.
    pub(crate) fn lay(
        &self,
        tools: &[Arc<dyn AnyTool>],
        entry: impl Fn(&Arc<dyn AnyTool>) -> Arc<Entry>,
    ) -> Vec<RegisterError> {
        let mut errors = Vec::new();
        let entries: Vec<_> = tools.iter().map(entry).collect();
        let absent = self.absent();
        self.write(|shelf| {
            for entry in entries {
                let put = self.taken_beneath(&entry.meta, &absent).map_or(Ok(()), Err);
                if let Err(error) = put.and_then(|()| shelf.insert(entry)) {
                    errors.push(error);
                }
            }
        });
        errors
    }

    /// An entry for a tool of a layer.
    pub(crate) fn layer_entry(&self, source: &str, tool: &Arc<dyn AnyTool>) -> Arc<Entry> {
        Arc::new(Entry::of_layer(source, Arc::clone(tool), &self.schemas))
    }

    /// The reason why a tool cannot be added without shadowing: one of its names is known beneath.
    fn taken_beneath(&self, meta: &Meta, absent: &[Arc<Meta>]) -> Option<RegisterError> {
        let base = self.base.as_ref()?;
        let known = |name: &str| {
            let absent = || absent.iter().find(|meta| names(meta, name)).cloned();
            base.find(name).map(|entry| Arc::clone(&entry.meta)).or_else(absent)
        };
        let tool = &meta.name;
        if let Some(taken_by) = known(tool.as_str()) {
            return Some(match taken_by.name == *tool {
                true => RegisterError::NameTaken(tool.clone()),
                false => RegisterError::NameIsAlias { name: tool.clone(), taken_by: taken_by.name.clone() },
            });
        }
        meta.aliases.iter().find_map(|alias| {
            let (alias, tool, taken_by) = (alias.to_owned(), tool.clone(), known(alias)?.name.clone());
            Some(RegisterError::AliasTaken { alias, tool, taken_by })
        })
    }

    /// Records sources that failed to give their tools, with the reason.
    pub(crate) fn fail(&self, failed: Vec<(String, String)>) {
        if !failed.is_empty() {
            self.write(|shelf| shelf.failed.extend(failed));
        }
    }

    /// Removes a source and its tools; returns whether it was there.
    pub fn detach(&self, source: &str) -> bool {
        self.write(|shelf| shelf.detach(source))
    }

    /// Returns whether a tool has this name or alias, here or beneath.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Number of tools, here and beneath, without those that only the catalogue has.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Returns whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every tool with its metadata, by name. Builds nothing; a tool whose factory failed last time is listed
    /// as unavailable, with the reason.
    pub fn list(&self) -> Vec<Listing> {
        let mut list: Vec<_> = self
            .entries()
            .iter()
            .map(|entry| {
                let status = match self.lacking(entry).or_else(|| entry.last_failure()) {
                    None => Status::Ready,
                    Some(reason) => Status::Unavailable(reason),
                };
                Listing::new(Arc::clone(&entry.meta), status, self.note(entry))
            })
            .collect();
        list.extend(self.hidden().map(|(meta, why)| Listing::new(meta, Status::Unavailable(why), None)));
        list.extend(self.absent().into_iter().map(|meta| Listing::new(meta, Status::NotInBuild, None)));
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

    /// The sources that failed to give their tools, with the reason.
    pub fn failed_sources(&self) -> Vec<(String, String)> {
        self.own.shelf.load().failed.clone()
    }

    /// The ports that are available.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// A number that changes whenever a tool is added or removed.
    pub fn version(&self) -> Version {
        // Each only increases, so their sum differs whenever one of them does.
        let base = self.base.as_ref().map_or(0, |base| base.version().0);
        Version(self.own.shelf.load().version + base)
    }

    /// The tools that the policy decides about: every tool here and beneath, and the absent ones of the
    /// catalogue.
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

    /// The search index over the tools here and beneath.
    pub(crate) fn search_index(&self) -> Arc<ToolIndex> {
        let version = self.version();
        if let Some((known, index)) = self.index.load().as_ref()
            && *known == version
        {
            return Arc::clone(index);
        }
        let metas: Vec<_> = self.entries().into_iter().map(|entry| Arc::clone(&entry.meta)).collect();
        let texts = SearchIndex::new(metas.iter().map(|meta| (meta.name.as_str(), meta.about.as_str())));
        let names = metas.iter().map(|meta| meta.name.clone()).collect();
        let index = Arc::new(ToolIndex { names, texts });
        self.index.store(Arc::new(Some((version, Arc::clone(&index)))));
        index
    }

    /// The tool of this name, or else of this alias: the agent's own first, and names before aliases.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Entry>> {
        self.named(name).or_else(|| self.named(self.alias_of(name)?.as_str()))
    }

    /// The tool of exactly this name: the agent's own first.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<Entry>> {
        self.own_named(name).or_else(|| self.base.as_ref()?.named(name))
    }

    /// The own tool of this name, unless the name is an alias beneath: calls and policy entries with the
    /// alias must not reach another tool.
    fn own_named(&self, name: &str) -> Option<Arc<Entry>> {
        let entry = self.own.shelf.load().entries.get(name).cloned()?;
        self.alias_beneath(name).is_none().then_some(entry)
    }

    /// The tool beneath that has this name as an alias.
    fn alias_beneath(&self, name: &str) -> Option<ToolName> {
        let found = self.base.as_ref()?.find(name)?;
        (found.meta.name.as_str() != name).then(|| found.meta.name.clone())
    }

    fn alias_of(&self, name: &str) -> Option<ToolName> {
        self.own.shelf.load().alias_of(name).cloned().or_else(|| self.base.as_ref()?.alias_of(name))
    }

    /// The reason why this tool cannot be used here, if there is one.
    pub(crate) fn lacking(&self, entry: &Entry) -> Option<String> {
        let need = entry.meta.needs.iter().find_map(|need| Some((need, self.world.lacks(*need)?)));
        let need = need.map(|(need, reason)| format!("needs `{}`: {reason}", need.name()));
        need.or_else(|| entry.defect()).or_else(|| self.source_failure(entry))
    }

    /// A caveat about a tool.
    fn note(&self, entry: &Entry) -> Option<&'static str> {
        let bridge = self.world.bridge.as_ref().filter(|_| entry.meta.needs.contains(&Need::Files))?;
        (bridge.confinement() == Confinement::Text).then_some(BY_TEXT)
    }

    /// The reason why this tool's source failed, if it did.
    pub(crate) fn source_failure(&self, entry: &Entry) -> Option<String> {
        let here = self.own.shelf.load().failure(entry).map(str::to_owned);
        here.or_else(|| self.base.as_ref()?.source_failure(entry))
    }

    fn entries(&self) -> Vec<Arc<Entry>> {
        let shelf = self.own.shelf.load();
        let Some(base) = &self.base else { return shelf.entries.values().cloned().collect() };
        let own =
            shelf.entries.values().filter(|entry| self.alias_beneath(entry.meta.name.as_str()).is_none());
        let mut entries: Vec<_> = own.cloned().collect();
        let beneath = base.entries().into_iter();
        entries.extend(beneath.filter(|entry| !shelf.entries.contains_key(&entry.meta.name)));
        entries.sort_by(|a, b| a.meta.name.cmp(&b.meta.name));
        entries
    }

    /// Tools whose name is an alias beneath, here and beneath, with that reason.
    fn hidden(&self) -> impl Iterator<Item = (Arc<Meta>, String)> {
        let mut hidden = Vec::new();
        let mut layer = Some(self);
        while let Some(registry) = layer {
            for entry in registry.own.shelf.load().entries.values() {
                let name = &entry.meta.name;
                if let Some(taken_by) = registry.alias_beneath(name.as_str()) {
                    let why = RegisterError::NameIsAlias { name: name.clone(), taken_by }.to_string();
                    hidden.push((Arc::clone(&entry.meta), why));
                }
            }
            layer = registry.base.as_deref();
        }
        hidden.into_iter()
    }

    fn absent(&self) -> Vec<Arc<Meta>> {
        let shelf = self.own.shelf.load();
        let beneath = self.base.as_ref().map(|base| base.absent()).unwrap_or_default();
        let absent = shelf.absent.iter().cloned().chain(beneath);
        absent.filter(|meta| self.find(meta.name.as_str()).is_none()).collect()
    }

    fn write<T>(&self, change: impl FnOnce(&mut Shelf) -> T) -> T {
        self.write_if(|shelf| (change(shelf), true))
    }

    /// Changes the shelf. If `change` returns that nothing visible changed, the version stays.
    fn write_if<T>(&self, change: impl FnOnce(&mut Shelf) -> (T, bool)) -> T {
        let _one_writer = self.own.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut shelf = Shelf::clone(&self.own.shelf.load());
        let (result, changed) = change(&mut shelf);
        shelf.version += u64::from(changed);
        self.own.shelf.store(Arc::new(shelf));
        result
    }
}

/// Returns whether a tool has this name or alias.
fn names(meta: &Meta, name: &str) -> bool {
    meta.name.as_str() == name || meta.aliases.contains(name)
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("len", &self.len())
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}
