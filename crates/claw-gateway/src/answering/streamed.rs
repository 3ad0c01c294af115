//! The text of a message as far as it was sent to a client: without holes, whatever pieces of it were missed.

use clawsmith::store::{Delta, Source};

/// A message that is being sent piece by piece.
#[derive(Debug)]
pub(super) struct StreamedText {
    pub(super) source: Source,
    /// The text that was sent.
    sent: String,
    /// True if a piece was missed: no later one is sent, since the text would have a hole. The stored message has the rest.
    has_gap: bool,
}

impl StreamedText {
    pub(super) fn new(source: Source) -> Self {
        Self { source, sent: String::new(), has_gap: false }
    }

    /// Returns whether nothing of the message was sent yet.
    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// Returns what of a piece is to be sent: nothing once a piece before it was missed, and nothing twice.
    pub(super) fn piece<'a>(&mut self, piece: &'a Delta) -> &'a str {
        let sent = self.sent.len() as u64;
        self.has_gap |= piece.offset > sent;
        if self.has_gap {
            return "";
        }
        let known = usize::try_from(sent - piece.offset).unwrap_or(usize::MAX);
        let new = piece.text.get(known..).unwrap_or_default();
        self.sent.push_str(new);
        new
    }

    /// Returns what of the whole message is still to be sent.
    pub(super) fn rest(&mut self, whole: &str) -> String {
        let rest = match whole.strip_prefix(self.sent.as_str()) {
            Some(rest) => rest,
            // The message is stored in another form than it was streamed in, and all of it was sent.
            None if !self.has_gap => "",
            None => &whole[common(&self.sent, whole)..],
        };
        self.sent = whole.to_owned();
        rest.to_owned()
    }
}

/// The number of bytes with which both texts begin.
fn common(one: &str, other: &str) -> usize {
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other);
    same.map(|(char, _)| char.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use claw_core::MessageId;
    use clawsmith::store::Voice;

    use super::*;

    /// Sends these pieces, then the rest of `whole`.
    #[track_caller]
    fn check(pieces: &[(u64, &str)], whole: &str, expected: &[&str]) {
        let source = Source::Message(MessageId::new());
        let mut text = StreamedText::new(source);
        let delta = |(offset, text): &(u64, &str)| Delta {
            source,
            voice: Voice::Text,
            offset: *offset,
            text: (*text).to_owned(),
        };
        let mut sent: Vec<String> = pieces.iter().map(|piece| text.piece(&delta(piece)).to_owned()).collect();
        sent.push(text.rest(whole));
        sent.retain(|text| !text.is_empty());
        assert_eq!(sent, expected, "{pieces:?}");
    }

    #[test]
    fn a_client_that_missed_pieces_gets_the_whole_text_without_a_hole() {
        check(&[(0, "one "), (4, "two")], "one two", &["one ", "two"]);
        check(&[(0, "one ")], "one two", &["one ", "two"]);
        check(&[], "one two", &["one two"]);
        // Pieces between were dropped: later ones would stand in the wrong place.
        check(&[(0, "one "), (8, "three "), (14, "four")], "one two three four", &["one ", "two three four"]);
        // The first pieces were missed.
        check(&[(4, "two")], "one two", &["one two"]);
        // A piece comes again, in part.
        check(&[(0, "one "), (2, "e two")], "one two", &["one ", "two"]);
        check(&[(0, "one "), (0, "one ")], "one two", &["one ", "two"]);
        // Parts are stored with a break between them: nothing is sent twice.
        check(&[(0, "one"), (3, "two")], "one\ntwo", &["one", "two"]);
        check(&[(0, "one"), (3, "two"), (9, "x")], "one\ntwo three", &["one", "two", "\ntwo three"]);
    }
}
