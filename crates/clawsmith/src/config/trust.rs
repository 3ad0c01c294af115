//! Records which project files a person accepted.
//!
//! A file that was found by walking up, and that nobody named, may have come with a clone or from a command
//! of an agent; it is used only as a person accepted it, byte for byte. The environment alone decides where
//! accepted files are recorded: no configuration moves that.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use claw_core::tool::Digest;

use super::find::{Found, FoundBy, Surroundings, of_project};
use super::load::Loaded;

/// The most lines of a change that are shown.
const MOST_LINES: usize = 400;

/// Says whether a file may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// A person named it or accepted it, or it is the user's own.
    Holds,
    /// Nobody has accepted the file.
    New,
    /// The file has changed since it was accepted.
    Changed,
    /// An accepted file, here or above, is gone: without it other rules would hold.
    Gone,
}

impl Loaded {
    /// Returns whether the loaded file may be used.
    pub fn trust(&self, around: &Surroundings) -> io::Result<Trust> {
        if self.gone(around).is_some() {
            return Ok(Trust::Gone);
        }
        let Some(Found { path, by: FoundBy::Project }) = &self.found else { return Ok(Trust::Holds) };
        // Where nothing can be remembered, nothing was accepted.
        let Some(accepted) = accepted(path, around) else { return Ok(Trust::New) };
        match fs::read_to_string(accepted) {
            Ok(text) if text.lines().next() == Some(&self.digest()) => Ok(Trust::Holds),
            Ok(_) => Ok(Trust::Changed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Trust::New),
            Err(error) => Err(error),
        }
    }

    /// Returns the nearest accepted file that is gone and would be used instead of the found one.
    pub fn gone(&self, around: &Surroundings) -> Option<PathBuf> {
        let found = match &self.found {
            Some(Found { by: FoundBy::Flag | FoundBy::Variable, .. }) => return None,
            Some(Found { path, by: FoundBy::Project }) => Some(place(path, around)),
            _ => None,
        };
        let nearer = of_project(around).map(|path| place(&path, around));
        let nearer = nearer.take_while(|path| Some(path) != found.as_ref());
        nearer.into_iter().find(|path| accepted(path, around).is_some_and(|accepted| accepted.exists()))
    }

    /// Returns the difference from the accepted text, as a unified diff; `None` if nothing was accepted or
    /// nothing differs.
    pub fn changed_since_accepted(&self, around: &Surroundings) -> Option<String> {
        let Some(Found { path, by: FoundBy::Project }) = &self.found else { return None };
        let text = fs::read_to_string(accepted(path, around)?).ok()?;
        let (_, rest) = text.split_once('\n')?;
        let (_, before) = rest.split_once('\n')?;
        let name = path.file_name()?.to_string_lossy();
        let diff = claw_registry::unified_diff(&name, before, self.document.text(), MOST_LINES);
        Some(diff).filter(|diff| !diff.is_empty())
    }

    /// Removes the records of accepted files that are gone. Returns how many.
    pub fn forget(&self, around: &Surroundings) -> io::Result<usize> {
        let mut count = 0;
        while let Some(accepted) = self.gone(around).and_then(|path| accepted(&path, around)) {
            fs::remove_file(accepted)?;
            count += 1;
        }
        Ok(count)
    }

    /// Accepts the file as it was read. Returns false if it needs no acceptance.
    pub fn accept(&self, around: &Surroundings) -> io::Result<bool> {
        let Some(Found { path, by: FoundBy::Project }) = &self.found else { return Ok(false) };
        let Some(accepted) = accepted(path, around) else {
            let reason = "there is no home directory to record the acceptance in; name the file with `--config` instead";
            return Err(io::Error::new(io::ErrorKind::NotFound, reason));
        };
        let directory = accepted.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let mut new = tempfile::NamedTempFile::new_in(directory)?;
        // The path is for people who look into the directory.
        writeln!(new, "{}\n{}", self.digest(), place(path, around).display())?;
        // The text is for showing what changed.
        new.write_all(self.document.text().as_bytes())?;
        new.as_file().sync_all()?;
        new.persist(accepted)?;
        Ok(true)
    }

    fn digest(&self) -> String {
        Digest::of_bytes(self.document.text().as_bytes()).to_string()
    }
}

/// Returns the file that records that `path` was accepted.
fn accepted(path: &Path, around: &Surroundings) -> Option<PathBuf> {
    let name = Digest::of_bytes(place(path, around).as_os_str().as_encoded_bytes());
    Some(around.trusted()?.join(name.to_string()))
}

/// Returns the file's path with its directory resolved. A link at the end is not followed: it could be
/// redirected.
fn place(path: &Path, around: &Surroundings) -> PathBuf {
    let path = around.directory.join(path);
    match (path.parent().and_then(|directory| directory.canonicalize().ok()), path.file_name()) {
        (Some(directory), Some(name)) => directory.join(name),
        _ => path,
    }
}
