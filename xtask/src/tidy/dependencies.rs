//! The dependencies that each crate may have: down the table, never up.
//!
//! Reads the manifests, not the code, so that an unused dependency is found too. Dev-dependencies may point
//! anywhere but at the binary and at xtask: a test that depends upwards makes no cycle in what ships.

use anyhow::{Context as _, Result};
use toml::Table;

use crate::finding::Finding;
use crate::tree::{File, Tree};

/// Each crate with the crates that it may depend on. A new crate is added here before its first line of code
/// or with it.
const TABLE: &[(&str, &[&str])] = &[
    ("claw-core", &[]),
    ("claw-terminal", &[]),
    ("claw-policy", &["claw-core"]),
    ("claw-net", &["claw-core"]),
    ("claw-schema", &["claw-core"]),
    ("claw-tools", &["claw-core"]),
    ("claw-registry", &["claw-core", "claw-policy", "claw-schema"]),
    ("claw-host", &["claw-core"]),
    ("claw-sandbox", &["claw-core", "claw-host"]),
    ("claw-llm", &["claw-core", "claw-net", "claw-schema"]),
    ("claw-web", &["claw-core", "claw-net"]),
    ("claw-store", &["claw-core"]),
    ("claw-store-memory", &["claw-core"]),
    ("claw-mcp", &["claw-core", "claw-policy", "claw-registry", "claw-schema", "claw-net"]),
    ("claw-agent", &["claw-core", "claw-policy", "claw-registry", "claw-schema"]),
    ("claw-team", &["claw-core", "claw-registry", "claw-agent"]),
    ("clawsmith", LIBRARIES),
    ("claw-gateway", &["claw-core", "claw-policy", "claw-registry", "claw-agent", "claw-team", "clawsmith"]),
    ("claw-cli", &[ANY_BUT_TESTS]),
    ("claw-testkit", &[ANY_BUT_TESTS]),
    ("xtask", &[ANY]),
];

/// The crates that the library `clawsmith` may re-export.
const LIBRARIES: &[&str] = &[
    "claw-core",
    "claw-policy",
    "claw-registry",
    "claw-schema",
    "claw-tools",
    "claw-net",
    "claw-host",
    "claw-sandbox",
    "claw-store",
    "claw-store-memory",
    "claw-llm",
    "claw-web",
    "claw-mcp",
    "claw-agent",
    "claw-team",
];

const ANY: &str = "any";
const ANY_BUT_TESTS: &str = "any but those for tests";
const FOR_TESTS: &[&str] = &["claw-testkit", "xtask"];

/// Third-party crates that only some of our crates may ship with, and why. Tests are exempt.
const FENCES: &[Fence] = &[
    Fence {
        names: &["tiktoken-rs"],
        may: |name| name == "xtask",
        reason: "the tokenizer's tables never ship; `cargo xtask generate` counts and writes the figures",
    },
    Fence {
        names: &["anyhow"],
        may: |name| matches!(name, "claw-cli" | "xtask"),
        reason: "a library has one error enum of its own; derive it with `thiserror`",
    },
    Fence {
        names: &["sqlx"],
        may: |name| matches!(name, "claw-store" | "claw-testkit"),
        reason: "SQL stays in the store; ask a trait of `claw_core::store`",
    },
    Fence {
        names: &["async-trait", "futures-util"],
        may: |name| name != "claw-policy",
        reason: "policy is pure; take what it needs as an argument",
    },
    Fence {
        names: &["tokio", "rustix", "reqwest"],
        may: |name| !matches!(name, "claw-policy" | "claw-tools"),
        reason: "policy is pure and a tool asks its ports; move what does I/O to the host",
    },
];

/// Third-party crates, and the crates that may use them.
struct Fence {
    names: &'static [&'static str],
    may: fn(&str) -> bool,
    reason: &'static str,
}

