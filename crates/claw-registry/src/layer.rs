//! Tools that depend on the caller: looked up for each offer and for each call.
//!
//! A [`CallerTools`] answers with a [`ToolLayer`], and the executor lays the layers of all sources over the caller's
//! registry. Nothing is copied: callers that get the same layers share one registry, which lives as long as it is used.
//! A layer adds tools and never replaces one: a tool whose name or alias is taken beneath it is left out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use claw_core::tool::{AnyTool, Caller, Unavailable};

use crate::Registry;

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
    _layers: Vec<Arc<ToolLayer>>,
}

impl Layers {
    pub(crate) fn new(sources: Vec<Arc<dyn CallerTools>>) -> Self {
        Self { sources, stacks: Mutex::default() }
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
            return Arc::new(stack(&base, &layers, failed));
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
        // Made without the lock, since schemas are compiled here. If two are made at once, the first is kept.
        let registry = Arc::new(stack(base, layers, Vec::new()));
        let kept = layers.iter().map(|(_, layer)| Arc::clone(layer)).collect();
        self.stacks().keep(key, Stack { registry, _layers: kept })
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
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        let registry = Arc::clone(&stack.registry);
        self.young.insert(key, stack);
        registry
    }
}

fn stack(base: &Arc<Registry>, layers: &[(&str, Arc<ToolLayer>)], failed: Vec<(String, String)>) -> Registry {
    let registry = Registry::over(Arc::clone(base));
    for (source, layer) in layers {
        for error in registry.lay(source, &layer.tools) {
            tracing::warn!(%error, %source, "a tool is left out");
        }
    }
    registry.fail(failed);
    registry
}
