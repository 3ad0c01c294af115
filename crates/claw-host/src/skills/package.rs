//! Reading a directory as a skill: by handles, following no link, within limits.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use claw_core::skill::{SKILL_FILE, SkillFile, SkillPackage};
use claw_core::tool::Digest;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{SkillError, front_matter};

/// The largest file of a skill, in bytes.
pub const LARGEST_FILE: u64 = 5 * 1024 * 1024;
/// The largest skill, in bytes.
pub const LARGEST_SKILL: u64 = 20 * 1024 * 1024;
/// The most files of a skill.
pub const MOST_FILES: usize = 500;
/// The most levels of directories.
const DEEPEST: usize = 8;
/// The longest `SKILL.md`, in bytes.
const LONGEST_SKILL_FILE: u64 = 128 * 1024;
/// The most directories scanned in one place.
const MOST_SKILLS: usize = 1_000;
/// Entries that are not part of a skill: those that version control and interpreters create.
const PASSED_OVER: [&str; 4] = [".git", "__pycache__", "node_modules", ".DS_Store"];

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a directory that a person named; links on the way to it are followed.
pub(super) fn open_named(path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(path, DIRECTORY.difference(OFlags::NOFOLLOW), Mode::empty())
}

/// Opens a directory below another, name by name and following no link.
pub(super) fn open_below(base: OwnedFd, path: &Path) -> Result<OwnedFd, SkillError> {
    let mut at = base;
    for part in path.components() {
        let name = match part {
            Component::Normal(name) => name,
            Component::CurDir => continue,
            _ => {
                let why = format!("`{}` leads out of the workspace; name a directory in it", path.display());
                return Err(SkillError::Invalid(why));
            }
        };
        at = rustix::fs::openat(&at, name, DIRECTORY, Mode::empty()).map_err(|error| match error {
            Errno::NOENT => SkillError::Missing(format!("there is no directory `{}`", path.display())),
            Errno::LOOP | Errno::NOTDIR => SkillError::Invalid(format!(
                "`{}` is not a directory, or a link is on the way to it",
                path.display()
            )),
            error => unreadable(&path.display().to_string(), error),
        })?;
    }
    Ok(at)
}

/// Returns the names in a directory that may be skills: directories, or links if `follow`.
pub(super) fn names(root: &OwnedFd, follow: bool) -> Result<Vec<String>, SkillError> {
    let mut names = Vec::new();
    for entry in Dir::read_from(root).map_err(|error| unreadable("the directory", error))? {
        let entry = entry.map_err(|error| unreadable("the directory", error))?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        let is_kind = match entry.file_type() {
            FileType::Directory | FileType::Unknown => true,
            FileType::Symlink => follow,
            _ => false,
        };
        if !name.starts_with('.') && is_kind {
            names.push(name.to_owned());
        }
    }
    names.sort();
    names.truncate(MOST_SKILLS);
    Ok(names)
}

/// Opens the directory of one skill; a link is followed if `follow`.
pub(super) fn open_skill(root: &OwnedFd, name: &str, follow: bool) -> rustix::io::Result<OwnedFd> {
    let flags = if follow { DIRECTORY.difference(OFlags::NOFOLLOW) } else { DIRECTORY };
    rustix::fs::openat(root, name, flags, Mode::empty())
}

