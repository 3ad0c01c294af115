//! The owner of a data directory: the file `installation`, which holds the same id as its store.
//!
//! A directory and a store that do not belong together are refused: their contents would not match, and files
//! of one installation would be taken for those of the other.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use claw_core::InstallationId;
use claw_store::{Installation, StoreLocation};

use super::Error;

/// Returns the file that holds the id. Its mode is always 0600.
pub(crate) fn file(data: &Path) -> PathBuf {
    data.join("installation")
}

/// Returns the installation of the data directory; `None` if it has no id yet.
pub(crate) fn of(data: &Path) -> Result<Option<InstallationId>, Error> {
    let path = file(data);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        // Where a parent is no directory there is none either, and opening the store says so.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => {
            return Err(Error::failed(format!("`{}` cannot be read", path.display())).because(error));
        }
    };
    let id = text.trim().parse().map_err(|_| {
        Error::failed(format!("`{}` contains no installation id", path.display())).hint(
            "write the id that `clawsmith db status` shows into it, if this is that store's data directory",
        )
    })?;
    Ok(Some(id))
}

/// Makes the data directory part of the store's installation.
pub(crate) fn join(data: &Path, place: &StoreLocation, its: Installation) -> Result<(), Error> {
    let path = file(data);
    let failed = |error: io::Error| {
        Error::failed(format!("`{}` cannot be written", path.display()))
            .because(error)
            .hint("make the directory writable, or set `data_dir` (`CLAWSMITH_DATA_DIR`) to another one")
    };
    let together = its.is_new || matches!(place, StoreLocation::File(file) if file.starts_with(data));
    if !together && holds_data(data).map_err(failed)? {
        // Another process may have joined just now, and begun to keep files.
        return match of(data)? {
            Some(id) if id == its.id => Ok(()),
            _ => Err(orphaned(data, place, its.id)),
        };
    }
    DirBuilder::new().recursive(true).mode(0o700).create(data).map_err(failed)?;
    let mut new = tempfile::NamedTempFile::new_in(data).map_err(failed)?;
    writeln!(new, "{}", its.id).and_then(|()| new.as_file().sync_all()).map_err(failed)?;
    match new.persist_noclobber(&path) {
        Ok(_) => Ok(()),
        // Another process was first; the store told it the same id, or it is another's.
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => match of(data)? {
            Some(id) if id == its.id => Ok(()),
            _ => Err(orphaned(data, place, its.id)),
        },
        Err(error) => Err(failed(error.error)),
    }
}

/// Returns whether the directory holds files of some installation: kept results and the like are in
/// subdirectories.
fn holds_data(data: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(data) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() && fs::read_dir(entry.path())?.next().is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn orphaned(data: &Path, place: &StoreLocation, id: InstallationId) -> Error {
    let (data, file) = (data.display(), file(data));
    Error::failed(format!(
        "the data directory `{data}` contains files but no installation id; the store at {place} has the id \
         `{id}`"
    ))
    .hint(format!(
        "set `data_dir` to an empty directory, or, if they belong together, write `{id}` into `{}`",
        file.display()
    ))
}
