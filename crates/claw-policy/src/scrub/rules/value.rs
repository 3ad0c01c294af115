//! Decides whether a value is a secret or something else that follows a secret's key: a placeholder, a
//! variable, a type, a call, a word of prose, a path.

use claw_core::redact::PLACEHOLDER;

use super::key_name::Family;

/// The way in which a value is written, from the least doubtful to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// In quotes: a literal.
    Quoted,
    /// `UPPER_CASE=value`, without spaces.
    Variable,
    /// `key=value`, without spaces.
    Tight,
    /// `key: value` and nothing else on the line.
    Line,
    /// `key = value`, `key: value,`, `--key value`.
    Loose,
}

/// Words for a missing or described value.
const ABSENT: &[&str] = &[
    "none",
    "null",
    "nil",
    "undefined",
    "true",
    "false",
    "yes",
    "no",
    "on",
    "off",
    "empty",
    "unset",
    "missing",
    "invalid",
    "required",
    "optional",
    "string",
    "str",
    "text",
    "number",
    "integer",
    "int",
    "boolean",
    "bool",
    "object",
    "array",
    "any",
    "default",
    "auto",
    "hidden",
    "redacted",
    "masked",
    "prompt",
    "expired",
    "revoked",
    "unknown",
    "disabled",
    "enabled",
    "forgot",
    "reset",
    "generated",
    "stdin",
    "env",
    "file",
    "vault",
    "keyring",
    "incorrect",
    "wrong",
    "valid",
];
/// Words that name a value.
const NAMED: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "value",
    "key",
    "bearer",
    "basic",
    "username",
    "email",
    "credentials",
    "credential",
    "private",
    "public",
];
/// Parts that only made-up values contain.
const MADE_UP: &[&str] = &[
    "your",
    "example",
    "changeme",
    "placeholder",
    "dummy",
    "redacted",
    "masked",
    "replace",
    "insert",
    "sample",
    "fake",
    "omitted",
    "removed",
    "todo",
    "xxx",
    "xxxx",
    "xxxxx",
    "hidden",
];
/// Words that turn several words into a sentence.
const PROSE: &[&str] = &[
    "the", "a", "an", "is", "are", "your", "must", "to", "for", "be", "not", "of", "or", "enter", "invalid",
    "with", "at", "and", "in", "this", "has", "was", "please", "should", "can", "required", "no",
];
/// Words with digits in them that do not indicate randomness.
const DIGIT_WORDS: &[&str] = &[
    "base64",
    "utf8",
    "k8s",
    "sha1",
    "sha256",
    "sha512",
    "oauth2",
    "md5",
    "s3",
    "i18n",
    "x509",
    "ed25519",
    "ec2",
    "b64",
    "aes256",
    "http2",
    "ipv4",
    "ipv6",
    "2fa",
    "v1beta1",
    "v1alpha1",
    "argon2",
    "pbkdf2",
    "u8",
    "p256",
    "secp256k1",
];

/// Returns whether `value`, written in `style` after a key of `family`, is a secret.
pub(super) fn is_secret(value: &[u8], family: Family, style: Style) -> bool {
    if value.is_empty() || is_filled_in(value) {
        return false;
    }
    if family == Family::Virtual {
        return style == Style::Variable || style == Style::Quoted;
    }
    if is_made_up(value) {
        return false;
    }
    let password = family == Family::Password;
    let least = match style {
        Style::Quoted if password => 4,
        _ if password => 6,
        _ => 8,
    };
    if value.len() < least || is_path(value) || (value.contains(&b' ') && (!password || is_prose(value))) {
        return false;
    }
    let mixed = has_digit(value) && !is_number(value);
    match style {
        Style::Quoted if password => !is_dotted_name(value) && !is_screaming(value),
        Style::Quoted => !is_name(value) || value.len() >= 24 && !has_sign(value),
        Style::Variable if password => !is_screaming(value),
        Style::Variable => !is_screaming(value) && !is_number(value) && (mixed || !is_code(value)),
        Style::Tight | Style::Line if password => mixed && !is_dotted_name(value) || !is_name(value),
        Style::Tight | Style::Line | Style::Loose => mixed && !is_name(value),
    }
}

/// Returns whether a part of `value` is filled in later, or was redacted before.
pub(super) fn is_filled_in(value: &[u8]) -> bool {
    let has = |part: &[u8]| memchr::memmem::find(value, part).is_some();
    is_variable(value) || has(b"${") || has(b"$(") || has(b"{{") || has(PLACEHOLDER.as_bytes())
}

/// Returns whether `value` stands for another: `$NAME`, `${NAME}`, `{{name}}`, `%s`, `<name>`, `***`, `xxxx`.
pub(in crate::scrub) fn is_variable(value: &[u8]) -> bool {
    let name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.:-{}()$".contains(byte);
    match value {
        [b'$', rest @ ..] if !rest.first().is_some_and(u8::is_ascii_digit) => rest.iter().all(name),
        [b'%', rest @ ..] => rest.len() < 4 || rest.ends_with(b"%"),
        [b'<', .., b'>'] | [b'{', .., b'}'] | [b'#', b'{', ..] => true,
        _ => value.iter().all(|byte| b"*xX.-_?#".contains(byte)),
    }
}

