//! Bounded access to a text for rules.
//!
//! A rule sees a text only through a [`View`], which notes whether it looked past the end. A verdict that
//! never did is final, whatever follows: that is why a stream and a whole text agree. A view does not show
//! text before its floor, the end of the previous redaction.

use std::{cell::Cell, ops::Range};

use claw_core::redact::PLACEHOLDER;

/// Number of bytes before a candidate that rules may examine.
pub(super) const BEHIND: usize = 256;

/// A set of bytes.
pub(super) type Class = [bool; 256];

/// The bytes in inclusive ranges.
pub(super) const fn class(ranges: &[(u8, u8)]) -> Class {
    let mut set = [false; 256];
    let mut i = 0;
    while i < ranges.len() {
        let (mut byte, last) = (ranges[i].0 as usize, ranges[i].1 as usize);
        while byte <= last {
            set[byte] = true;
            byte += 1;
        }
        i += 1;
    }
    set
}

/// The bytes named by `spec`: `a-z` is a range, a dash at the beginning is a dash.
pub(super) const fn bytes(spec: &[u8]) -> Class {
    let mut set = [false; 256];
    let mut i = 0;
    while i < spec.len() {
        let is_range = i + 2 < spec.len() && spec[i + 1] == b'-';
        let (mut byte, last) = (spec[i] as usize, if is_range { spec[i + 2] } else { spec[i] } as usize);
        while byte <= last {
            set[byte] = true;
            byte += 1;
        }
        i += if is_range { 3 } else { 1 };
    }
    set
}

/// All printable bytes except spaces and `ends`.
pub(super) const fn printable_but(ends: &[u8]) -> Class {
    let mut set = class(&[(0x21, 0x7e), (0x80, 0xff)]);
    let mut i = 0;
    while i < ends.len() {
        set[ends[i] as usize] = false;
        i += 1;
    }
    set
}

pub(super) static BLANK: Class = bytes(b" \t");
pub(super) static DIGIT: Class = bytes(b"0-9");
pub(super) static HEX: Class = bytes(b"0-9a-fA-F");
pub(super) static UPPER_DIGIT: Class = bytes(b"0-9A-Z");
pub(super) static ALNUM: Class = bytes(b"0-9a-zA-Z");
pub(super) static WORD: Class = bytes(b"0-9a-zA-Z_");
pub(super) static ALNUM_DASH: Class = bytes(b"-0-9a-zA-Z");
pub(super) static BASE64: Class = bytes(b"0-9a-zA-Z+/");
pub(super) static BASE64_PAD: Class = bytes(b"0-9a-zA-Z+/=");
pub(super) static BASE64_URL: Class = bytes(b"-0-9a-zA-Z_");
pub(super) static BASE64_URL_DOT: Class = bytes(b"-0-9a-zA-Z_.");

/// The knowledge of whether a text is a configuration file's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Settings {
    /// It is not known as one.
    #[default]
    No,
    /// It is one, by the name of its file.
    File,
    /// It is a diff of one: the lines that begin with a space or the sign of a diff.
    Diff,
}

/// The part of a text that a rule may see.
pub(super) struct View<'t> {
    text: &'t [u8],
    /// The start of the rule.
    at: usize,
    lowest: usize,
    floor: Option<usize>,
    settings: Settings,
    past_end: Cell<bool>,
}

impl<'t> View<'t> {
    /// Shows `text` to a rule that starts at `at`; `floor` is the end of the last redaction, if there was
    /// one.
    pub(super) fn new(text: &'t [u8], floor: Option<usize>, at: usize) -> Self {
        let lowest = at.saturating_sub(BEHIND).max(floor.unwrap_or(0));
        Self { text, at, lowest, floor, settings: Settings::No, past_end: Cell::new(false) }
    }

    /// The same view of a text that may be a configuration file's.
    pub(super) fn of_settings(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }

    /// The knowledge of whether the text is a configuration file's.
    pub(super) fn settings(&self) -> Settings {
        self.settings
    }

    /// Returns whether a look went past the end, so that more text could change the verdict.
    pub(super) fn looked_past_end(&self) -> bool {
        self.past_end.get()
    }

    /// The lowest visible position.
    pub(super) fn lowest(&self) -> usize {
        self.lowest
    }

    pub(super) fn get(&self, at: usize) -> Option<u8> {
        let byte = self.text.get(at).copied();
        if byte.is_none() {
            self.past_end.set(true);
        }
        byte
    }

    pub(super) fn is(&self, at: usize, class: &Class) -> bool {
        self.get(at).is_some_and(|byte| class[byte as usize])
    }

    /// The byte before `at`; at the floor, the last one of the placeholder that a second scrubbing would see.
    pub(super) fn before(&self, at: usize) -> Option<u8> {
        match at {
            _ if self.floor == Some(at) => PLACEHOLDER.as_bytes().last().copied(),
            _ if at > self.lowest => self.text.get(at - 1).copied(),
            _ => None,
        }
    }

    pub(super) fn follows(&self, at: usize, class: &Class) -> bool {
        self.before(at).is_some_and(|byte| class[byte as usize])
    }

    /// Returns whether a redaction ended at `at`, now or in an earlier scrubbing.
    pub(super) fn follows_redaction(&self, at: usize) -> bool {
        let start = at.saturating_sub(PLACEHOLDER.len());
        // A second scrubbing has no floor and must see the whole placeholder.
        self.at.saturating_sub(at) + PLACEHOLDER.len() <= BEHIND
            && (self.floor == Some(at)
                || start >= self.lowest && self.slice(start..at) == PLACEHOLDER.as_bytes())
    }

    pub(super) fn starts_with(&self, at: usize, literal: &[u8]) -> bool {
        literal.iter().enumerate().all(|(i, &byte)| self.get(at + i) == Some(byte))
    }

    pub(super) fn starts_with_placeholder(&self, at: usize) -> bool {
        self.starts_with(at, PLACEHOLDER.as_bytes())
    }

    /// The end of the run of `class` bytes that starts at `from`, of at most `most` bytes.
    pub(super) fn run(&self, from: usize, most: usize, class: &Class) -> usize {
        let mut at = from;
        while at < from + most && self.is(at, class) {
            at += 1;
        }
        at
    }

    /// The start of the run of `class` bytes that ends at `until`, of at most `most` bytes.
    pub(super) fn run_before(&self, until: usize, most: usize, class: &Class) -> usize {
        let mut at = until;
        while until - at < most && self.follows(at, class) {
            at -= 1;
        }
        at
    }

    /// Bytes that were already examined.
    pub(super) fn slice(&self, range: Range<usize>) -> &'t [u8] {
        self.text.get(range).unwrap_or_default()
    }
}
