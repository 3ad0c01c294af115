//! Known values.

use base64::Engine as _;

use super::{
    super::{Scrubber, Value, ValueError, Weakness},
    in_pieces,
};

const SECRET: &str = "corr3ct \"horse\"/+?";

#[track_caller]
fn check(input: &str, expected: &str) {
    let scrubber = Scrubber::compile([Value::new(SECRET, "value")]).unwrap();
    assert_eq!(scrubber.scrub(input), expected);
    for cut in 0..=input.len() {
        let (a, b) = input.as_bytes().split_at(cut);
        assert_eq!(String::from_utf8_lossy(&in_pieces(&scrubber, [a, b])), expected, "cut at {cut}");
    }
}

#[test]
fn every_form() {
    for form in [
        SECRET,
        "corr3ct%20%22horse%22%2F%2B%3F",
        "corr3ct%20%22horse%22%2f%2b%3f",
        "corr3ct+%22horse%22%2F%2B%3F",
        "corr3ct \\\"horse\\\"/+?",
        "corr3ct \\\"horse\\\"\\/+?",
        "636f7272336374202268 6f727365222f2b3f".replace(' ', "").as_str(),
        "636F727233637420 22686F727365222F2B3F".replace(' ', "").as_str(),
    ] {
        check(&format!("a {form} b"), "a [REDACTED] b");
    }
}

#[test]
fn every_way_to_write_json() {
    let scrubber = Scrubber::compile([Value::new("pä<s>/\u{1b}\n𝄞", "value")]).unwrap();
    for form in [
        r"pä<s>/\u001b\n𝄞",
        r"pä<s>\/\u001B\n𝄞",
        r"p\u00e4<s>/\u001b\n\ud834\udd1e",
        r"p\u00E4<s>\/\u001B\n\uD834\uDD1E",
        r"pä\u003cs\u003e/\u001b\n𝄞",
        r"p\u00E4\u003Cs\u003E\/\u001B\n\uD834\uDD1E",
    ] {
        assert_eq!(scrubber.scrub(&format!("a {form} b")), "a [REDACTED] b");
    }
}

#[test]
fn a_stream_that_learns_loses_no_secret_that_began_before() {
    let base = Scrubber::compile([Value::new("deployment-value", "deployment")]).unwrap();
    let call = base.with_values([Value::new("call-value", "call")]).unwrap();
    let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n";
    for text in [
        "a deployment-value call-value b",
        "x\npassword: hunter22hunter22 call-value",
        "https://user:call-value@host/deployment-value",
        &format!("{key}deployment-value call-value"),
    ] {
        for start in [&Scrubber::new(), &base] {
            for cut in 0..=text.len() {
                let (a, b) = text.as_bytes().split_at(cut);
                let (mut stream, mut out) = (start.stream(), Vec::new());
                stream.push(a, &mut out);
                stream.go_on_with(&call);
                stream.push(b, &mut out);
                stream.finish(&mut out);
                assert_eq!(String::from_utf8_lossy(&out), call.scrub(text), "cut at {cut}");
            }
        }
    }
}

#[test]
fn base64_at_every_alignment() {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    for engine in [STANDARD, URL_SAFE] {
        for before in ["", "u", "us", "usr", "user"] {
            for after in ["", ":", "::"] {
                let encoded = engine.encode(format!("{before}{SECRET}{after}"));
                let scrubber = Scrubber::compile([Value::new(SECRET, "value")]).unwrap();
                let scrubbed = scrubber.scrub(&encoded);
                assert!(scrubbed.contains("[REDACTED]"), "{before}|{after}: {encoded}");
                assert!(scrubbed.len() <= "[REDACTED]".len() + 12, "{scrubbed}");
            }
        }
    }
}

#[test]
fn overlapping_values_leave_nothing() {
    let values = ["abcdefgh", "efghijkl", "abcdef"].map(|value| Value::new(value, "value"));
    let scrubber = Scrubber::compile(values).unwrap();
    assert_eq!(scrubber.scrub("<abcdefghijkl>"), "<[REDACTED]>");
}

#[test]
fn layers_share_what_is_below() {
    let base = Scrubber::compile([Value::new("deployment-value", "deployment")]).unwrap();
    let tenant = base.with_values([Value::new("tenant-value", "tenant")]).unwrap();
    let call = tenant.with_values([Value::new("call-value", "call")]).unwrap();
    let text = "deployment-value tenant-value call-value";
    assert_eq!(base.scrub(text), "[REDACTED] tenant-value call-value");
    assert_eq!(tenant.scrub(text), "[REDACTED] [REDACTED] call-value");
    assert_eq!(call.scrub(text), "[REDACTED] [REDACTED] [REDACTED]");
    let mut report = super::super::Report::default();
    call.scrub_reporting(b"call-value call-value tenant-value password=hunter22", &mut report);
    assert_eq!(report.iter().collect::<Vec<_>>(), [("call", 2), ("key-value", 1), ("tenant", 1)]);
    assert_eq!(report.total(), 4);
}

