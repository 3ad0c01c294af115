//! The texts below the options in `--help`: rules and examples, as data in `help/`, a file for each command.
//!
//! A section begins with a line `# clawsmith COMMAND`. `tests/it/help.rs` refuses a section of a command that is not there.

use std::collections::HashMap;

use clap::Command;

macro_rules! texts {
    ($($name:literal)*) => { &[$(include_str!(concat!("../help/", $name, ".txt"))),*] };
}

const TEXTS: &[&str] = texts!(
    "agent" "api-keys" "approvals" "chat" "clawsmith" "completions" "config" "credentials" "db" "doctor" "graph"
    "ledger" "mcp" "memory" "onboard" "policy" "runs" "sandbox" "scrub" "secrets" "serve" "sessions" "shell" "skills"
    "tenants" "tools" "tour" "undo" "users" "web"
);

/// A command with the texts of it and of all its subcommands.
pub(crate) fn with_texts(command: Command) -> Command {
    let texts: HashMap<_, _> = sections().collect();
    let path = command.get_name().to_owned();
    dressed(command, &path, &texts)
}

fn dressed(command: Command, path: &str, texts: &HashMap<&str, &'static str>) -> Command {
    let command = match texts.get(path) {
        Some(text) => command.after_help(*text),
        None => command,
    };
    // All of them at once: changing one by its name would put it last in the list.
    command.mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        dressed(below, &path, texts)
    })
}

/// The sections: the path of a command, and its text.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    let sections = TEXTS.iter().flat_map(|text| text.strip_prefix("# ").unwrap_or(text).split("\n# "));
    sections.filter_map(|section| section.split_once('\n')).map(|(path, text)| (path, text.trim()))
}
