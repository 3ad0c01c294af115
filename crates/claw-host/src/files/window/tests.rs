use std::io::Write as _;

use claw_core::port::Version;
use claw_core::redact::{PLACEHOLDER, Redaction};
use proptest::prelude::*;

use super::*;

/// Treats every run of `x` as secret.
struct Xs;

impl Redactor for Xs {
    fn find(&self, text: &[u8], found: &mut Vec<Redaction>) {
        let mut at = 0;
        while at < text.len() {
            let run = text[at..].iter().take_while(|byte| **byte == b'x').count();
            if run > 0 {
                found.push(Redaction { range: at..at + run, kind: "value" });
            }
            at += run + 1;
        }
    }
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn read(file: &File, from: From, lines: usize, bytes: usize) -> Reading {
    let raw = rustix::fs::fstat(file).unwrap();
    long(file, &raw, &Window { from, lines, bytes }, &Xs).unwrap()
}

#[track_caller]
fn view(file: &File, from: From, lines: usize, bytes: usize) -> View {
    match read(file, from, lines, bytes) {
        Reading::Text(view) => view,
        Reading::Binary(binary) => panic!("{binary:?}"),
    }
}

/// Asserts that reading in parts gives the same as reading whole.
#[track_caller]
fn agrees(bytes: &[u8], window: &Window) {
    let file = file(bytes);
    let raw = rustix::fs::fstat(&file).unwrap();
    let version = handle::version(&raw);
    let whole = text::window(bytes.to_vec(), version, window, &Xs);
    let parts = long(&file, &raw, window, &Xs).unwrap();
    match (parts, whole) {
        (Reading::Text(mut parts), Reading::Text(whole)) => {
            parts.first_line = parts.first_line.or(whole.first_line);
            assert_eq!(parts, whole, "{window:?} of {:?}", String::from_utf8_lossy(bytes));
        }
        (parts, whole) => assert_eq!(parts, whole, "{window:?}"),
    }
}

fn many_lines() -> String {
    (1..=200_000).map(|line| format!("line {line}\n")).collect()
}

proptest! {
    #[test]
    fn agrees_with_reading_it_whole(
        text in "[a-cxü漢\n\r ]{0,60}",
        mark in any::<bool>(),
        from in 0..80u64,
        lines in 0..5usize,
        bytes in 1..40usize,
    ) {
        let mut source = if mark { b"\xef\xbb\xbf".to_vec() } else { Vec::new() };
        source.extend(text.as_bytes());
        for from in [From::Line(from % 8), From::End(from % 8), From::Byte(from)] {
            agrees(&source, &Window { from, lines, bytes });
        }
    }

    #[test]
    fn agrees_on_utf_16(text in "[a-cü\u{1f600}\n]{0,40}", big in any::<bool>(), from in 0..80u64, lines in 0..5usize) {
        let unit = |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
        let bytes: Vec<u8> = "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(unit).collect();
        for from in [From::Line(from % 8), From::End(from % 8), From::Byte(from)] {
            agrees(&bytes, &Window { from, lines, bytes: 1000 });
        }
    }
}

#[test]
fn finds_lines_far_from_both_ends() {
    let text = many_lines();
    for from in [From::Line(150_000), From::End(50_001), From::Byte(1_700_000)] {
        agrees(text.as_bytes(), &Window { from, lines: 3, bytes: 1000 });
    }
    let file = file(text.as_bytes());
    let middle = view(&file, From::Line(150_000), 2, 1000);
    assert_eq!((middle.text.as_str(), middle.first_line), ("line 150000\nline 150001\n", Some(150_000)));
    let end = view(&file, From::End(2), 9, 1000);
    assert_eq!((end.text.as_str(), end.first_line), ("line 199999\nline 200000\n", None));
    let past = view(&file, From::Line(200_009), 2, 1000);
    assert_eq!((past.text.as_str(), past.first_line), ("", Some(200_001)));
}

#[test]
fn goes_on_where_a_window_ended() {
    let text = many_lines() + &"long ü ".repeat(100_000);
    let file = file(text.as_bytes());
    let (mut all, mut from) = (String::new(), From::Line(1));
    loop {
        let view = view(&file, from, usize::MAX, 300_000);
        if view.text.is_empty() {
            break;
        }
        from = From::Byte(view.bytes.end);
        all += &view.text;
    }
    assert!(all == text);
}

#[test]
fn a_secret_across_the_edge_is_masked_whole() {
    let text = format!("{}\nab{}cd\nlast\n", "a".repeat(300_000), "x".repeat(1000));
    let file = file(text.as_bytes());
    let cut = view(&file, From::Line(2), 1, 500);
    assert_eq!((cut.text, cut.cut), (format!("ab{PLACEHOLDER}"), true));
    let byte = view(&file, From::Byte(300_600), 1, 2000);
    assert_eq!((byte.text, byte.first_line), (format!("{PLACEHOLDER}cd\n"), Some(2)));
}

/// Treats text between `<` and `>` as secret.
struct Angles;

impl Redactor for Angles {
    fn find(&self, text: &[u8], found: &mut Vec<Redaction>) {
        if let (Some(start), Some(end)) = (memchr::memchr(b'<', text), memchr::memchr(b'>', text)) {
            found.push(Redaction { range: start..end + 1, kind: "value" });
        }
    }
}

#[test]
fn a_secret_that_begins_before_or_ends_after_is_masked() {
    let filler = "f\n".repeat(150_000);
    let file = file(format!("{filler}<one\ntwo\nthree> end\n{filler}").as_bytes());
    let raw = rustix::fs::fstat(&file).unwrap();
    for (line, shown) in [(150_001, "[REDACTED]"), (150_002, "[REDACTED]"), (150_003, "[REDACTED] end\n")] {
        let window = Window { from: From::Line(line), lines: 1, bytes: 1000 };
        match long(&file, &raw, &window, &Angles).unwrap() {
            Reading::Text(view) => assert_eq!(view.text, shown, "line {line}"),
            Reading::Binary(binary) => panic!("{binary:?}"),
        }
    }
}

#[test]
fn the_end_of_a_hole_is_text() {
    let mut file = tempfile::tempfile().unwrap();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(5 << 30)).unwrap();
    file.write_all(many_lines().as_bytes()).unwrap();
    assert_eq!(view(&file, From::End(2), 9, 1000).text, "line 199999\nline 200000\n");
    let all = view(&file, From::End(10_000_000), 2, 1000);
    assert_eq!((all.text.as_str(), all.first_line), ("line 1\nline 2\n", None));
    assert!(matches!(read(&file, From::Line(1), 9, 1000), Reading::Binary(_)));
}

#[test]
fn what_is_no_text_is_told_by_its_beginning() {
    let mut bytes = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR".to_vec();
    bytes.resize(300_000, b'a');
    for from in [From::Line(1), From::End(1), From::Byte(9)] {
        match read(&file(&bytes), from, 9, 100) {
            Reading::Binary(Binary { mime, size, version: Version(_) }) => {
                assert_eq!((mime, size), ("image/png", 300_000));
            }
            Reading::Text(view) => panic!("{view:?}"),
        }
    }
}

#[test]
fn older_encodings_are_read() {
    let line = b"Stra\xdfe und K\xe4se, sch\xf6n\n";
    let view = view(&file(&line.repeat(20_000)), From::Line(15_000), 1, 1000);
    assert_eq!((view.text.as_str(), view.encoding), ("Straße und Käse, schön\n", "windows-1252"));
}
