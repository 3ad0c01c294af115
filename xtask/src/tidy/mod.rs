//! Checks of the tree that neither compiler nor clippy makes. Each is one file and one line below.
//!
//! A check reads text only: it is fast, needs no build, and reports `file:line` and what to do. If text
//! cannot decide a case, the check says so in its module and errs towards complaining.

mod dependencies;
mod map;
mod reexports;
mod registered;
mod road;
mod schemas;
mod style;

use anyhow::Result;

use crate::finding::Finding;
use crate::tree::Tree;
use crate::{builtin, generate};

/// Makes every check.
pub(crate) fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = dependencies::check(tree)?;
    findings.extend(map::check(tree));
    findings.extend(reexports::check(tree));
    findings.extend(road::check(tree));
    findings.extend(registered::check(tree));
    findings.extend(schemas::check(&builtin::all()));
    findings.extend(style::check(tree));
    findings.extend(generate::stale(tree)?);
    findings.sort();
    Ok(findings)
}

#[cfg(test)]
mod tests;
