//! Tests of redacted texts, of texts that stay, and of properties that hold for every text.

mod laws;
mod redacted;
mod settings;
mod stays;
mod values;

use super::Scrubber;

/// Checks that `input` is scrubbed to `expected`, also in pieces and when scrubbed again.
#[track_caller]
fn check(input: &str, expected: &str) {
    check_by(&Scrubber::new(), input, expected);
}

#[track_caller]
fn check_by(scrubber: &Scrubber, input: &str, expected: &str) {
    let scrubbed = scrubber.scrub(input);
    assert_eq!(scrubbed, expected, "of {input:?}");
    assert_eq!(scrubber.scrub(&scrubbed), expected, "scrubbed again, of {input:?}");
    for cut in 0..=input.len() {
        let (a, b) = input.as_bytes().split_at(cut);
        assert_eq!(
            String::from_utf8_lossy(&in_pieces(scrubber, [a, b])),
            expected,
            "cut at {cut}: {input:?}"
        );
        let mut stream = scrubber.stream();
        stream.push(a, &mut Vec::new());
        let begun = String::from_utf8_lossy(stream.prompt()).into_owned();
        assert!(expected.contains(begun.as_str()), "{begun:?} is shown before the end of {input:?}");
    }
}

fn in_pieces<'t>(scrubber: &Scrubber, pieces: impl IntoIterator<Item = &'t [u8]>) -> Vec<u8> {
    let mut stream = scrubber.stream();
    let mut out = Vec::new();
    for piece in pieces {
        stream.push(piece, &mut out);
    }
    stream.finish(&mut out);
    out
}

/// Checks the text that a stream passes on before the line has ended.
#[track_caller]
fn check_passed(line: &str, expected: &str) {
    let mut out = Vec::new();
    Scrubber::new().stream().push(line.as_bytes(), &mut out);
    assert_eq!(String::from_utf8_lossy(&out), expected, "of {line:?}");
}

/// Checks the visible text of a line before it has ended.
#[track_caller]
fn check_seen(line: &str, expected: &str) {
    let mut out = Vec::new();
    let known = super::Value::new("open-sesame-4711", "value");
    let mut stream = Scrubber::compile([known]).unwrap().stream();
    stream.push(line.as_bytes(), &mut out);
    out.extend_from_slice(stream.prompt());
    assert_eq!(String::from_utf8_lossy(&out), expected, "of {line:?}");
}

#[test]
fn a_prompt_is_seen_before_its_line_ends_and_half_a_secret_is_not() {
    for prompt in [">>> ", "user@host:~$ ", "Password:", "Go on? [y/N]", "sqlite> ", "a\n(gdb) ", "Name? "] {
        check_seen(prompt, prompt);
    }
    check_seen("key AKIAIOSFOD", "key ");
    check_seen("say open-ses", "say ");
    check_seen("password = hunter", "");
    check_seen("the password = hunter", "the password ");
    for begun in ["https://ana:hunter", "https://ana:", "password: hunter$", "123456789:"] {
        check_seen(begun, "");
    }
}

#[test]
fn plain_words_are_passed_on_before_their_line_ends() {
    check_passed("Let me look (it's there), and th", "Let me look (it's there), and ");
    check_passed("first line\nThe second ", "first line\nThe second ");
    check_passed("the token is abc1 and ", "the token is ");
    check_passed("set password: correct horse ", "set ");
    check_passed("machine here login bob password letmein ", "machine here login bob ");
    check_passed("requirepass foobared ", "");
    check_passed("see https://user:pass@host and ", "see ");
    check_passed("abcdefghijklmnopqrst uvw ", "");
}
