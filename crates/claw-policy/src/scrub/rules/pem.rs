//! PEM private keys, whole or cut.
//!
//! The markers stay readable, the text between them is redacted. A block is recognised in three ways: a
//! `BEGIN` marker followed by a body, an `END` marker after the last body line, and body lines with no
//! `BEGIN` in sight. Certificates, public keys and other base64 stay.

use super::{
    Secret, Tail, kind,
    pem_line::{self, Line},
};
use crate::scrub::view::{BASE64, BASE64_PAD, BLANK, Class, View, bytes, class};

/// The longest block that is examined to decide about lines without a `BEGIN`.
const BLOCK: usize = 16 * 1024;
/// Number of header lines of an encrypted key.
const HEADERS: usize = 8;
/// Number of lines that count as a key without any marker.
const UNMARKED: usize = 3;
/// Beginnings of public base64: images, archives, documents, public keys.
const PUBLIC: &[&[u8]] = &[
    b"iVBOR",
    b"/9j/",
    b"R0lGOD",
    b"UklGR",
    b"UEsDB",
    b"H4sI",
    b"JVBERi",
    b"PD94",
    b"PHN2",
    b"MIIBIjANBg",
    b"MIICIjANBg",
];

static LABEL: Class = bytes(b"A-Z0-9 ");
static HEADER_NAME: Class = bytes(b"-A-Za-z");
/// Bytes of a header's value: no line break, and no placeholder.
static HEADER_VALUE: Class = class(&[(b'\t', b'\t'), (0x20, 0x5a), (0x5c, 0xff)]);

/// `-----BEGIN ... PRIVATE KEY-----` at `at`, followed by a body.
pub(super) fn begin(view: &View<'_>, at: usize) -> Option<Secret> {
    let Marker::Private(after) = marker(view, at, b"-----BEGIN ")? else { return None };
    let start = body_after(view, after)?;
    Some(Secret { start, end: start, tail: Tail::Pem, kind: kind::PEM })
}

/// `-----END ... PRIVATE KEY-----` at `at`, after a last body line whose block was cut off.
pub(super) fn end(view: &View<'_>, at: usize) -> Option<Secret> {
    let Marker::Private(_) = marker(view, at, b"-----END ")? else { return None };
    let line_start = pem_line::start_of(view, at)?;
    let before = pem_line::before(view, line_start)?;
    (pem_line::prefix_end(view, line_start) == at && before.is_part()).then_some(Secret {
        start: before.start,
        end: before.end,
        tail: Tail::None,
        kind: kind::PEM,
    })
}

/// Body lines without a `BEGIN`; the first full line contains the run that starts at `at`.
pub(super) fn cut(view: &View<'_>, at: usize) -> Option<Secret> {
    if view.follows(at, &BASE64) || view.run(at, pem_line::FULL, &BASE64) < at + pem_line::FULL {
        return None;
    }
    let line_start = pem_line::start_of(view, at + 1)?;
    let line = Line::parse(view, line_start)?;
    if !line.is_full() || line.start > at + 1 {
        return None;
    }
    let before = pem_line::before(view, line_start);
    if before.as_ref().is_some_and(Line::is_full) || follows_begin(view, line_start) {
        return None;
    }
    let secret = match judge_block(view, &line)? {
        Block::Private => true,
        Block::Public => false,
        Block::Unmarked(lines) => {
            let lines = lines + usize::from(before.as_ref().is_some_and(Line::is_part));
            lines >= UNMARKED && !line.quoted && !is_public(view, line.start)
        }
    };
    let start = before.filter(Line::is_part).map_or(line.start, |before| before.start);
    secret.then_some(Secret { start, end: line.start, tail: Tail::Pem, kind: kind::PEM })
}

/// The next position inside a body; `None` at its end.
pub(super) fn body_step(view: &View<'_>, at: usize) -> Option<usize> {
    if view.is(at, &BASE64_PAD) {
        return Some(at + 1);
    }
    if let Some(next) = pem_line::line_break(view, at) {
        let line = Line::parse(view, next)?;
        let goes_on = line.is_body() || line.next.is_some_and(|after| ends_private(view, after));
        return goes_on.then_some(line.start);
    }
    let run = view.run(at, 4, &BLANK);
    (run > at && is_joined(view, run)).then_some(run)
}

