//! Tools that depend on the caller: looked up for each offer and for each call.
//!
//! A [`CallerTools`] answers with a [`ToolLayer`], and the executor lays the layers of all sources over the caller's
//! registry. Nothing is copied: callers that get the same layers share one registry, which lives as long as it is used.
//! A layer adds tools and never replaces one: a tool whose name or alias is taken beneath it is left out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use claw_core::tool::{AnyTool, Caller, Unavailable};

use crate::Registry;
use crate::registry::Entry;

/// Registries per generation. Two generations are kept: one that was not used while the other filled up is
/// dropped.
const GENERATION: usize = 256;

/// A source of tools that differ by tenant, agent or user and change while the program runs.
///
/// The executor asks it when an offer is made and at each call, so a tool that it no longer gives is refused
/// from the next call on. It must answer at once if nothing changed: keep the layer and compare the store's
/// change counter (`Changes::changes`).
#[async_trait]
pub trait CallerTools: Send + Sync {
    /// The source's name in listings and messages.
    fn name(&self) -> &str;

    /// Returns the tools of this caller, or why they cannot be read. Callers that have the same tools should get the
    /// same layer, and the same caller the same layer until something changes.
    async fn layer(&self, caller: &Caller) -> Result<Arc<ToolLayer>, Unavailable>;
}

/// The tools that a source gives to a caller.
#[derive(Default)]
pub struct ToolLayer {
    tools: Vec<Arc<dyn AnyTool>>,
}

impl ToolLayer {
    /// A layer of these tools.
    pub fn new(tools: Vec<Arc<dyn AnyTool>>) -> Arc<Self> {
        Arc::new(Self { tools })
    }

    /// The tools, in the order given.
    pub fn tools(&self) -> &[Arc<dyn AnyTool>] {
        &self.tools
    }
}

impl std::fmt::Debug for ToolLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolLayer").field("tools", &self.tools.len()).finish()
    }
}

/// The sources of an executor, and the registries made of their layers.
#[derive(Default)]
pub(crate) struct Layers {
    sources: Vec<Arc<dyn CallerTools>>,
    stacks: Mutex<Stacks>,
    entries: Mutex<Entries>,
}

/// The entries of the layers' tools: a tool has one entry, however many registries hold it.
#[derive(Default)]
struct Entries {
    /// By the address of the tool, which its entry keeps alive.
    known: HashMap<usize, Weak<Entry>>,
    /// The number at which entries that nobody holds are removed next.
    sweep_at: usize,
}

impl Entries {
    fn of(&mut self, tool: &Arc<dyn AnyTool>, make: impl FnOnce() -> Arc<Entry>) -> Arc<Entry> {
        let address = Arc::as_ptr(tool).cast::<()>().addr();
        if let Some(known) = self.known.get(&address).and_then(Weak::upgrade) {
            return known;
        }
        if self.known.len() >= self.sweep_at.max(GENERATION) {
            self.known.retain(|_, entry| entry.strong_count() > 0);
            self.sweep_at = self.known.len() * 2;
        }
        let entry = make();
        self.known.insert(address, Arc::downgrade(&entry));
        entry
    }
}

#[derive(Default)]
struct Stacks {
    young: HashMap<StackKey, Arc<Stack>>,
    old: HashMap<StackKey, Arc<Stack>>,
}

/// The addresses of the registry beneath and of the layers. The stack keeps all of them alive, so they are not reused.
type StackKey = Vec<usize>;

struct Stack {
    registry: Arc<Registry>,
    layers: Vec<Arc<ToolLayer>>,
}

impl Stack {
    /// Whether a source still gives all of its layers. Otherwise nobody asks for it again.
    fn is_current(&self) -> bool {
        self.layers.iter().all(|layer| Arc::strong_count(layer) > 1)
    }
}

impl Layers {
    pub(crate) fn new(sources: Vec<Arc<dyn CallerTools>>) -> Self {
        Self { sources, stacks: Mutex::default(), entries: Mutex::default() }
    }

    /// Lays the caller's tools over `base`. If a source fails, its tools are missing and the registry tells
    /// why.
    pub(crate) async fn over(&self, base: Arc<Registry>, caller: &Caller) -> Arc<Registry> {
        if self.sources.is_empty() {
            return base;
        }
        let (mut layers, mut failed) = (Vec::new(), Vec::new());
        for source in &self.sources {
            match source.layer(caller).await {
                Ok(layer) if layer.tools.is_empty() => {}
                Ok(layer) => layers.push((source.name(), layer)),
                Err(why) => failed.push((source.name().to_owned(), why.0)),
            }
        }
        if !failed.is_empty() {
            return Arc::new(self.stack(&base, &layers, failed));
        }
        if layers.is_empty() {
            return base;
        }
        self.stacked(&base, &layers)
    }

    /// The registry of these layers, made once.
    fn stacked(&self, base: &Arc<Registry>, layers: &[(&str, Arc<ToolLayer>)]) -> Arc<Registry> {
        let mut key = vec![Arc::as_ptr(base).addr()];
        key.extend(layers.iter().map(|(_, layer)| Arc::as_ptr(layer).addr()));
        if let Some(known) = self.stacks().get(&key) {
            return known;
        }
        // Made without the lock of the stacks. If two are made at once, the first is kept.
        let registry = Arc::new(self.stack(base, layers, Vec::new()));
        let layers = layers.iter().map(|(_, layer)| Arc::clone(layer)).collect();
        self.stacks().keep(key, Stack { registry, layers })
    }

    fn stack(
        &self,
        base: &Arc<Registry>,
        layers: &[(&str, Arc<ToolLayer>)],
        failed: Vec<(String, String)>,
    ) -> Registry {
        let registry = Registry::over(Arc::clone(base));
        for (source, layer) in layers {
            let entry = |tool: &Arc<dyn AnyTool>| {
                let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
                entries.of(tool, || registry.layer_entry(source, tool))
            };
            for error in registry.lay(&layer.tools, entry) {
                tracing::warn!(%error, %source, "a tool is left out");
            }
        }
        registry.fail(failed);
        registry
    }

    fn stacks(&self) -> std::sync::MutexGuard<'_, Stacks> {
        self.stacks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stacks {
    fn get(&mut self, key: &StackKey) -> Option<Arc<Registry>> {
        if let Some(stack) = self.young.get(key) {
            return Some(Arc::clone(&stack.registry));
        }
        let stack = self.old.remove(key)?;
        Some(self.put(key.clone(), stack))
    }

    fn keep(&mut self, key: StackKey, stack: Stack) -> Arc<Registry> {
        match self.get(&key) {
            Some(known) => known,
            None => self.put(key, Arc::new(stack)),
        }
    }

    fn put(&mut self, key: StackKey, stack: Arc<Stack>) -> Arc<Registry> {
        self.young.retain(|_, stack| stack.is_current());
        self.old.retain(|_, stack| stack.is_current());
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        let registry = Arc::clone(&stack.registry);
        self.young.insert(key, stack);
        registry
    }
}
