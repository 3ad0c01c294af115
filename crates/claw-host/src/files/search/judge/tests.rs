//! Attacks on the secrets of a text by searching it, and the laws behind their failing.

use claw_core::port::Hits;
use claw_testkit::fixture;
use proptest::prelude::*;
use regex::bytes::RegexBuilder;

use super::super::search_text;
use super::*;

/// Treats text between `<` and `>` as secret, over several lines too.
pub(super) struct Angles;

impl Redactor for Angles {
    fn find(&self, text: &[u8], found: &mut Vec<Redaction>) {
        let mut at = 0;
        while let Some(open) = memchr::memchr(b'<', &text[at..]) {
            let start = at + open;
            let end = memchr::memchr(b'>', &text[start..]).map_or(text.len(), |close| start + close + 1);
            found.push(Redaction { range: start..end, kind: "value" });
            at = end;
        }
    }
}

fn search(pattern: &str) -> Search {
    fixture::search(".", pattern, 100)
}

fn hits(text: &str, search: &Search) -> Hits {
    search_text("a", text.as_bytes(), search, &Angles).unwrap().unwrap()
}

/// The numbers of the lines that are hits.
fn numbers(text: &str, search: &Search) -> Vec<u64> {
    let hits = hits(text, search);
    let numbers: Vec<_> = hits.lines.iter().filter(|line| line.hit).map(|line| line.number).collect();
    assert_eq!(hits.count, numbers.len() as u64);
    numbers
}

#[track_caller]
fn check(text: &str, pattern: &str, expected: &[u64]) {
    assert_eq!(numbers(text, &search(pattern)), expected, "`{pattern}` in {text:?}");
    let multiline = Search { multiline: true, ..search(pattern) };
    assert_eq!(numbers(text, &multiline), expected, "`{pattern}` over lines in {text:?}");
}

#[test]
fn a_hit_in_a_secret_is_none() {
    for guess in ["hunter", "h", "hunter2", "<", ">", "<hunter2>", "[a-z]+er2", "REDACTED", r"\[", "2>"] {
        check("key = <hunter2> .\n", guess, &[]);
    }
    check("key = <hunter2> .\nhunter\n", "hunter", &[2]);
    check("hunter <hunter2>\n", "hunter", &[1]);
    check("[REDACTED] here, <x> there", "REDACTED", &[1]);
}

#[test]
fn a_hit_that_reaches_into_a_secret_is_none() {
    for guess in ["= <hu", "=.*", "key = ..", "key.*2", r"> \.", "(?s).*"] {
        check("key = <hunter2> .\n", guess, &[]);
    }
    check("key = <hunter2> .\n", "key =", &[1]);
    check("key=<hunter2>\n", "key=", &[1]);
}

#[test]
fn refuses_to_tell_by_the_other_half_of_an_alternation() {
    // If only hits were dropped that touch a secret, a right guess would hide the hit that a wrong one shows.
    for guess in ["hunter2", "hunter3"] {
        check("key <hunter2>\n", &format!("key.*{guess}|key"), &[1]);
        check("key <hunter2> end\n", &format!("key.*{guess}.*end|end"), &[1]);
        check("key <hunter2>\n", &format!("key(.*{guess})?"), &[1]);
        check("key <hunter2>\n", &format!("key(.{{1,3}}{guess})??"), &[1]);
    }
}

#[test]
fn refuses_to_tell_by_what_is_next_to_a_secret() {
    // Word or not, first or last of its line: what is asked of a secret's first byte is not answered.
    for border in [r"key=\b", r"key=\B", r"key=$", r"key=\b{start}", r"key=\b{end-half}"] {
        let told: Vec<_> =
            ["key=<hunter2>", "key=<-unter2>", "key=<>"].map(|text| numbers(text, &search(border))).into();
        assert!(told.windows(2).all(|pair| pair[0] == pair[1]), "{border}: {told:?}");
    }
    let word = Search { word: true, ..search("key=") };
    assert_eq!(numbers("key=<a>", &word), numbers("key=<->", &word));
}

