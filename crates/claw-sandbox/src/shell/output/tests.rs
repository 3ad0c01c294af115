use super::*;

#[test]
fn head_and_tail_are_kept_and_the_gap_is_counted() {
    let mut output = Output::new(OutputLimits { head: 4, tail: 3 });
    for piece in ["ab", "cdef", "ghi", "j"] {
        output.add(piece.as_bytes());
    }
    assert_eq!(output.finish(), ("abcd\n[... 3 bytes are left out here ...]\nhij".to_owned(), 3));
}

#[test]
fn what_fits_is_whole() {
    let mut output = Output::new(OutputLimits { head: 2, tail: 3 });
    output.add(b"ab");
    output.add(b"cde");
    assert_eq!(output.finish(), ("abcde".to_owned(), 0));
}

#[test]
fn characters_survive_every_split() {
    let text = "aé€😀\u{fffd}z";
    for cut in 0..=text.len() {
        let (first, second) = text.as_bytes().split_at(cut);
        let mut decoder = Decoder::default();
        let got = decoder.add(first) + &decoder.add(second) + &decoder.finish();
        assert_eq!(got, text, "cut at {cut}");
    }
}

#[test]
fn bytes_that_are_no_text_do_not_wait() {
    let mut decoder = Decoder::default();
    assert_eq!(decoder.add(b"a\xffb"), "a\u{fffd}b");
    assert_eq!(decoder.add(b"\xe2\x82"), "");
    assert_eq!(decoder.finish(), "\u{fffd}");
}
