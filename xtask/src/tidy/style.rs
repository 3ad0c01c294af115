//! Checks the habits of STYLE.md that can be seen in text.
//!
//! Bans on names look at code only, not at comments and literals. The check of machine paths looks at
//! everything, since a path in a comment or a document is as wrong as one in code. Test files may contain any
//! path (attacks are made of them) and need no opening line.

use crate::finding::Finding;
use crate::source::{closing, code, line, words};
use crate::tree::{File, Tree};

/// Longest file; a longer one holds a second concept.
const MAX_LINES: usize = 800;
/// The most lines of the sources of the command line: arguments and rendering; the rest belongs to `clawsmith::app`.
const COMMAND_LINE_LINES: usize = 9_000;
const COMMAND_LINE: &str = "claw-cli";
/// The top directories of machines that are not the reader's.
const MACHINE_DIRECTORIES: &[&str] = &["work", "root", "home"];

/// Names that may occur nowhere, not even in tests.
const NOWHERE: &[(&str, &str)] = &[
    ("#[allow(", "use `#[expect(lint, reason = \"...\")]`, which complains when it is no longer needed"),
    ("#![allow(", "use `#[expect(lint, reason = \"...\")]` where it is needed"),
    ("todo!", "write it, or leave it out"),
    ("unimplemented!", "write it, or leave it out"),
    ("dbg!", "remove it"),
    ("#[ignore", "run it, move it to `make soak`, or delete it"),
];

/// Names that may not occur in the shipped code of one crate.
const ABSENCES: &[Absence] = &[
    Absence {
        crates: &["claw-policy"],
        names: &["SystemTime::now", "Instant::now", "Timestamp::now", "Zoned::now"],
        advice: "policy has no clock; take the time as an argument",
    },
    Absence {
        crates: &["claw-policy"],
        names: &["async fn", "async move", "async {", ".await", "tokio"],
        advice: "policy is not async; compute from what is given",
    },
    Absence {
        crates: &["claw-policy", "claw-tools"],
        names: &["std::env"],
        advice: "take it from the configuration that is passed in",
    },
    Absence {
        crates: &["claw-policy", "claw-core", "claw-tools"],
        names: &["std::fs", "std::net", "std::process", "tokio::fs", "tokio::net", "tokio::process"],
        advice: "no I/O here; ask a port, and let claw-host implement it",
    },
];

/// First words of a doc line that leave the reader to guess its subject.
const RIDDLES: &[&str] = &["What", "Who", "Whose", "Whom", "Which", "Whoever", "Whatever"];

struct Absence {
    crates: &'static [&'static str],
    names: &'static [&'static str],
    advice: &'static str,
}

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        check_opening(file, &mut findings);
        check_length(file, &mut findings);
        check_names(file, &mut findings);
        check_doc_lines(file, &mut findings);
    }
    for file in tree.files() {
        check_paths(file, &mut findings);
    }
    check_command_line(tree, &mut findings);
    findings
}

fn check_opening(file: &File, findings: &mut Vec<Finding>) {
    let generated = |line: &&str| line.starts_with("// @generated");
    let opening = file.text.lines().find(|line| !line.trim().is_empty() && !generated(line)).unwrap_or("");
    if !file.is_test() && !opening.starts_with("//!") {
        let says = "a module opens with `//!`: what it is for, and what it refuses to do";
        findings.push(Finding::new(&file.path, 1, says));
    }
}

fn check_length(file: &File, findings: &mut Vec<Finding>) {
    let lines = file.text.lines().count();
    if lines > MAX_LINES {
        let says =
            format!("{lines} lines; at most {MAX_LINES}: find the second concept in it and give it a file");
        findings.push(Finding::new(&file.path, MAX_LINES + 1, says));
    }
}

/// A front end holds little: a second one would have to copy it.
fn check_command_line(tree: &Tree, findings: &mut Vec<Finding>) {
    let files: Vec<&File> = tree.rust().filter(|file| file.in_crate(COMMAND_LINE)).collect();
    let lines: usize = files.iter().map(|file| file.text.lines().count()).sum();
    let longest = files.iter().max_by_key(|file| file.text.lines().count());
    if let Some(longest) = longest.filter(|_| lines > COMMAND_LINE_LINES) {
        let says = format!(
            "the sources of {COMMAND_LINE} have {lines} lines; at most {COMMAND_LINE_LINES}: move what another front end needs to \
             `clawsmith::app`, and drawing to claw-terminal"
        );
        findings.push(Finding::new(&longest.path, 1, says));
    }
}

/// A doc line names its subject, or begins with a verb.
fn check_doc_lines(file: &File, findings: &mut Vec<Finding>) {
    for (number, line) in file.text.lines().enumerate() {
        let line = line.trim_start();
        let doc = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! ")).unwrap_or_default();
        let first = doc.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        if RIDDLES.contains(&first) {
            let says = format!("the doc line opens with `{first}`: name the thing, or begin with a verb");
            findings.push(Finding::new(&file.path, number + 1, says));
        }
    }
}

fn check_names(file: &File, findings: &mut Vec<Finding>) {
    let code = code(&file.text);
    for (name, advice) in NOWHERE {
        findings.extend(words(&code, name).map(|at| ban(file, at, name, advice)));
    }
    let production = file.production();
    for absence in ABSENCES.iter().filter(|a| a.crates.iter().any(|name| file.in_crate(name))) {
        for name in absence.names {
            let direct = words(&production, name);
            let found = direct.chain(grouped(&production, name));
            findings.extend(found.map(|at| ban(file, at, name, absence.advice)));
        }
    }
}

fn ban(file: &File, at: usize, name: &str, advice: &str) -> Finding {
    Finding::new(&file.path, file.line(at), format!("`{name}`: {advice}"))
}

/// Positions of imports of `std::fs` that are written as `std::{fs, ...}`.
fn grouped(code: &str, path: &str) -> Vec<usize> {
    let Some((parent, child)) = path.rsplit_once("::") else { return Vec::new() };
    let open = format!("{parent}::{{");
    let imports_child = |at: &usize| {
        let start = at + open.len() - 1;
        let group = &code[start..closing(code.as_bytes(), start)];
        group.split(['{', '}', ',']).any(|item| {
            let item = item.trim();
            item == child
                || item.starts_with(&format!("{child}::"))
                || item.starts_with(&format!("{child} as"))
        })
    };
    words(code, &open).filter(imports_child).collect()
}

fn check_paths(file: &File, findings: &mut Vec<Finding>) {
    if file.is_test() {
        return;
    }
    for directory in MACHINE_DIRECTORIES {
        let path = format!("/{directory}/");
        for (at, _) in file.text.match_indices(&path) {
            // After a name, the same letters are part of a relative path or of a URL.
            let before = file.text[..at].bytes().last();
            let absolute = before.is_none_or(|b| !b.is_ascii_alphanumeric() && !b"._-~*}/".contains(&b));
            if absolute {
                let says = format!("`{path}` is a path of one machine; write it relative to the repository");
                findings.push(Finding::new(&file.path, line(&file.text, at), says));
            }
        }
    }
}

#[cfg(test)]
mod tests;
