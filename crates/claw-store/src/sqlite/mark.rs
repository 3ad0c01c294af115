//! A mark beside the store's file that every change of grants replaces: a process learns with one read of a few bytes
//! whether what it knows is still what the store says, whoever changed it.
//!
//! A change is committed first, then the mark is replaced, then the change is acknowledged. So grants that were read after
//! the mark, while the mark is the same, are as good as grants that are read now. Programs other than ours do not know the
//! mark; their changes are noticed by polling, as all others are.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use uuid::Uuid;

/// The value of a mark. No two changes give the same.
pub(super) type MarkValue = [u8; 16];

/// The mark of one store.
#[derive(Debug)]
pub(super) enum Mark {
    /// A store in memory has no other processes.
    Alone,
    /// The open file.
    File(File),
    /// The file cannot be used; nothing may be kept.
    Unusable,
}

impl Mark {
    /// Opens the mark beside the store's file, creating it if it is missing.
    pub(super) fn beside(path: &Path) -> Self {
        let mut name = path.as_os_str().to_owned();
        name.push("-mark");
        let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(flags)
            .open(&name);
        match opened {
            Ok(file) => Self::File(file),
            Err(error) => {
                let at = Path::new(&name).display();
                tracing::warn!(%error, "`{at}` cannot be used: grants are read from the store at each call");
                Self::Unusable
            }
        }
    }

    /// Returns the mark's value; `None` if it cannot be known.
    pub(super) fn read(&self) -> Option<MarkValue> {
        let mut value = MarkValue::default();
        match self {
            Self::Alone => Some(value),
            Self::Unusable => None,
            // A file without a name is one that other processes no longer find.
            Self::File(file) if file.metadata().ok()?.nlink() == 0 => None,
            Self::File(file) => match file.read_exact_at(&mut value, 0) {
                Ok(()) => Some(value),
                // Nothing was ever changed.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Some(MarkValue::default()),
                Err(_) => None,
            },
        }
    }

    /// Replaces the mark: grants were changed.
    pub(super) fn replace(&self) -> io::Result<()> {
        match self {
            Self::Alone | Self::Unusable => Ok(()),
            Self::File(file) => file.write_all_at(Uuid::now_v7().as_bytes(), 0),
        }
    }
}
