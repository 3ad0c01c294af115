use super::check;
use crate::tree::Tree;

const LIBRARY: &str = "crates/clawsmith/src/lib.rs";
const REGISTRY: &str = "crates/claw-registry/src/lib.rs";
const TOOL: &str = "crates/claw-core/src/tool/mod.rs";

#[track_caller]
fn check_files(list: (&str, &str), library: &str, expected: &[&str]) {
    let findings = check(&Tree::of(&[list, (LIBRARY, library)]));
    let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(findings.len(), expected.len(), "{findings:#?}");
    for (finding, expected) in findings.iter().zip(expected) {
        assert!(finding.starts_with(expected), "`{finding}` does not begin with `{expected}`");
    }
}

#[test]
fn a_name_that_is_passed_on_is_fine() {
    let list = "mod offer;\npub use offer::{Offer, OfferOptions};\npub use execute::Request as Order;\n";
    let library = "pub use claw_registry::{\n    Offer, OfferOptions as Options, Order,\n};\n";
    check_files((REGISTRY, list), library, &[]);
}

#[test]
fn a_forgotten_name_is_found() {
    let list = "mod offer;\npub use offer::{\n    Offer,\n    OfferOptions,\n};\n";
    let found = ["crates/claw-registry/src/lib.rs:4: `OfferOptions` cannot be named through the library"];
    check_files((REGISTRY, list), "pub use claw_registry::Offer;", &found);
    check_files(
        (REGISTRY, list),
        "pub use claw_core::{port, OfferOptions};\npub use claw_registry::Offer;",
        &found,
    );
    let gated =
        "pub use claw_registry::Offer;\n#[cfg(feature = \"app\")]\npub use claw_registry::OfferOptions;";
    check_files((REGISTRY, list), gated, &found);
}

#[test]
fn a_whole_module_has_all_of_its_names() {
    let list = "pub use call::{Call, Caller};\n\npub use crate::port::Need;\n";
    check_files((TOOL, list), "pub use claw_core::{event, tool::{self, Call}};", &[]);
    check_files((TOOL, list), "pub use claw_core::tool;", &[]);
    let found = ["crates/claw-core/src/tool/mod.rs:3: `Need`"];
    check_files(
        (TOOL, list),
        "pub use claw_core::tool::{Call, Caller};\npub use claw_core::toolbox;",
        &found,
    );
}
