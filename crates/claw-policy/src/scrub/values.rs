//! Literal secret values, and the reasons to refuse one.

use std::fmt;

use super::known_values::SHORTEST;

/// A literal secret. Its text is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Value {
    pub(super) secret: String,
    pub(super) kind: &'static str,
}

impl Value {
    /// A value to be redacted wherever it occurs, reported as `kind`.
    pub fn new(secret: impl Into<String>, kind: &'static str) -> Self {
        Self { secret: secret.into(), kind }
    }

    /// Refuses a value that would redact ordinary text.
    pub fn validate(&self) -> Result<(), ValueError> {
        self.check(0)
    }

    pub(super) fn check(&self, index: usize) -> Result<(), ValueError> {
        let kind = self.kind;
        let length = self.secret.len();
        if length < SHORTEST {
            return Err(ValueError::TooShort { index, kind, length });
        }
        let mut bytes = self.secret.bytes();
        let first = bytes.next();
        if bytes.all(|byte| Some(byte) == first) {
            return Err(ValueError::Repeated { index, kind });
        }
        Ok(())
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Value").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// The reason why a value is refused. The value itself is not included.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// It would redact ordinary text.
    #[error(
        "value {index} (`{kind}`) has {length} bytes and would redact ordinary text; \
         use a secret of at least {SHORTEST} bytes"
    )]
    TooShort {
        /// Index of the value.
        index: usize,
        /// Kind of the value.
        kind: &'static str,
        /// Length of the value in bytes.
        length: usize,
    },
    /// It would redact separator lines and indentation.
    #[error(
        "value {index} (`{kind}`) repeats one character and would redact ordinary text; use another secret"
    )]
    Repeated {
        /// Index of the value.
        index: usize,
        /// Kind of the value.
        kind: &'static str,
    },
    /// All values together are too long.
    #[error("the values take more than 4 GiB; register fewer or shorter ones")]
    TooMuch,
}
