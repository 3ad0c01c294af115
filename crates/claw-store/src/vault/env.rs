//! The variables of a credentialed program.

use std::collections::BTreeMap;

use claw_core::store::{ProgramSettings, StoreError};
use claw_core::tool::Digest;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::refused;

/// Names and values of variables. `Debug` shows the names alone.
#[derive(Debug, Clone, Default)]
pub struct ProgramEnv(BTreeMap<String, SecretString>);

/// The sealed form of the variables.
#[derive(Serialize)]
struct Written<'a> {
    binary: &'a str,
    digest: Option<Digest>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    helpers: &'a [String],
    env: BTreeMap<&'a str, &'a str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    binary: String,
    #[serde(default)]
    digest: Option<Digest>,
    #[serde(default)]
    helpers: Vec<String>,
    env: BTreeMap<String, SecretString>,
}

impl ProgramEnv {
    /// Takes variables whose names and values are valid for a process.
    pub fn new(variables: impl IntoIterator<Item = (String, SecretString)>) -> Result<Self, StoreError> {
        const WHAT: &str = "could not accept the variables";
        let mut taken = BTreeMap::new();
        for (name, value) in variables {
            if name.is_empty() || name.contains(['=', '\0']) {
                let why = format!(
                    "`{}` is not a valid variable name; use letters, digits and `_`",
                    name.escape_debug()
                );
                return Err(refused(WHAT, why));
            }
            if value.expose_secret().contains('\0') {
                let why =
                    format!("the value of `{}` contains a NUL character; remove it", name.escape_debug());
                return Err(refused(WHAT, why));
            }
            taken.insert(name, value);
        }
        Ok(Self(taken))
    }

    /// The names, sorted.
    pub fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Option<&SecretString> {
        self.0.get(name)
    }

    /// Iterates over all variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SecretString)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Serializes the variables for sealing, as a JSON object with the binary's path and digest and its
    /// helpers.
    pub(super) fn write(&self, settings: &ProgramSettings) -> Result<Zeroizing<Vec<u8>>, StoreError> {
        let ProgramSettings { binary, digest, helpers, .. } = settings;
        let env: BTreeMap<&str, &str> =
            self.iter().map(|(name, value)| (name, value.expose_secret())).collect();
        // A character takes at most six in JSON; what never grows leaves no copy behind.
        let room: usize = env.iter().map(|(name, value)| 6 * (name.len() + value.len()) + 6).sum();
        let named: usize = helpers.iter().map(|helper| 6 * helper.len() + 6).sum();
        let mut plain = Zeroizing::new(Vec::with_capacity(room + named + 6 * binary.len() + 160));
        serde_json::to_writer(&mut *plain, &Written { binary, digest: *digest, helpers, env }).map_err(
            |_| refused("could not encrypt the value", "the variables cannot be written as JSON".to_owned()),
        )?;
        Ok(plain)
    }

    /// Reads what [`write`](Self::write) wrote for the binary of these settings. The error reveals nothing of
    /// it.
    pub(super) fn read(plain: &[u8], settings: &ProgramSettings) -> Result<Self, &'static str> {
        let read: Read = serde_json::from_slice(plain).map_err(|_| "it cannot be read")?;
        if read.binary != settings.binary || read.digest != settings.digest {
            return Err("it was encrypted for another binary than the current one");
        }
        if read.helpers != settings.helpers {
            return Err("it was encrypted for other helpers than the current ones");
        }
        Ok(Self(read.env))
    }
}
