//! The file with the keys: for its owner's eyes alone, written whole or not at all.
//!
//! A file that others could have read or written is refused, never repaired: its keys may be known, or not
//! ours. Programs that change the keys, or write sealed values, take turns by a lock beside it.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use claw_core::store::StoreError;
use rustix::fs::OFlags;
use zeroize::Zeroizing;

use super::encrypt::Ring;

/// The largest file: more than a thousand keys.
const MOST_BYTES: u64 = 128 * 1024;

/// The metadata by which a replaced or rewritten file is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(file: &Metadata) -> Self {
        let changed = (file.ctime(), file.ctime_nsec());
        Self { device: file.dev(), inode: file.ino(), size: file.size(), changed }
    }
}

/// Returns the stamp of the file at this path; `None` if there is none.
pub(super) fn stamp(path: &Path) -> Result<Option<Stamp>, StoreError> {
    match fs::symlink_metadata(path) {
        Ok(file) => Ok(Some(Stamp::of(&file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("could not inspect the keys in", path, error)),
    }
}

/// Reads the keys; `None` if there is no file.
pub(super) fn read(path: &Path) -> Result<Option<(Ring, Stamp)>, StoreError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            let why = "it is a symbolic link; put the file itself there, or set `CLAWSMITH_KEYS`";
            return Err(unusable(path, why));
        }
        Err(error) => return Err(failed("could not open the keys in", path, error)),
    };
    let reading = |error| failed("could not read the keys in", path, error);
    let about = file.metadata().map_err(reading)?;
    check(path, &about)?;
    check_directory(directory(path)?)?;
    let mut text = Zeroizing::new(String::with_capacity(usize::try_from(about.size()).unwrap_or(0) + 1));
    (&file).take(MOST_BYTES).read_to_string(&mut text).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => unusable(path, "it is not text; restore the file from a copy"),
        _ => reading(error),
    })?;
    let ring =
        Ring::parse(&text).map_err(|why| unusable(path, &format!("{why}; restore the file from a copy")))?;
    Ok(Some((ring, Stamp::of(&about))))
}

/// Creates the file with these keys, unless another program was faster.
pub(super) fn create(path: &Path, ring: &Ring) -> Result<(), StoreError> {
    let making = |error| failed("could not create the keys in", path, error);
    let directory = directory(path)?;
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(making)?;
    check_directory(directory)?;
    let beside = write_beside(path, ring).map_err(making)?;
    // Unlike a rename, a link never takes the place of a file that is there.
    let linked = fs::hard_link(&beside, path);
    let removed = fs::remove_file(&beside);
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        linked => linked.map_err(making)?,
    }
    removed.map_err(making)?;
    sync(directory).map_err(making)
}

/// Replaces the keys in the file.
pub(super) fn replace(path: &Path, ring: &Ring) -> Result<(), StoreError> {
    let writing = |error| failed("could not write the keys in", path, error);
    let beside = write_beside(path, ring).map_err(writing)?;
    fs::rename(&beside, path).map_err(|error| {
        // The leftover file holds keys.
        let _ = fs::remove_file(&beside);
        writing(error)
    })?;
    sync(directory(path)?).map_err(writing)
}

/// Waits for its turn, which ends when the file is dropped or the program ends in any way.
pub(super) fn lock(path: &Path) -> Result<File, StoreError> {
    let path = path.with_extension("lock");
    let locking = |error| failed("could not lock", &path, error);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(locking)?;
    file.lock().map_err(locking)?;
    Ok(file)
}

fn write_beside(path: &Path, ring: &Ring) -> io::Result<PathBuf> {
    let beside = path.with_extension(format!("{}.new", uuid::Uuid::now_v7().simple()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let written = file.write_all(ring.write().as_bytes()).and_then(|()| file.sync_all());
    if let Err(error) = written {
        let _ = fs::remove_file(&beside);
        return Err(error);
    }
    Ok(beside)
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn directory(path: &Path) -> Result<&Path, StoreError> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    directory.ok_or_else(|| unusable(path, "it names no directory; give its whole path"))
}

fn check(path: &Path, about: &Metadata) -> Result<(), StoreError> {
    if !about.is_file() {
        return Err(unusable(path, "it is not a file; put the file there, or set `CLAWSMITH_KEYS`"));
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        let why = format!("it belongs to user {}; give it to the user who runs Clawsmith", about.uid());
        return Err(unusable(path, &why));
    }
    let mode = about.mode() & 0o7777;
    if mode & 0o077 != 0 {
        let why = format!(
            "others may read or change it (mode {mode:04o}); run `chmod 600 {}`, and `clawsmith secrets rotate` \
             if somebody may have",
            path.display()
        );
        return Err(unusable(path, &why));
    }
    if about.size() > MOST_BYTES {
        return Err(unusable(path, "it is too large; restore the file from a copy"));
    }
    Ok(())
}

fn check_directory(directory: &Path) -> Result<(), StoreError> {
    let about = fs::metadata(directory)
        .map_err(|error| failed("could not inspect the directory of the keys,", directory, error))?;
    let mode = about.mode() & 0o7777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let directory = directory.display();
    let why = format!("others may look into it (mode {mode:04o}); run `chmod 700 {directory}`");
    Err(StoreError::Keys { place: format!("`{directory}`"), why })
}

pub(super) fn unusable(path: &Path, why: &str) -> StoreError {
    StoreError::Keys { place: format!("`{}`", path.display()), why: why.to_owned() }
}

fn failed(what: &str, path: &Path, source: io::Error) -> StoreError {
    StoreError::Io { what: format!("{what} `{}`", path.display()), source }
}
