//! Results are scrubbed whole, then cut.

use claw_core::image::Image;
use claw_core::tool::{Block, Media, Usage};
use claw_core::{ArtifactId, TenantId};
use serde_json::json;

use super::cut::{cut, shorten};
use super::*;
use crate::reply::Step;
use crate::scrub::Scrubbers;

const SECRET: &str = "geheim-4711-é-xyzzy-0815";

fn scrubber() -> CallScrubber {
    let scrubbers = Scrubbers::default();
    scrubbers.add(SECRET).unwrap();
    scrubbers.for_tenant(&TenantId::main())
}

#[test]
fn texts_are_cut_between_characters() {
    let text = "aé→𝄞\n".repeat(40);
    for limit in 0..=text.len() {
        let short = shorten(&text, limit);
        assert!(short.len() <= limit.max("…".len()), "{limit}: {}", short.len());
        assert_eq!(short == text, limit == text.len());
        assert!(cut(&text, limit, "kept").len() <= limit + 50, "{limit}");
    }
}

#[test]
fn no_limit_shows_a_part_of_a_secret() {
    let scrubber = scrubber();
    for before in 0..NAME {
        let text = format!("{}{SECRET}{}", "x".repeat(before), "y".repeat(2 * REASON));
        let name = name(&text, &scrubber);
        let near = format!("{}{text}", "x".repeat(REASON - NAME));
        let refusal = refusal(Refusal::at(Step::Find, near).try_instead(text.clone()), &scrubber);
        let advice = refusal.advice.unwrap();
        assert!(name.len() <= NAME && refusal.reason.len() <= REASON && advice.len() <= ADVICE);
        for shown in [name, refusal.reason, advice, note(&text, &scrubber)] {
            assert!(!shown.contains("geh"), "{shown}");
        }
    }
}

#[test]
fn the_ledger_holds_small_arguments_whole_and_the_head_of_large_ones() {
    let scrubber = scrubber();
    assert_eq!(ledger_args(&json!({"a": [1, SECRET]}), &scrubber), json!({"a": [1, "[REDACTED]"]}));
    let large = |secret: &str| json!({"a": secret, "b": "\"".repeat(LEDGER_ARGS)});
    let held = ledger_args(&large(SECRET), &scrubber);
    let scrubbed = large("[REDACTED]").to_string();
    assert_eq!(held["bytes"], scrubbed.len());
    assert_eq!(held["digest"], Digest::of_bytes(scrubbed.as_bytes()).to_string());
    assert!(held["head"].as_str().unwrap().starts_with(r#"{"a":"[REDACTED]","b":"#));
    assert!(held.to_string().len() < LEDGER_ARGS);
}

/// The beginning of a PNG, and what follows it.
fn png(rest: &[u8]) -> Block {
    Block::Image(Image::new("image/png", [b"\x89PNG\r\n\x1a\n\0\0", rest].concat()))
}

#[test]
fn images_that_are_too_large_or_hold_a_secret_are_left_out() {
    let scrubber = scrubber();
    let large = vec![0; 5 << 20];
    let key = b"\0comment\0aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\0";
    let mut unnamed = Image::new("image/png", &b"x"[..]);
    unnamed.unload();
    let mut content = [
        png(&large),
        png(&large),
        png(b"\0fine, a comment\0"),
        png(format!("\0{SECRET}\0").as_bytes()),
        png(key),
        Block::Image(unnamed),
    ];
    caps::images(&mut content, scrubber.for_output());
    let mut output = Output::default();
    output.content = content.to_vec();
    insta::assert_snapshot!(output.model_text(), @"
    [image image/png, 5242890 bytes]
    [image image/png left out; its 5242890 bytes are too many: all images together may have 8388608]
    [image image/png, 27 bytes]
    [image image/png left out; its 37 bytes hold a secret]
    [image image/png left out; its 84 bytes hold a secret]
    [image image/png left out; its 1 bytes did not come with it]
    ");
}

#[test]
fn text_that_claims_to_be_an_image_is_scrubbed_as_text() {
    let scrubber = scrubber();
    let claimed = |mime: &str, bytes: &[u8]| Block::Image(Image::new(mime, bytes));
    let mut content = [
        claimed("image/png", SECRET.as_bytes()),
        claimed("image/gif", format!("GIF89a {SECRET}").as_bytes()),
        claimed("image/jpeg", b"\x89PNG\r\n\x1a\n\0\0"),
        claimed("text/plain", b"\x89PNG\r\n\x1a\n\0\0"),
        claimed("image/png", b"\0\x01\x02"),
    ];
    caps::images(&mut content, scrubber.for_output());
    let mut output = Output::default();
    output.content = content.to_vec();
    insta::assert_snapshot!(output.model_text(), @"
    [not an image image/png, but text]
    [REDACTED]
    [not an image image/gif, but text]
    GIF89a [REDACTED]
    [image image/jpeg left out; its 10 bytes are image/png, and not what it claims to be]
    [image text/plain left out; its 10 bytes are image/png, and not what it claims to be]
    [image image/png left out; its 3 bytes are application/octet-stream, and not what it claims to be]
    ");
}

#[test]
fn a_secret_spread_over_blocks_is_found() {
    let scrubbers = Scrubbers::default();
    scrubbers.add("first line\nsecond line").unwrap();
    let scrubber = scrubbers.for_tenant(&TenantId::main());
    let output = |second: &str| Output::text("a first line").and(Block::Text { text: second.into() });
    let folded = |second| caps::to_be_folded(&output(second), 1000, scrubber.for_output());
    assert_eq!(folded("second line b").as_deref(), Some("a [REDACTED] b"));
    assert_eq!(folded("another line"), None);
}

#[test]
fn everything_has_a_limit() {
    let large = "z".repeat(1 << 20);
    let media = Media {
        artifact: ArtifactId::new(),
        mime: large.clone().into(),
        name: large.clone(),
        caption: Some(large.clone()),
    };
    let resource = Block::Resource { uri: large.clone(), mime: Some(large.clone().into()), text: None };
    let mut output = Output::pending(large.clone(), "x").for_user(large.clone()).with_details(json!(large));
    output.content.extend(vec![resource; 5]);
    output.content.extend(vec![Block::Image(Image::new(large.clone(), &b""[..])); 500]);
    output.media = vec![media; 500];
    output.usage =
        Some(Usage { provider: large.clone().into(), model: large.clone().into(), ..Usage::default() });
    caps::output(&mut output, 1000);
    let text = serde_json::to_string(&output).unwrap();
    assert!(text.len() < 300_000, "{}", text.len());
    assert!(text.contains("406 more blocks left out") && text.contains("400 more files left out"), "{text}");

    let mut error = ToolError::internal(&large).try_instead(&large).with_details(json!(large));
    caps::error(&mut error, 1000);
    assert!(format!("{error:?}").len() < 10_000);
}
