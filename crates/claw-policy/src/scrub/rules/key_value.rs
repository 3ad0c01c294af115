//! Keys and values: `password=...`, `"api_key": "..."`, `Authorization: Bearer ...`, `--token ...`.
//!
//! The key stays readable, the value is redacted. The text after the key must be written like a value; code
//! that computes one (`lexer.next()`, `process.env.X`) stays.

use std::ops::Range;

use super::{
    Secret, Tail, config_file, config_line,
    key_name::{self, Family},
    kind, printed_line,
    tail::quoted_step,
    value::{self, Style, is_url},
};
use crate::scrub::view::{ALNUM, BASE64_PAD, BASE64_URL, BLANK, Class, View, WORD, bytes, printable_but};

/// Bytes of a value that are examined.
const VALUE: usize = 256;
/// Number of spaces around a sign.
const BLANKS: usize = 8;

static KEY: Class = BASE64_URL;
pub(super) static KEY_BEFORE: Class = bytes(b"-0-9a-zA-Z_.");
static TYPE: Class = bytes(b"0-9a-zA-Z_ &:<>|?*");

/// Bytes of a bare value.
static BARE: Class = printable_but(b"\"'`,;()[]{}<>&|\\");
/// Bytes that end a bare value in any text, but not in a line of configuration.
static SIGN_IN_VALUE: Class = bytes(b",;()[]{}<>&|");

/// A value as written.
pub(super) struct Written {
    pub(super) start: usize,
    /// The end of the examined part.
    pub(super) end: usize,
    style: Style,
    tail: Tail,
}

/// The value of the key that has a secret's word of `word` bytes at `at`.
pub(super) fn pair(view: &View<'_>, at: usize, word: usize) -> Option<Secret> {
    let key_end = view.run(at + word, key_name::LONGEST / 2, &KEY);
    let sign = Sign::after(view, key_end);
    if sign.is_none() && !view.is(key_end, &BLANK) {
        return None;
    }
    let key_start = view.run_before(at, key_name::LONGEST / 2 - 16, &KEY_BEFORE);
    let Some(sign) = sign else {
        return after_blank(view, key_start..key_end);
    };
    // The end of a file's name and a number may look like a part of the key.
    let may_be_context = view.slice(key_start..at).contains(&b'-');
    let context = may_be_context.then(|| printed_line::context_end(view, key_end)).flatten();
    let key_start = context.filter(|end| (key_start..=at).contains(end)).unwrap_or(key_start);
    let key = view.slice(key_start..key_end);
    let upper = !key.iter().any(u8::is_ascii_lowercase);
    let of_settings = printed_line::is_of_settings(view, key_end);
    let family = match of_settings {
        true => key_name::family_in_settings(key, upper)?,
        false => key_name::family(key, upper)?,
    };
    if family == Family::Authorization {
        return credentials(view, sign.value).or_else(|| plain(view, Family::Token, &sign, upper));
    }
    let key = config_line::Key { start: key_start, end: key_end, text: key, family, upper };
    if of_settings && let Some(secret) = config_file::value(view, &key, &sign) {
        return Some(secret);
    }
    let found = plain(view, family, &sign, upper);
    if found.as_ref().is_some_and(|secret| !view.is(secret.end, &SIGN_IN_VALUE)) {
        return found;
    }
    // In a line of configuration any word is a value, and a sign is part of it.
    config_line::value(view, &key, &sign).or(found)
}

/// The secret after a key that is followed by a space: `Bearer ...`, `--password ...`, `requirepass ...`.
fn after_blank(view: &View<'_>, range: Range<usize>) -> Option<Secret> {
    let key_end = range.end;
    let key = view.slice(range.clone());
    if key.eq_ignore_ascii_case(b"bearer") {
        let start = view.run(key_end, BLANKS, &BLANK);
        let written = bare(view, start)?;
        let token = view.slice(start..written.end);
        let secret =
            token.len() >= 16 && !is_url(token) && value::is_secret(token, Family::Token, Style::Loose);
        return secret.then(|| written.secret(kind::AUTHORIZATION));
    }
    if !key.starts_with(b"-") {
        return config_line::directive(view, key, range.start, view.run(key_end, BLANKS, &BLANK));
    }
    let family = key_name::family(key, false)?;
    let sign = Sign { value: view.run(key_end, BLANKS, &BLANK), tight: false, equals: false, plain: false };
    plain(view, family, &sign, false)
}

/// The value of a key of `family`.
fn plain(view: &View<'_>, family: Family, sign: &Sign, upper: bool) -> Option<Secret> {
    let written = Written::at(view, sign, upper)?;
    let value = view.slice(written.start..written.end);
    let style = written.style;
    if family == Family::Variable && !(upper && sign.equals && sign.tight) {
        return None;
    }
    // The password in a URL is found by another rule; the rest of the URL tells which system is meant.
    if is_url(value) || !value::is_secret(value, family, style) {
        return None;
    }
    let kind = if style == Style::Variable || matches!(family, Family::Variable | Family::Virtual) {
        kind::ENV
    } else {
        kind::PAIR
    };
    Some(written.secret(kind))
}

