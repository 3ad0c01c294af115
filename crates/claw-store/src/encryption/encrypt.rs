//! Encrypts and decrypts secrets: the current key seals, older ones still open.

use aes_gcm::Nonce;
use aes_gcm::aead::{AeadInOut as _, Generate as _};
use claw_core::store::{
    SEALED_HEAD, SEALED_NONCE, SEALED_TAG, SEALED_VERSION, SealKeyId, Sealed, SealedPlace, StoreError,
};
use zeroize::Zeroizing;

use super::key::{Key, no_randomness};

/// The keys, the current one first. `Debug` shows their ids alone.
#[derive(Debug)]
pub struct Ring {
    current: Key,
    older: Vec<Key>,
}

/// Why a sealed value could not be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unopened {
    /// The key that sealed it is not here.
    NoKey(SealKeyId),
    /// The value was changed, or was sealed for another place.
    Changed,
}

impl Ring {
    /// Creates a ring of one key.
    pub fn new(current: Key) -> Self {
        Self { current, older: Vec::new() }
    }

    /// The id of the key that seals.
    pub fn current(&self) -> SealKeyId {
        self.current.id()
    }

    /// The ids of all keys, the current one first.
    pub fn ids(&self) -> Vec<SealKeyId> {
        self.keys().map(Key::id).collect()
    }

    /// Seals a value for its place.
    pub fn seal(&self, place: &SealedPlace, plain: &[u8]) -> Result<Sealed, StoreError> {
        let nonce = <[u8; SEALED_NONCE]>::try_generate().map_err(|error| no_randomness(&error))?;
        // Room for all of it, so that the plain value is written once and then overwritten.
        let mut sealed = Zeroizing::new(Vec::with_capacity(SEALED_HEAD + plain.len() + SEALED_TAG));
        sealed.push(SEALED_VERSION);
        sealed.extend_from_slice(&self.current.id().0);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(plain);
        let tag = self.current.cipher().encrypt_inout_detached(
            &Nonce::from(nonce),
            &place.bytes(),
            (&mut sealed[SEALED_HEAD..]).into(),
        );
        let tag = tag.map_err(|_| refused("the value is too long; a secret has at most 64 GiB"))?;
        sealed.extend_from_slice(&tag);
        Sealed::from_bytes(std::mem::take(&mut *sealed))
            .map_err(|_| refused("the encrypted value is invalid"))
    }

    /// Opens a value sealed for this place.
    pub fn open(&self, place: &SealedPlace, sealed: &Sealed) -> Result<Zeroizing<Vec<u8>>, Unopened> {
        let id = sealed.key();
        let key = self.keys().find(|key| key.id() == id).ok_or(Unopened::NoKey(id))?;
        let nonce: [u8; SEALED_NONCE] = sealed.nonce().try_into().map_err(|_| Unopened::Changed)?;
        let (enciphered, tag) =
            sealed.ciphertext().split_last_chunk::<SEALED_TAG>().ok_or(Unopened::Changed)?;
        let mut plain = Zeroizing::new(enciphered.to_vec());
        let opened = key.cipher().decrypt_inout_detached(
            &Nonce::from(nonce),
            &place.bytes(),
            plain.as_mut_slice().into(),
            &(*tag).into(),
        );
        opened.map_err(|_| Unopened::Changed)?;
        Ok(plain)
    }

    /// Reads entries, the current key's first, separated by blanks, commas or line breaks. Lines that begin
    /// with `#` are skipped. The error reveals nothing of the text.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let entries =
            lines.flat_map(|line| line.split([' ', '\t', ',', '\r'])).filter(|word| !word.is_empty());
        let mut keys = Vec::new();
        for key in entries.map(Key::parse) {
            let key = key?;
            if keys.iter().any(|known: &Key| known.id() == key.id()) {
                return Err("it contains the same key twice");
            }
            keys.push(key);
        }
        if keys.is_empty() {
            return Err("it contains no key");
        }
        let older = keys.split_off(1);
        let current = keys.pop().ok_or("it contains no key")?;
        Ok(Self { current, older })
    }

    /// Writes the entries as [`parse`](Self::parse) reads them, one per line.
    pub(super) fn write(&self) -> Zeroizing<String> {
        let keys = 1 + self.older.len();
        let mut text = Zeroizing::new(String::with_capacity(HEADER.len() + keys * (Key::WRITTEN + 1)));
        text.push_str(HEADER);
        for key in self.keys() {
            key.write(&mut text);
            text.push('\n');
        }
        text
    }

    /// Adds a key, which becomes the current one.
    pub(super) fn with_current(self, key: Key) -> Self {
        let mut older = self.older;
        older.insert(0, self.current);
        Self { current: key, older }
    }

    /// Removes the older keys that `unused` names.
    pub(super) fn without(self, unused: &[SealKeyId]) -> Self {
        let older = self.older.into_iter().filter(|key| !unused.contains(&key.id())).collect();
        Self { current: self.current, older }
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.current).chain(&self.older)
    }
}

const HEADER: &str = "\
# Encryption keys of secrets, the current one first. Keep a copy: without them no secret can be decrypted.
";

fn refused(why: &str) -> StoreError {
    StoreError::Database { what: "could not encrypt the value", why: why.to_owned(), transient: false }
}
