//! One immutable state of a registry.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use claw_core::ToolName;
use claw_core::tool::{AnyTool, Digest, Meta, Spec, ToolSource, Unavailable};
use smol_str::SmolStr;

use super::{Context, Factory, RegisterError};
use crate::validate::Validator;

const LISTED_ONLY: &str = "only its metadata was registered; register the tool itself to call it";

/// A tool on the shelf.
pub(crate) struct Entry {
    pub(crate) meta: Arc<Meta>,
    maker: Maker,
    /// The tool that all callers share, once it is made.
    shared: OnceLock<Result<Arc<Built>, Unavailable>>,
    source: Option<SmolStr>,
}

pub(super) enum Maker {
    /// One tool for all callers, made at first use.
    Shared(Box<dyn Fn() -> Arc<dyn AnyTool> + Send + Sync>),
    /// A tool for each caller.
    PerCaller(Box<Factory>),
}

/// A tool ready to be called: what the model is sent of it, and what checks its arguments.
pub(crate) struct Built {
    pub(crate) tool: Arc<dyn AnyTool>,
    pub(crate) spec: Spec,
    pub(crate) validator: Validator,
    /// Of its metadata and schema: another definition is another tool.
    pub(crate) definition: Digest,
}

impl Entry {
    pub(super) fn new(meta: Meta, maker: Maker) -> Self {
        Self { meta: Arc::new(meta), maker, shared: OnceLock::new(), source: None }
    }

    /// A tool that is listed and cannot be called.
    pub(super) fn listed_only(meta: Meta) -> Self {
        let entry = Self::new(meta, Maker::PerCaller(Box::new(|_| Err(Unavailable::because(LISTED_ONLY)))));
        // Known beforehand, so that listings say so.
        let _ = entry.shared.set(Err(Unavailable::because(LISTED_ONLY)));
        entry
    }

    pub(super) fn ready(meta: Meta, tool: Arc<dyn AnyTool>) -> Self {
        let entry = Self::new(meta, Maker::Shared(Box::new(move || Arc::clone(&tool))));
        // Made already, so a schema that cannot be used shows in listings from the start.
        let _ = entry.make_shared();
        entry
    }

    /// The tool for this caller, made if need be. A factory that panics gives no tool, and no harm.
    pub(crate) fn build(&self, context: &Context<'_>) -> Result<Arc<Built>, Unavailable> {
        match &self.maker {
            Maker::Shared(_) => self.make_shared(),
            Maker::PerCaller(factory) => self.finish(unharmed(|| factory(context))??),
        }
    }

    /// What is wrong with the tool itself, as far as that is known without making it.
    pub(super) fn defect(&self) -> Option<String> {
        self.shared.get()?.as_ref().err().map(|error| error.0.clone())
    }

    fn make_shared(&self) -> Result<Arc<Built>, Unavailable> {
        let make = || match &self.maker {
            Maker::Shared(make) => self.finish(unharmed(make)?),
            Maker::PerCaller(_) => Err(Unavailable::because("it is made for each caller")),
        };
        self.shared.get_or_init(make).clone()
    }

    fn finish(&self, tool: Arc<dyn AnyTool>) -> Result<Arc<Built>, Unavailable> {
        let parameters = Arc::clone(&tool.spec().parameters);
        let validator = Validator::compile(&parameters)
            .map_err(|error| Unavailable(format!("its schema cannot be used: {error}")))?;
        let spec = Spec { name: self.meta.name.clone(), description: self.meta.about.clone(), parameters };
        let definition = Digest::of(&(&*self.meta, &spec));
        Ok(Arc::new(Built { tool, spec, validator, definition }))
    }
}

/// Runs what others wrote; a panic in it makes the tool unavailable.
pub(super) fn unharmed<T>(make: impl FnOnce() -> T) -> Result<T, Unavailable> {
    catch_unwind(AssertUnwindSafe(make)).map_err(|_| Unavailable::because("making it panicked; see the log"))
}

/// The tools, their other names, and where the changing ones come from.
#[derive(Clone, Default)]
pub(super) struct Shelf {
    pub(super) version: u64,
    pub(super) entries: BTreeMap<ToolName, Arc<Entry>>,
    aliases: HashMap<SmolStr, ToolName>,
    pub(super) absent: Vec<Arc<Meta>>,
    pub(super) sources: Vec<Arc<dyn ToolSource>>,
    /// Sources that could not give their tools, and why.
    pub(super) failed: Vec<(String, String)>,
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

    pub(super) fn remove(&mut self, name: &str) -> bool {
        let Some(entry) = self.entries.remove(name) else { return false };
        self.aliases.retain(|_, tool| *tool != entry.meta.name);
        true
    }

    pub(super) fn clear(&mut self) {
        *self = Self { version: self.version, ..Self::default() };
    }

    pub(super) fn replace(
        &mut self,
        source: &str,
        tools: Result<Vec<Arc<dyn AnyTool>>, Unavailable>,
    ) -> Vec<RegisterError> {
        self.failed.retain(|(name, _)| name != source);
        match tools {
            Ok(tools) => {
                self.remove_all_of(source);
                tools.into_iter().filter_map(|tool| self.insert_from(source, tool).err()).collect()
            }
            // What it had stays listed, as unavailable and with the reason.
            Err(reason) => {
                self.failed.push((source.to_owned(), reason.0));
                Vec::new()
            }
        }
    }

    /// Why the source of this tool cannot give its tools now.
    pub(super) fn failure(&self, entry: &Entry) -> Option<&str> {
        let (_, reason) = self.failed.iter().find(|(name, _)| entry.source.as_deref() == Some(name))?;
        Some(reason)
    }

    pub(super) fn detach(&mut self, source: &str) -> bool {
        let before = self.sources.len();
        self.sources.retain(|s| s.name() != source);
        self.remove_all_of(source);
        self.sources.len() < before
    }

    fn insert_from(&mut self, source: &str, tool: Arc<dyn AnyTool>) -> Result<(), RegisterError> {
        let mut entry = Entry::ready(tool.meta().clone(), tool);
        entry.source = Some(SmolStr::new(source));
        self.insert(Arc::new(entry))
    }

    fn remove_all_of(&mut self, source: &str) {
        self.failed.retain(|(name, _)| name != source);
        let gone: Vec<_> = self
            .entries
            .values()
            .filter(|e| e.source.as_deref() == Some(source))
            .map(|e| e.meta.name.clone())
            .collect();
        for name in gone {
            self.remove(name.as_str());
        }
    }
}
