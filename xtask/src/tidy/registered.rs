//! Checks that every tool is registered: named in its group's list, and its group in the crate's.
//!
//! A tool's file is `crates/claw-tools/src/<group>/<tool>.rs` (or a folder of that name). The type that `impl
//! Tool for` names must occur in `<group>/mod.rs` outside `mod` and `use` lines, which is the list.

use crate::finding::Finding;
use crate::source::{closing, production, words};
use crate::tree::{File, Tree};

const TOOLS: &str = "crates/claw-tools/src/";
const LIST: &str = "crates/claw-tools/src/builtin.rs";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| file.in_crate("claw-tools")) {
        for (tool, at) in tools(&file.production()) {
            if let Some(says) = refuse(tree, file, &tool) {
                findings.push(Finding::new(&file.path, file.line(at), says));
            }
        }
    }
    findings
}

fn refuse(tree: &Tree, file: &File, tool: &str) -> Option<String> {
    let Some((group, _)) = file.path.strip_prefix(TOOLS).and_then(|path| path.split_once('/')) else {
        return Some(format!("`{tool}` is in no group; move it to {TOOLS}<group>/"));
    };
    let list = format!("{TOOLS}{group}/mod.rs");
    if !lists(tree, &list, tool) {
        return Some(format!("`{tool}` is not registered; add it to the list in {list}"));
    }
    if !lists(tree, LIST, &format!("{group}::")) {
        return Some(format!("`{tool}` is never listed, since its group is not; add `{group}` to {LIST}"));
    }
    None
}

/// The types that a file implements `Tool` for, with their positions. Generic implementations do not count.
fn tools(code: &str) -> Vec<(String, usize)> {
    let name = |at: usize| {
        let rest = code[at..].trim_start_matches("impl Tool for").trim_start();
        rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
    };
    words(code, "impl Tool for").map(|at| (name(at), at)).filter(|(name, _)| !name.is_empty()).collect()
}

/// Returns whether the file at `path` names `item` outside `mod` and `use`.
fn lists(tree: &Tree, path: &str, item: &str) -> bool {
    tree.file(path)
        .is_some_and(|file| words(&without_imports(&production(&file.text)), item).next().is_some())
}

fn without_imports(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut at = 0;
    while at < code.len() {
        let end = statement_end(code, at);
        let statement = &code[at..end];
        let first = statement.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        if !first.starts_with("mod ") && !first.starts_with("use ") {
            kept.push_str(statement);
        }
        at = end;
    }
    kept
}

fn statement_end(code: &str, from: usize) -> usize {
    let bytes = code.as_bytes();
    let mut at = from;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'(' | b'[' => at = closing(bytes, at),
            b';' => return at + 1,
            _ => at += 1,
        }
    }
    code.len()
}

#[cfg(test)]
mod tests;