/// A scheme and its credentials: `Bearer ...`, `Basic ...`.
fn credentials(view: &View<'_>, at: usize) -> Option<Secret> {
    const SCHEMES: &[&str] = &["bearer", "basic", "token", "digest", "apikey", "negotiate", "bot"];
    let quoted = if view.starts_with(at, b"\\\"") {
        2
    } else {
        usize::from(matches!(view.get(at), Some(b'"' | b'\'')))
    };
    let scheme = at + quoted;
    let scheme_end = view.run(scheme, 12, &ALNUM);
    let start = view.run(scheme_end, BLANKS, &BLANK);
    let known = view.slice(scheme..scheme_end);
    if start == scheme_end || !SCHEMES.iter().any(|name| known.eq_ignore_ascii_case(name.as_bytes())) {
        return None;
    }
    let written = bare(view, start)?;
    let token = view.slice(start..written.end);
    let random = if known.eq_ignore_ascii_case(b"basic") {
        token.len().is_multiple_of(4)
            && token.iter().all(|byte| BASE64_PAD[*byte as usize])
            && token.iter().any(u8::is_ascii_uppercase)
            && token.iter().any(u8::is_ascii_lowercase)
    } else {
        token.iter().any(u8::is_ascii_digit) || !value::is_name(token)
    };
    let secret = random && token.len() >= 8 && value::is_secret(token, Family::Password, Style::Quoted);
    secret.then(|| written.secret(kind::AUTHORIZATION))
}

/// The separator between a key and its value.
pub(super) struct Sign {
    /// The start of the value.
    pub(super) value: usize,
    /// Without spaces around it.
    pub(super) tight: bool,
    pub(super) equals: bool,
    /// `=` or `:` alone, as in configuration.
    pub(super) plain: bool,
}

impl Sign {
    fn after(view: &View<'_>, key_end: usize) -> Option<Self> {
        let closed = match view.get(key_end)? {
            b'"' | b'\'' if view.get(key_end + 1) == Some(b']') => key_end + 2,
            b'"' | b'\'' => key_end + 1,
            b'\\' if view.get(key_end + 1) == Some(b'"') => key_end + 2,
            _ => key_end,
        };
        let at = view.run(closed, BLANKS, &BLANK);
        let (after, equals, plain) = match (view.get(at)?, view.get(at + 1)) {
            (b'=', Some(b'=' | b'~')) | (b':', Some(b':')) => return None,
            (b'=', Some(b'>')) | (b':', Some(b'=')) => (at + 2, true, false),
            (b'=', _) => (at + 1, true, true),
            (b':', _) => typed(view, at + 1).map_or((at + 1, false, true), |after| (after, true, false)),
            (b',', _) if closed > key_end && in_define(view, key_end) => (at + 1, true, false),
            _ => return None,
        };
        let value = view.run(after, BLANKS, &BLANK);
        Some(Self { value, tight: at == closed && value == after, equals, plain })
    }
}

/// Returns whether the quoted key that ends at `key_end` is PHP's: `define('DB_PASSWORD', '...')`.
fn in_define(view: &View<'_>, key_end: usize) -> bool {
    let quote = view.run_before(key_end, key_name::LONGEST, &WORD);
    let open = view.run_before(quote.saturating_sub(1), 2, &BLANK);
    let define = open.saturating_sub(b"define(".len());
    define >= view.lowest() && view.slice(define..open) == b"define("
}

/// The end of the `=` in `: Type = value`.
fn typed(view: &View<'_>, at: usize) -> Option<usize> {
    let end = view.run(at, 40, &TYPE);
    let assigned = view.get(end) == Some(b'=') && view.get(end + 1) == Some(b' ');
    (assigned && end > at + 1 && view.slice(end - 1..end) == b" ").then_some(end + 1)
}

impl Written {
    /// The value that `sign` leads to, unless it is code.
    fn at(view: &View<'_>, sign: &Sign, upper: bool) -> Option<Self> {
        let at = sign.value;
        let letter = matches!(view.get(at), Some(b'b' | b'r' | b'u'))
            && matches!(view.get(at + 1), Some(b'"' | b'\''));
        let at = at + usize::from(letter);
        match view.get(at)? {
            b'\\' if view.get(at + 1) == Some(b'"') => Some(quoted(view, at + 2, b'"', true)),
            quote @ (b'"' | b'\'' | b'`') => {
                let three = view.get(at + 1) == Some(quote) && view.get(at + 2) == Some(quote);
                Some(quoted(view, if three { at + 3 } else { at + 1 }, quote, false))
            }
            _ => {
                let written = bare(view, at)?;
                let end = written.end;
                let computed = matches!(view.get(end), Some(b'(' | b'[' | b'{' | b'<'));
                if computed && !view.slice(at..end).contains(&b'@') {
                    return None;
                }
                let style = match (sign.equals && sign.tight, upper) {
                    (true, true) => Style::Variable,
                    (true, false) => Style::Tight,
                    _ if !sign.equals && ends_line(view, end) => Style::Line,
                    _ => Style::Loose,
                };
                Some(Self { style, ..written })
            }
        }
    }

    pub(super) fn secret(self, kind: &'static str) -> Secret {
        Secret { start: self.start, end: self.end, tail: self.tail, kind }
    }
}

/// The bare value at `start`, unless a part of it is already redacted.
fn bare(view: &View<'_>, start: usize) -> Option<Written> {
    let end = view.run(start, VALUE, &BARE);
    let style = Style::Loose;
    (!view.starts_with_placeholder(end)).then_some(Written { start, end, style, tail: Tail::Run(&BARE) })
}

pub(super) fn quoted(view: &View<'_>, start: usize, quote: u8, escaped: bool) -> Written {
    let mut end = start;
    while end < start + VALUE {
        match quoted_step(view, end, quote, escaped) {
            Some(next) => end = next,
            None => break,
        }
    }
    Written { start, end, style: Style::Quoted, tail: Tail::Quoted { quote, escaped } }
}

fn ends_line(view: &View<'_>, at: usize) -> bool {
    let at = view.run(at, BLANKS, &BLANK);
    matches!(view.get(at), None | Some(b'\n' | b'\r' | b'#'))
}
