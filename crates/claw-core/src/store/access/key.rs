//! The key itself: shown once, to the person who asked for it, and stored nowhere.

use std::fmt;
use std::str::FromStr;

use crate::tool::Digest;

/// An API key: 256 random bits as text, `claw_` and 64 hex digits in lower case.
///
/// The scrubber recognises the prefix as that of a secret. `Debug` does not show the rest.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// A text that is not an API key. The error does not hold the text, which may be a key with a typing error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not an API key; it begins with `claw_`, and 64 digits or letters from a to f follow")]
pub struct InvalidKey;

impl ApiKey {
    /// The prefix of every key.
    pub const PREFIX: &str = "claw_";

    /// Makes a key from bytes, which must come from the system's source of randomness.
    pub fn from_random(bytes: [u8; 32]) -> Self {
        let mut text = String::with_capacity(Self::PREFIX.len() + 64);
        text.push_str(Self::PREFIX);
        for digit in bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]) {
            text.extend(char::from_digit(digit.into(), 16));
        }
        Self(text)
    }

    /// Returns the text, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the SHA-256 of the text, by which the key is stored and found. 256 random bits cannot be
    /// guessed, so no slower hash is needed.
    pub fn hash(&self) -> Digest {
        Digest::of_bytes(self.0.as_bytes())
    }
}

impl FromStr for ApiKey {
    type Err = InvalidKey;
    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        let digits = text.strip_prefix(Self::PREFIX).ok_or(InvalidKey)?;
        let fits = digits.len() == 64 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if fits { Ok(Self(text.to_owned())) } else { Err(InvalidKey) }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({}..)", Self::PREFIX)
    }
}