#[test]
fn clean_text_is_borrowed() {
    let scrubber = Scrubber::compile([Value::new(SECRET, "value")]).unwrap();
    assert!(matches!(scrubber.scrub("nothing here"), std::borrow::Cow::Borrowed(_)));
}

#[test]
fn refuses_values_that_would_redact_ordinary_text() {
    let error = |value: &str| Scrubber::compile([Value::new(value, "value")]).unwrap_err();
    assert_eq!(error("12345"), ValueError::TooShort { index: 0, kind: "value", length: 5 });
    assert_eq!(error("--------"), ValueError::Repeated { index: 0, kind: "value" });
    assert_eq!(
        error("abc").to_string(),
        "value 0 (`value`) has 3 bytes and would redact ordinary text; use a secret of at least 6 bytes"
    );
}

#[test]
fn a_thousand_values_stay_small() {
    let values = (0..1000).map(|i| Value::new(format!("value-{i:04}-{:016x}", i * 7_919_u64), "value"));
    let scrubber = Scrubber::compile(values).unwrap();
    assert!(scrubber.memory() < 16 << 20, "{}", scrubber.memory());
    assert_eq!(scrubber.scrub(&format!("x value-0999-{:016x} y", 999 * 7_919_u64)), "x [REDACTED] y");
}

#[test]
fn values_do_not_print() {
    let value = Value::new(SECRET, "value");
    assert!(!format!("{value:?}").contains("horse"));
    assert_eq!(format!("{:?}", Scrubber::compile([value]).unwrap()), "Scrubber { lists: 1, .. }");
}

#[test]
fn every_kind_that_is_found_is_listed() {
    let names: Vec<_> = super::super::kinds().iter().map(|(name, _)| *name).collect();
    let mut report = super::super::Report::default();
    let text = super::super::corpus::realistic(20_000, 1);
    Scrubber::new().scrub_reporting(text.as_bytes(), &mut report);
    assert!(report.total() > 0 && report.iter().all(|(kind, _)| names.contains(&kind)));
}

#[test]
fn values_that_can_be_guessed_are_told() {
    let weak = |value: &str| Weakness::of(value);
    assert_eq!(weak("12345"), Some(Weakness::NotRecognised));
    assert_eq!(weak("abababababab"), Some(Weakness::FewCharacters(2)));
    assert_eq!(weak("------------------------"), Some(Weakness::FewCharacters(1)));
    assert_eq!(weak("31415926535"), Some(Weakness::Number));
    for word in ["swordfish", "Swordfish", "SWORDFISH", "hunter2", "letmein!", "Swordfish2024!", "пароль"]
    {
        assert_eq!(weak(word), Some(Weakness::Word), "{word}");
    }
    for short in ["P@ssw0rd!", "a1b2c3d4", "x7(Kq]9"] {
        assert_eq!(weak(short), Some(Weakness::Short), "{short}");
    }
    for strong in [
        "hunter2-and-more",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "550e8400-e29b-41d4-a716-446655440000",
        "correct horse battery staple",
        "wJalrXUtnFEMI",
        "271828182845904523536",
    ] {
        assert_eq!(weak(strong), None, "{strong}");
    }
    let told = Weakness::Word.to_string();
    assert!(told.contains("can be guessed") && told.contains("at least 16 characters"), "{told}");
}

#[test]
fn a_secret_with_carriage_returns_is_found_with_other_line_breaks() {
    let scrubber = Scrubber::compile([Value::new("correct\r\nhorse\r\n", "value")]).unwrap();
    for written in
        ["correct\nhorse", "correct\r\nhorse", "correct\\nhorse", "correct\\r\\nhorse", "Y29ycmVjdApob3JzZ"]
    {
        let scrubbed = scrubber.scrub(written).into_owned();
        assert!(scrubbed.starts_with("[REDACTED]"), "{written:?}: {scrubbed:?}");
    }
    let scrubber = Scrubber::compile([Value::new("swordfish\r", "value")]).unwrap();
    assert_eq!(scrubber.scrub("it is swordfish."), "it is [REDACTED].");
}

#[test]
fn a_secret_in_utf_16_is_found() {
    let scrubber = Scrubber::compile([Value::new("sw\u{f6}rdfish", "value")]).unwrap();
    for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
        let written: Vec<u8> = "a sw\u{f6}rdfish b".encode_utf16().flat_map(bytes).collect();
        let scrubbed = scrubber.scrub_bytes(&written);
        let kept: Vec<u8> = scrubbed.iter().copied().filter(|byte| *byte != 0).collect();
        assert_eq!(kept, b"a [REDACTED] b", "{scrubbed:?}");
    }
}
