//! Selects entries of a tree by name alone: globs, types and names that begin with a dot.

use std::path::Path;

use claw_core::port::Walk;
use claw_core::tool::ToolError;
use ignore::Match;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};

/// Compiled from a [`Walk`]. Reads no file.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    globs: Override,
    types: Types,
    pub(super) hidden: bool,
    pub(super) ignored: bool,
    pub(super) directories: bool,
    pub(super) depth: usize,
}

impl Filter {
    pub(super) fn new(walk: &Walk) -> Result<Self, ToolError> {
        let mut globs = OverrideBuilder::new("/");
        globs.allow_unclosed_class(false);
        for glob in &walk.globs {
            // A path that is written from here on means the same.
            let plain = glob.strip_prefix("./").unwrap_or(glob);
            globs.add(plain).map_err(|error| no_glob(glob, &error))?;
        }
        let globs = globs.build().map_err(|error| no_glob(&walk.globs.join(", "), &error))?;
        let mut types = TypesBuilder::new();
        types.add_defaults();
        for name in &walk.types {
            if !types.definitions().iter().any(|known| known.name() == name) {
                return Err(unknown_type(name, &types));
            }
            types.select(name);
        }
        let types = types
            .build()
            .map_err(|error| ToolError::invalid(format!("these file types cannot be used: {error}")))?;
        Ok(Self {
            globs,
            types,
            hidden: walk.hidden,
            ignored: walk.ignored,
            directories: walk.directories,
            depth: walk.depth.unwrap_or(usize::MAX),
        })
    }

    /// Returns whether a file is selected. The path is relative to the start of the walk, with a leading
    /// slash.
    pub(super) fn wants_file(&self, path: &Path) -> bool {
        !self.globs.matched(path, false).is_ignore() && !self.types.matched(path, false).is_ignore()
    }

    /// Returns whether the walk enters a directory.
    pub(super) fn enters(&self, path: &Path) -> bool {
        self.globs.is_empty() || !self.globs.matched(path, true).is_ignore()
    }

    /// Returns whether a directory itself is listed.
    pub(super) fn wants_directory(&self, path: &Path) -> bool {
        let asked =
            self.globs.num_whitelists() == 0 || matches!(self.globs.matched(path, true), Match::Whitelist(_));
        self.directories && self.types.is_empty() && asked
    }
}

fn no_glob(glob: &str, error: &ignore::Error) -> ToolError {
    let says = error.to_string();
    let says = says.rsplit_once("': ").map_or(says.as_str(), |(_, reason)| reason);
    ToolError::invalid(format!("`{glob}` is not a glob: {says}"))
        .try_instead("write one such as `*.rs`, `src/**/*.ts` or `!vendor/**`")
}

fn unknown_type(name: &str, types: &TypesBuilder) -> ToolError {
    let start: String = name.chars().take(2).collect();
    let known = types.definitions();
    let alike: Vec<_> =
        known.iter().map(|known| known.name()).filter(|known| known.starts_with(&start)).take(8).collect();
    let advice = if alike.is_empty() {
        "use a name such as `rust`, `py`, `js`, `ts`, `go`, `md`, or a glob such as `*.rs`".to_owned()
    } else {
        format!("similar types are {}; or use a glob such as `*.{name}`", alike.join(", "))
    };
    ToolError::invalid(format!("`{name}` is not a file type")).try_instead(advice)
}

/// Returns whether a name is hidden by convention: it begins with a dot.
pub(super) fn is_hidden(name: &[u8]) -> bool {
    name.first() == Some(&b'.')
}

#[cfg(test)]
mod tests;
