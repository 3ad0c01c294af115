//! Lines of configuration: `password = swordfish`, `POSTGRES_PASSWORD: swordfish`, `host=db password=letmein`.
//!
//! Here the value of a secret's key is redacted however plain it looks. The file's name is not known, so the
//! shape of the line must show that it is configuration ([`config_file`](super::config_file) is for known files): only the key before the sign, only the value
//! after it. A line that may be code (`self.password = password`, `password: String,`) is left to the rules
//! for any text.

use super::{
    Secret, Tail,
    key_name::{self, Family},
    key_value::{self, Sign, Written},
    kind, plain_value,
    printed_line::{self, Line},
    tail::triple_step,
};
use crate::scrub::view::{BLANK, Class, View, WORD, bytes, printable_but};

/// Bytes of a value that are examined.
const VALUE: usize = 256;
/// Bytes of the neighbouring pair that are examined.
const NEIGHBOUR: usize = 80;

/// Bytes of a setting's value, which ends at a space; quotes and backslashes belong to the text around it.
static VALUE_BYTES: Class = printable_but(b"\"'`\\");
/// Bytes of a pair beside another.
static PAIR_BYTES: Class = printable_but(b"\"'`\\,;()[]{}<>&|");
static SEPARATOR: Class = bytes(b" \t;");
static BLOCK_MARK: Class = bytes(b"-|>+0-9");

/// The key of a pair.
pub(super) struct Key<'t> {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) text: &'t [u8],
    pub(super) family: Family,
    /// The key has no lower-case letter.
    pub(super) upper: bool,
}

/// The value after `sign`, if `key` and `sign` are in a line of configuration.
pub(super) fn value(view: &View<'_>, key: &Key<'_>, sign: &Sign) -> Option<Secret> {
    if !sign.plain || !key_name::takes_any_word(key.text, key.family, key.upper) {
        return None;
    }
    match view.get(sign.value)? {
        quote @ (b'"' | b'\'') => quoted(view, key, sign, quote),
        b'|' | b'>' if !sign.equals => block(view, key, sign),
        _ => alone(view, key, sign).or_else(|| beside(view, key, sign)),
    }
}

/// A bare value with nothing after it on its line.
fn alone(view: &View<'_>, key: &Key<'_>, sign: &Sign) -> Option<Secret> {
    let end = view.run(sign.value, VALUE, &VALUE_BYTES);
    let value = view.slice(sign.value..end);
    let is_long = end == sign.value + VALUE;
    if value.is_empty() || !(is_long || printed_line::ends(view, end)) || holds_pairs(value) {
        return None;
    }
    let (line, whole) = line_of(view, key, sign)?;
    let place = plain_value::Place {
        upper: key.upper,
        tight: sign.equals && sign.tight,
        dotted: whole.contains(&b'.'),
        family: key.family,
    };
    if sign.tight && !sign.equals || !plain_value::is_value(value, whole, &place) {
        return None;
    }
    // Code sets variables and fields too, mostly indented: `key = value` must be at the start of a line or in
    // a section.
    let loose = sign.equals && !sign.tight;
    if loose
        && (plain_value::is_field_of_code(whole)
            || line.indent > 0 && !printed_line::in_section(view, line.start))
    {
        return None;
    }
    Some(Secret { start: sign.value, end, tail: Tail::Run(&VALUE_BYTES), kind: kind_of(sign, key) })
}

/// A bare value among other pairs: `host=db password=letmein`, `Uid=sa;Pwd=letmein`, `?user=x&password=letmein`.
fn beside(view: &View<'_>, key: &Key<'_>, sign: &Sign) -> Option<Secret> {
    if key.family != Family::Password || !(sign.equals && sign.tight) {
        return None;
    }
    let end = view.run(sign.value, VALUE, &PAIR_BYTES);
    let value = view.slice(sign.value..end);
    let closed = match view.get(end) {
        Some(b',' | b')' | b'(' | b'[' | b'{' | b'<') => return None,
        _ => !view.starts_with_placeholder(end),
    };
    let place = plain_value::Place { upper: key.upper, tight: true, dotted: true, family: key.family };
    if value.is_empty() || !closed || !plain_value::is_value(value, key.text, &place) {
        return None;
    }
    let flag = key.text.starts_with(b"--") && !value.iter().all(|byte| byte.is_ascii_uppercase());
    let parameter = matches!(view.before(key.start), Some(b'?' | b'&'));
    let found = flag || parameter || pair_before(view, key.start) || pair_after(view, end);
    found.then_some(Secret { start: sign.value, end, tail: Tail::Run(&PAIR_BYTES), kind: kind_of(sign, key) })
}

