//! The source of the keys, and the agreement of the programs that share them.
//!
//! Programs hold the keys in memory and check the file's stamp before they seal. They also write the sealed
//! value within their turn, so once another program has the turn, no value sealed by an outdated key is still
//! on its way into the store.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use claw_core::store::{KeyUse, SealKeyId, StoreError};
use zeroize::Zeroizing;

use super::encrypt::Ring;
use super::key::Key;
use super::key_ring_file::{self, Stamp};

/// The variable that holds keys.
const VARIABLE: &str = "CLAWSMITH_KEYS";

/// The source of the keys.
#[derive(Clone)]
pub enum KeySource {
    /// A file. It is created on first use, with a directory of its own.
    File(PathBuf),
    /// The text of the variable `CLAWSMITH_KEYS`. Nothing is ever written.
    Variable(Zeroizing<String>),
}

impl KeySource {
    /// Takes the keys from the variable if it has a value, else from the file.
    pub fn new(variable: Option<OsString>, file: PathBuf) -> Result<Self, StoreError> {
        match variable.map(OsString::into_string) {
            None => Ok(Self::File(file)),
            Some(Ok(text)) => Ok(Self::Variable(Zeroizing::new(text))),
            Some(Err(_)) => Err(StoreError::Keys {
                place: format!("`{VARIABLE}`"),
                why: "it is not text; write keys as in the key file, the current one first".to_owned(),
            }),
        }
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Variable(_) => f.write_str("Variable"),
        }
    }
}

/// The keys of a deployment, as they are now.
#[derive(Debug)]
pub struct KeyRing {
    /// The file to read them from again; `None` if they never change.
    file: Option<PathBuf>,
    /// The keys as they were last read. To look at them waits for nobody.
    ring: ArcSwap<Ring>,
    /// The stamp of the file when it was last read. Held while the file is read again, by those that refresh alone.
    stamp: Mutex<Option<Stamp>>,
}

/// A turn to seal values and to write them. It ends when this is dropped.
#[derive(Debug)]
pub struct Sealing {
    /// The keys as they are during the turn.
    pub ring: Arc<Ring>,
    _turn: Option<File>,
}

impl KeyRing {
    /// Reads the keys. A missing file is created, unless values are `sealed` already: a new key would open
    /// none of them.
    pub fn open(source: &KeySource, sealed: &[KeyUse]) -> Result<Self, StoreError> {
        let path = match source {
            KeySource::Variable(text) => {
                let ring = Ring::parse(text).map_err(|why| StoreError::Keys {
                    place: format!("`{VARIABLE}`"),
                    why: format!("{why}; write keys as in the key file, the current one first"),
                })?;
                return Ok(Self { file: None, ring: ArcSwap::from_pointee(ring), stamp: Mutex::new(None) });
            }
            KeySource::File(path) => path,
        };
        if key_ring_file::stamp(path)?.is_none() {
            match sealed {
                [] => key_ring_file::create(path, &Ring::new(Key::generate()?))?,
                sealed => return Err(lost(path, sealed)),
            }
        }
        let (ring, stamp) = key_ring_file::read(path)?.ok_or_else(|| gone(path))?;
        let (ring, stamp) = (ArcSwap::from_pointee(ring), Mutex::new(Some(stamp)));
        Ok(Self { file: Some(path.clone()), ring, stamp })
    }

    /// The keys as they were last read.
    pub fn ring(&self) -> Arc<Ring> {
        self.ring.load_full()
    }

    /// Returns whether a new key can be made here; false if the keys are set from outside.
    pub fn is_ours_to_change(&self) -> bool {
        self.file.is_some()
    }

    /// Reads the keys again, if they were changed.
    pub async fn refresh(self: &Arc<Self>) -> Result<Arc<Ring>, StoreError> {
        let this = Arc::clone(self);
        blocking(move || this.refreshed()).await
    }

    /// Waits for a turn to seal, with the keys as they are then.
    pub async fn sealing(self: &Arc<Self>) -> Result<Sealing, StoreError> {
        let this = Arc::clone(self);
        blocking(move || {
            let turn = this.file.as_deref().map(key_ring_file::lock).transpose()?;
            Ok(Sealing { ring: this.refreshed()?, _turn: turn })
        })
        .await
    }

    /// Makes a new current key during a turn.
    pub(crate) async fn add(self: &Arc<Self>, turn: Sealing) -> Result<SealKeyId, StoreError> {
        let key = Key::generate()?;
        let id = key.id();
        self.change(turn, |ring| ring.with_current(key)).await?;
        Ok(id)
    }

    /// Removes older keys during a turn.
    pub(crate) async fn retire(
        self: &Arc<Self>,
        turn: Sealing,
        unused: Vec<SealKeyId>,
    ) -> Result<(), StoreError> {
        self.change(turn, move |ring| ring.without(&unused)).await
    }

    async fn change(
        self: &Arc<Self>,
        turn: Sealing,
        change: impl FnOnce(Ring) -> Ring + Send + 'static,
    ) -> Result<(), StoreError> {
        let this = Arc::clone(self);
        blocking(move || {
            let Some(path) = &this.file else { return Err(fixed()) };
            // From the file and not from memory: what is written is what was there, and one change.
            let (ring, _) = key_ring_file::read(path)?.ok_or_else(|| gone(path))?;
            key_ring_file::replace(path, &change(ring))?;
            this.refreshed()?;
            drop(turn);
            Ok(())
        })
        .await
    }

    fn refreshed(&self) -> Result<Arc<Ring>, StoreError> {
        let Some(path) = &self.file else { return Ok(self.ring()) };
        let mut held = self.stamp.lock().unwrap_or_else(PoisonError::into_inner);
        if key_ring_file::stamp(path)? != *held {
            let (ring, stamp) = key_ring_file::read(path)?.ok_or_else(|| gone(path))?;
            self.ring.store(Arc::new(ring));
            *held = Some(stamp);
        }
        Ok(self.ring())
    }
}

/// Runs work that may wait for a disk or a turn, on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    what: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(what).await;
    done.unwrap_or_else(|error| {
        let why = error.to_string();
        Err(StoreError::Database { what: "could not read the keys", why, transient: false })
    })
}

fn gone(path: &Path) -> StoreError {
    key_ring_file::unusable(path, "it is missing; restore it from a copy, or set `CLAWSMITH_KEYS`")
}

fn lost(path: &Path, sealed: &[KeyUse]) -> StoreError {
    let keys: Vec<String> = sealed.iter().filter_map(|used| Some(format!("`{}`", used.key?))).collect();
    let why = format!(
        "it is missing, and values are encrypted with {}; restore it from a copy, or set `{VARIABLE}`",
        keys.join(", ")
    );
    key_ring_file::unusable(path, &why)
}

fn fixed() -> StoreError {
    StoreError::Keys {
        place: format!("`{VARIABLE}`"),
        why:
            "an environment variable cannot be changed from here; put a new key before the others and restart"
                .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_can_be_read_while_the_file_is_read_again() {
        let place = tempfile::tempdir().unwrap();
        let source = KeySource::File(place.path().join("keys").join("keys"));
        let keys = Arc::new(KeyRing::open(&source, &[]).unwrap());
        let refresher = keys.stamp.lock().unwrap();
        let (told, heard) = std::sync::mpsc::channel();
        let reader = Arc::clone(&keys);
        std::thread::spawn(move || told.send(reader.ring()));
        let read = heard.recv_timeout(std::time::Duration::from_secs(30)).expect("nobody waits for the file");
        drop(refresher);
        assert!(Arc::ptr_eq(&read, &keys.refreshed().unwrap()), "the file is the same");
    }
}