/// Returns whether `value` is written like a name in code: words of letters, each with a few digits at its
/// end.
pub(super) fn is_name(value: &[u8]) -> bool {
    let mut parts = 0;
    let mut letters = 0;
    for piece in value.split(|byte| b"_-.:/?!".contains(byte)).filter(|piece| !piece.is_empty()) {
        if !piece.iter().all(u8::is_ascii_alphanumeric) {
            return false;
        }
        if piece.len() <= 3 && piece.iter().all(u8::is_ascii_digit) {
            continue;
        }
        letters += piece.len();
        parts += if is_listed(piece, DIGIT_WORDS) { 1 } else { humps(piece).unwrap_or(usize::MAX / 4) };
        if parts > value.len() {
            return false;
        }
    }
    // Random text has short words: the more words, the longer they must be on average.
    letters >= parts * parts.clamp(2, 4)
}

/// Number of words in a piece of camel case; `None` if letters follow digits or many digits follow letters.
fn humps(piece: &[u8]) -> Option<usize> {
    let mut count = 1;
    let mut digits = 0;
    let mut previous = 0_u8;
    for &byte in piece {
        match byte {
            b'0'..=b'9' => digits += 1,
            b'A'..=b'Z' if digits > 0 || previous.is_ascii_lowercase() => (count, digits) = (count + 1, 0),
            b'A'..=b'Z' => {}
            _ if digits > 0 => return None,
            _ => {}
        }
        if digits > 3 {
            return None;
        }
        previous = byte;
    }
    (!piece.first()?.is_ascii_digit() || piece.len() <= 3).then_some(count)
}

/// Returns whether `value` is a word for a missing or described value.
pub(super) fn is_absent(value: &[u8]) -> bool {
    is_listed(value, ABSENT)
}

pub(super) fn is_url(value: &[u8]) -> bool {
    memchr::memmem::find(value, b"://").is_some()
}

pub(super) fn is_made_up(value: &[u8]) -> bool {
    is_absent(value) || is_listed(value, NAMED) || is_example(value)
}

/// Returns whether the value is to be replaced: `your-token`, `changeme`, `abc...`.
pub(super) fn is_example(value: &[u8]) -> bool {
    value.split(|byte| !byte.is_ascii_alphanumeric()).any(|piece| is_listed(piece, MADE_UP))
        || memchr::memmem::find(value, b"...").is_some()
}

/// Returns whether the value is words and numbers that start like a sentence or contain a word of one.
fn is_prose(value: &[u8]) -> bool {
    let letters = |byte: &u8| byte.is_ascii_alphabetic() || b",.:;!?'-()".contains(byte) || !byte.is_ascii();
    let mut words = value.split(|byte| *byte == b' ');
    words.clone().all(|word| word.iter().all(letters) || word.iter().all(u8::is_ascii_digit))
        && (value.first().is_some_and(u8::is_ascii_uppercase) || words.any(|word| is_listed(word, PROSE)))
}

/// Returns whether the value is a path: `/run/secrets/name`, `./key.pem`, `~/.ssh/id`, `C:\keys`.
pub(super) fn is_path(value: &[u8]) -> bool {
    let (rooted, segments) = match value {
        [b'.', b'/', rest @ ..] | [b'~', b'/', rest @ ..] | [b'.', b'.', b'/', rest @ ..] => (true, rest),
        [b'/', rest @ ..] => (rest.contains(&b'/'), rest),
        [drive, b':', b'\\', rest @ ..] if drive.is_ascii_alphabetic() => (true, rest),
        _ => return false,
    };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/\\._-@ ".contains(byte);
    let digits = segments.iter().filter(|byte| byte.is_ascii_digit()).count();
    rooted && segments.iter().all(plain) && digits * 4 <= segments.len()
}

/// Returns whether the value is letters with dots between them: `auth.password.label`.
pub(super) fn is_dotted_name(value: &[u8]) -> bool {
    value.contains(&b'.')
        && value.iter().all(|byte| byte.is_ascii_alphabetic() || b"._".contains(byte))
        && value.first().is_some_and(u8::is_ascii_alphabetic)
        && !value.ends_with(b".")
}

/// Returns whether the value is a constant's name: `CHANGE_THIS`.
pub(super) fn is_screaming(value: &[u8]) -> bool {
    value.contains(&b'_') && value.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_')
}

/// Returns whether the value is code: `self.key`, `os.environ`, `Key::new`.
fn is_code(value: &[u8]) -> bool {
    is_dotted_name(value) || memchr::memmem::find(value, b"::").is_some()
}

/// Returns whether the value is a number: `4096`, `1.5`, `8529u32`, `0x8009030D`.
pub(super) fn is_number(value: &[u8]) -> bool {
    const TYPES: &[&str] =
        &["u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize", "f32", "f64", "UL", "L"];
    let untyped = TYPES.iter().find_map(|name| value.strip_suffix(name.as_bytes())).unwrap_or(value);
    match untyped.strip_prefix(b"0x") {
        Some(digits) => {
            digits.len() <= 17 && digits.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'_')
        }
        None => untyped.iter().all(|byte| byte.is_ascii_digit() || b"._-+".contains(byte)),
    }
}

fn has_digit(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit)
}

fn has_sign(value: &[u8]) -> bool {
    !value.iter().all(u8::is_ascii_alphanumeric)
}

pub(super) fn is_listed(word: &[u8], list: &[&str]) -> bool {
    list.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}
