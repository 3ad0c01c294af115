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
    held: Mutex<(Arc<Ring>, Option<Stamp>)>,
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
                return Ok(Self { file: None, held: Mutex::new((Arc::new(ring), None)) });
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
        Ok(Self { file: Some(path.clone()), held: Mutex::new((Arc::new(ring), Some(stamp))) })
    }

    /// The keys as they were last read.
    pub fn ring(&self) -> Arc<Ring> {
        Arc::clone(&self.held.lock().unwrap_or_else(PoisonError::into_inner).0)
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
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if key_ring_file::stamp(path)? != held.1 {
            let (ring, stamp) = key_ring_file::read(path)?.ok_or_else(|| gone(path))?;
            *held = (Arc::new(ring), Some(stamp));
        }
        Ok(Arc::clone(&held.0))
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
