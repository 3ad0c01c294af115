//! Finds known secret values, wherever and in whichever form they are written.
//!
//! Every third position of a text is looked up by its four bytes: each form of a value has at least six, so
//! one of its first three positions is hit. The cost is one probe of a bit set per three bytes, whatever the
//! number of values. Matches inside or across a placeholder do not count.

use claw_core::redact::{PLACEHOLDER, Redaction};

use super::{Value, ValueError, encoding};

const GRAM: usize = 4;
const STRIDE: usize = 3;
/// The shortest value: `STRIDE - 1` bytes before a gram, and the gram.
pub(super) const SHORTEST: usize = GRAM + STRIDE - 1;

/// A compiled list of values. It has no `Debug` output, since all of it is secret.
pub(super) struct Dictionary {
    /// All forms of all values, concatenated.
    bytes: Vec<u8>,
    forms: Vec<Form>,
    longest: usize,
    /// A bit per hash of a gram that occurs in a form.
    bits: Vec<u64>,
    /// Start of each bucket of `grams`; one more than there are buckets.
    buckets: Vec<u32>,
    grams: Vec<Gram>,
    shift: u32,
}

struct Form {
    start: u32,
    length: u32,
    kind: &'static str,
}

/// Four bytes of a form, `offset` after its start.
#[derive(Clone, Copy)]
struct Gram {
    word: u32,
    form: u32,
    offset: u32,
}

impl Dictionary {
    /// Compiles `values`.
    pub(super) fn compile(values: impl IntoIterator<Item = Value>) -> Result<Self, ValueError> {
        let (mut bytes, mut forms) = (Vec::new(), Vec::new());
        for (index, value) in values.into_iter().enumerate() {
            value.check(index)?;
            for form in encoding::forms(&value.secret) {
                forms.push(Form { start: length(&bytes)?, length: length(&form)?, kind: value.kind });
                bytes.extend(form);
            }
        }
        length(&bytes)?;
        let mut dictionary = Self {
            longest: forms.iter().map(|form| form.length as usize).max().unwrap_or(0),
            bytes,
            forms,
            bits: Vec::new(),
            buckets: Vec::new(),
            grams: Vec::new(),
            shift: 0,
        };
        dictionary.index();
        Ok(dictionary)
    }

    /// Adds all occurrences in `text`, including overlapping ones, in the order of their ends.
    pub(super) fn find(&self, text: &[u8], from: usize, found: &mut Vec<Redaction>) {
        let mut at = from;
        while let Some(word) = word_at(text, at) {
            if self.may_hold(word) {
                self.find_at(text, at, word, found);
            }
            at += STRIDE;
        }
    }

    /// The first position of `text[from..]` where a form starts that extends past the end of the text.
    pub(super) fn partial(&self, text: &[u8], from: usize) -> Option<usize> {
        let from = from.max((text.len() + 1).saturating_sub(self.longest));
        (from..text.len()).find(|&at| {
            let rest = text.get(at..).unwrap_or_default();
            let starts = |form: &Form| {
                let form = self.bytes_of(form);
                rest.len() < form.len() && form.starts_with(rest)
            };
            match word_at(text, at) {
                Some(word) => self
                    .lookup(word)
                    .iter()
                    .any(|gram| gram.offset == 0 && self.forms.get(gram.form as usize).is_some_and(starts)),
                None => self.forms.iter().any(starts),
            }
        })
    }

    /// Memory use in bytes.
    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity()
            + self.forms.capacity() * size_of::<Form>()
            + self.bits.capacity() * size_of::<u64>()
            + self.buckets.capacity() * size_of::<u32>()
            + self.grams.capacity() * size_of::<Gram>()
    }

    fn index(&mut self) {
        let mut grams = Vec::with_capacity(self.forms.len() * STRIDE);
        for (form, bounds) in (0_u32..).zip(&self.forms) {
            let bytes = self.bytes_of(bounds);
            let words =
                (0_u32..).zip(0..STRIDE).filter_map(|(offset, at)| Some((offset, word_at(bytes, at)?)));
            grams.extend(words.map(|(offset, word)| Gram { word, form, offset }));
        }
        // 32 bits per gram: a random position passes in about three of a hundred cases.
        let size = (grams.len() * 32).next_power_of_two().clamp(1 << 10, 1 << 22);
        self.shift = 32 - size.trailing_zeros();
        self.bits = vec![0; size / 64];
        for gram in &grams {
            let hash = self.hash(gram.word);
            if let Some(word) = self.bits.get_mut(hash / 64) {
                *word |= 1 << (hash % 64);
            }
        }
        // A bucket is the upper part of the hash, 32 hashes to a bucket.
        grams.sort_unstable_by_key(|gram| (self.hash(gram.word), gram.word));
        self.buckets = vec![0; size / 32 + 1];
        for gram in &grams {
            let bucket = self.hash(gram.word) / 32;
            if let Some(count) = self.buckets.get_mut(bucket + 1) {
                *count += 1;
            }
        }
        for i in 1..self.buckets.len() {
            self.buckets[i] += self.buckets[i - 1];
        }
        self.grams = grams;
    }

    fn hash(&self, word: u32) -> usize {
        (word.wrapping_mul(0x9E37_79B1) >> self.shift) as usize
    }

    fn may_hold(&self, word: u32) -> bool {
        let hash = self.hash(word);
        self.bits.get(hash / 64).is_some_and(|bits| bits >> (hash % 64) & 1 == 1)
    }

    /// The grams in the bucket of `word`.
    fn lookup(&self, word: u32) -> &[Gram] {
        let bucket = self.hash(word) / 32;
        let bound = |at: usize| self.buckets.get(at).map_or(0, |&bound| bound as usize);
        let grams = self.grams.get(bound(bucket)..bound(bucket + 1)).unwrap_or_default();
        let start = grams.iter().position(|gram| gram.word == word).unwrap_or(grams.len());
        let grams = &grams[start..];
        let end = grams.iter().position(|gram| gram.word != word).unwrap_or(grams.len());
        &grams[..end]
    }

    fn find_at(&self, text: &[u8], at: usize, word: u32, found: &mut Vec<Redaction>) {
        for gram in self.lookup(word) {
            let (Some(form), Some(start)) =
                (self.forms.get(gram.form as usize), at.checked_sub(gram.offset as usize))
            else {
                continue;
            };
            let range = start..start + form.length as usize;
            if text.get(range.clone()) == Some(self.bytes_of(form)) && !touches_placeholder(text, &range) {
                found.push(Redaction { range, kind: form.kind });
            }
        }
    }

    fn bytes_of(&self, form: &Form) -> &[u8] {
        let start = form.start as usize;
        self.bytes.get(start..start + form.length as usize).unwrap_or_default()
    }
}

fn word_at(text: &[u8], at: usize) -> Option<u32> {
    text.get(at..at + GRAM)?.try_into().ok().map(u32::from_le_bytes)
}

fn length(bytes: &[u8]) -> Result<u32, ValueError> {
    u32::try_from(bytes.len()).map_err(|_| ValueError::TooMuch)
}

/// Returns whether `range` overlaps a placeholder that is already in the text.
fn touches_placeholder(text: &[u8], range: &std::ops::Range<usize>) -> bool {
    let margin = PLACEHOLDER.len() - 1;
    let around = range.start.saturating_sub(margin)..text.len().min(range.end + margin);
    memchr::memmem::find(text.get(around).unwrap_or_default(), PLACEHOLDER.as_bytes()).is_some()
}
