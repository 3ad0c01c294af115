//! Python among the programs that a registered program may execute: it must not import what an agent left in the
//! directory that it starts in.
//!
//! Says nothing about scripts that Python is told to run: the presets deny the arguments that would name one.

use std::fs;
use std::path::Path;

/// Variables of a program that may execute Python: modules come from Python's own directories, never from the directory
/// that it starts in or from a home.
pub(super) const VARIABLES: &[(&str, &str)] = &[("PYTHONNOUSERSITE", "1"), ("PYTHONSAFEPATH", "1")];

/// The first Python that obeys `PYTHONSAFEPATH`.
const FIRST_SAFE: (u32, u32) = (3, 11);

/// Returns whether a path is Python, by the name of its file: `python3`, `python3.13t`, `python3-dbg`.
pub(super) fn is_python(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let version = name.strip_prefix("python").filter(|version| !version.ends_with("-config"));
    version.is_some_and(|version| !version.starts_with(char::is_alphabetic))
}

/// Returns whether a Python obeys [`VARIABLES`]. `path` is its real file. A Python whose version is unknown does not.
/// Asks the file system.
pub(super) fn is_safe(path: &Path) -> bool {
    of_name(path, "python").or_else(|| of_library(path)).is_some_and(|version| version >= FIRST_SAFE)
}

/// The version in a file's name, after `before`: `python3.12`.
fn of_name(path: &Path, before: &str) -> Option<(u32, u32)> {
    let (major, minor) = path.file_name()?.to_str()?.strip_prefix(before)?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The version of the only standard library beside the directory of the program, as in `bin/python3` and
/// `lib/python3.12`. Python finds its library there.
fn of_library(path: &Path) -> Option<(u32, u32)> {
    let libraries = path.parent()?.parent()?.join("lib");
    let entries = fs::read_dir(libraries).ok()?.flatten();
    let mut versions = entries.filter_map(|entry| of_name(&entry.path(), "python"));
    versions.next().filter(|first| versions.all(|version| version == *first))
}

#[cfg(test)]
mod tests;