#[test]
fn a_secret_over_several_lines_is_one() {
    let text = "before\nkey <one\ntwo\nthree> after\nlast\n";
    for guess in ["one", "two", "^two$", "three", "^t", r"w[oh]"] {
        check(text, guess, &[]);
    }
    check(text, "key", &[2]);
    check(text, "after", &[4]);
    check(text, "^.*after", &[]);
    let multiline = |pattern| numbers(text, &Search { multiline: true, ..search(pattern) });
    assert_eq!(multiline(r"one\ntwo"), [0; 0]);
    assert_eq!(multiline(r"before\nkey"), [1, 2]);
    assert_eq!(multiline(r"after\nlast"), [4, 5]);
    assert_eq!(multiline(r"before\nkey <one|key"), [2]);
    assert_eq!(multiline(r"(?s)before.*last|last"), [0; 0]);
}

#[test]
fn what_is_around_a_hit_is_masked() {
    let text = "a <one> b\nc <two\nthree\nfour> d\nhit <five>\nlast <six>";
    let found = hits(text, &Search { before: 4, after: 1, ..search("hit") });
    let shown: Vec<_> = found.lines.iter().map(|line| (line.number, line.text.as_str(), line.hit)).collect();
    assert_eq!(
        shown,
        [
            (1, "a [REDACTED] b", false),
            (2, "c [REDACTED]", false),
            (4, "[REDACTED] d", false),
            (5, "hit [REDACTED]", true),
            (6, "last [REDACTED]", false),
        ]
    );
}

#[test]
fn a_long_line_is_shown_around_its_hit() {
    let text = format!("{}<secret>{}needle{}", "a".repeat(50_000), "b".repeat(100), "c".repeat(50_000));
    let found = hits(&text, &search("needle"));
    assert!(found.lines[0].text.len() < MOST_SHOWN + 10);
    assert!(found.lines[0].text.contains("needle") && !found.lines[0].text.contains("secret"));
}

#[test]
fn a_secret_that_begins_far_before_is_seen() {
    let filler = "f\n".repeat(30_000);
    let text = format!("{filler}{filler}<{filler}hit\n{filler}>\n{filler}hit\n");
    let found = hits(&text, &search("hit"));
    assert_eq!(found.lines.iter().map(|line| line.number).collect::<Vec<_>>(), [150_003]);
}

#[test]
fn reads_other_encodings_and_leaves_out_what_is_no_text() {
    let utf16: Vec<u8> = "\u{feff}one\nKäse <x>\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let found = search_text("a", &utf16, &search("^Kä"), &Angles).unwrap().unwrap();
    assert_eq!((found.lines[0].number, found.lines[0].text.as_str()), (2, "Käse [REDACTED]"));
    let latin = b"Stra\xdfe und K\xe4se, sch\xf6n\n";
    let found = search_text("a", latin, &search("und"), &Angles).unwrap().unwrap();
    assert_eq!(found.lines[0].text, "Straße und Käse, schön");
    assert_eq!(search_text("a", b"a\0b", &search("a"), &Angles).unwrap(), None);
    assert_eq!(search_text("a", b"%PDF-1.7 a", &search("a"), &Angles).unwrap(), None);
    let marked = search_text("a", b"\xef\xbb\xbfone", &search("^one"), &Angles).unwrap().unwrap();
    assert_eq!((marked.count, marked.lines[0].text.as_str()), (1, "one"));
    assert_eq!(numbers("one\r\ntwo\r\n", &search("two$")), [2]);
}

