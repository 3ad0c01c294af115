//! Tests of scrubbing in pieces.

use claw_core::TenantId;
use claw_core::tool::Secrets;

use super::*;

const BASE: &str = "deployment-value-é";
const OPENED: &str = "opened-value-4711";

/// The scrubbed text of these pieces if the call opens `secret` after the first.
fn told(pieces: [&str; 2], secret: &str) -> String {
    let scrubbers = Scrubbers::default();
    scrubbers.add(BASE).unwrap();
    let secrets = Secrets::default();
    let mut telling = Telling::new(scrubbers.for_tenant(&TenantId::main()), secrets.clone());
    let mut told = telling.push(pieces[0]);
    secrets.add(secret);
    told.push_str(&telling.push(pieces[1]));
    told.push_str(&telling.end());
    told
}

#[test]
fn a_secret_is_not_told_wherever_the_call_learns_another() {
    let text = format!("a {BASE} b {OPENED} c");
    for (cut, _) in text.char_indices() {
        let (first, second) = text.split_at(cut);
        assert_eq!(told([first, second], OPENED), "a [REDACTED] b [REDACTED] c", "cut at {cut}");
    }
    assert_eq!(told([&text, ""], OPENED), "a [REDACTED] b [REDACTED] c");
}

#[test]
fn nothing_more_is_told_once_a_secret_cannot_be_scrubbed() {
    assert_eq!(told(["one\nabc", "abc"], "abc"), "one\n");
}

#[test]
fn keys_are_scrubbed_too() {
    let scrubbers = Scrubbers::default();
    scrubbers.add("a\nvalue").unwrap();
    let scrubbed =
        scrubbers.for_tenant(&TenantId::main()).json(&serde_json::json!({ "a\nvalue": ["a\nvalue"] }));
    assert_eq!(scrubbed, serde_json::json!({ "[REDACTED]": ["[REDACTED]"] }));
}