/// Returns whether a directory has a `SKILL.md`, of whatever file type.
pub(super) fn is_skill(directory: &OwnedFd) -> bool {
    rustix::fs::statat(directory, SKILL_FILE, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// Reads a skill whose directory has this name.
pub(super) fn read(directory: &OwnedFd, name: &str) -> Result<SkillPackage, SkillError> {
    let mut files = Vec::new();
    let mut total = 0;
    walk(directory, &mut |found| {
        total += u64::try_from(found.stat.st_size).unwrap_or(u64::MAX);
        if total > LARGEST_SKILL {
            return Err(too_large("it", total, LARGEST_SKILL));
        }
        files.push(found.read()?);
        Ok(())
    })?;
    from_files(name, files)
}

/// Builds a skill from its files, in any order.
pub(super) fn from_files(name: &str, mut files: Vec<SkillFile>) -> Result<SkillPackage, SkillError> {
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let main = files.iter().find(|file| file.path == SKILL_FILE);
    let main = main.ok_or_else(|| SkillError::Missing(format!("it has no `{SKILL_FILE}`")))?;
    let text = std::str::from_utf8(&main.bytes)
        .map_err(|_| SkillError::Invalid(format!("`{SKILL_FILE}` is not UTF-8 text")))?;
    let (manifest, body) = front_matter::parse(text)?;
    if manifest.name.as_str() != name {
        let why = format!(
            "`{SKILL_FILE}`: its `name` is `{}` and its directory is `{name}`; both must be the same",
            manifest.name
        );
        return Err(SkillError::Invalid(why));
    }
    Ok(SkillPackage { manifest, body, files })
}

/// A digest that changes whenever a file of the skill may have: of names, numbers, sizes and times.
pub(super) fn fingerprint(directory: &OwnedFd) -> Result<Digest, SkillError> {
    let mut seen = Vec::new();
    walk(directory, &mut |found| {
        let stat = &found.stat;
        let times = (stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec);
        seen.push((found.path.clone(), stat.st_dev, stat.st_ino, stat.st_size, stat.st_mode, times));
        Ok(())
    })?;
    Ok(Digest::of(&seen))
}

/// A file found by the walk.
struct WalkedFile<'a> {
    parent: &'a OwnedFd,
    name: &'a OsStr,
    path: String,
    stat: Stat,
}

impl WalkedFile<'_> {
    fn read(&self) -> Result<SkillFile, SkillError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(self.parent, self.name, flags, Mode::empty());
        let opened = opened.map_err(|error| unreadable(&self.path, error))?;
        let stat = rustix::fs::fstat(&opened).map_err(|error| unreadable(&self.path, error))?;
        check_file(&self.path, &stat)?;
        let mut bytes = Vec::new();
        let read = File::from(opened).take(LARGEST_FILE + 1).read_to_end(&mut bytes);
        read.map_err(|error| SkillError::Failed(format!("`{}` cannot be read: {error}", self.path)))?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(too_large(&self.path, bytes.len() as u64, LARGEST_FILE));
        }
        Ok(SkillFile { path: self.path.clone(), executable: stat.st_mode & 0o111 != 0, bytes })
    }
}

fn walk(
    directory: &OwnedFd,
    take: &mut dyn FnMut(&WalkedFile<'_>) -> Result<(), SkillError>,
) -> Result<(), SkillError> {
    let mut count = 0;
    walk_below(directory, "", DEEPEST, &mut |found| {
        count += 1;
        if count > MOST_FILES {
            return Err(SkillError::Invalid(format!("it has more than {MOST_FILES} files")));
        }
        take(found)
    })
}

fn walk_below(
    directory: &OwnedFd,
    prefix: &str,
    depth: usize,
    take: &mut dyn FnMut(&WalkedFile<'_>) -> Result<(), SkillError>,
) -> Result<(), SkillError> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(directory).map_err(|error| unreadable(prefix, error))? {
        let entry = entry.map_err(|error| unreadable(prefix, error))?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let Ok(name) = name.to_str() else {
            return Err(SkillError::Invalid(format!("a name in `{prefix}` is not UTF-8 text")));
        };
        if name.chars().any(|c| c.is_control() || front_matter::is_hidden(c) || c == '\\') {
            let why = format!("the name {name:?} holds characters that are not allowed");
            return Err(SkillError::Invalid(why));
        }
        if !PASSED_OVER.contains(&name) {
            entries.push(name.to_owned());
        }
        if entries.len() > MOST_FILES {
            return Err(SkillError::Invalid(format!("it has more than {MOST_FILES} files")));
        }
    }
    entries.sort();
    for name in entries {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        let stat = rustix::fs::statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW);
        let stat = stat.map_err(|error| unreadable(&path, error))?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            if depth == 0 {
                return Err(SkillError::Invalid(format!("`{path}` is deeper than {DEEPEST} directories")));
            }
            let below = rustix::fs::openat(directory, &name, DIRECTORY, Mode::empty());
            let below = below.map_err(|error| unreadable(&path, error))?;
            walk_below(&below, &path, depth - 1, take)?;
            continue;
        }
        check_file(&path, &stat)?;
        take(&WalkedFile { parent: directory, name: OsStr::new(&name), path, stat })?;
    }
    Ok(())
}

/// Refuses links, devices and the like, and files that are too large, before a byte is read.
fn check_file(path: &str, stat: &Stat) -> Result<(), SkillError> {
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind != FileType::RegularFile {
        let what = if kind == FileType::Symlink { "a symbolic link" } else { "no regular file" };
        let why = format!("`{path}` is {what}; a skill can hold only files and directories");
        return Err(SkillError::Invalid(why));
    }
    let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
    let most = if path == SKILL_FILE { LONGEST_SKILL_FILE } else { LARGEST_FILE };
    if size > most {
        return Err(too_large(path, size, most));
    }
    Ok(())
}

fn too_large(path: &str, size: u64, most: u64) -> SkillError {
    SkillError::Invalid(format!("`{path}` has {size} bytes, and {most} are allowed"))
}

fn unreadable(path: &str, error: Errno) -> SkillError {
    match error {
        Errno::LOOP => SkillError::Invalid(format!("`{path}` is a symbolic link")),
        error => SkillError::Failed(format!("`{path}` cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests;
