//! The sealed values of a custom tool: variables of its commands, and HTTP headers.

use std::collections::BTreeMap;

use claw_core::store::{CustomToolAction, CustomToolDefinition, CustomToolGrants, StoreError};
use claw_core::tool::Digest;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::refused;

/// Names and values. `Debug` shows the names alone.
#[derive(Debug, Clone, Default)]
pub struct CustomToolValues {
    env: BTreeMap<String, SecretString>,
    headers: BTreeMap<String, SecretString>,
}

#[derive(Serialize)]
struct Written<'a> {
    sealed_for: Digest,
    env: BTreeMap<&'a str, &'a str>,
    headers: BTreeMap<&'a str, &'a str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    sealed_for: Digest,
    env: BTreeMap<String, SecretString>,
    headers: BTreeMap<String, SecretString>,
}

impl CustomToolValues {
    /// Takes variables for a process, and headers of a request.
    pub fn new(
        env: impl IntoIterator<Item = (String, SecretString)>,
        headers: impl IntoIterator<Item = (String, SecretString)>,
    ) -> Result<Self, StoreError> {
        const WHAT: &str = "could not accept the values";
        let mut taken = Self::default();
        for (name, value) in env {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if name.is_empty() || !name.bytes().all(plain) || name.as_bytes()[0].is_ascii_digit() {
                let why = format!(
                    "`{}` is not a valid variable name; use letters, digits and `_`",
                    name.escape_debug()
                );
                return Err(refused(WHAT, why));
            }
            if value.expose_secret().contains('\0') {
                return Err(refused(
                    WHAT,
                    format!("the value of `{name}` contains a NUL character; remove it"),
                ));
            }
            taken.env.insert(name, value);
        }
        for (name, value) in headers {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            if name.is_empty() || !name.bytes().all(plain) {
                let why = format!(
                    "`{}` is not a valid header name; use letters, digits and `-`",
                    name.escape_debug()
                );
                return Err(refused(WHAT, why));
            }
            if !value.expose_secret().bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
                let why = format!("the value of header `{name}` must be printable ASCII on one line");
                return Err(refused(WHAT, why));
            }
            taken.headers.insert(name, value);
        }
        Ok(taken)
    }

    /// Names of the variables, sorted.
    pub fn names(&self) -> Vec<String> {
        self.env.keys().cloned().collect()
    }

    /// The variables, sorted by name.
    pub fn env(&self) -> impl Iterator<Item = (&str, &SecretString)> {
        self.env.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The headers, sorted by name.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &SecretString)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Serializes the values for sealing, as a JSON object with a digest of the tool's action.
    pub(super) fn write(&self, definition: &CustomToolDefinition) -> Result<Zeroizing<Vec<u8>>, StoreError> {
        let exposed = |values: &BTreeMap<String, SecretString>| -> usize {
            values.iter().map(|(name, value)| 6 * (name.len() + value.expose_secret().len()) + 6).sum()
        };
        // A character takes at most six in JSON; a buffer that never grows leaves no copy behind.
        let room = exposed(&self.env) + exposed(&self.headers) + 200;
        let mut plain = Zeroizing::new(Vec::with_capacity(room));
        let env = self.env().map(|(name, value)| (name, value.expose_secret())).collect();
        let headers = self.headers().map(|(name, value)| (name, value.expose_secret())).collect();
        let written = Written { sealed_for: sealed_for(definition), env, headers };
        serde_json::to_writer(&mut *plain, &written).map_err(|_| {
            refused("could not encrypt the value", "the values cannot be written as JSON".to_owned())
        })?;
        Ok(plain)
    }

    /// Reads what [`write`](Self::write) wrote for this definition. The error reveals nothing of the values.
    pub(super) fn read(plain: &[u8], definition: &CustomToolDefinition) -> Result<Self, &'static str> {
        let read: Read = serde_json::from_slice(plain).map_err(|_| "it cannot be read")?;
        if read.sealed_for != sealed_for(definition) {
            return Err("it was encrypted for another command or other grants than the current ones");
        }
        Ok(Self { env: read.env, headers: read.headers })
    }
}

/// Returns the digest of everything that decides where the values go.
fn sealed_for(definition: &CustomToolDefinition) -> Digest {
    let decides: (&CustomToolAction, &CustomToolGrants) = (&definition.action, &definition.grants);
    Digest::of(&decides)
}
