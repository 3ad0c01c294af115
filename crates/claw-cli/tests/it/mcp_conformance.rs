//! The official conformance suite against our MCP client, and the official inspector against our server.
//!
//! The suite starts `tests/clients/mcp_conformance_client.py`, which drives the binary as a person would: it adds the
//! server, logs in with the address that is printed, calls the tools and answers what servers ask for. Each scenario that a
//! revision requires is run.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::gateway::{ECHO, Gateway};
use crate::harness::Home;

/// Scenarios that fail, and why.
const EXPECTED_FAILURES: &[(&str, &str)] = &[];

struct Suite {
    python: PathBuf,
    packages: PathBuf,
}

fn suite() -> Option<Suite> {
    let found = || {
        let python = std::env::var_os("CLAWSMITH_TEST_PYTHON")?.into();
        Some(Suite { python, packages: std::env::var_os("CLAWSMITH_TEST_NODE_MODULES")?.into() })
    };
    if found().is_none() {
        eprintln!("skipped: the conformance suite is not there; run `make test`");
    }
    found()
}

impl Suite {
    fn node(&self) -> PathBuf {
        self.packages.join("node/bin/node")
    }

    fn package(&self, name: &str) -> PathBuf {
        self.packages.join("@modelcontextprotocol").join(name)
    }

    /// The scenarios that a revision requires of a client.
    fn required(&self, revision: &str) -> Vec<String> {
        let file = self.package("conformance").join(format!("requirements/{revision}.yaml"));
        let text = std::fs::read_to_string(file).unwrap();
        let listed = text.lines().skip_while(|line| *line != "client:").skip(1);
        let names = listed.take_while(|line| line.starts_with("  - "));
        names.map(|line| line.trim_start_matches("  - ").to_owned()).collect()
    }

    /// Runs one scenario; the error is its output.
    fn run(&self, revision: &str, scenario: &str) -> Result<(), String> {
        let results = tempfile::tempdir().unwrap();
        let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/mcp_conformance_client.py");
        let binary = assert_cmd::cargo::cargo_bin!("clawsmith");
        let command = format!("{} {} {}", self.python.display(), client.display(), binary.display());
        let ran = Command::new(self.node())
            .arg(self.package("conformance").join("dist/index.js"))
            .args(["client", "--command", &command, "--scenario", scenario, "--spec-version", revision])
            .args(["--timeout", "120000", "-o"])
            .arg(results.path())
            .output()
            .unwrap();
        match ran.status.success() {
            true => Ok(()),
            false => Err(format!(
                "{}\n{}",
                String::from_utf8_lossy(&ran.stdout),
                String::from_utf8_lossy(&ran.stderr)
            )),
        }
    }
}

#[track_caller]
fn conforms(revision: &str, least: usize) {
    let Some(suite) = suite() else { return };
    assert!(EXPECTED_FAILURES.len() <= 10);
    let required = suite.required(revision);
    let (mut passed, mut failed) = (0, 0);
    for scenario in &required {
        let may_fail = EXPECTED_FAILURES.iter().any(|(failing, _)| failing == scenario);
        match (suite.run(revision, scenario), may_fail) {
            (Ok(()), false) => passed += 1,
            (Err(_), true) => failed += 1,
            (Ok(()), true) => panic!("{revision}: {scenario} passes: take it off the list"),
            (Err(output), false) => panic!("{revision}: {scenario} fails: {output}"),
        }
    }
    println!("{revision}: {passed} scenarios of {} pass, {failed} fail as expected", required.len());
    assert!(passed >= least, "{required:?}");
}

#[test]
fn our_client_passes_the_conformance_suite_of_2025_11_25() {
    conforms("2025-11-25", 15);
}

#[test]
fn our_client_passes_the_conformance_suite_of_2026_07_28() {
    conforms("2026-07-28", 25);
}

#[test]
fn the_official_inspector_lists_and_calls_our_tools() {
    let Some(suite) = suite() else { return };
    let ours = Home::new();
    let gateway = Gateway::start(&ours, ECHO);
    let key = gateway.key("ann", &["--scope", "tools:read,tools:call"]);
    let home = tempfile::tempdir().unwrap();
    let inspect = |words: &[&str]| {
        let ran = Command::new(suite.node())
            .arg(suite.package("inspector").join("clients/launcher/build/index.js"))
            .args(["--cli", &format!("http://{}/mcp", gateway.address), "--transport", "http"])
            .args(["--header", &format!("Authorization: Bearer {key}")])
            .args(words)
            .env("HOME", home.path())
            .output()
            .unwrap();
        let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{out}\n{err}");
        out.into_owned()
    };
    assert!(inspect(&["--method", "tools/list"]).contains("read_file"));
    let said = inspect(&["--method", "tools/call", "--tool-name", "datetime", "--tool-arg", "timezone=UTC"]);
    assert!(said.contains("UTC"), "{said}");
}
