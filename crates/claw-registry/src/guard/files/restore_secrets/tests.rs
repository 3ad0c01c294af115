use claw_core::redact::{Redaction, Redactor};
use claw_core::text::mask;
use proptest::prelude::*;

use super::*;

/// Treats every run of capital letters after a `=` as secret.
struct Capitals;

impl Redactor for Capitals {
    fn find(&self, text: &[u8], found: &mut Vec<Redaction>) {
        let mut at = 0;
        while at < text.len() {
            let run = text[at..].iter().take_while(|byte| byte.is_ascii_uppercase()).count();
            if run > 0 && at > 0 && text[at - 1] == b'=' {
                found.push(Redaction { range: at..at + run, kind: "value" });
            }
            at += run.max(1);
        }
    }
}

/// Replaces `old` in the view. `#` stands for a placeholder.
fn change(source: &str, old: &str, new: &str, last: Last) -> Result<String, ToolError> {
    let masked = mask(source, &Capitals);
    let (old, new) = (old.replace('#', PLACEHOLDER), new.replace('#', PLACEHOLDER));
    let start = masked.text.find(&old).unwrap();
    let splice = Splice { range: start..start + old.len(), text: new };
    let composed = compose(source, &masked, &[splice], last)?;
    for kept in &composed.kept {
        assert!(source.contains(&composed.text[kept.clone()]), "{composed:?}");
    }
    Ok(composed.text)
}

#[track_caller]
fn check(source: &str, old: &str, new: &str, expected: &str) {
    assert_eq!(change(source, old, new, Last::Pair).unwrap(), expected);
}

#[test]
fn a_change_next_to_a_secret_leaves_it() {
    check("k=AB\nx\n", "x", "y", "k=AB\ny\n");
    check("k=AB\nx\n", "k=#\nx", "k=#\ny", "k=AB\ny\n");
    check("k=AB x", "k=#", "key=#", "key=AB x");
    check("k=AB j=CD", "k=# j=#", "j=# k=#", "j=CD k=AB");
    check("k=AB\nj=CD\n", "k=#\nj=#\n", "j=#\nk=#\n", "j=CD\nk=AB\n");
}

#[test]
fn a_secret_that_is_left_out_goes_whole() {
    check("k=AB\nj=CD\n", "k=#\n", "", "j=CD\n");
    check("k=AB\n", "k=#", "k=new", "k=new\n");
}

#[test]
fn a_placeholder_that_the_file_says_is_told_from_a_secret() {
    let source = "k=AB\nsay [REDACTED] here\n";
    check(source, "k=#\nsay # here", "k=#\nsay # there", "k=AB\nsay [REDACTED] there\n");
    check("say [REDACTED]", "say", "x # y", "x [REDACTED] y [REDACTED]");
}

#[test]
fn what_cannot_be_told_is_refused_with_its_line() {
    for (old, new) in [("x", "# x"), ("k=#", "k=# l=#"), ("k=#\nj=#", "a\nm=#\nn=#")] {
        let error = change("k=AB\nj=CD\nx\n", old, new, Last::Pair).unwrap_err();
        assert!(error.message.contains("it is unclear which"), "{error}");
    }
    let error = change("k=AB\nj=CD\nx\n", "k=#\nj=#\nx", "a\nb\nm=#\nn=#", Last::Pair).unwrap_err();
    assert!(error.message.starts_with("line 3 of the new text contains"), "{error}");
}

#[test]
fn a_change_that_cuts_a_placeholder_is_refused() {
    let masked = mask("k=AB x", &Capitals);
    for range in [3..5, 0..4, 3..14, 5..12] {
        let splice = Splice { range: range.clone(), text: String::new() };
        let error = compose("k=AB x", &masked, &[splice], Last::Pair).unwrap_err();
        assert!(error.message.contains("inside a"), "{range:?}: {error}");
    }
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "such a range is refused")]
fn changes_that_do_not_fit_are_refused() {
    let masked = mask("käse", &Capitals);
    let splice = |range: Range<usize>| Splice { range, text: String::new() };
    for splices in [
        vec![splice(2..3)],
        vec![splice(0..9)],
        vec![splice(3..1)],
        vec![splice(3..4), splice(0..1)],
        vec![splice(0..3), splice(1..4)],
    ] {
        assert!(compose("käse", &masked, &splices, Last::Pair).is_err(), "{splices:?}");
    }
}

