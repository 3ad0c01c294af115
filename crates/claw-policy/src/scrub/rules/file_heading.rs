//! Lines that say which file the text below them is from: `+++ b/.env` in a diff, `==> .env <==` of `head` and `tail`.

use super::printed_line;
use crate::scrub::{
    config_file_names,
    view::{Class, Settings, View, class},
};

/// Bytes of a file's name that are examined.
const NAME: usize = 160;

/// The start of the line that names the new file in a diff.
pub(super) const DIFF: &str = "+++ ";
/// The start of the line that `head` and `tail` print above each of several files.
pub(super) const HEAD: &str = "==> ";

/// Bytes of a name: up to the end of the line, or to the tab before a date.
static NAME_BYTES: Class = class(&[(0x00, 0x08), (0x0b, 0x0c), (0x0e, 0xff)]);

/// The kind of the text below the heading at `at`; `None` if the line is no heading.
pub(super) fn below(view: &View<'_>, at: usize) -> Option<Settings> {
    if !matches!(view.before(at), None | Some(b'\n')) {
        return None;
    }
    let start = at + DIFF.len();
    let end = view.run(start, NAME, &NAME_BYTES);
    if !matches!(view.get(end), None | Some(b'\n' | b'\r' | b'\t')) {
        return None;
    }
    let name = view.slice(start..end);
    if view.get(at) == Some(b'=') {
        let name = name.strip_suffix(b" <==")?;
        return Some(if config_file_names::is_settings_name(name) { Settings::File } else { Settings::No });
    }
    let before = old_name(view, at)?;
    let settings = [before, name].into_iter().any(|name| config_file_names::is_settings_name(unquoted(name)));
    Some(if settings { Settings::Diff } else { Settings::No })
}

/// The name of the old file, in the line above: a deleted file has no new one.
fn old_name<'t>(view: &View<'t>, at: usize) -> Option<&'t [u8]> {
    let end = at.checked_sub(1)?;
    let end = end - usize::from(view.before(end) == Some(b'\r'));
    let line = view.slice(printed_line::start_of(view, end)?..end);
    let name = line.strip_prefix(b"--- ")?;
    name.split(|byte| matches!(byte, b'\t' | b'\r')).next()
}

/// The name without the quotes that git puts around unusual ones.
fn unquoted(name: &[u8]) -> &[u8] {
    name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")).unwrap_or(name)
}
