//! Passwords in URLs: `scheme://user:password@host`.
//!
//! Only the password is redacted: user, host and path tell which system is meant. A password that is a
//! variable (`${PASS}`, `{password}`, `%s`, `<password>`) stays.

use claw_core::redact::PLACEHOLDER;

use super::{Secret, Tail, kind, value};
use crate::scrub::view::{ALNUM, Class, View, printable_but};

/// The longest `user:password@host` that is considered.
const AUTHORITY: usize = 512;

/// Bytes of an authority: everything printable but spaces, quotes and what ends it.
static AUTHORITY_BYTES: Class = printable_but(b"\"'`/?#\\");

/// The password after the `://` at `at`.
pub(super) fn password(view: &View<'_>, at: usize) -> Option<Secret> {
    if !view.follows(at, &ALNUM) {
        return None;
    }
    let user = at + 3;
    let end = view.run(user, AUTHORITY, &AUTHORITY_BYTES);
    if end == user + AUTHORITY {
        return None;
    }
    let authority = view.slice(user..end);
    // The part already redacted may be the host; the password stands before it.
    let placeholder = memchr::memmem::find(authority, PLACEHOLDER.as_bytes());
    let authority = &authority[..placeholder.unwrap_or(authority.len())];
    let sign = memchr::memrchr(b'@', authority)?;
    let colon = memchr::memchr(b':', authority.get(..sign)?)?;
    let password = authority.get(colon + 1..sign)?;
    if password.is_empty() || value::is_variable(password) {
        return None;
    }
    Some(Secret { start: user + colon + 1, end: user + sign, tail: Tail::None, kind: kind::URL })
}
