//! Long hex: 64 or more digits are a key unless the context shows that they are a digest.

use super::{Secret, Tail, kind};
use crate::scrub::view::{ALNUM, Class, HEX, View, bytes, class};

const LEAST: usize = 64;

/// Bytes between a key and its value.
static BETWEEN: Class = bytes(b" \t\"'`\\");
/// Bytes of a digest's key.
static KEY: Class = bytes(b"-a-zA-Z0-9_.");

static SIGN: Class = bytes(b"=:");
/// Bytes before it on the line, except those of a placeholder.
static LINE: Class = class(&[(0x20, 0x5a), (0x5e, 0x7e)]);

/// Words of keys whose hex is public.
const DIGEST_WORDS: &[&str] = &[
    "checksum",
    "digest",
    "hash",
    "integrity",
    "commit",
    "tree",
    "parent",
    "sha256",
    "sha384",
    "sha512",
    "sha3",
    "sha1",
    "sha",
    "sha2",
    "blake2",
    "blake2b",
    "blake2s",
    "blake3",
    "md5",
    "fingerprint",
    "oid",
];

/// A maximal run of hex digits that starts at `at`.
pub(super) fn long(view: &View<'_>, at: usize) -> Option<Secret> {
    if view.follows(at, &HEX) {
        return None;
    }
    let end = view.run(at, LEAST, &HEX);
    if end < at + LEAST {
        return None;
    }
    if is_marked(view, at) || is_sum_line(view, at) || is_old_lock_line(view, at) {
        return None;
    }
    Some(Secret { start: at, end, tail: Tail::Run(&HEX), kind: kind::HEX })
}

/// Returns whether it is marked as a digest: `sha256:` or `sha512-` right before it, or a digest's key:
/// `"digest": "...`, `commit ...`, `checksum = ...`.
fn is_marked(view: &View<'_>, at: usize) -> bool {
    let opened = view.run_before(at, 8, &BETWEEN);
    let sign = match view.before(opened) {
        Some(b':' | b'=' | b'-' | b'>') => opened - 1,
        _ => opened,
    };
    let sign = view.run_before(sign, 2, &SIGN);
    let key_end = view.run_before(sign, 8, &BETWEEN);
    let key_start = view.run_before(key_end, 48, &KEY);
    if sign == at {
        return false;
    }
    let key = view.slice(key_start..key_end).to_ascii_lowercase();
    let mut words = key.split(|byte| !ALNUM[*byte as usize]).filter(|word| !word.is_empty());
    words.any(|word| {
        DIGEST_WORDS.iter().any(|known| word == known.as_bytes() || word.ends_with(known.as_bytes()))
    })
}

/// Returns whether the line is one of `sha256sum`: hex, two spaces or a space and an asterisk, a file name.
fn is_sum_line(view: &View<'_>, at: usize) -> bool {
    if !matches!(view.before(at), None | Some(b'\n' | b'\r' | b'\\' | b'\t' | b' ')) {
        return false;
    }
    let end = view.run(at, 129, &HEX);
    matches!(end - at, 64 | 96 | 128)
        && view.get(end) == Some(b' ')
        && matches!(view.get(end + 1), Some(b' ' | b'*'))
        && view.get(end + 2).is_some_and(|byte| byte > b' ')
}

/// Returns whether the line is one of an old `Cargo.lock`: `"checksum name 1.0.0 (source)" = "hex"`.
fn is_old_lock_line(view: &View<'_>, at: usize) -> bool {
    let start = view.run_before(at, 200, &LINE);
    view.slice(start..at).starts_with(b"\"checksum ")
}