pub(super) fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let manifests = tree.files().filter(|f| f.path.ends_with("/Cargo.toml"));
    for file in manifests {
        let manifest: Table =
            toml::from_str(&file.text).with_context(|| format!("`{}` is no TOML", file.path))?;
        check_manifest(file, &manifest, &mut findings);
    }
    Ok(findings)
}

fn check_manifest(file: &File, manifest: &Table, findings: &mut Vec<Finding>) {
    let name = manifest.get("package").and_then(|p| p.get("name")).and_then(|n| n.as_str()).unwrap_or("");
    let Some((_, allowed)) = TABLE.iter().find(|(row, _)| *row == name) else {
        let says =
            format!("`{name}` is in no row of the table; give it one in xtask/src/tidy/dependencies.rs");
        findings.push(Finding::new(&file.path, 1, says));
        return;
    };
    for (dependency, kind) in dependencies(manifest) {
        let refusal = if TABLE.iter().any(|(row, _)| *row == dependency) {
            refuse_ours(name, allowed, dependency, kind)
        } else {
            refuse_theirs(name, dependency, kind)
        };
        if let Some(says) = refusal {
            findings.push(Finding::new(&file.path, line_of(&file.text, dependency), says));
        }
    }
}

fn refuse_ours(name: &str, allowed: &[&str], dependency: &str, kind: Kind) -> Option<String> {
    let fine = match kind {
        Kind::Dev => dependency != "xtask" && dependency != "claw-cli",
        Kind::Ships => match allowed {
            [ANY] => true,
            [ANY_BUT_TESTS] => !FOR_TESTS.contains(&dependency),
            _ => allowed.contains(&dependency),
        },
    };
    (!fine).then(|| match kind {
        Kind::Dev => format!("tests of `{name}` may not use `{dependency}`; test it from there instead"),
        Kind::Ships => {
            let allowed = if allowed.is_empty() { "nothing of ours".to_owned() } else { allowed.join(", ") };
            format!(
                "`{name}` may not depend on `{dependency}`; it may on {allowed}: put the shared part lower down"
            )
        }
    })
}

fn refuse_theirs(name: &str, dependency: &str, kind: Kind) -> Option<String> {
    let fence = FENCES.iter().find(|fence| fence.names.contains(&dependency))?;
    let fine = kind == Kind::Dev || (fence.may)(name);
    (!fine).then(|| format!("`{name}` may not depend on `{dependency}`: {}", fence.reason))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ships,
    Dev,
}

/// All dependencies of a manifest, including those of targets.
fn dependencies(manifest: &Table) -> Vec<(&str, Kind)> {
    let targets = manifest.get("target").and_then(|t| t.as_table()).into_iter().flat_map(Table::values);
    let tables = std::iter::once(manifest).chain(targets.filter_map(|target| target.as_table()));
    let mut found = Vec::new();
    for table in tables {
        for (key, kind) in [
            ("dependencies", Kind::Ships),
            ("build-dependencies", Kind::Ships),
            ("dev-dependencies", Kind::Dev),
        ] {
            let Some(entries) = table.get(key).and_then(|t| t.as_table()) else { continue };
            for (key, entry) in entries {
                let renamed = entry.get("package").and_then(|p| p.as_str());
                found.push((renamed.unwrap_or(key), kind));
            }
        }
    }
    found
}

/// The first line that starts with or, for a renamed dependency, quotes the name.
fn line_of(manifest: &str, dependency: &str) -> usize {
    let quoted = format!("\"{dependency}\"");
    let names = |line: &str| {
        let rest = line.strip_prefix(dependency);
        rest.is_some_and(|rest| rest.starts_with(['.', ' ', '='])) || line.contains(&quoted)
    };
    // The package's own name is quoted too.
    let own = |line: &str| line.starts_with("name") || line.starts_with("description");
    1 + manifest.lines().position(|line| !own(line) && names(line)).unwrap_or(0)
}

#[cfg(test)]
mod tests;
