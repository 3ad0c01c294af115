//! The newest part of a command's output, addressed by position from its first byte.

use std::collections::VecDeque;

/// Text of bounded size; older text is dropped, and its length is known.
#[derive(Debug)]
pub(super) struct Ring {
    most: usize,
    /// The position of the first byte that is still kept.
    first: u64,
    bytes: VecDeque<u8>,
}

/// A part of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) text: String,
    pub(super) from: u64,
    pub(super) next: u64,
    /// Bytes between the requested position and this text that are no longer kept.
    pub(super) dropped: u64,
}

impl Ring {
    pub(super) const fn new(most: usize) -> Self {
        Self { most, first: 0, bytes: VecDeque::new() }
    }

    pub(super) fn add(&mut self, text: &str) {
        self.bytes.extend(text.as_bytes());
        let mut over = self.bytes.len().saturating_sub(self.most);
        while self.bytes.get(over).is_some_and(|byte| is_inside(*byte)) {
            over += 1;
        }
        self.bytes.drain(..over);
        self.first = self.first.saturating_add(over as u64);
    }

    /// The position after the last byte.
    pub(super) fn end(&self) -> u64 {
        self.first.saturating_add(self.bytes.len() as u64)
    }

    /// At most `most` bytes from a position on; the newest ones if none is given. Only whole characters.
    pub(super) fn cut(&mut self, from: Option<u64>, most: usize) -> Cut {
        let (first, end) = (self.first, self.end());
        let asked = from.unwrap_or_else(|| end.saturating_sub(most as u64)).min(end);
        let bytes: &[u8] = self.bytes.make_contiguous();
        let index = |place: u64| usize::try_from(place.saturating_sub(first)).unwrap_or(usize::MAX);
        let whole = |mut at: usize| {
            while bytes.get(at).is_some_and(|byte| is_inside(*byte)) {
                at += 1;
            }
            at.min(bytes.len())
        };
        let start = whole(index(asked));
        let stop = whole(start.saturating_add(most)).max(start);
        let text = String::from_utf8_lossy(bytes.get(start..stop).unwrap_or_default()).into_owned();
        Cut {
            text,
            from: first.saturating_add(start as u64),
            next: first.saturating_add(stop as u64),
            dropped: first.saturating_sub(asked),
        }
    }
}

/// Returns whether a byte belongs to a character but is not its first byte.
const fn is_inside(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_old_is_dropped_and_counted() {
        let mut ring = Ring::new(8);
        ring.add("0123");
        assert_eq!(ring.cut(Some(0), 100), Cut { text: "0123".into(), from: 0, next: 4, dropped: 0 });
        assert_eq!(ring.cut(Some(1), 2), Cut { text: "12".into(), from: 1, next: 3, dropped: 0 });
        ring.add("456789ab");
        assert_eq!(ring.end(), 12);
        assert_eq!(ring.cut(Some(1), 100), Cut { text: "456789ab".into(), from: 4, next: 12, dropped: 3 });
        assert_eq!(ring.cut(None, 3), Cut { text: "9ab".into(), from: 9, next: 12, dropped: 0 });
        assert_eq!(ring.cut(Some(99), 3), Cut { text: String::new(), from: 12, next: 12, dropped: 0 });
    }

    #[test]
    fn characters_stay_whole() {
        let mut ring = Ring::new(5);
        ring.add("aäöü");
        assert_eq!(ring.cut(Some(0), 100), Cut { text: "öü".into(), from: 3, next: 7, dropped: 3 });
        assert_eq!(ring.cut(Some(4), 1), Cut { text: "ü".into(), from: 5, next: 7, dropped: 0 });
    }
}
