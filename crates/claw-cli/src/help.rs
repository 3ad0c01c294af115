//! The texts below the options in `--help`: rules and examples, as data in `help/`, a file for each command.
//!
//! A section begins with a line `# clawsmith COMMAND`. A test refuses a section of a command that is not there.

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
    sections().fold(command, |command, (path, text)| at(command, path.split(' ').skip(1), text).0)
}

/// The sections: the path of a command, and its text.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    let sections = TEXTS.iter().flat_map(|text| text.strip_prefix("# ").unwrap_or(text).split("\n# "));
    sections.filter_map(|section| section.split_once('\n')).map(|(path, text)| (path, text.trim()))
}

/// Gives a text to the command at the end of a path, and says whether there is one.
fn at<'a>(command: Command, mut path: impl Iterator<Item = &'a str>, text: &'static str) -> (Command, bool) {
    let Some(name) = path.next() else { return (command.after_help(text), true) };
    if command.find_subcommand(name).is_none() {
        return (command, false);
    }
    let mut is_there = false;
    let path: Vec<&str> = path.collect();
    let command = command.mut_subcommand(name, |below| {
        let (below, found) = at(below, path.into_iter(), text);
        is_there = found;
        below
    });
    (command, is_there)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::{at, sections};
    use crate::cli::Cli;

    #[test]
    fn every_section_is_of_a_command() {
        for (path, text) in sections() {
            let (_, is_there) = at(Cli::command(), path.split(' ').skip(1), text);
            assert!(is_there, "`{path}` is not a command");
            assert!(!text.is_empty(), "`{path}` has no text");
        }
    }
}