/// Returns whether a pair, or a redacted one, precedes the one at `at`.
fn pair_before(view: &View<'_>, at: usize) -> bool {
    let end = view.run_before(at, 4, &SEPARATOR);
    if end == at {
        return false;
    }
    if view.follows_redaction(end) {
        return true;
    }
    let start = view.run_before(end, NEIGHBOUR, &PAIR_BYTES);
    is_pair(view.slice(start..end))
}

fn pair_after(view: &View<'_>, at: usize) -> bool {
    let start = view.run(at, 4, &SEPARATOR);
    if start == at {
        return false;
    }
    let sign = view.run(start, 32, &WORD);
    sign > start
        && view.get(sign) == Some(b'=')
        && view.get(sign + 1).is_some_and(|byte| byte != b'=' && byte > b' ')
}

fn is_pair(pair: &[u8]) -> bool {
    let name = pair.iter().take_while(|byte| WORD[**byte as usize] || b".-".contains(*byte)).count();
    name > 0 && pair.get(name) == Some(&b'=') && pair.get(name + 1).is_some_and(|byte| *byte != b'=')
}

/// Returns whether what looks like one value contains more pairs: `letmein;Server=db`.
fn holds_pairs(value: &[u8]) -> bool {
    value.split(|byte| matches!(byte, b';' | b'&' | b',')).skip(1).any(is_pair)
}

/// A quoted value with at most a comma after it.
fn quoted(view: &View<'_>, key: &Key<'_>, sign: &Sign, quote: u8) -> Option<Secret> {
    let three = view.get(sign.value + 1) == Some(quote) && view.get(sign.value + 2) == Some(quote);
    let quotes = if three { 3 } else { 1 };
    if three && let Some(below) = printed_line::after_break(view, sign.value + quotes) {
        return below_quotes(view, key, sign, quote, below);
    }
    let written: Written = key_value::quoted(view, sign.value + quotes, quote, false);
    let value = view.slice(written.start..written.end);
    let close = written.end;
    if !plain_value::is_quoted_value(value, key.text, key.family) || view.get(close) != Some(quote) {
        return None;
    }
    let after = close + quotes;
    let after = after + usize::from(view.get(after) == Some(b','));
    if !printed_line::ends(view, after) {
        return None;
    }
    line_of(view, key, sign)?;
    Some(written.secret(kind_of(sign, key)))
}

/// A string of TOML in three quotes, from the line below them on. Where code may stand, its end must be near.
fn below_quotes(view: &View<'_>, key: &Key<'_>, sign: &Sign, quote: u8, below: usize) -> Option<Secret> {
    let (line, whole) = line_of(view, key, sign)?;
    let may_be_code = plain_value::is_field_of_code(whole)
        || line.indent > 0 && !printed_line::in_section(view, line.start);
    if !sign.equals || may_be_code {
        return None;
    }
    let text = if line.numbered { printed_line::after_number(view, below)? } else { below };
    let mut end = text;
    while end < text + VALUE
        && let Some(next) = triple_step(view, end, quote, None)
    {
        end = next;
    }
    let is_closed = view.starts_with(end, &[quote; 3]) && printed_line::ends(view, end + 3);
    let value = view.slice(text..end).trim_ascii();
    let is_secret = is_closed
        && !value.is_empty()
        && plain_value::is_any_value(value)
        // The rules for private keys keep the markers.
        && !value.starts_with(b"-----BEGIN ");
    is_secret.then_some(Secret { start: below, end, tail: Tail::None, kind: kind_of(sign, key) })
}

