//! Checks that only the executor runs tools.
//!
//! Two names make this searchable, and both are unique in the workspace:
//!
//! - [`ENTRY`], the method of `AnyTool` that runs a tool. It is called once, in [`ROAD`]. An implementation
//!   may hand a call on to the tool that it wraps, since the road called it first; nobody else may.
//! - `Call::new`. A typed tool cannot run without a `Call`, and only the registry makes one. That covers
//!   `Tool::run`, whose name is too common to search for.
//!
//! Tests, benches and the test kit are exempt: they run tools directly. A call by a macro that composes the
//! name cannot be seen in the text; no macro here does that.

use std::ops::Range;

use crate::finding::Finding;
use crate::source::{closing, words};
use crate::tree::{File, Tree};

/// The method that runs an erased tool.
const ENTRY: &str = "run_erased";
/// The file that declares that method.
const DECLARATION: &str = "crates/claw-core/src/tool/tool_trait.rs";
/// The file that calls it, once.
const ROAD: &str = "crates/claw-registry/src/execute/run.rs";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(file) = tree.file(DECLARATION) {
        check_declaration(file, &mut findings);
    }
    for file in tree.rust().filter(|file| file.path.starts_with("crates/")) {
        let code = file.production();
        let calls = calls(&code);
        if file.path == ROAD {
            check_road(file, &calls, &mut findings);
        } else {
            findings.extend(calls.into_iter().map(|at| {
                let says = format!("only the road calls `{ENTRY}`; give the call to `Executor::execute`");
                Finding::new(&file.path, file.line(at), says)
            }));
        }
        if !file.in_crate("claw-registry") {
            findings.extend(words(&code, "Call::new").map(|at| {
                let says = "only the registry makes a `Call`; give the request to `Executor::execute`";
                Finding::new(&file.path, file.line(at), says)
            }));
        }
    }
    findings
}

/// Checks the declaration of [`ENTRY`]: without it the search would find nothing and report success.
fn check_declaration(file: &File, findings: &mut Vec<Finding>) {
    let code = file.production();
    let body = words(&code, "trait AnyTool").next().map(|at| block(&code, at));
    let declared = body.is_some_and(|body| words(&code[body], ENTRY).next().is_some());
    if !declared {
        let line = words(&code, "trait AnyTool").next().map_or(1, |at| file.line(at));
        let says =
            format!("`AnyTool` has no method `{ENTRY}`; name the one that runs a tool so, or change `ENTRY`");
        findings.push(Finding::new(&file.path, line, says));
    }
}

fn check_road(file: &File, calls: &[usize], findings: &mut Vec<Finding>) {
    match calls {
        [] => {
            let says = format!("the road never calls `{ENTRY}`; step 7 does");
            findings.push(Finding::new(&file.path, 1, says));
        }
        [_] => {}
        [first, others @ ..] => findings.extend(others.iter().map(|at| {
            let first = file.line(*first);
            let says =
                format!("`{ENTRY}` is called on line {first} already; the road runs a tool in one place");
            Finding::new(&file.path, file.line(*at), says)
        })),
    }
}

/// Positions of uses of the entry, except its implementations and uses within them.
fn calls(code: &str) -> Vec<usize> {
    let implementing = |at: usize| code[..at].trim_end().ends_with("fn");
    let bodies: Vec<Range<usize>> =
        words(code, ENTRY).filter(|at| implementing(*at)).map(|at| block(code, at)).collect();
    words(code, ENTRY)
        .filter(|at| !implementing(*at) && !bodies.iter().any(|body| body.contains(at)))
        .collect()
}

/// The block that starts after `from`; empty if the item ends without one.
fn block(code: &str, from: usize) -> Range<usize> {
    let bytes = code.as_bytes();
    let mut at = from;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' => return at..closing(bytes, at),
            b'(' | b'[' => at = closing(bytes, at),
            b';' => break,
            _ => at += 1,
        }
    }
    from..from
}

#[cfg(test)]
mod tests;
