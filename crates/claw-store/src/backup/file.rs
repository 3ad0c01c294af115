//! Files that appear whole or not at all.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use claw_core::store::StoreError;
use uuid::Uuid;

/// The suffixes of the files that SQLite and an open store may put beside a database.
const COMPANIONS: [&str; 4] = ["-wal", "-shm", "-journal", "-mark"];

/// A file being written, beside its final name. Removed if dropped before it takes that name.
pub(super) struct Partial {
    path: PathBuf,
}

impl Partial {
    /// An empty file that only its owner may read.
    pub(super) fn beside(file: &Path) -> Result<Self, StoreError> {
        if file.file_name().is_none() {
            let what = format!("could not write `{}`", file.display());
            return Err(StoreError::Io { what, source: std::io::ErrorKind::InvalidFilename.into() });
        }
        let path = with(file, &format!(".{}.partial", Uuid::now_v7().simple()));
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        made.map_err(io("could not make", &path))?;
        Ok(Self { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs the contents to the disk; returns their size.
    pub(super) fn sync(&self) -> Result<u64, StoreError> {
        let synced = File::open(&self.path).and_then(|file| {
            file.sync_all()?;
            Ok(file.metadata()?.len())
        });
        synced.map_err(io("could not write", &self.path))
    }

    /// Renames it to its final name, replacing an existing file.
    pub(super) fn take_name(self, name: &Path) -> Result<(), StoreError> {
        fs::rename(&self.path, name).map_err(io("could not write", name))?;
        sync_directory(name)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Nothing of it is there once it has its name.
        let _ = fs::remove_file(&self.path);
        for companion in COMPANIONS {
            let _ = fs::remove_file(with(&self.path, companion));
        }
    }
}

/// Renames a file, and those that SQLite keeps beside it; returns the new name. If the file system can, the
/// file keeps its old name too, so that the name always exists.
pub(super) fn move_aside(file: &Path) -> Result<PathBuf, StoreError> {
    let free = |name: &PathBuf| name.symlink_metadata().is_err();
    let mut names = (1_u32..).map(|number| with(file, &format!(".before-restore-{number}")));
    let aside = names.find(free).unwrap_or_else(|| with(file, ".before-restore"));
    for companion in COMPANIONS {
        let beside = with(file, companion);
        if beside.symlink_metadata().is_ok() {
            fs::rename(&beside, with(&aside, companion)).map_err(io("could not move aside", &beside))?;
        }
    }
    if fs::hard_link(file, &aside).is_err() {
        fs::rename(file, &aside).map_err(io("could not move aside", file))?;
    }
    sync_directory(file)?;
    Ok(aside)
}

/// Makes the directory of a file, accessible to its owner alone.
pub(super) fn make_directory(file: &Path) -> Result<(), StoreError> {
    let directory = directory(file);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(io("could not make", directory))
}

fn directory(file: &Path) -> &Path {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or_else(|| Path::new("."))
}

fn sync_directory(file: &Path) -> Result<(), StoreError> {
    let directory = directory(file);
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(io("could not write", directory))
}

fn with(file: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(ending);
    name.into()
}

fn io<'a>(what: &'a str, path: &'a Path) -> impl Fn(std::io::Error) -> StoreError + use<'a> {
    move |source| StoreError::Io { what: format!("{what} `{}`", path.display()), source }
}
