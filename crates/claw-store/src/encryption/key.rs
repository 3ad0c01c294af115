//! A key: 256 random bits, known by an id that is computed from them.

use std::fmt;

use aes_gcm::Aes256Gcm;
use aes_gcm::aead::{Generate as _, KeyInit as _};
use claw_core::store::{SealKeyId, StoreError};
use sha2::{Digest as _, Sha256};
use zeroize::{Zeroize as _, Zeroizing};

const LENGTH: usize = 32;

/// A key that seals and opens. `Debug` shows its id alone.
pub struct Key {
    id: SealKeyId,
    bytes: Zeroizing<[u8; LENGTH]>,
}

impl Key {
    /// Generates a key from the system's random source.
    pub fn generate() -> Result<Self, StoreError> {
        let bytes = <[u8; LENGTH]>::try_generate().map_err(|error| no_randomness(&error))?;
        Ok(Self::new(Zeroizing::new(bytes)))
    }

    fn new(bytes: Zeroizing<[u8; LENGTH]>) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"clawsmith key id\0");
        hash.update(*bytes);
        let mut id = [0; SealKeyId::LENGTH];
        id.copy_from_slice(&hash.finalize()[..SealKeyId::LENGTH]);
        Self { id: SealKeyId(id), bytes }
    }

    /// Reads `ID:KEY` or `KEY`, in hexadecimal. An id must be that of the key, so a damaged key is noticed.
    /// The error reveals nothing of the text.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let (id, digits) = text.split_once(':').map_or((None, text), |(id, digits)| (Some(id), digits));
        let mut bytes = Zeroizing::new([0; LENGTH]);
        read_hex(digits, &mut *bytes).ok_or("a key is not 64 hexadecimal digits")?;
        let key = Self::new(bytes);
        let fits = id.is_none_or(|id| id == key.id.to_string());
        if fits { Ok(key) } else { Err("a key does not fit the id before it") }
    }

    /// Writes it as [`parse`](Self::parse) reads it.
    pub(super) fn write(&self, text: &mut String) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        text.push_str(&self.id.to_string());
        text.push(':');
        for byte in self.bytes.iter() {
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }

    /// The number of bytes that [`write`](Self::write) writes.
    pub(super) const WRITTEN: usize = 2 * SealKeyId::LENGTH + 1 + 2 * LENGTH;

    /// Returns the key's id.
    pub fn id(&self) -> SealKeyId {
        self.id
    }

    pub(super) fn cipher(&self) -> Aes256Gcm {
        let mut key = aes_gcm::Key::<Aes256Gcm>::from(*self.bytes);
        let cipher = Aes256Gcm::new(&key);
        key.zeroize();
        cipher
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.id)
    }
}

/// The system gave no random bytes; nothing is encrypted without them.
pub(super) fn no_randomness(error: &impl fmt::Display) -> StoreError {
    StoreError::Database {
        what: "could not encrypt the value",
        why: format!("the system provided no random bytes ({error}); try again"),
        transient: true,
    }
}

fn read_hex(digits: &str, bytes: &mut [u8]) -> Option<()> {
    let digits = digits.as_bytes();
    if digits.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = u8::try_from(16 * digit(pair[0])? + digit(pair[1])?).ok()?;
    }
    Some(())
}
