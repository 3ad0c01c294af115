//! Finding secrets in a text.
//!
//! The policy compiles a scrubber that implements [`Redactor`]. The registry scrubs everything that leaves a
//! call with it; hosts that show a scrubbed file use the ranges to map positions back.

use std::ops::Range;

/// The replacement of a secret.
pub const PLACEHOLDER: &str = "[REDACTED]";

/// One secret found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redaction {
    /// The secret's bytes. Ranges of one text are sorted, do not touch and do not overlap.
    pub range: Range<usize>,
    /// The kind of secret: `github-token`, `pem-private-key`, `value`, ...
    pub kind: &'static str,
}

/// Finds secrets in bytes that are mostly text.
pub trait Redactor: Send + Sync {
    /// Adds the secrets of `text` to `found`, sorted and without overlap.
    fn find(&self, text: &[u8], found: &mut Vec<Redaction>);

    /// Does the same for secrets that start before `end`. Those that start later may be left out, and a
    /// secret that extends beyond `end` may be reported without its end. The text after `end` is still taken
    /// into account.
    fn find_before(&self, text: &[u8], end: usize, found: &mut Vec<Redaction>) {
        let _ = end;
        self.find(text, found);
    }

    /// Does the same as [`Redactor::find`] in the text of the file at `path`, or in a part of it. The name of
    /// a file can tell that more of its text is secret.
    fn find_in_file(&self, path: &str, text: &[u8], found: &mut Vec<Redaction>) {
        let _ = path;
        self.find(text, found);
    }
}

/// Removes secrets from a text that comes in pieces; a secret split over pieces is still found.
pub trait StreamRedactor: Send {
    /// Takes a piece and returns the text that can be shown by now.
    fn push(&mut self, piece: &str) -> String;
    /// Returns the visible part of a line that is not complete yet, such as a prompt.
    fn unfinished(&self) -> String;
    /// Returns the text held back, at the end.
    fn end(self: Box<Self>) -> String;
}
