//! The official conformance suite against our server.
//!
//! The suite runs every scenario that a revision of the protocol requires. Scenarios of capabilities that our
//! server does not declare are excluded by [`UNDECLARED`]; the test asks the server for its capabilities, so
//! that the list cannot hide a declared one. Scenarios in which a server uses a capability of the client that ours
//! never uses are excluded by [`UNUSED`]. Of the rest, those of [`EXPECTED_FAILURES`] fail, each for the given cause.
//! An excluded scenario that passes is an error too, and so is one that no revision has: it belongs on no list.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::fixture::Fixture;

/// Scenarios left out, by the capability that they need.
const UNDECLARED: &[(&str, &[&str])] = &[
    ("completions", &["completion-complete"]),
    (
        "resources",
        &[
            "resources-list",
            "resources-read-text",
            "resources-read-binary",
            "resources-templates-read",
            "resources-subscribe",
            "resources-unsubscribe",
        ],
    ),
    (
        "prompts",
        &[
            "prompts-list",
            "prompts-get-simple",
            "prompts-get-with-args",
            "prompts-get-embedded-resource",
            "prompts-get-with-image",
            "input-required-result-non-tool-request",
        ],
    ),
    ("logging", &["logging-set-level", "tools-call-with-logging"]),
];

/// Scenarios left out, by the capability of a client that they want the server to use. Our tools want no model and no
/// directories of a client.
const UNUSED: &[(&str, &[&str])] = &[
    ("sampling", &["tools-call-sampling", "input-required-result-basic-sampling"]),
    ("roots", &["input-required-result-basic-list-roots"]),
];

/// A running call asks a client of the newer protocol for no input: its requests wait for the other front ends. Only an
/// approval before the call is asked for by `input_required`.
const NO_INPUT: &str = "a tool of ours asks a client of the newer protocol for no input while it runs";

/// Scenarios that fail, and why.
const EXPECTED_FAILURES: &[(&str, &str)] = &[
    (
        "caching",
        "the list of tools passes; lists of prompts and resources are wanted too, which we do not declare",
    ),
    (
        "server-stateless",
        "26 checks pass; three want a tool that needs a capability of the client, and ours need none",
    ),
    ("input-required-result-basic-elicitation", NO_INPUT),
    ("input-required-result-request-state", NO_INPUT),
    ("input-required-result-multiple-input-requests", NO_INPUT),
    ("input-required-result-multi-round", NO_INPUT),
    ("input-required-result-result-type", NO_INPUT),
    ("input-required-result-tampered-state", NO_INPUT),
    ("input-required-result-capability-check", NO_INPUT),
];

/// Every capability that a server can declare.
const CAPABILITIES: [&str; 7] =
    ["completions", "experimental", "extensions", "logging", "prompts", "resources", "tools"];

fn packages() -> Option<PathBuf> {
    let packages = std::env::var_os("CLAWSMITH_TEST_NODE_MODULES");
    if packages.is_none() {
        eprintln!("skipped: the conformance suite is not there; run `make test`");
    }
    packages.map(PathBuf::from)
}

/// Runs the suite; returns the scenarios that the revision scores, each with whether it passed.
fn run(packages: &Path, revision: &str, address: SocketAddr) -> BTreeMap<String, bool> {
    let package = packages.join("@modelcontextprotocol/conformance");
    let results = tempfile::tempdir().unwrap();
    let ran = Command::new(packages.join("node/bin/node"))
        .arg(package.join("dist/index.js"))
        .args(["server", "--url", &format!("http://{address}/mcp"), "--requirements", revision, "-o"])
        .arg(results.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let summary = said
        .split("=== SUMMARY ===")
        .nth(1)
        .unwrap_or_else(|| panic!("the suite did not run: {said}\n{}", String::from_utf8_lossy(&ran.stderr)));
    let (scored, unscored) = summary.split_once("Not scored").unwrap_or((summary, ""));
    let named = |line: &str| {
        let (mark, rest) = line.trim().split_once(' ')?;
        let name = rest.split([':', ' ']).next()?.to_owned();
        matches!(mark, "✓" | "✗").then(|| (name, mark == "✓"))
    };
    let left_out: Vec<String> = unscored.lines().filter_map(named).map(|(name, _)| name).collect();
    scored.lines().filter_map(named).filter(|(name, _)| !left_out.contains(name)).collect()
}

/// The capabilities that the server declares.
fn declared(address: SocketAddr) -> Value {
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    })
    .to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{initialize}",
        initialize.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let result = answer.lines().find_map(|line| line.strip_prefix("data: {")).expect("an event");
    let result: Value = serde_json::from_str(&format!("{{{result}")).unwrap();
    result["result"]["capabilities"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn our_server_passes_the_conformance_suite() {
    let Some(packages) = packages() else { return };
    let fixture = Fixture::start().await;
    let address = fixture.address;
    let declared = tokio::task::spawn_blocking(move || declared(address)).await.unwrap();
    assert!(declared.get("tools").is_some(), "{declared}");
    for (capability, _) in UNDECLARED {
        assert!(CAPABILITIES.contains(capability), "`{capability}` is no capability of a server");
        assert_eq!(declared.get(capability), None, "`{capability}` is declared, so it is to be tested");
    }
    let undeclared: Vec<&str> =
        UNDECLARED.iter().chain(UNUSED).flat_map(|(_, scenarios)| scenarios.iter().copied()).collect();
    assert!(EXPECTED_FAILURES.len() <= 10);
    let mut occurred = BTreeSet::new();
    for revision in ["2025-11-25", "2026-07-28"] {
        let packages = packages.clone();
        let scenarios = tokio::task::spawn_blocking(move || run(&packages, revision, address)).await.unwrap();
        let (mut passed, mut expected) = (0, Vec::new());
        occurred.extend(scenarios.keys().cloned());
        for (name, is_passed) in &scenarios {
            let may_fail = EXPECTED_FAILURES.iter().any(|(failing, _)| failing == name);
            match (undeclared.contains(&name.as_str()), is_passed, may_fail) {
                (true, true, _) => panic!("{revision}: {name} is left out and passes: take it off the list"),
                (true, false, _) => {}
                (false, true, false) => passed += 1,
                (false, false, true) => expected.push(name.as_str()),
                (false, true, true) => panic!("{revision}: {name} passes: take it off the list"),
                (false, false, false) => panic!("{revision}: {name} fails"),
            }
        }
        println!(
            "{revision}: {passed} scenarios pass, {expected:?} fail as expected, of {}",
            scenarios.len()
        );
        assert!(passed >= 10, "{revision}: {scenarios:?}");
    }
    for name in undeclared.into_iter().chain(EXPECTED_FAILURES.iter().map(|(failing, _)| *failing)) {
        assert!(occurred.contains(name), "no revision has the scenario {name}: take it off the list");
    }
}
