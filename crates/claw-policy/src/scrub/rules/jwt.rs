//! JSON web tokens, signed or encrypted.
//!
//! A single `eyJ...` is base64 of any JSON object and stays; the second part makes it a token.

use super::{Secret, Tail, kind};
use crate::scrub::view::{BASE64_URL, BASE64_URL_DOT, View};

/// The longest header that is considered.
const HEADER: usize = 1024;

/// An `eyJ` header, a dot, and at least 16 characters of the next part; the following parts belong to it.
pub(super) fn token(view: &View<'_>, at: usize) -> Option<Secret> {
    if view.follows(at, &BASE64_URL) || !view.starts_with(at, b"eyJ") {
        return None;
    }
    let dot = view.run(at, HEADER, &BASE64_URL);
    if dot - at < 10 || view.get(dot) != Some(b'.') {
        return None;
    }
    let end = view.run(dot + 1, 16, &BASE64_URL);
    (end == dot + 17).then_some(Secret { start: at, end, tail: Tail::Run(&BASE64_URL_DOT), kind: kind::JWT })
}
