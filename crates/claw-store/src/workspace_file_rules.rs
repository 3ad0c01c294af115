//! The rules for workspace files that both databases share: valid paths, allowed operations, and the range of
//! paths below a directory.

use std::collections::HashMap;

use claw_core::port::{Expect, Quota, Stat, UnixMillis, Version};
use claw_core::store::{DEEPEST_PATH, FileChange, FileError, LARGEST_FILE, LONGEST_PATH, StoreError};
use claw_core::tool::Digest;

use crate::row;

/// The characters of a path in the index of paths below a directory. The migrations repeat this number.
const HEAD: usize = 200;
/// The version of every directory.
const DIRECTORY: &str = "directory";

/// A path and every directory that leads there, with the digests that are their row keys; the top first.
#[derive(Debug)]
pub(crate) struct Way(Vec<(String, String)>);

impl Way {
    /// Returns the directories on the way to a path and the path itself, or why the path is invalid.
    pub(crate) fn to(what: &'static str, path: &str) -> Result<Self, StoreError> {
        check(what, path)?;
        let mut levels = vec!["/"];
        if path != "/" {
            levels.extend(path.match_indices('/').skip(1).map(|(at, _)| &path[..at]));
            levels.push(path);
        }
        Ok(Self(levels.into_iter().map(|path| (row::place(path), path.to_owned())).collect()))
    }

    /// Returns the keys of its rows.
    pub(crate) fn places(&self) -> Vec<String> {
        self.0.iter().map(|(place, _)| place.clone()).collect()
    }

    /// Returns the key of the row of the path itself.
    pub(crate) fn place(&self) -> &str {
        self.0.last().map_or("", |(place, _)| place)
    }
}

/// Returns the key of a path's row, or why the path is invalid.
pub(crate) fn place(what: &'static str, path: &str) -> Result<String, StoreError> {
    check(what, path)?;
    Ok(row::place(path))
}

/// Checks that a path is valid in either database.
fn check(what: &'static str, path: &str) -> Result<(), StoreError> {
    let refused = |why: String| Err(StoreError::Refused { what, why });
    if path.len() > LONGEST_PATH {
        return refused(format!("its path has {} bytes; name it with at most {LONGEST_PATH}", path.len()));
    }
    let is_name = |name: &str| !matches!(name, "" | "." | "..") && !name.contains('\0');
    let names = path.strip_prefix('/').filter(|names| path == "/" || names.split('/').all(is_name));
    let Some(names) = names else {
        return refused("its path is not absolute, or contains an invalid name".to_owned());
    };
    let depth = names.split('/').count();
    if depth > DEEPEST_PATH {
        return refused(format!("its path leads through {depth} directories; use at most {DEEPEST_PATH}"));
    }
    Ok(())
}

/// Checks that a file of this size can be stored.
pub(crate) fn check_size(what: &'static str, bytes: &[u8]) -> Result<(), StoreError> {
    if bytes.len() <= LARGEST_FILE {
        return Ok(());
    }
    let why = format!("it has {} bytes; a file has at most {LARGEST_FILE}", bytes.len());
    Err(StoreError::Refused { what, why })
}

/// Reads metadata from a row: version, size and time.
pub(crate) fn stat((version, size, at): (Option<String>, i64, i64)) -> Result<Stat, StoreError> {
    Ok(Stat {
        directory: version.is_none(),
        size: row::count(size)?,
        modified: UnixMillis(at),
        version: Version(version.as_deref().unwrap_or(DIRECTORY).into()),
        mode: None,
    })
}

/// A file with these bytes.
pub(crate) fn file(bytes: &[u8], at: UnixMillis) -> Stat {
    Stat {
        directory: false,
        size: bytes.len() as u64,
        modified: at,
        version: Version(Digest::of_bytes(bytes).to_string().into()),
        mode: None,
    }
}

/// The existing rows on the way to a path, read while nobody else writes.
pub(crate) struct Standing {
    way: Way,
    /// The version and size of each existing row, by key.
    rows: HashMap<String, (Option<String>, u64)>,
}

/// The keys and paths of directories to make.
pub(crate) type Missing = Vec<(String, String)>;

/// The growth caused by a change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Growth {
    bytes: i128,
    files: u64,
}

impl Standing {
    /// Reads the rows on the way: key, version and size.
    pub(crate) fn of(way: Way, rows: Vec<(String, Option<String>, i64)>) -> Result<Self, StoreError> {
        let row = |(place, version, size)| Ok((place, (version, row::count(size)?)));
        Ok(Self { way, rows: rows.into_iter().map(row).collect::<Result<_, StoreError>>()? })
    }

