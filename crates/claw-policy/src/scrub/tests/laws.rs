//! Properties that hold for every text.

use std::sync::LazyLock;

use claw_core::redact::{PLACEHOLDER, Redaction, Redactor};
use proptest::prelude::*;

use super::{
    super::{Scrubber, Value, corpus, reference::Reference},
    in_pieces,
};

const VALUES: &[&str] =
    &["corr3ct-horse", "10.20.30.40", "horse[RED", "aabbccddeeff", "REDACTED", "[REDACTED", "é→日本"];

static SCRUBBERS: LazyLock<[(Scrubber, Reference); 3]> = LazyLock::new(|| {
    let compile = |skip: usize, step: usize| {
        let values = VALUES.iter().skip(skip).step_by(step).map(|value| Value::new(*value, "value"));
        Scrubber::compile(values).unwrap()
    };
    // Values of a deployment, a tenant and a call, some of which overlap.
    let layers = compile(0, 3).and(&compile(1, 3)).and(&compile(2, 3));
    [
        (Scrubber::new(), Reference::new(&[])),
        (compile(0, 1), Reference::new(VALUES)),
        (layers, Reference::new(VALUES)),
    ]
});

fn show(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

fn same(a: &[u8], b: &[u8], what: &str) -> Result<(), TestCaseError> {
    prop_assert_eq!(show(a), show(b), "{}", what);
    Ok(())
}

fn every_law(text: &[u8], cuts: &[prop::sample::Index]) -> Result<(), TestCaseError> {
    for (scrubber, reference) in SCRUBBERS.iter() {
        let scrubbed = scrubber.scrub_bytes(text);
        same(&scrubbed, &reference.scrub(text), "the reference")?;
        same(&scrubber.scrub_bytes(&scrubbed), &scrubbed, "scrubbed again")?;

        let mut found = Vec::new();
        scrubber.find(text, &mut found);
        prop_assert!(found.windows(2).all(|pair| pair[0].range.end < pair[1].range.start));
        if let Ok(text) = std::str::from_utf8(text) {
            prop_assert!(std::str::from_utf8(&scrubbed).is_ok());
            prop_assert!(found.iter().all(|found| text.get(found.range.clone()).is_some()));
        }
        same(&collapsed(&applied(text, &found)), &collapsed(&scrubbed), "what was found, replaced")?;

        for cut in 0..=text.len() {
            let (a, b) = text.split_at(cut);
            same(&in_pieces(scrubber, [a, b]), &scrubbed, &format!("cut at {cut}"))?;
            let mut early = Vec::new();
            scrubber.find_before(text, cut, &mut early);
            same(&applied(a, &up_to(cut, &early)), &applied(a, &up_to(cut, &found)), "found before it")?;
        }
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        let starts = std::iter::once(0).chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain([text.len()]);
        let pieces = starts.zip(ends).map(|(start, end)| &text[start..end]);
        same(&in_pieces(scrubber, pieces), &scrubbed, &format!("cut at {cuts:?}"))?;
        same(&in_pieces(scrubber, text.chunks(1)), &scrubbed, "byte by byte")?;
    }
    Ok(())
}

/// The redactions before a position.
fn up_to(end: usize, found: &[Redaction]) -> Vec<Redaction> {
    let before = found.iter().filter(|secret| secret.range.start < end);
    let cut = |secret: &Redaction| secret.range.start..secret.range.end.min(end);
    before.map(|secret| Redaction { range: cut(secret), kind: secret.kind }).collect()
}

fn applied(text: &[u8], found: &[Redaction]) -> Vec<u8> {
    let mut out = text.to_vec();
    for redaction in found.iter().rev() {
        out.splice(redaction.range.clone(), PLACEHOLDER.bytes());
    }
    out
}

/// Merges adjacent placeholders: a value next to another secret is found as one, but written as two.
fn collapsed(text: &[u8]) -> Vec<u8> {
    let mut kept = show(text);
    loop {
        let next = kept.replace("[REDACTED][REDACTED]", PLACEHOLDER);
        if next == kept {
            return kept.into_bytes();
        }
        kept = next;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn hold_for_fragments(text in corpus::texts(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        every_law(&text, &cuts)?;
    }

    #[test]
    fn hold_for_raw_bytes(text in corpus::raw_texts(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        every_law(&text, &cuts)?;
    }

    /// Holds for any text above and below, and however a tool numbers the lines.
    #[test]
    fn settings_are_hidden_in_any_text(
        before in corpus::texts(),
        setting in corpus::settings(),
        value in "z[a-y]{7,12}",
        after in corpus::texts(),
    ) {
        let line = setting.replace("{}", &value);
        let text = [&before, line.as_bytes(), &after].concat();
        let scrubbed = show(&Scrubber::new().scrub_bytes(&text));
        prop_assert!(!scrubbed.contains(&value), "{scrubbed}");
    }

    #[test]
    fn hold_for_noise(text in prop::collection::vec(any::<u8>(), 0..200)) {
        every_law(&text, &[])?;
    }
}

/// Number of cases; `PROPTEST_CASES` asks for a longer search.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(200)
}

#[test]
fn logs_and_code_equal_the_reference() {
    for (scrubber, reference) in SCRUBBERS.iter() {
        for seed in 0..4 {
            let text = corpus::realistic(60_000, seed);
            let scrubbed = scrubber.scrub_bytes(text.as_bytes());
            assert_eq!(show(&scrubbed), show(&reference.scrub(text.as_bytes())));
            assert_eq!(scrubber.scrub_bytes(&scrubbed), scrubbed);
            let (mut found, mut early) = (Vec::new(), Vec::new());
            scrubber.find(text.as_bytes(), &mut found);
            for end in (0..text.len()).step_by(997) {
                early.clear();
                scrubber.find_before(text.as_bytes(), end, &mut early);
                assert_eq!(up_to(end, &early), up_to(end, &found), "before {end}");
            }
            for size in [1, 7, 100, 4096, 16_384] {
                assert_eq!(in_pieces(scrubber, text.as_bytes().chunks(size)), &*scrubbed, "pieces of {size}");
            }
        }
    }
}

#[test]
fn long_lines_hold_back_a_bounded_part() {
    let scrubber = &SCRUBBERS[1].0;
    for unit in [
        "x ",
        "abcdefgh",
        "a1B2c3D4",
        "token = ",
        "é",
        "-----BEGIN ",
        "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7MaVYqmJ1dXCaGZ7x\n",
    ] {
        let text = unit.repeat(200_000 / unit.len());
        let whole = scrubber.scrub_bytes(text.as_bytes());
        let mut stream = scrubber.stream();
        let mut out = Vec::new();
        for piece in text.as_bytes().chunks(1000) {
            stream.push(piece, &mut out);
            assert!(stream.held() < 24 * 1024, "{unit}: {}", stream.held());
        }
        stream.finish(&mut out);
        assert_eq!(show(&out), show(&whole), "{unit}");
    }
}

#[test]
fn secret_that_ends_in_a_later_piece_with_another_one() {
    let line = "a1B2c3D4".repeat(16);
    let text = format!("-----BEGIN PRIVATE KEY-----\n{line}\nghp_abcdefghijklmnopqrstuvwxyz0123456789\n");
    for cut in 0..text.len() {
        let (a, b) = text.as_bytes().split_at(cut);
        let out = in_pieces(&Scrubber::new(), [a, b]);
        assert_eq!(show(&out), "-----BEGIN PRIVATE KEY-----\\n[REDACTED]\\n[REDACTED]\\n", "cut at {cut}");
    }
}
