//! Checks that a program can name through `clawsmith` what public types hold: every name that the registry and
//! `claw_core::tool` export is exported by the library too, by itself or with the module that has it.
//!
//! A name that the library exports under a feature alone does not count. Glob imports are not read.

use crate::finding::Finding;
use crate::source::words;
use crate::tree::Tree;

const LIBRARY: &str = "crates/clawsmith/src/lib.rs";
/// Files with lists of names, and the path that their names have in the library's `pub use`.
const LISTS: [(&str, &str); 2] = [
    ("crates/claw-registry/src/lib.rs", "claw_registry"),
    ("crates/claw-core/src/tool/mod.rs", "claw_core::tool"),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(library) = tree.file(LIBRARY) else { return Vec::new() };
    let exported = exports(&library.production());
    let mut findings = Vec::new();
    for (path, module) in LISTS {
        let Some(list) = tree.file(path) else { continue };
        let code = list.production();
        for Export { name, .. } in exports(&code) {
            let whole = format!("{module}::{name}");
            let is_within = |export: &Export| {
                let rest = whole.strip_prefix(export.path.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
            };
            if !exported.iter().any(is_within) {
                let line = words(&code, &name).next().map_or(1, |at| list.line(at));
                let says = format!("`{name}` cannot be named through the library; add it to {LIBRARY}");
                findings.push(Finding::new(path, line, says));
            }
        }
    }
    findings
}

/// Something that a file exports: where it comes from, and its name there.
struct Export {
    path: String,
    name: String,
}

/// The exports of a file by `pub use` without a condition.
fn exports(code: &str) -> Vec<Export> {
    let mut exports = Vec::new();
    for item in code.split(';') {
        let Some((before, path)) = item.split_once("pub use ") else { continue };
        if !before.contains("#[cfg(") {
            expand("", path, &mut exports);
        }
    }
    exports
}

/// Adds the exports that a tree of imports stands for.
fn expand(before: &str, tree: &str, exports: &mut Vec<Export>) {
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let (before, group) = (format!("{before}{}", head.trim()), group.trim_end());
        for child in children(group.strip_suffix('}').unwrap_or(group)) {
            expand(&before, child, exports);
        }
    } else if !tree.is_empty() {
        let (item, alias) = tree.split_once(" as ").map_or((tree, None), |(item, alias)| (item, Some(alias)));
        let whole = format!("{before}{}", item.trim());
        let path = whole.strip_suffix("::self").unwrap_or(&whole);
        let name = alias.or_else(|| path.rsplit("::").next()).unwrap_or(path);
        exports.push(Export { path: path.to_owned(), name: name.trim().to_owned() });
    }
}

/// The parts of a group, between the commas that are in no group within it.
fn children(group: &str) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0_usize, 0, Vec::new());
    for (at, byte) in group.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&group[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[from..]);
    parts
}

#[cfg(test)]
mod tests;