/// A YAML block: `password: |` and the lines below that are indented deeper.
pub(super) fn block(view: &View<'_>, key: &Key<'_>, sign: &Sign) -> Option<Secret> {
    let end = view.run(sign.value, 4, &BLOCK_MARK);
    let end = view.run(end, 8, &BLANK);
    let below = printed_line::after_break(view, end)?;
    let (line, _) = line_of(view, key, sign)?;
    let start = printed_line::deeper(view, below, line.indent, line.numbered)?;
    // The rules for private keys keep the markers.
    if view.starts_with_placeholder(start) || view.starts_with(start, b"-----BEGIN ") {
        return None;
    }
    let tail = Tail::Block { indent: line.indent, numbered: line.numbered };
    Some(Secret { start, end: start, tail, kind: kind_of(sign, key) })
}

/// The value of a directive, which has no sign: `requirepass foobared`, `login bob password letmein`.
pub(super) fn directive(view: &View<'_>, key: &[u8], key_start: usize, value: usize) -> Option<Secret> {
    let netrc = key == b"password";
    if !netrc && !key_name::is_directive(key) {
        return None;
    }
    let quote = view.get(value).filter(|byte| !netrc && matches!(byte, b'"' | b'\''));
    let start = value + usize::from(quote.is_some());
    let end = view.run(start, VALUE, &VALUE_BYTES);
    if end == start || !plain_value::is_any_value(view.slice(start..end)) || view.starts_with_placeholder(end)
    {
        return None;
    }
    let stands = match netrc {
        true => printed_line::follows_login(view, key_start),
        false => {
            printed_line::ends(view, end + usize::from(quote.is_some()))
                && printed_line::of(view, key_start, true).is_some()
        }
    };
    let tail = Tail::Run(&VALUE_BYTES);
    stands.then_some(Secret { start, end, tail, kind: kind::PAIR })
}

/// The password of a line of `.pgpass`, whose port is at `at`: `host:5432:database:user:password`.
pub(super) fn pgpass(view: &View<'_>, at: usize, port: usize) -> Option<Secret> {
    static HOST: Class = bytes(b"-0-9a-zA-Z_.*");
    static NAME: Class = printable_but(b"\"'`\\:()[]{}<>,;|/");
    let host = view.run_before(at, 64, &HOST);
    let database = view.run(at + port, 64, &NAME);
    let user = view.run(database + 1, 64, &NAME);
    let start = user + 1;
    if host == at || database == at + port || user == database + 1 {
        return None;
    }
    if view.get(database) != Some(b':') || view.get(user) != Some(b':') {
        return None;
    }
    let end = view.run(start, VALUE, &VALUE_BYTES);
    let value = view.slice(start..end);
    let secret = end > start && plain_value::is_any_value(value) && printed_line::ends(view, end);
    secret.then_some(Secret { start, end, tail: Tail::Run(&VALUE_BYTES), kind: kind::PAIR })
}

/// The line whose first word is `key`, and the whole key: long keys are read further than by the rules for
/// any text.
pub(super) fn line_of<'t>(view: &View<'t>, key: &Key<'_>, sign: &Sign) -> Option<(Line, &'t [u8])> {
    let start = view.run_before(key.start, 2 * key_name::LONGEST, &key_value::KEY_BEFORE);
    // The `n` of a line break written `\n` does not belong to the key.
    let start = start + usize::from(view.before(start) == Some(b'\\') && view.get(start) == Some(b'n'));
    let may_be_context = view.slice(start..key.start).contains(&b'-');
    let context = may_be_context.then(|| printed_line::context_end(view, key.end)).flatten();
    let start = context.filter(|end| *end <= key.start).map_or(start, |end| start.max(end));
    let line = printed_line::of(view, start, sign.equals)?;
    Some((line, view.slice(start..key.end)))
}

pub(super) fn kind_of(sign: &Sign, key: &Key<'_>) -> &'static str {
    if key.upper && sign.equals && sign.tight { kind::ENV } else { kind::PAIR }
}
