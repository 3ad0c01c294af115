//! `cargo xtask`: checks that no compiler makes, and files generated from types.
//!
//! - `cargo xtask tidy` checks the tree; `cargo test` makes the same checks.
//! - `cargo xtask generate` writes the generated files; with `--check` it only says which are stale.
//!
//! Nothing here ships. It never changes a file that a person writes.

mod builtin;
mod finding;
mod generate;
mod source;
mod tidy;
mod tree;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::finding::Finding;
use crate::tree::Tree;

const USAGE: &str = "\
usage: cargo xtask tidy               check the tree
       cargo xtask generate           write the generated files
       cargo xtask generate --check   say which generated files are stale";

fn main() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["tidy"] => {
            let tree = Tree::read(&tree::root())?;
            Ok(report("tidy", &tidy::check(&tree)?))
        }
        ["generate"] => {
            for path in generate::write(&tree::root())? {
                println!("wrote {path}");
            }
            Ok(ExitCode::SUCCESS)
        }
        ["generate", "--check"] => {
            let tree = Tree::read(&tree::root())?;
            Ok(report("generate --check", &generate::stale(&tree)?))
        }
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!("`{}` is not a task\n{USAGE}", words.join(" ")),
    }
}

fn report(task: &str, findings: &[Finding]) -> ExitCode {
    for finding in findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("{task}: no problems found");
            ExitCode::SUCCESS
        }
        count => {
            eprintln!("{task}: {count} to mend");
            ExitCode::FAILURE
        }
    }
}