    pub(crate) fn place(&self) -> &str {
        self.way.place()
    }

    fn there(&self) -> Option<&(Option<String>, u64)> {
        self.rows.get(self.way.place())
    }

    /// Checks that a file may be written; returns the missing directories and the growth.
    pub(crate) fn may_put(
        &self,
        expect: Expect<'_>,
        bytes: usize,
        below: &str,
    ) -> Result<(Missing, Growth), FileError> {
        self.compare(expect)?;
        let held = match self.there() {
            Some((None, _)) => return Err(FileError::IsDirectory),
            Some((Some(_), size)) => Some(*size),
            None => None,
        };
        let above = &self.way.0[..self.way.0.len() - 1];
        let missing = self.missing(above)?;
        let mut growth = Growth::of(&missing, below);
        growth.bytes = bytes as i128 - i128::from(held.unwrap_or(0));
        growth.files += u64::from(held.is_none());
        Ok((missing, growth))
    }

    /// Checks that a directory may be made; returns the missing directories and the growth.
    pub(crate) fn may_make(&self, below: &str) -> Result<(Missing, Growth), FileError> {
        let missing = self.missing(&self.way.0)?;
        let growth = Growth::of(&missing, below);
        Ok((missing, growth))
    }

    /// Checks that the file may be removed.
    pub(crate) fn may_remove(&self, expect: Expect<'_>) -> Result<(), FileError> {
        match self.there() {
            None => Err(FileError::Missing),
            Some((None, _)) => Err(FileError::IsDirectory),
            Some(_) => self.compare(expect),
        }
    }

    fn compare(&self, expect: Expect<'_>) -> Result<(), FileError> {
        let now = self.there().map(|(version, _)| version.as_deref().unwrap_or(DIRECTORY));
        match (expect, now) {
            (Expect::Anything, _) | (Expect::Absent, None) => Ok(()),
            (Expect::Version(version), Some(now)) if version.0 == now => Ok(()),
            (Expect::Absent, Some(_)) => Err(FileError::Exists),
            (Expect::Version(_), _) => Err(FileError::Changed),
        }
    }

    /// Returns those of some directories that do not exist.
    fn missing(&self, directories: &[(String, String)]) -> Result<Missing, FileError> {
        let mut missing = Vec::new();
        for (place, path) in directories {
            match self.rows.get(place) {
                Some((Some(_), _)) => return Err(FileError::NotDirectory),
                Some((None, _)) => {}
                None => missing.push((place.clone(), path.clone())),
            }
        }
        Ok(missing)
    }
}

impl Growth {
    fn of(missing: &Missing, below: &str) -> Self {
        let counted = missing.iter().filter(|(_, path)| Below::new(below).contains(path));
        Self { bytes: 0, files: counted.count() as u64 }
    }

    /// Returns whether the change adds anything.
    pub(crate) fn is_more(self) -> bool {
        self.bytes > 0 || self.files > 0
    }

    /// Checks that the growth fits the quota beside the bytes and entries already held.
    pub(crate) fn fits(self, (bytes, files): (i64, i64), quota: Quota) -> Result<(), FileError> {
        let (held, files): (u64, u64) = (row::count(bytes)?, row::count(files)?);
        let bytes = u64::try_from(i128::from(held) + self.bytes).unwrap_or(0);
        let files = files.saturating_add(self.files);
        let too_much = (self.bytes > 0 && bytes > quota.bytes) || (self.files > 0 && files > quota.files);
        if too_much { Err(FileError::Quota { bytes, files }) } else { Ok(()) }
    }
}

/// Returns the quota of a change, if it covers the change's path.
pub(crate) fn room<'a>(change: &FileChange<'a>) -> Option<(&'a str, Quota)> {
    change.room.filter(|(below, _)| Below::new(below).contains(change.path))
}

/// The range of paths below a directory, and of their prefixes as the index has them.
#[derive(Debug)]
pub(crate) struct Below {
    pub(crate) after: String,
    pub(crate) before: String,
    pub(crate) first: String,
    pub(crate) last: String,
}

impl Below {
    pub(crate) fn new(directory: &str) -> Self {
        let top = directory.trim_end_matches('/');
        // Paths below sort after the slash and before the character that follows it.
        let (after, before) = (format!("{top}/"), format!("{top}0"));
        let head = |path: &str| path.chars().take(HEAD).collect();
        Self { first: head(&after), last: head(&before), after, before }
    }

    fn contains(&self, path: &str) -> bool {
        *self.after < *path && *path < *self.before
    }
}

#[cfg(test)]
mod tests;
