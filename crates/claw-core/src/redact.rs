//! Which bytes of a text are secret.
//!
//! The policy compiles a scrubber that implements [`Redactor`]. The registry scrubs with it what leaves a call;
//! the ranges are for hosts that show a file scrubbed and must map positions back.

use std::ops::Range;

/// What stands in place of a secret.
pub const PLACEHOLDER: &str = "[REDACTED]";

/// One secret found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redaction {
    /// The secret's bytes. Ranges of one text are sorted, do not touch and do not overlap.
    pub range: Range<usize>,
    /// What it looks like: `github-token`, `pem-private-key`, `value`, ...
    pub kind: &'static str,
}

/// Finds secrets in bytes that are mostly text.
pub trait Redactor: Send + Sync {
    /// Adds the secrets of `text` to `found`, sorted and apart.
    fn find(&self, text: &[u8], found: &mut Vec<Redaction>);

    /// The same for secrets that start before `end`; those that start later may be left out, and of one that goes on
    /// behind it the end may be missing. What follows `end` counts all the same.
    fn find_before(&self, text: &[u8], end: usize, found: &mut Vec<Redaction>) {
        let _ = end;
        self.find(text, found);
    }
}
