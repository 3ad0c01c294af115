use super::check;
use crate::tree::Tree;

#[track_caller]
fn check_manifest(name: &str, rest: &str, expected: &[&str]) {
    let manifest = format!("[package]\nname = \"{name}\"\n{rest}");
    let tree = Tree::of(&[("crates/x/Cargo.toml", &manifest)]);
    let findings: Vec<String> = check(&tree).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(findings.len(), expected.len(), "{findings:#?}");
    for (finding, expected) in findings.iter().zip(expected) {
        assert!(finding.contains(expected), "`{finding}` does not say `{expected}`");
    }
}

#[test]
fn down_is_fine() {
    check_manifest(
        "claw-registry",
        "[dependencies]\nclaw-core.workspace = true\ntokio.workspace = true",
        &[],
    );
    check_manifest("claw-cli", "[dependencies]\nclaw-host.workspace = true\nanyhow = \"1\"", &[]);
}

#[test]
fn up_is_refused_with_its_line() {
    check_manifest(
        "claw-core",
        "\n[dependencies]\nserde = \"1\"\nclaw-policy.workspace = true",
        &["crates/x/Cargo.toml:6: `claw-core` may not depend on `claw-policy`; it may on nothing of ours"],
    );
    check_manifest("claw-tools", "[dependencies]\nclaw-host = { path = \"..\" }", &["it may on claw-core"]);
}

#[test]
fn a_new_name_or_a_target_hides_nothing() {
    check_manifest(
        "claw-core",
        "[dependencies]\nhidden = { package = \"claw-host\", path = \"..\" }",
        &["Cargo.toml:4: `claw-core` may not depend on `claw-host`"],
    );
    check_manifest(
        "claw-core",
        "[target.'cfg(unix)'.dependencies]\nclaw-host.workspace = true",
        &["claw-host"],
    );
    check_manifest("claw-core", "[build-dependencies]\nclaw-host.workspace = true", &["claw-host"]);
}

#[test]
fn the_test_kit_is_for_tests() {
    check_manifest("claw-registry", "[dev-dependencies]\nclaw-testkit.workspace = true", &[]);
    check_manifest("claw-cli", "[dependencies]\nclaw-testkit.workspace = true", &["may not depend"]);
    check_manifest("claw-cli", "[dev-dependencies]\nxtask = { path = \"..\" }", &["tests of `claw-cli`"]);
}

#[test]
fn fences_hold() {
    check_manifest("claw-tools", "[dependencies]\ntiktoken-rs = \"0\"", &["the tokenizer's tables"]);
    check_manifest("claw-policy", "[dependencies]\ntokio = \"1\"", &["policy is pure"]);
    check_manifest("claw-host", "[dependencies]\nanyhow = \"1\"", &["thiserror"]);
    check_manifest("claw-agent", "[dependencies]\nsqlx = \"0\"", &["SQL stays in the store"]);
    check_manifest("claw-store", "[dependencies]\nsqlx = \"0\"", &[]);
    check_manifest("claw-policy", "[dev-dependencies]\ntokio = \"1\"", &[]);
}

#[test]
fn a_crate_without_a_row_is_refused() {
    check_manifest("claw-extra", "", &["`claw-extra` is in no row"]);
}
