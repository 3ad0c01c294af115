//! Rust source as the checks search it: comments and literals blanked, positions unchanged.
//!
//! This is a lexer for four things (comments, strings, raw strings, characters) and not a parser: it tells
//! code from text, so that a doc line about a name is not mistaken for its use.

use std::iter;
use std::ops::Range;

/// The source with comments and the contents of literals replaced by spaces. Line breaks stay, so positions
/// and line numbers are the same.
pub(crate) fn code(source: &str) -> String {
    let mut blanker = Blanker { source: source.as_bytes(), at: 0, out: source.as_bytes().to_vec() };
    blanker.run();
    String::from_utf8_lossy(&blanker.out).into_owned()
}

/// The same, with every item under `#[cfg(test)]` blanked too.
pub(crate) fn production(source: &str) -> String {
    let mut code = code(source).into_bytes();
    for item in test_items(&code) {
        blank(&mut code[item]);
    }
    String::from_utf8_lossy(&code).into_owned()
}

/// The modules that a file declares for tests only and that have their own files.
pub(crate) fn test_modules(source: &str) -> Vec<String> {
    let code = code(source);
    let items = test_items(code.as_bytes());
    let name = |item: Range<usize>| {
        let (_, name) = code[item].trim_end_matches(';').rsplit_once("mod ")?;
        name.bytes().all(is_name_byte).then(|| name.to_owned())
    };
    items.into_iter().filter_map(name).collect()
}

/// The items under `#[cfg(test)]`, mark included.
fn test_items(code: &[u8]) -> Vec<Range<usize>> {
    const MARK: &[u8] = b"#[cfg(test)]";
    let mut items = Vec::new();
    let mut from = 0;
    while let Some(start) = find(code, MARK, from) {
        from = item_end(code, start + MARK.len());
        items.push(start..from);
    }
    items
}

/// The positions of `word` in `code` as a whole word, not part of a longer name. `word` may be a path or end
/// in punctuation.
pub(crate) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    let mut from = 0;
    iter::from_fn(move || {
        while let Some(start) = find(bytes, word.as_bytes(), from) {
            let end = start + word.len();
            from = end;
            let joined_left = starts_name(word) && start > 0 && is_name_byte(bytes[start - 1]);
            let joined_right = ends_name(word) && bytes.get(end).is_some_and(|b| is_name_byte(*b));
            if !joined_left && !joined_right {
                return Some(start);
            }
        }
        None
    })
}

/// The position after the bracket that closes the one at `open`; the end if none does.
pub(crate) fn closing(code: &[u8], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, byte) in code.iter().enumerate().skip(open) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

/// The line, counted from 1, that the byte at `position` is in.
pub(crate) fn line(text: &str, position: usize) -> usize {
    1 + text.bytes().take(position).filter(|b| *b == b'\n').count()
}

/// Returns the end of the item that starts at `from`: after its `;` or its closing brace.
fn item_end(code: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < code.len() {
        match code[at] {
            b'{' => return closing(code, at),
            b'(' | b'[' => at = closing(code, at),
            b';' => return at + 1,
            _ => at += 1,
        }
    }
    code.len()
}

fn find(bytes: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    bytes.get(from..)?.windows(wanted.len()).position(|window| window == wanted).map(|at| from + at)
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|b| **b != b'\n') {
        *byte = b' ';
    }
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn starts_name(word: &str) -> bool {
    word.bytes().next().is_some_and(is_name_byte)
}

fn ends_name(word: &str) -> bool {
    word.bytes().last().is_some_and(is_name_byte)
}

struct Blanker<'a> {
    source: &'a [u8],
    at: usize,
    out: Vec<u8>,
}

impl Blanker<'_> {
    fn run(&mut self) {
        while self.at < self.source.len() {
            let rest = &self.source[self.at..];
            match rest {
                [b'/', b'/', ..] => self.blank_to(self.line_comment(), 0),
                [b'/', b'*', ..] => self.blank_to(self.block_comment(), 0),
                [b'"', ..] => self.blank_to(self.string(), 1),
                [b'\'', ..] => self.character(),
                [b'r', ..] if !self.inside_name() => self.raw(),
                _ => self.at += 1,
            }
        }
    }

    /// Blanks up to `end`, except for `kept` bytes at either side, and continues from there.
    fn blank_to(&mut self, end: usize, kept: usize) {
        let end = end.min(self.source.len());
        let (first, last) = (self.at + kept, end.saturating_sub(kept));
        if first < last {
            blank(&mut self.out[first..last]);
        }
        self.at = end.max(self.at + 1);
    }

    /// Returns whether the current byte continues a name; `b` and `c` before a raw string do not count as
    /// one.
    fn inside_name(&self) -> bool {
        let before = |back: usize| self.at.checked_sub(back).map(|at| self.source[at]);
        match before(1) {
            Some(b'b' | b'c') => before(2).is_some_and(is_name_byte),
            Some(byte) => is_name_byte(byte),
            None => false,
        }
    }

    fn line_comment(&self) -> usize {
        find(self.source, b"\n", self.at).unwrap_or(self.source.len())
    }

    fn block_comment(&self) -> usize {
        let mut depth = 0usize;
        let mut at = self.at;
        while at < self.source.len() {
            match &self.source[at..] {
                [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
                [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
                _ => at += 1,
            }
            if depth == 0 {
                break;
            }
        }
        at
    }

    fn string(&self) -> usize {
        let mut at = self.at + 1;
        while at < self.source.len() {
            match self.source[at] {
                b'\\' => at += 2,
                b'"' => return at + 1,
                _ => at += 1,
            }
        }
        at
    }

    /// A character, or the tick of a lifetime or label.
    fn character(&mut self) {
        let rest = &self.source[self.at + 1..];
        let literal = match rest.first() {
            Some(b'\\') => find(rest, b"'", 2).map(|tick| tick + 1),
            Some(first) => {
                let width = match first {
                    0..0x80 => 1,
                    0x80..0xe0 => 2,
                    0xe0..0xf0 => 3,
                    _ => 4,
                };
                (rest.get(width) == Some(&b'\'')).then_some(width + 1)
            }
            None => None,
        };
        match literal {
            Some(length) => self.blank_to(self.at + 1 + length, 1),
            None => self.at += 1,
        }
    }

    /// A raw string, or a name that starts with `r`, or a raw identifier.
    fn raw(&mut self) {
        let after = &self.source[self.at + 1..];
        let hashes = after.iter().take_while(|b| **b == b'#').count();
        if after.get(hashes) != Some(&b'"') {
            self.at += 1;
            return;
        }
        let close: Vec<u8> = iter::once(b'"').chain(iter::repeat_n(b'#', hashes)).collect();
        let body = self.at + 1 + hashes + 1;
        let end = find(self.source, &close, body).unwrap_or(self.source.len());
        self.at = body;
        self.blank_to(end, 0);
        self.at = (end + close.len()).min(self.source.len()).max(self.at);
    }
}

#[cfg(test)]
mod tests;
