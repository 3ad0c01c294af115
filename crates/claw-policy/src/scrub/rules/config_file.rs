//! Values in a file that is known by its name as configuration: the value of a secret's key is redacted
//! however plain it looks.
//!
//! Here nothing can be code, so the line and the value need not look like a setting's. A value that is kept
//! elsewhere (`${NAME}`, `/run/secrets/name`), is missing or is a structure stays.

use super::{
    Secret, Tail,
    config_line::{self, Key},
    key_name::Family,
    key_value::{self, Sign},
    printed_line,
    tail::{continued_step, triple_step},
    value::{is_filled_in, is_listed, is_path, is_url},
};
use crate::scrub::view::{BLANK, Class, Settings, View, class};

/// Bytes of a value that are examined.
const VALUE: usize = 256;

/// Bytes of a line.
static LINE: Class = class(&[(0x00, 0x09), (0x0b, 0x0c), (0x0e, 0xff)]);

/// Words for a missing value.
const MISSING: &[&str] = &["none", "null", "nil", "undefined", "true", "false", "yes", "no", "on", "off"];
/// Words after `token`, `credentials` and alike that say how one is used.
const USES: &[&str] = &[
    "read",
    "write",
    "include",
    "omit",
    "same-origin",
    "inherit",
    "header",
    "query",
    "cookie",
    "required",
    "optional",
    "auto",
];

/// The value after `sign`, however plain.
pub(super) fn value(view: &View<'_>, key: &Key<'_>, sign: &Sign) -> Option<Secret> {
    if !matches!(key.family, Family::Password | Family::Token) {
        return None;
    }
    match view.get(sign.value)? {
        b'\n' | b'\r' | b'\\' | b'{' | b'[' => None,
        quote @ (b'"' | b'\'')
            if view.get(sign.value + 1) == Some(quote) && view.get(sign.value + 2) == Some(quote) =>
        {
            triple(view, key, sign, quote)
        }
        quote @ (b'"' | b'\'') => {
            let written = key_value::quoted(view, sign.value + 1, quote, false);
            let value = view.slice(written.start..written.end);
            is_given(value, key.family).then(|| written.secret(config_line::kind_of(sign, key)))
        }
        b'|' | b'>' if !sign.equals => config_line::block(view, key, sign),
        // A tag, an alias or an anchor of YAML.
        b'!' | b'*' | b'&' if !sign.equals => None,
        _ => bare(view, key, sign),
    }
}

/// A string of TOML over several lines, in three quotes.
fn triple(view: &View<'_>, key: &Key<'_>, sign: &Sign, quote: u8) -> Option<Secret> {
    let start = sign.value + 3;
    let prefix = match view.settings() {
        Settings::No => printed_line::settings_prefix(view, key.end),
        Settings::File | Settings::Diff => None,
    };
    // A line break after the quotes is not part of the string.
    let start = match printed_line::after_break(view, start) {
        // Only the first line of the string was printed.
        Some(next) if prefix.is_some_and(|prefix| !view.starts_with(next, prefix)) => return None,
        Some(next) => next,
        None => start,
    };
    let mut end = start;
    while end < start + VALUE
        && let Some(next) = triple_step(view, end, quote, prefix)
    {
        end = next;
    }
    let value = view.slice(start..end).trim_ascii();
    // The rules for private keys keep the markers.
    if value.starts_with(b"-----BEGIN ") || !is_given(value, key.family) {
        return None;
    }
    let tail = Tail::Triple { quote, prefix: prefix.map(Box::from) };
    Some(Secret { start, end, tail, kind: config_line::kind_of(sign, key) })
}

/// A value without quotes: to the end of its line, or to the end of its part of `{user: bob, password: x}`.
fn bare(view: &View<'_>, key: &Key<'_>, sign: &Sign) -> Option<Secret> {
    let in_braces = is_in_braces(view, key.start);
    if !in_braces {
        let (line, _) = config_line::line_of(view, key, sign)?;
        // A whole file as a JSON string is read by the rules for any text.
        if view.before(line.start) == Some(b'n') {
            return None;
        }
    }
    let end = view.run(sign.value, VALUE, &LINE);
    let text = view.slice(sign.value..end);
    let ends = |at: &usize| match text[*at] {
        b',' | b'}' => in_braces,
        b'#' | b';' => *at > 0 && BLANK[text[at - 1] as usize],
        _ => false,
    };
    let stop = (0..text.len()).find(ends);
    if stop.is_none() && end == sign.value + VALUE {
        let tail = Tail::Run(&LINE);
        return is_given(text, key.family).then_some(Secret {
            start: sign.value,
            end,
            tail,
            kind: config_line::kind_of(sign, key),
        });
    }
    // A backslash at its end continues a value of `.properties`.
    let is_continued =
        stop.is_none() && text.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
    if is_continued && !in_braces && is_given(text, key.family) {
        let mut end = sign.value;
        while end < sign.value + text.len()
            && let Some(next) = continued_step(view, end)
        {
            end = next;
        }
        let kind = config_line::kind_of(sign, key);
        return Some(Secret { start: sign.value, end, tail: Tail::Continued, kind });
    }
    let value = text[..stop.unwrap_or(text.len())].trim_ascii_end();
    let value = value.strip_suffix(b",").unwrap_or(value);
    is_given(value, key.family).then(|| Secret {
        start: sign.value,
        end: sign.value + value.len(),
        tail: Tail::None,
        kind: config_line::kind_of(sign, key),
    })
}

/// Returns whether the key at `at` follows `{` or `,`, perhaps in quotes.
fn is_in_braces(view: &View<'_>, at: usize) -> bool {
    let at = at - usize::from(matches!(view.before(at), Some(b'"' | b'\'')));
    let at = view.run_before(at, 8, &BLANK);
    matches!(view.before(at), Some(b'{' | b','))
}

/// Returns whether `value` is given here.
fn is_given(value: &[u8], family: Family) -> bool {
    let is_use = family == Family::Token && is_listed(value, USES);
    let is_argument = matches!(value, [b'$', _] | [b'~']);
    !(value.is_empty()
        || is_use
        || is_argument
        || is_filled_in(value)
        || is_listed(value, MISSING)
        || is_path(value)
        || is_url(value))
}
