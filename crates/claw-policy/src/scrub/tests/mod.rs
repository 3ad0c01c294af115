//! What is redacted, what stays, and the laws that hold for every text.

mod laws;
mod redacted;
mod stays;
mod values;

use super::Scrubber;

/// `input` scrubbed is `expected`, also when it comes in pieces and when it is scrubbed again.
#[track_caller]
fn check(input: &str, expected: &str) {
    let scrubber = Scrubber::new();
    let scrubbed = scrubber.scrub(input);
    assert_eq!(scrubbed, expected, "of {input:?}");
    assert_eq!(scrubber.scrub(&scrubbed), expected, "scrubbed again, of {input:?}");
    for cut in 0..=input.len() {
        let (a, b) = input.as_bytes().split_at(cut);
        assert_eq!(
            String::from_utf8_lossy(&in_pieces(&scrubber, [a, b])),
            expected,
            "cut at {cut}: {input:?}"
        );
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