/// The start of the line before `line_start` if it may turn out to be the first of a cut block.
pub(in crate::scrub) fn held_line_start(
    text: &[u8],
    floor: Option<usize>,
    line_start: usize,
) -> Option<usize> {
    let view = View::new(text, floor, line_start);
    pem_line::before(&view, line_start).filter(Line::is_part).map(|line| line.start)
}

enum Marker {
    /// The end of the marker.
    Private(usize),
    Other,
}

fn marker(view: &View<'_>, at: usize, opening: &[u8]) -> Option<Marker> {
    if !view.starts_with(at, opening) {
        return None;
    }
    let label = at + opening.len();
    let end = view.run(label, 48, &LABEL);
    if !view.starts_with(end, b"-----") {
        return None;
    }
    let name = view.slice(label..end);
    let private = name.ends_with(b"PRIVATE KEY") || name.ends_with(b"PRIVATE KEY BLOCK");
    Some(if private { Marker::Private(end + 5) } else { Marker::Other })
}

fn ends_private(view: &View<'_>, line_start: usize) -> bool {
    let at = pem_line::prefix_end(view, line_start);
    matches!(marker(view, at, b"-----END "), Some(Marker::Private(_)))
}

/// The first byte of the body after a `BEGIN` marker that ends at `at`.
fn body_after(view: &View<'_>, at: usize) -> Option<usize> {
    let Some(mut line_start) = pem_line::line_break(view, at) else {
        let start = view.run(at, 4, &BLANK);
        return is_joined(view, start).then_some(start);
    };
    for _ in 0..HEADERS {
        if let Some(line) = Line::parse(view, line_start) {
            return (line.is_body() || line.next.is_some_and(|next| ends_private(view, next)))
                .then_some(line.start);
        }
        let name = pem_line::prefix_end(view, line_start);
        let colon = view.run(name, 24, &HEADER_NAME);
        let rest = if view.get(colon) == Some(b':') { view.run(colon, 96, &HEADER_VALUE) } else { name };
        line_start = pem_line::line_break(view, rest)?;
    }
    None
}

/// Returns whether a body continues at `at` after a space instead of a line break.
fn is_joined(view: &View<'_>, at: usize) -> bool {
    let end = view.run(at, 80, &BASE64);
    let padded = view.run(end, 2, &BASE64_PAD);
    pem_line::is_mixed(view.slice(at..end), 16)
        || (padded > at && ends_private(view, view.run(padded, 1, &BLANK)))
}

enum Block {
    Private,
    Public,
    /// No `END` follows this many lines.
    Unmarked(usize),
}

/// Classifies the block whose first full line is `first`; `None` if it is too long to be a key.
fn judge_block(view: &View<'_>, first: &Line) -> Option<Block> {
    let mut lines = 1;
    let mut at = first.next;
    while let Some(line_start) = at {
        if line_start - first.start > BLOCK {
            return None;
        }
        let Some(line) = Line::parse(view, line_start) else { break };
        at = line.next;
        lines += usize::from(line.is_body());
        if !line.is_full() {
            break;
        }
    }
    let Some(mut line_start) = at else { return Some(Block::Unmarked(lines)) };
    if view.get(line_start) == Some(b'=') {
        // The checksum line of OpenPGP.
        line_start = pem_line::line_break(view, view.run(line_start, 8, &BASE64_PAD))?;
    }
    Some(match marker(view, pem_line::prefix_end(view, line_start), b"-----END ") {
        Some(Marker::Private(_)) => Block::Private,
        Some(Marker::Other) => Block::Public,
        None => Block::Unmarked(lines),
    })
}

/// Returns whether a `BEGIN` marker precedes, which has already decided about this block.
fn follows_begin(view: &View<'_>, line_start: usize) -> bool {
    let before = view.slice(view.lowest()..line_start);
    let marker = memchr::memmem::rfind(before, b"-----BEGIN ");
    let placeholder = memchr::memmem::rfind(before, claw_core::redact::PLACEHOLDER.as_bytes());
    marker.is_some() && marker > placeholder
}

/// Returns whether base64 is of a known public format; a certificate is a sequence in a sequence.
fn is_public(view: &View<'_>, at: usize) -> bool {
    PUBLIC.iter().any(|start| view.starts_with(at, start))
        || (view.starts_with(at, b"MII") && view.starts_with(at + 6, b"CC"))
}
