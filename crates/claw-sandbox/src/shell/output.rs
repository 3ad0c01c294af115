//! The output of a command, up to a size: its beginning and its end are kept, the bytes between are counted.

use std::collections::VecDeque;

/// The limits on the captured output of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimits {
    /// Bytes from the beginning.
    pub head: usize,
    /// Bytes from the end.
    pub tail: usize,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self { head: 256 << 10, tail: 768 << 10 }
    }
}

/// Output in the making.
#[derive(Debug)]
pub(crate) struct Output {
    limits: OutputLimits,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
}

impl Output {
    pub(crate) const fn new(limits: OutputLimits) -> Self {
        Self { limits, head: Vec::new(), tail: VecDeque::new(), dropped: 0 }
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let room = self.limits.head.saturating_sub(self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(room);
        self.head.extend(head);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(self.limits.tail);
        self.tail.drain(..over);
        self.dropped = self.dropped.saturating_add(over as u64);
    }

    /// Returns the text, with a line where bytes are missing, and the number of missing bytes.
    pub(crate) fn finish(mut self) -> (String, u64) {
        if self.dropped > 0 {
            self.head.extend(claw_core::port::gap(self.dropped).as_bytes());
        }
        self.head.extend(self.tail);
        let text = match String::from_utf8(self.head) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        (text, self.dropped)
    }
}

/// Decodes bytes that come in pieces: a split character is kept until its rest comes.
#[derive(Debug, Default)]
pub(crate) struct Decoder(Vec<u8>);

impl Decoder {
    /// The text that is complete now.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> String {
        self.0.extend(bytes);
        let whole = match self.0.utf8_chunks().last() {
            // The last invalid piece may be the beginning of a character.
            Some(chunk) if incomplete(chunk.invalid()) => self.0.len() - chunk.invalid().len(),
            _ => self.0.len(),
        };
        let text = String::from_utf8_lossy(&self.0[..whole]).into_owned();
        self.0.drain(..whole);
        text
    }

    /// Returns the rest at the end.
    pub(crate) fn finish(self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

/// Returns whether these bytes are the beginning of a character.
fn incomplete(bytes: &[u8]) -> bool {
    !bytes.is_empty() && std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests;
