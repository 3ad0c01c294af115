//! A tool of a registry: its metadata and its maker.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use claw_core::tool::{AnyTool, Digest, Meta, Spec, Unavailable};
use claw_schema::dialect::{self, Dialect};
use smol_str::SmolStr;

use super::schemas::Schemas;
use super::{Context, Factory};
use claw_schema::validate::{self, Validator};

const LISTED_ONLY: &str = "only its metadata was registered; register the tool itself to call it";

/// A tool of a registry.
pub(crate) struct Entry {
    pub(crate) meta: Arc<Meta>,
    maker: Maker,
    schemas: Arc<Schemas>,
    /// The schema is compiled with the first call, not when the tool is registered.
    compiles_late: bool,
    /// The tool that all callers share, once made.
    shared: OnceLock<Result<Arc<Built>, Unavailable>>,
    /// The factory's last error; `None` after it succeeded.
    failure: ArcSwapOption<Unavailable>,
    /// The source that brought the tool.
    pub(super) source: Option<SmolStr>,
}

pub(super) enum Maker {
    /// A single tool for all callers, made at first use.
    Shared(Box<dyn Fn() -> Arc<dyn AnyTool> + Send + Sync>),
    /// A tool for each caller.
    PerCaller(Box<Factory>),
}

/// A tool with its spec. The values that only calls need are computed once, when first needed.
pub(crate) struct Built {
    pub(crate) tool: Arc<dyn AnyTool>,
    pub(crate) spec: Spec,
    meta: Arc<Meta>,
    schemas: Arc<Schemas>,
    validator: OnceLock<Result<Arc<Validator>, Unavailable>>,
    definition: OnceLock<Digest>,
    tokens: OnceLock<usize>,
}

impl Built {
    /// The validator of the tool's arguments, or why its schema cannot be used.
    pub(crate) fn validator(&self) -> Result<&Arc<Validator>, Unavailable> {
        let compile = || {
            let compiled = self.schemas.compile(&self.spec.parameters);
            compiled.map_err(|error| Unavailable(format!("its schema cannot be used: {error}")))
        };
        self.validator.get_or_init(compile).as_ref().map_err(Clone::clone)
    }

    /// The tool's identity: the digest of its metadata and schema. Tools with the same definition can replace
    /// each other.
    pub(crate) fn definition(&self) -> Digest {
        *self.definition.get_or_init(|| Digest::of(&(&*self.meta, &self.spec)))
    }

    /// Estimated tokens of the tool in a prompt.
    pub(crate) fn tokens(&self) -> usize {
        *self.tokens.get_or_init(|| dialect::estimate_tokens(&Dialect::Default.tool(&self.spec)))
    }
}

impl Entry {
    pub(super) fn new(meta: Meta, maker: Maker, schemas: &Arc<Schemas>) -> Self {
        Self {
            meta: Arc::new(meta),
            maker,
            schemas: Arc::clone(schemas),
            compiles_late: false,
            shared: OnceLock::new(),
            failure: ArcSwapOption::empty(),
            source: None,
        }
    }

    /// A tool that is listed but cannot be called.
    pub(super) fn listed_only(meta: Meta, schemas: &Arc<Schemas>) -> Self {
        let maker = Maker::PerCaller(Box::new(|_| Err(Unavailable::because(LISTED_ONLY))));
        let entry = Self::new(meta, maker, schemas);
        // Set beforehand, so that listings show it.
        let _ = entry.shared.set(Err(Unavailable::because(LISTED_ONLY)));
        entry
    }

    pub(super) fn ready(meta: Meta, tool: Arc<dyn AnyTool>, schemas: &Arc<Schemas>) -> Self {
        let entry = Self::new(meta, Maker::Shared(Box::new(move || Arc::clone(&tool))), schemas);
        // Made at once, so that listings show an invalid schema from the start.
        let _ = entry.make_shared();
        entry
    }

    /// A tool that a source has now.
    pub(super) fn of_source(source: &str, tool: Arc<dyn AnyTool>, schemas: &Arc<Schemas>) -> Self {
        let mut entry = Self::ready(tool.meta().clone(), tool, schemas);
        entry.source = Some(SmolStr::new(source));
        entry
    }

    /// A tool of a layer. A layer may have thousands of tools, of which a few are called.
    pub(super) fn of_layer(source: &str, tool: Arc<dyn AnyTool>, schemas: &Arc<Schemas>) -> Self {
        let meta = tool.meta().clone();
        let mut entry = Self::new(meta, Maker::Shared(Box::new(move || Arc::clone(&tool))), schemas);
        (entry.compiles_late, entry.source) = (true, Some(SmolStr::new(source)));
        let _ = entry.make_shared();
        entry
    }

    /// The tool for this caller, made if necessary. If its factory panics, the tool is unavailable.
    pub(crate) fn build(&self, context: &Context<'_>) -> Result<Arc<Built>, Unavailable> {
        match &self.maker {
            Maker::Shared(_) => self.make_shared(),
            Maker::PerCaller(factory) => {
                let made = unharmed(|| factory(context)).and_then(|made| made);
                let built = made.and_then(|tool| self.finish(tool));
                self.failure.store(built.as_ref().err().map(|failure| Arc::new(failure.clone())));
                built
            }
        }
    }

    /// The reason why nobody can use the tool, as far as it is known without making it.
    pub(super) fn defect(&self) -> Option<String> {
        let error = match self.shared.get()? {
            Ok(built) => built.validator.get()?.as_ref().err()?,
            Err(error) => error,
        };
        Some(error.0.clone())
    }

    /// The factory's last error, for any caller.
    pub(crate) fn last_failure(&self) -> Option<String> {
        self.failure.load().as_ref().map(|failure| failure.0.clone())
    }

    /// Returns whether both are the same tool with the same definition, so that neither replaces the other.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self.shared.get(), other.shared.get()) {
            (Some(Ok(a)), Some(Ok(b))) => a.definition() == b.definition() && Arc::ptr_eq(&a.tool, &b.tool),
            (Some(Err(a)), Some(Err(b))) => a == b && self.meta == other.meta,
            _ => false,
        }
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
        // A schema that is nested too deeply cannot even be hashed.
        validate::examine(&parameters)
            .map_err(|error| Unavailable(format!("its schema cannot be used: {error}")))?;
        let spec = Spec { name: self.meta.name.clone(), description: self.meta.about.clone(), parameters };
        let (meta, schemas) = (Arc::clone(&self.meta), Arc::clone(&self.schemas));
        let (validator, definition, tokens) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let built = Built { tool, spec, meta, schemas, validator, definition, tokens };
        if !self.compiles_late {
            built.validator()?;
        }
        Ok(Arc::new(built))
    }
}

/// Runs foreign code; a panic in it makes the tool unavailable.
pub(super) fn unharmed<T>(make: impl FnOnce() -> T) -> Result<T, Unavailable> {
    catch_unwind(AssertUnwindSafe(make)).map_err(|_| Unavailable::because("making it panicked; see the log"))
}