/// Counts, the slow way, the lines that may be reported: those with hits in the masked text that touch no
/// placeholder.
fn reference(text: &str, pattern: &str, multiline: bool) -> u64 {
    let mut found = Vec::new();
    Angles.find(text.as_bytes(), &mut found);
    let (mut masked, mut marks, mut done) = (String::new(), Vec::new(), 0);
    for Redaction { range, .. } in found {
        masked += &text[done..range.start];
        marks.push((masked.len()..masked.len() + PLACEHOLDER.len(), range.end));
        masked += PLACEHOLDER;
        done = range.end;
    }
    masked += &text[done..];
    let source = |at: usize| {
        let mark = marks.iter().rev().find(|(mark, _)| mark.end <= at);
        mark.map_or(at, |(mark, end)| at - mark.end + end)
    };
    let line = |at: usize| text[..at].matches('\n').count();
    let regex =
        RegexBuilder::new(pattern).multi_line(true).crlf(true).case_insensitive(true).build().unwrap();
    let mut lines = std::collections::BTreeSet::new();
    let mut add = |found: Range<usize>| {
        let inside = |mark: &Range<usize>| {
            (mark.start..mark.end).any(|at| found.contains(&at))
                || found.is_empty() && mark.start < found.start && found.start < mark.end
        };
        let nowhere = source(found.start) == text.len() && (text.is_empty() || text.ends_with('\n'));
        if !nowhere && !marks.iter().any(|(mark, _)| inside(mark)) {
            let last = if found.is_empty() { found.start } else { found.end - 1 };
            lines.extend(line(source(found.start))..=line(source(last)));
        }
    };
    if multiline {
        regex.find_iter(masked.as_bytes()).for_each(|found| add(found.range()));
    } else {
        let mut offset = 0;
        for line in masked.split_inclusive('\n') {
            let bare = line.trim_end_matches('\n').as_bytes();
            let found = regex.find_iter(bare).map(|found| found.start() + offset..found.end() + offset);
            found.for_each(&mut add);
            offset += line.len();
        }
    }
    lines.len() as u64
}

const PATTERNS: [&str; 14] = [
    "a", "ab", "a.*b|b", "a+", "^a", "b$", "[^a]b", "a(.*c)?", "a.?b|c", "ca|a", "a?", "(a|b)c", "c.*",
    "b{2}",
];

proptest! {
    /// The reported count does not depend on a secret's content: it is that of the masked text.
    #[test]
    fn tells_what_the_masked_text_tells(text in "[abc<>\n]{0,24}", pattern in 0..PATTERNS.len()) {
        let pattern = PATTERNS[pattern];
        for multiline in [false, true] {
            let told = hits(&text, &Search { multiline, ..search(pattern) }).count;
            prop_assert_eq!(told, reference(&text, pattern, multiline), "{} in {:?}, {}", pattern, text, multiline);
        }
    }

    /// Two texts that differ only in their secrets give the same result, word boundaries included.
    #[test]
    fn cannot_tell_one_secret_from_another(
        parts in proptest::collection::vec("[ab \n]{0,4}", 2..5),
        secrets in proptest::collection::vec("[ab -]{1,4}", 4),
        others in proptest::collection::vec("[ab -]{1,4}", 4),
        pattern in 0..PATTERNS.len(),
        border in 0..4usize,
        multiline in any::<bool>(),
    ) {
        let fill = |secrets: &[String]| {
            let pieces = parts.iter().zip(secrets).map(|(part, secret)| format!("{part}<{secret}>"));
            pieces.collect::<String>()
        };
        let pattern = match border {
            0 => PATTERNS[pattern].to_owned(),
            1 => format!(r"\b(?:{})", PATTERNS[pattern]),
            2 => format!(r"(?:{})\B", PATTERNS[pattern]),
            _ => format!(r"(?:{})$", PATTERNS[pattern]),
        };
        let search = Search { multiline, before: 1, after: 1, ..search(&pattern) };
        let (one, other) = (fill(&secrets), fill(&others));
        prop_assert_eq!(hits(&one, &search), hits(&other, &search), "{:?} and {:?}", one, other);
    }
}
