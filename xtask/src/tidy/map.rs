//! Checks that `ARCHITECTURE.md` is true of the tree: every path of its "Where to look" table exists, and every
//! crate is in its list.
//!
//! In that table, text in backticks that begins with the name of a crate and a slash is a path below `crates/`; the
//! targets of links are paths below the root. `{a,b}` stands for both.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::tree::Tree;

const PAGE: &str = "ARCHITECTURE.md";
const TABLE: &str = "## Where to look";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.file(PAGE) else { return Vec::new() };
    let crates: BTreeSet<&str> = tree.files().filter_map(|file| crate_of(&file.path)).collect();
    let listed =
        |name: &&&str| page.text.lines().any(|line| line.trim_start().starts_with(&format!("{name}/ ")));
    let missing = crates.iter().filter(|name| !listed(name)).map(|name| {
        Finding::new(
            PAGE,
            1,
            format!("`{name}` is not in the list of crates; add a line that says what it is for"),
        )
    });
    let mut findings: Vec<Finding> = missing.collect();
    let table = page.text.lines().enumerate().skip_while(|(_, line)| *line != TABLE).skip(1);
    for (number, line) in table.take_while(|(_, line)| !line.starts_with("## ")) {
        for path in paths(line, &crates).into_iter().filter(|path| !exists(tree, path)) {
            findings.push(Finding::new(
                PAGE,
                number + 1,
                format!("`{path}` does not exist; name the place where it is now"),
            ));
        }
    }
    findings
}

/// The crate that a file belongs to.
fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split_once('/').map(|(name, _)| name)
}

/// The paths that a line names, from the root.
fn paths(line: &str, crates: &BTreeSet<&str>) -> Vec<String> {
    let quoted = line.split('`').skip(1).step_by(2).filter_map(|text| {
        let name = text.split_once('/')?.0;
        match name {
            "xtask" | "docs" => Some(text.to_owned()),
            _ => (crates.contains(name) || name.starts_with("claw")).then(|| format!("crates/{text}")),
        }
    });
    let links =
        line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.to_owned());
    quoted.chain(links).flat_map(|path| expanded(&path)).collect()
}

/// The path with each of the words between braces.
fn expanded(path: &str) -> Vec<String> {
    let Some((before, (words, after))) =
        path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    else {
        return vec![path.to_owned()];
    };
    words.split(',').map(|word| format!("{before}{word}{after}")).collect()
}

/// Returns whether there is such a file, or a file below such a directory.
fn exists(tree: &Tree, path: &str) -> bool {
    let directory = format!("{}/", path.trim_end_matches('/'));
    tree.files().any(|file| file.path == path || file.path.starts_with(&directory))
}

#[cfg(test)]
mod tests;
