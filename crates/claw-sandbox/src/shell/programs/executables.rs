//! The files that a registered program may execute: its own, its helpers, and those by which the kernel
//! starts them (a script's interpreter, the loader of dynamically linked programs).
//!
//! None of them may be in a place that an agent can write to. A helper that is Python must be one that imports nothing
//! from the directory it starts in.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::super::identify_files;
use super::{file, python};

/// Longest first line of a script that the kernel reads.
const FIRST_LINE: usize = 256;
/// Most bytes of the path of a loader.
const LOADER_PATH: usize = 4096;

/// Returns the files and directories that a program may execute, each as it really is. `writable` are the directories
/// that an agent can write to. Helpers that do not exist are left out, and so is a Python that would import from a
/// workspace, if there is another one. Asks the file system.
pub(super) fn of(binary: &Path, helpers: &[String], writable: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut waiting = vec![binary.to_owned()];
    waiting.extend(safe_helpers(helpers, binary)?);
    while let Some(path) = waiting.pop() {
        let Ok(path) = path.canonicalize() else { continue };
        if found.contains(&path) {
            continue;
        }
        let is_inside = |directory: &PathBuf| path.starts_with(directory) || directory.starts_with(&path);
        if writable.iter().any(is_inside) {
            return Err(format!("`{}` would be executed, but agents can change it", path.display()));
        }
        if path.is_dir() {
            file::check_directory(&path)?;
        } else {
            file::check(&path)?;
            waiting.extend(starters(&path));
        }
        found.push(path);
    }
    found.sort();
    Ok(found)
}

/// Returns the real paths of the helpers that exist.
fn safe_helpers(helpers: &[String], binary: &Path) -> Result<Vec<PathBuf>, String> {
    let places = helpers.iter().filter_map(|helper| place(helper, binary));
    let there = places.filter_map(|path| Some((python::is_python(&path), path.canonicalize().ok()?)));
    let (safe, unsafe_ones): (Vec<_>, Vec<_>) =
        there.partition(|(is_python, path)| !is_python || python::is_safe(path));
    match unsafe_ones.first() {
        Some((_, path)) if !safe.iter().any(|(is_python, _)| *is_python) => Err(format!(
            "`{}` is older than Python 3.11 or of an unknown version, and would import modules from the workspace; \
             install Python 3.11 or newer",
            path.display()
        )),
        _ => Ok(safe.into_iter().map(|(_, path)| path).collect()),
    }
}

/// Returns whether a program is a script that Python runs.
pub(super) fn is_python_script(binary: &Path) -> bool {
    let interpreters = starters(binary).into_iter();
    interpreters.filter_map(|path| path.canonicalize().ok()).any(|path| python::is_python(&path))
}

/// The path that a helper's name means for a program.
fn place(helper: &str, binary: &Path) -> Option<PathBuf> {
    match helper {
        _ if helper.starts_with('/') => Some(PathBuf::from(helper)),
        _ if helper.starts_with("../") => Some(binary.parent()?.join(helper)),
        _ if helper.contains('/') => None,
        _ => identify_files::in_path(helper),
    }
}

/// Returns the files that the kernel executes to start this one.
fn starters(path: &Path) -> Vec<PathBuf> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let mut head = [0; FIRST_LINE];
    let length = file.read_at(&mut head, 0).unwrap_or(0);
    match &head[..length] {
        [b'#', b'!', line @ ..] => interpreters(line),
        [0x7f, b'E', b'L', b'F', ..] => loader(&file, &head).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Returns the interpreter of a script, and the program that `env` would run.
fn interpreters(line: &[u8]) -> Vec<PathBuf> {
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let text = String::from_utf8_lossy(line);
    let mut words = text.split_ascii_whitespace();
    let Some(interpreter) = words.next().map(PathBuf::from) else { return Vec::new() };
    let is_env = interpreter.file_name().is_some_and(|name| name == "env");
    let named = words.find(|word| !word.starts_with('-') && !word.contains('='));
    let named = named.filter(|_| is_env).and_then(identify_files::in_path);
    std::iter::once(interpreter).chain(named).collect()
}

/// Returns the loader that an ELF program of this machine names; `None` if it needs none.
fn loader(file: &File, head: &[u8; FIRST_LINE]) -> Option<PathBuf> {
    const LITTLE_ENDIAN: u8 = 1;
    const INTERPRETER: u64 = 3;
    if head[5] != LITTLE_ENDIAN {
        return None;
    }
    let number = |bytes: &[u8], at: usize, length: usize| -> Option<u64> {
        let bytes = bytes.get(at..at + length)?;
        Some(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    // Places of: table of segments, size of an entry, their number; in an entry: offset and length.
    let is_wide = head[4] == 2;
    let (table, size, count) = match is_wide {
        true => (number(head, 32, 8)?, number(head, 54, 2)?, number(head, 56, 2)?),
        false => (number(head, 28, 4)?, number(head, 42, 2)?, number(head, 44, 2)?),
    };
    let mut entry = vec![0; usize::try_from(size).ok()?];
    for index in 0..count {
        file.read_exact_at(&mut entry, table.checked_add(index * size)?).ok()?;
        if number(&entry, 0, 4)? == INTERPRETER {
            let (offset, length) = match is_wide {
                true => (number(&entry, 8, 8)?, number(&entry, 32, 8)?),
                false => (number(&entry, 4, 4)?, number(&entry, 16, 4)?),
            };
            let length = usize::try_from(length).ok().filter(|length| *length <= LOADER_PATH)?;
            let mut path = vec![0; length];
            file.read_exact_at(&mut path, offset).ok()?;
            let path = path.split(|byte| *byte == 0).next()?;
            return Some(PathBuf::from(std::str::from_utf8(path).ok()?));
        }
    }
    None
}
