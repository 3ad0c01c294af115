use proptest::prelude::*;

use super::*;
use crate::redact::{PLACEHOLDER, Redaction};

/// Takes every run of `x` to be secret.
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

fn view(bytes: &[u8], from: From, lines: usize, most: usize) -> View {
    let version = Version("1".into());
    match window(bytes.to_vec(), version, &Window { from, lines, bytes: most }, &Xs) {
        Reading::Text(view) => view,
        Reading::Binary(binary) => panic!("{binary:?}"),
    }
}

fn shown(bytes: &[u8], from: From, lines: usize, most: usize) -> (Option<u64>, String) {
    let view = view(bytes, from, lines, most);
    (view.first_line, view.text)
}

#[test]
fn lines_are_counted_from_both_ends() {
    let text = b"one\ntwo\nthree\nfour";
    assert_eq!(shown(text, From::Line(1), 2, 100), (Some(1), "one\ntwo\n".into()));
    assert_eq!(shown(text, From::Line(3), 9, 100), (Some(3), "three\nfour".into()));
    assert_eq!(shown(text, From::Line(9), 9, 100), (Some(4), String::new()));
    assert_eq!(shown(text, From::End(2), 9, 100), (Some(3), "three\nfour".into()));
    assert_eq!(shown(text, From::End(9), 1, 100), (Some(1), "one\n".into()));
    assert_eq!(shown(b"one\ntwo\n", From::End(1), 9, 100), (Some(2), "two\n".into()));
    assert_eq!(shown(text, From::Byte(5), 1, 100), (Some(2), "wo\n".into()));
    assert_eq!(shown("käse".as_bytes(), From::Byte(2), 1, 100), (Some(1), "äse".into()));
    assert_eq!(shown(b"", From::Line(1), 9, 100), (Some(1), String::new()));
}

#[test]
fn a_window_ends_with_a_whole_line_or_says_that_it_is_cut() {
    let cut = |text: &[u8], most| {
        let view = view(text, From::Line(1), 99, most);
        (view.text, view.cut, view.bytes)
    };
    assert_eq!(cut(b"one\ntwo\n", 7), ("one\n".into(), false, 0..4));
    assert_eq!(cut(b"one\ntwo\n", 8), ("one\ntwo\n".into(), false, 0..8));
    assert_eq!(cut("käse".as_bytes(), 2), ("k".into(), true, 0..1));
}

#[test]
fn a_secret_is_seen_whole_or_not_at_all() {
    let seen = view(b"a xxx b\nxx\ny", From::Line(1), 1, 100);
    assert_eq!(seen.text, format!("a {PLACEHOLDER} b\n"));
    assert_eq!(seen.redacted, vec![Range { start: 2, end: 2 + PLACEHOLDER.len() }]);
    let cut = view(b"a xxxxxx", From::Line(1), 1, 4);
    assert_eq!((cut.text.as_str(), cut.cut), ("a [REDACTED]", true), "no part of a secret is shown");
}

#[test]
fn encodings_are_told_and_come_out_the_same() {
    let cases: [(&[u8], &str, &str); 6] = [
        (b"plain", "UTF-8", "plain"),
        (b"\xef\xbb\xbfmarked", "UTF-8", "marked"),
        (b"\xff\xfea\x00\xe4\x00", "UTF-16LE", "aä"),
        (b"\xfe\xff\x00a\x00\xe4", "UTF-16BE", "aä"),
        (b"Stra\xdfe und K\xe4se, sch\xf6n", "windows-1252", "Straße und Käse, schön"),
        (&[0x83, 0x65, 0x83, 0x58, 0x83, 0x67, 0x82, 0xc5, 0x82, 0xb7], "Shift_JIS", "テストです"),
    ];
    for (bytes, encoding, text) in cases {
        let decoded = decode(bytes).unwrap();
        assert_eq!((decoded.encoding.name(), decoded.text.as_str()), (encoding, text));
        assert_eq!(decoded.encode(text).unwrap(), bytes);
        assert_eq!(decoded.offset_in_file(text.len()), bytes.len() as u64);
        assert_eq!(decoded.offset_in_text(bytes.len() as u64), text.len());
    }
    let latin = decode(b"Stra\xdfe und K\xe4se, sch\xf6n").unwrap();
    assert_eq!(latin.encode("Käse 漢"), Err('漢'));
}

#[test]
fn what_is_no_text_is_told_by_its_content() {
    let mime = |bytes: &[u8]| decode(bytes).unwrap_err();
    assert_eq!(mime(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), "image/png");
    assert_eq!(mime(b"%PDF-1.7\nall of it text"), "application/pdf");
    assert_eq!(mime(b"\x1f\x8b\x08\x00\x00"), "application/gzip");
    assert_eq!(mime(b"a\x00b"), "application/octet-stream");
    assert_eq!(mime(b"\xff\xfea"), "application/octet-stream", "half a character");
}

proptest! {
    #[test]
    fn places_of_a_masked_text_map_back(source in "[axü\n]{0,40}") {
        let masked = mask(&source, &Xs);
        prop_assert!(!masked.text.contains('x'));
        let mut back = String::new();
        let mut done = 0;
        for mark in &masked.marks {
            prop_assert_eq!(masked.source_of(mark.seen.start), Some(mark.source.start));
            prop_assert_eq!(masked.source_of(mark.seen.start + 1), None);
            prop_assert_eq!(masked.source_of(mark.seen.end), Some(mark.source.end));
            prop_assert_eq!(masked.shown(mark.source.clone()), mark.seen.clone());
            back += &masked.text[done..mark.seen.start];
            back += &source[mark.source.clone()];
            done = mark.seen.end;
        }
        back += &masked.text[done..];
        prop_assert_eq!(back, source);
    }

    #[test]
    fn decoding_never_panics_and_is_exact(bytes in proptest::collection::vec(any::<u8>(), 0..200), from in 0..300u64) {
        if let Ok(text) = decode(&bytes)
            && let Ok(again) = text.encode(&text.text)
            && !matches!(text.encoding, Encoding::Other(_))
        {
            prop_assert_eq!(again, bytes.clone());
        }
        for from in [From::Line(from), From::End(from), From::Byte(from)] {
            let window = Window { from, lines: 3, bytes: 20 };
            super::window(bytes.clone(), Version("1".into()), &window, &Xs);
        }
    }
}
