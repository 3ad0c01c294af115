//! Files that are generated from types, so that they always agree with the code.

#[cfg(test)]
mod sample;
mod tokens;
mod tools_page;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::builtin;
use crate::finding::Finding;
use crate::tree::Tree;

/// A generated file as it should be.
struct Generated {
    path: &'static str,
    text: String,
}

fn all() -> Result<Vec<Generated>> {
    let tools = builtin::all();
    let counted = tokens::count(&tools)?;
    Ok(vec![
        Generated { path: "crates/claw-tools/src/tokens.rs", text: tokens::render(&counted) },
        Generated { path: "docs/tools.md", text: tools_page::render(&tools, &counted) },
        Generated { path: "docs/config.schema.json", text: config_schema()? },
    ])
}

/// The JSON schema of `clawsmith.toml`, for editors.
fn config_schema() -> Result<String> {
    Ok(serde_json::to_string_pretty(&clawsmith::config::schema())? + "\n")
}

/// Writes the files that have changed and returns their paths.
pub(crate) fn write(root: &Path) -> Result<Vec<&'static str>> {
    let mut written = Vec::new();
    for Generated { path, text } in all()? {
        let full = root.join(path);
        if fs::read_to_string(&full).is_ok_and(|old| old == text) {
            continue;
        }
        if let Some(directory) = full.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(&full, text).with_context(|| format!("cannot write `{path}`"))?;
        written.push(path);
    }
    Ok(written)
}

/// Returns a finding for each generated file that is missing or stale.
pub(crate) fn stale(tree: &Tree) -> Result<Vec<Finding>> {
    Ok(all()?.iter().filter_map(|generated| compare(tree, generated)).collect())
}

fn compare(tree: &Tree, Generated { path, text }: &Generated) -> Option<Finding> {
    let Some(file) = tree.file(path) else {
        return Some(Finding::new(path, 1, "is missing; run `make docs` and commit what it writes"));
    };
    let same = file.text.lines().zip(text.lines()).take_while(|(old, new)| old == new).count();
    (file.text != *text).then(|| {
        Finding::new(path, same + 1, "is stale from here on; run `make docs` and commit what it writes")
    })
}

#[cfg(test)]
mod tests;