#[test]
fn a_secret_that_would_be_shown_is_noticed() {
    let masked = mask("k=AB\nj=CD\n", &Capitals);
    let at = masked.text.find("j=").unwrap() + 1;
    let splice = Splice { range: at..at + 1, text: ": ".into() };
    let composed = compose("k=AB\nj=CD\n", &masked, &[splice], Last::Pair).unwrap();
    assert_eq!(composed.text, "k=AB\nj: CD\n");
    assert_eq!(first_shown(&composed.kept, &mask(&composed.text, &Capitals)), Some(8..10));
    let whole = mask("k=AB\nj=CD\n", &Capitals);
    assert_eq!(first_shown(&[2..4, 7..9], &whole), None);
}

fn pieces() -> impl Strategy<Value = Vec<String>> {
    let piece = prop_oneof![
        Just("=".to_owned()),
        Just("\n".to_owned()),
        Just(PLACEHOLDER.to_owned()),
        "[a-cü ]{1,3}",
        "[A-Z]{2,4}",
        "[a-b]=[A-Z]{3}\n",
    ];
    prop::collection::vec(piece, 0..24)
}

proptest! {
    /// Bytes that no splice covers are unchanged, and the result is the requested text, with each secret in
    /// place of its placeholder.
    #[test]
    fn changes_map_back_exactly(pieces in pieces(), cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..6)) {
        let source = pieces.concat();
        let masked = mask(&source, &Capitals);
        let mut places: Vec<usize> = cuts
            .iter()
            .map(|(index, _)| index.index(masked.text.len() + 1))
            .filter(|at| masked.text.is_char_boundary(*at) && masked.source_of(*at).is_some())
            .collect();
        places.sort_unstable();
        let splices: Vec<Splice> = places
            .chunks_exact(2)
            .zip(&cuts)
            .map(|(pair, (_, keep))| {
                let range = pair[0]..pair[1];
                let text = if *keep { masked.text[range.clone()].to_owned() } else { "new".to_owned() };
                Splice { range, text }
            })
            .collect();
        let mut expected = String::new();
        let mut done = 0;
        let to_source = |seen: usize| masked.source_of(seen).unwrap();
        for (splice, (_, keep)) in splices.iter().zip(&cuts) {
            let (start, end) = (to_source(splice.range.start), to_source(splice.range.end));
            expected += &source[done..start];
            expected += if *keep { &source[start..end] } else { "new" };
            done = end;
        }
        expected += &source[done..];
        let composed = compose(&source, &masked, &splices, Last::Pair).unwrap();
        prop_assert_eq!(composed.text, expected);
    }

    /// No write splits or repeats a secret, or moves it to a line with a different beginning; and no
    /// placeholder ends up where a secret was kept.
    #[test]
    fn a_secret_stays_with_its_label(names in prop::collection::vec("[a-d]{1,2}", 1..8), order in prop::collection::vec((any::<prop::sample::Index>(), 0..4u8), 0..10)) {
        let secret = |at: usize| format!("SECRET{}", char::from(b'A' + u8::try_from(at).unwrap()));
        let lines: Vec<String> = names.iter().enumerate().map(|(at, name)| format!("{name}={}", secret(at))).collect();
        let source = lines.join("\n");
        let masked = mask(&source, &Capitals);
        let shown: Vec<&str> = masked.text.split('\n').collect();
        let new: Vec<String> = order
            .iter()
            .map(|(index, how)| match (shown[index.index(shown.len())], how) {
                (line, 0) => format!("  {line}"),
                (line, 1) => format!("{line} # more"),
                (_, 2) => "other".to_owned(),
                (line, _) => line.to_owned(),
            })
            .collect();
        let splice = Splice { range: 0..masked.text.len(), text: new.join("\n") };
        if let Ok(composed) = compose(&source, &masked, &[splice], Last::Doubt) {
            prop_assert!(!composed.text.contains(PLACEHOLDER));
            for (at, name) in names.iter().enumerate() {
                let secret = secret(at);
                prop_assert!(composed.text.matches(&secret).count() <= 1);
                if let Some(line) = composed.text.lines().find(|line| line.contains(&secret)) {
                    let label = line.split('=').next().unwrap().trim();
                    prop_assert_eq!(label, name.as_str());
                }
            }
        }
    }
}
