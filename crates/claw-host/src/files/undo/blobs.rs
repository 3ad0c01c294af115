//! Bytes of files, each kept once under its digest: readable by their owner alone, complete or absent.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use claw_core::UndoId;
use claw_core::port::UnixMillis;
use claw_core::tool::Digest;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

/// The file that records the last sweep for unreferenced blobs.
const SWEPT: &str = "swept";

/// A directory of blobs, in directories by the first byte of their digests.
#[derive(Debug, Clone)]
pub(super) struct Blobs {
    directory: PathBuf,
}

/// A lock, shared by writers that reference blobs and exclusive for the collector that deletes them. Released
/// on drop.
pub(super) struct Lock(#[expect(dead_code, reason = "the lock lives as long as the file is open")] File);

impl Blobs {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Takes the shared lock; waits while blobs are being removed.
    pub(super) fn lock_to_name(&self) -> io::Result<Lock> {
        let file = self.lock_file()?;
        loop {
            match rustix::fs::flock(&file, FlockOperation::LockShared) {
                Err(Errno::INTR) => {}
                done => return done.map(|()| Lock(file)).map_err(io::Error::from),
            }
        }
    }

    /// Takes the exclusive lock; `None` if a writer holds the shared one.
    pub(super) fn lock_to_remove(&self) -> io::Result<Option<Lock>> {
        let file = self.lock_file()?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Ok(None),
            done => done.map(|()| Some(Lock(file))).map_err(io::Error::from),
        }
    }

    fn lock_file(&self) -> io::Result<File> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        OpenOptions::new().create(true).append(true).mode(0o600).open(self.directory.join("lock"))
    }

    /// Keeps bytes, on the disk when this returns.
    pub(super) fn put(&self, bytes: &[u8]) -> io::Result<Digest> {
        let digest = Digest::of_bytes(bytes);
        let path = self.path(&digest);
        // One that is damaged is written again.
        if fs::read(&path).is_ok_and(|there| there == bytes) {
            return Ok(digest);
        }
        let shard = path.parent().unwrap_or(&self.directory);
        if !shard.is_dir() {
            DirBuilder::new().recursive(true).mode(0o700).create(shard)?;
            sync(&self.directory)?;
        }
        let unfinished = self.directory.join(format!("{}.part", UndoId::new()));
        let written = write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, &path));
        if let Err(error) = written {
            // A partly written file must not take room; a failure to remove it changes nothing.
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        sync(shard)?;
        Ok(digest)
    }

    /// Returns the bytes of this digest; an error if they are missing or damaged.
    pub(super) fn get(&self, digest: &Digest) -> io::Result<Vec<u8>> {
        let bytes = fs::read(self.path(digest))?;
        if Digest::of_bytes(&bytes) != *digest {
            let message = format!("the bytes kept as {digest} are damaged");
            return Err(io::Error::new(ErrorKind::InvalidData, message));
        }
        Ok(bytes)
    }

    /// Removes a blob; a missing one counts as removed.
    pub(super) fn remove(&self, digest: &Digest) -> io::Result<()> {
        match fs::remove_file(self.path(digest)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the digests of all kept blobs, and removes unfinished files. The caller must hold the
    /// exclusive lock.
    pub(super) fn all(&self) -> io::Result<Vec<Digest>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let (shard, path) = (entry.file_name(), entry.path());
            if path.extension().is_some_and(|extension| extension == "part") {
                fs::remove_file(path)?;
            } else if entry.file_type()?.is_dir() {
                let names = fs::read_dir(path)?.map(|entry| Ok::<_, io::Error>(entry?.file_name()));
                for name in names {
                    let hex = [shard.as_encoded_bytes(), name?.as_encoded_bytes()].concat();
                    // A file with another name is not ours.
                    let name = str::from_utf8(&hex).map(|hex| format!("sha256:{hex}")).unwrap_or_default();
                    all.extend(serde_json::from_value::<Digest>(name.into()).ok());
                }
            }
        }
        Ok(all)
    }

    /// Returns the time of the last sweep for unreferenced blobs; `None` if there was none.
    pub(super) fn swept(&self) -> io::Result<Option<UnixMillis>> {
        match fs::read_to_string(self.directory.join(SWEPT)) {
            Ok(text) => Ok(text.trim().parse().ok().map(UnixMillis)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Records a sweep.
    pub(super) fn note_swept(&self, at: UnixMillis) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(self.directory.join(SWEPT))?;
        file.write_all(at.0.to_string().as_bytes())
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        let hex: String = digest.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let (shard, name) = hex.split_at(2);
        self.directory.join(shard).join(name)
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests;
