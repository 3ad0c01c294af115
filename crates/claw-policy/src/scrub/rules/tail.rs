//! The rest of a secret after the part that a rule examined.
//!
//! Tails have no maximum length: a stream swallows them byte by byte and keeps none of it.

use super::{pem, printed_line};
use crate::scrub::view::{Class, View};

/// The rest of a secret.
#[derive(Debug, Clone)]
pub(in crate::scrub) enum Tail {
    /// Nothing.
    None,
    /// All following bytes of this class.
    Run(&'static Class),
    /// Until the quote closes or the line ends. `escaped` quotes are written `\"`, as in JSON inside JSON.
    Quoted { quote: u8, escaped: bool },
    /// Until three of these quotes close a string of several lines; a backslash escapes within double quotes.
    /// With a `prefix`, which `grep -r` prints before each line, the string ends at the first line without it.
    Triple { quote: u8, prefix: Option<Box<[u8]>> },
    /// The rest of a line, and the next one after a backslash at its end.
    Continued,
    /// The body lines of a PEM block.
    Pem,
    /// The lines of a YAML block: those indented deeper than its key.
    Block { indent: usize, numbered: bool },
}

impl Tail {
    /// The end of the secret as far as `text` shows, from `at` on, and whether that is final.
    pub(in crate::scrub) fn swallow(&self, text: &[u8], at: usize, last: bool) -> (usize, bool) {
        match self {
            Self::None => (at, true),
            Self::Run(class) => {
                let rest = text.get(at..).unwrap_or_default();
                let length = rest.iter().position(|&byte| !class[byte as usize]).unwrap_or(rest.len());
                (at + length, last || length < rest.len())
            }
            Self::Quoted { quote, escaped } => {
                steps(text, at, last, |view, end| quoted_step(view, end, *quote, *escaped))
            }
            Self::Triple { quote, prefix } => {
                steps(text, at, last, |view, end| triple_step(view, end, *quote, prefix.as_deref()))
            }
            Self::Continued => steps(text, at, last, continued_step),
            Self::Pem => steps(text, at, last, pem::body_step),
            Self::Block { indent, numbered } => {
                steps(text, at, last, |view, end| printed_line::block_step(view, end, *indent, *numbered))
            }
        }
    }
}

/// Steps until a step would depend on bytes that are yet to come.
fn steps(
    text: &[u8],
    at: usize,
    last: bool,
    step: impl Fn(&View<'_>, usize) -> Option<usize>,
) -> (usize, bool) {
    let view = View::new(text, None, at);
    let mut end = at;
    loop {
        let next = step(&view, end);
        if view.looked_past_end() && !last {
            return (end, false);
        }
        match next {
            Some(next) => end = next,
            None => return (end, true),
        }
    }
}

/// The position after the next character of a quoted value; `None` at its end.
pub(in crate::scrub) fn quoted_step(view: &View<'_>, at: usize, quote: u8, escaped: bool) -> Option<usize> {
    match view.get(at)? {
        b'\n' | b'\r' => None,
        b'\\' => match view.get(at + 1) {
            Some(byte) if escaped && byte == quote => None,
            Some(b'\n' | b'\r') | None => Some(at + 1),
            Some(_) => Some(at + 2),
        },
        byte if byte == quote && !escaped => None,
        b'"' if escaped => None,
        _ => Some(at + 1),
    }
}

/// The position after the next character of a string in three quotes; `None` at its end.
pub(in crate::scrub) fn triple_step(
    view: &View<'_>,
    at: usize,
    quote: u8,
    prefix: Option<&[u8]>,
) -> Option<usize> {
    if let Some(prefix) = prefix
        && let Some(next) = printed_line::after_break(view, at)
    {
        return view.starts_with(next, prefix).then_some(next);
    }
    match view.get(at)? {
        b'\\' if quote == b'"' && view.get(at + 1).is_some() => Some(at + 2),
        byte if byte == quote && view.get(at + 1) == Some(quote) && view.get(at + 2) == Some(quote) => None,
        _ => Some(at + 1),
    }
}

/// The position after the next character of a value that a backslash at the end of its line continues; `None` at its end.
pub(in crate::scrub) fn continued_step(view: &View<'_>, at: usize) -> Option<usize> {
    match view.get(at)? {
        b'\\' => match (view.get(at + 1), view.get(at + 2)) {
            (Some(b'\r'), Some(b'\n')) => Some(at + 3),
            (Some(_), _) => Some(at + 2),
            (None, _) => Some(at + 1),
        },
        b'\n' | b'\r' => None,
        _ => Some(at + 1),
    }
}
