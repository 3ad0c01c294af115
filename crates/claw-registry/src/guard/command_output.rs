//! Prepares a command's output for scrubbing. Escape sequences are removed, since colours inside a secret
//! would hide it; so is the text beside a gap, where a secret may have been cut in two.

use std::borrow::Cow;

use claw_core::port::{gap, gaps};

/// Bytes removed on both sides of a gap. A secret that the gap cuts is incomplete on both sides and so not
/// recognised; longer secrets than this are not expected.
const EDGE: usize = 16 << 10;
/// The longest title or link in a sequence; one without an end by then is text.
const LONGEST: usize = 4096;

/// The text without escape sequences.
pub(super) fn without_escapes(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find('\u{1b}') else { return Cow::Borrowed(text) };
    let mut plain = String::with_capacity(text.len());
    plain.push_str(&text[..first]);
    let mut rest = &text[first..];
    while let Some(at) = rest.find('\u{1b}') {
        plain.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        rest = &rest[length(rest)..];
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// The length of the sequence after an escape character.
fn length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let run =
        |from: usize, is_in: fn(&u8) -> bool| bytes[from..].iter().take_while(|byte| is_in(byte)).count();
    let ends = |at: usize| usize::from(bytes.get(at).is_some_and(|byte| (0x30..=0x7e).contains(byte)));
    match bytes.first() {
        Some(b'[') => {
            let parameters = 1 + run(1, |byte| (0x20..=0x3f).contains(byte));
            parameters + ends(parameters)
        }
        Some(b']' | b'P' | b'_' | b'^' | b'X') => {
            let carried = &bytes[..bytes.len().min(LONGEST)];
            let end = carried.iter().position(|byte| matches!(byte, 0x07 | 0x1b));
            match end.map(|end| (end, bytes[end], bytes.get(end + 1))) {
                Some((end, 0x07, _)) => end + 1,
                Some((end, _, Some(b'\\'))) => end + 2,
                _ => 1,
            }
        }
        Some(0x20..=0x2f) => {
            let between = run(0, |byte| (0x20..=0x2f).contains(byte));
            between + ends(between)
        }
        Some(0x30..=0x7e) => 1,
        _ => 0,
    }
}

/// Scrubs the text on each side of the gaps, and only then removes their edges.
pub(super) fn without_edges(printed: &str, scrub: impl Fn(&str) -> String) -> String {
    let (mut text, mut from) = (String::new(), 0);
    let mut take = |piece: &str, (first, last): (bool, bool), left_out: Option<u64>| {
        let piece = scrub(piece);
        let start = if first { 0 } else { piece.ceil_char_boundary(EDGE.min(piece.len())) };
        let end =
            if last { piece.len() } else { piece.floor_char_boundary(piece.len().saturating_sub(EDGE)) };
        text.push_str(piece.get(start..end).unwrap_or_default());
        if let Some(left_out) = left_out {
            text.push_str(&gap(left_out));
        }
    };
    let gaps = gaps(printed);
    for (at, (range, left_out)) in gaps.iter().enumerate() {
        take(&printed[from..range.start], (at == 0, false), Some(*left_out));
        from = range.end;
    }
    take(&printed[from..], (gaps.is_empty(), true), None);
    text
}

#[cfg(test)]
mod tests {
    use super::{EDGE, gap, without_edges, without_escapes};

    #[test]
    fn colours_titles_and_links_go_and_all_else_stays() {
        for (printed, plain) in [
            ("plain\n\tno\0thing", "plain\n\tno\0thing"),
            ("correct-\u{1b}[01;31m\u{1b}[Khorse\u{1b}[m\u{1b}[K-battery", "correct-horse-battery"),
            ("\u{1b}]0;title\u{7}a\u{1b}]8;;https://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "alink"),
            ("\u{1b}(Ba\u{1b}7b\u{1b}=c", "abc"),
            ("\u{1b}[31", ""),
            ("end\u{1b}", "end"),
            ("\u{1b}[é\u{1b}é", "éé"),
            ("\u{1b}]never ends", "never ends"),
        ] {
            assert_eq!(without_escapes(printed), plain, "{printed:?}");
        }
    }

    #[test]
    fn a_secret_that_a_gap_goes_through_is_on_neither_side() {
        let hide = |text: &str| text.replace("secret-value", "[HIDDEN]");
        let (before, after) = ("x".repeat(EDGE), "y".repeat(EDGE));
        let printed = format!("secret-value {before}secret-v{}value{after} secret-value", gap(7));
        let shown = without_edges(&printed, hide);
        assert!(shown.starts_with("[HIDDEN] x") && shown.ends_with("y [HIDDEN]"), "{}", shown.len());
        assert!(shown.contains(&gap(7)) && !shown.contains("secret") && !shown.contains("value"), "{shown}");
        // A redaction before the cut may extend over it.
        let printed = format!("{}secret-value{}{}rest", "x".repeat(10), "z".repeat(EDGE - 5), gap(1));
        assert!(!without_edges(&printed, hide).contains("secret"));
        // Two gaps that share a line break.
        let printed = format!("a{}{}b", gap(1), &gap(2)[1..]);
        assert_eq!(without_edges(&printed, hide), gap(1));
        // A program that prints such a line itself loses more of its output, and nothing else.
        assert_eq!(without_edges(&format!("a{}b{}c", gap(1), gap(2)), hide), format!("{}{}", gap(1), gap(2)));
    }
}
