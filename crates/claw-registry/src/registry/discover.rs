//! Fills a registry from a list of built-in tools.

use std::sync::Arc;

use claw_core::tool::{AnyTool, Meta};

use claw_policy::group;

use super::entry::Maker;
use super::{Entry, RegisterError, Registry};

/// A tool that can be registered.
#[derive(Clone)]
pub struct Discovered {
    /// The tool's metadata.
    pub meta: Meta,
    /// Makes the tool.
    pub make: fn() -> Arc<dyn AnyTool>,
}

/// Selects the tools to register.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// Names, aliases or `group:` references to include; `None` includes all.
    pub include: Option<Vec<String>>,
    /// Names, aliases or `group:` references to leave out.
    pub exclude: Vec<String>,
    /// Register metadata only: the tools are listed, but not callable.
    pub metadata_only: bool,
}

impl Discovery {
    fn takes(&self, meta: &Meta) -> bool {
        let included = self.include.as_ref().is_none_or(|list| list.iter().any(|entry| names(entry, meta)));
        included && !self.exclude.iter().any(|entry| names(entry, meta))
    }
}

fn names(entry: &str, meta: &Meta) -> bool {
    match entry.strip_prefix("group:") {
        Some(group) => {
            let group = group::canonical(group);
            group::names_of(meta).any(|name| name == group)
        }
        None => meta.name.as_str() == entry || meta.aliases.contains(entry),
    }
}

impl Registry {
    /// Registers the tools of a list that `discovery` selects. Tools that cannot be registered, and entries
    /// that name nothing, are reported to `warn`; the rest is registered all the same.
    pub fn discover(
        &self,
        tools: impl IntoIterator<Item = Discovered>,
        discovery: &Discovery,
        mut warn: impl FnMut(String),
    ) {
        let mut unmatched: Vec<&String> =
            discovery.include.iter().flatten().chain(discovery.exclude.iter()).collect();
        for tool in tools {
            unmatched.retain(|entry| !names(entry, &tool.meta));
            if !discovery.takes(&tool.meta) {
                continue;
            }
            if let Err(error) = self.add(tool, discovery.metadata_only) {
                warn(error.to_string());
            }
        }
        for entry in unmatched {
            warn(format!("`{entry}` names no tool and no group of tools; see `tools list` for the names"));
        }
    }

    fn add(&self, tool: Discovered, metadata_only: bool) -> Result<(), RegisterError> {
        if metadata_only {
            return self.put(Entry::listed_only(tool.meta, &self.schemas));
        }
        self.put(Entry::new(tool.meta, Maker::Shared(Box::new(tool.make)), &self.schemas))
    }
}
