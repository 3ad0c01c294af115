//! The tools of this build, as a list that builds a tool only when it is requested.

use std::fmt;
use std::sync::Arc;

use claw_core::tool::{AnyTool, Meta, Source, Tool, erase};

use crate::{
    agents, ai, automation, fs, knowledge, memory, runtime, sessions, skills, tools, web, workspace,
};

/// Every group's list, in the order listings show the groups.
static GROUPS: [&[Builtin]; 12] = [
    fs::TOOLS,
    runtime::TOOLS,
    web::TOOLS,
    memory::TOOLS,
    sessions::TOOLS,
    knowledge::TOOLS,
    automation::TOOLS,
    skills::TOOLS,
    agents::TOOLS,
    ai::TOOLS,
    workspace::TOOLS,
    tools::TOOLS,
];

/// A tool of this build.
pub struct Builtin {
    /// Metadata, known without building the tool.
    pub meta: Meta,
    /// Builds the tool with its schema.
    pub make: fn() -> Arc<dyn AnyTool>,
}

impl Builtin {
    pub(crate) const fn of<T: Tool + Default>() -> Self {
        Self { meta: T::META.source(Source::Core), make: || erase(T::default()) }
    }
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Builtin({})", self.meta.name)
    }
}

/// The tools of this build, by group and then by name.
pub fn builtin() -> impl Iterator<Item = &'static Builtin> {
    GROUPS.into_iter().flatten()
}

#[cfg(test)]
mod tests;
