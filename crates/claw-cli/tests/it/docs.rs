//! The commands in README and docs are those of this program.

use std::fs;
use std::path::Path;

use assert_cmd::Command;

use crate::harness::{Home, Ran};

/// Commands that wait for a person or for requests.
const WAITING: [&str; 4] = ["clawsmith serve", "clawsmith onboard", "clawsmith mcp serve", "approvals watch"];

/// The lines of a page that a reader would type, without comments. Commands in containers of Docker are left out: their
/// images are not here.
fn typed(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("$ "));
    let commands = lines.map(|line| line.split("  #").next().unwrap_or(line).trim().to_owned());
    commands.filter(|line| line.contains("clawsmith ") && !line.starts_with("docker ")).collect()
}

/// Runs a line as a shell does, in a home of its own.
fn shell(home: &Home, line: &str) -> Ran {
    let binary = assert_cmd::cargo::cargo_bin!("clawsmith");
    let mut command = Command::new("/bin/bash");
    let path = format!("{}:/usr/bin:/bin", binary.parent().unwrap().display());
    command.env_clear().env("HOME", home.path()).env("USER", "tester").env("PATH", path);
    command.current_dir(home.path().join("project")).args(["-c", line]);
    home.ran(&mut command)
}

fn waits(line: &str) -> bool {
    WAITING.iter().any(|waiting| line.contains(waiting))
}

#[test]
fn every_command_of_the_readme_does_what_it_says() {
    let home = Home::new();
    home.write("project/calc.py", "def add(a, b):\n    return a + b  # TODO\n");
    let lines = typed("README.md");
    assert!(lines.len() > 15, "{lines:?}");
    for line in lines.iter().filter(|line| !waits(line)) {
        let expected: &[i32] = match line {
            line if line.contains("timezoen") => &[3],
            line if line.contains("shell check") => &[1],
            // Without a terminal there is nobody who types.
            line if line.starts_with("clawsmith chat") && !line.contains("-m") => &[2],
            // Something may be wrong with the machine that tests it.
            line if line.ends_with("doctor") => &[0, 1],
            _ => &[0],
        };
        let ran = shell(&home, line);
        assert!(expected.contains(&ran.code), "{line}: {}", ran.shown());
    }
}

#[test]
fn every_command_of_the_reference_is_understood() {
    let home = Home::new();
    let mut count = 0;
    for page in
        ["docs/cli.md", "docs/configuration.md", "docs/policy.md", "docs/models.md", "docs/gateway.md"]
    {
        for line in typed(page).iter().filter(|line| !waits(line)) {
            let ran = shell(&home, line);
            let misused = ran.stderr.contains("Usage:") || ran.stderr.contains("unexpected argument");
            assert!(!misused, "{page}: {line}: {}", ran.shown());
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
}
