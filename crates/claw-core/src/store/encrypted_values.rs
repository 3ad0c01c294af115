//! Sealed values: bytes that reveal nothing without the key that sealed them.
//!
//! A store holds sealed values and opens none. Bytes of another form are rejected, so that plain text never
//! gets into a place for sealed values by mistake, nor out of it as if it had been sealed.

use std::fmt;

use async_trait::async_trait;
use serde::{Serialize, Serializer};
use smol_str::SmolStr;

use super::{Changes, CustomToolPlace, ProgramPlace, SecretPlace, StoreError};
use crate::id::{AgentId, TenantId};

/// The version of the present format. No text begins with this byte.
pub const SEALED_VERSION: u8 = 1;
/// The length of the head: version, key id and nonce.
pub const SEALED_HEAD: usize = 1 + SealKeyId::LENGTH + SEALED_NONCE;
/// The length of the nonce, in bytes.
pub const SEALED_NONCE: usize = 12;
/// The length of the tag at the end, in bytes.
pub const SEALED_TAG: usize = 16;

/// The id of the key that sealed a value: the beginning of a hash of the key, which reveals nothing of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SealKeyId(pub [u8; Self::LENGTH]);

impl SealKeyId {
    /// Its length in bytes.
    pub const LENGTH: usize = 8;
}

impl fmt::Display for SealKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SealKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealKeyId({self})")
    }
}

impl Serialize for SealKeyId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A sealed value: a version byte, the key's id, a nonce, the ciphertext with its tag.
///
/// The bytes have the right form; only a key ring can tell whether they open.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(Vec<u8>);

impl Sealed {
    /// Takes bytes that have the form of a sealed value.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, NotSealed> {
        match bytes.first() {
            None => Err(NotSealed::Empty),
            Some(&SEALED_VERSION) if bytes.len() < SEALED_HEAD + SEALED_TAG => Err(NotSealed::Short),
            Some(&SEALED_VERSION) => Ok(Self(bytes)),
            // No text begins with such a byte; a format of a later Clawsmith may.
            Some(&version) if version < b'\t' => Err(NotSealed::Version(version)),
            Some(_) => Err(NotSealed::Plain),
        }
    }

    /// Returns all bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the id of the key that sealed it.
    pub fn key(&self) -> SealKeyId {
        let mut id = [0; SealKeyId::LENGTH];
        id.copy_from_slice(&self.0[1..=SealKeyId::LENGTH]);
        SealKeyId(id)
    }

    /// Returns the nonce.
    pub fn nonce(&self) -> &[u8] {
        &self.0[1 + SealKeyId::LENGTH..SEALED_HEAD]
    }

    /// Returns the ciphertext with its tag.
    pub fn ciphertext(&self) -> &[u8] {
        &self.0[SEALED_HEAD..]
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed(key {}, {} bytes)", self.key(), self.0.len())
    }
}

/// The reason why bytes are not a sealed value. It holds none of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSealed {
    /// There are no bytes.
    #[error("it is empty")]
    Empty,
    /// The head matches, but the value is cut off.
    #[error("it is cut off")]
    Short,
    /// The version byte is unknown.
    #[error("it was encrypted in form {0}, which this Clawsmith does not know")]
    Version(u8),
    /// The bytes are plain text.
    #[error("it is not encrypted: something wrote a plain value into the database")]
    Plain,
}

/// The tables that hold sealed values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SealedTable {
    /// Named secrets.
    Secrets,
    /// Variables of credentialed programs.
    Programs,
    /// Values of custom tools.
    CustomTools,
}

impl SealedTable {
    /// Every table.
    pub const ALL: [Self; 3] = [Self::Secrets, Self::Programs, Self::CustomTools];

    /// Returns the table's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Secrets => "secrets",
            Self::Programs => "programs",
            Self::CustomTools => "custom_tools",
        }
    }

    /// Returns the name of the sealed column.
    pub const fn field(self) -> &'static str {
        match self {
            Self::Secrets => "value",
            Self::Programs | Self::CustomTools => "env",
        }
    }
}

/// The place of a sealed value. A value is sealed for one place and opens at no other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SealedPlace {
    /// The table.
    pub table: SealedTable,
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// The agent; `None` for the tenant's, shared by all its agents.
    pub agent: Option<AgentId>,
    /// Its name.
    pub name: SmolStr,
}

impl SealedPlace {
    /// Encodes the place in bytes, uniquely.
    pub fn bytes(&self) -> Vec<u8> {
        let agent = self.agent.as_ref().map_or("", AgentId::as_str);
        let parts = [self.table.name(), self.table.field(), self.tenant.as_str(), agent, &self.name];
        let mut bytes = Vec::new();
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes
    }
}

impl fmt::Display for SealedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.table {
            SealedTable::Secrets => "the secret",
            SealedTable::Programs => "the env of program",
            SealedTable::CustomTools => "the env of custom tool",
        };
        write!(f, "{what} `{}`", self.name)?;
        if let Some(agent) = &self.agent {
            write!(f, " of agent `{agent}`")?;
        }
        write!(f, " (tenant `{}`)", self.tenant)
    }
}

impl From<&SecretPlace> for SealedPlace {
    fn from(place: &SecretPlace) -> Self {
        let SecretPlace { tenant, agent, name } = place.clone();
        Self { table: SealedTable::Secrets, tenant, agent, name: name.into() }
    }
}

impl From<&ProgramPlace> for SealedPlace {
    fn from(place: &ProgramPlace) -> Self {
        let ProgramPlace { tenant, agent, name } = place.clone();
        Self { table: SealedTable::Programs, tenant, agent, name: name.into() }
    }
}

impl From<&CustomToolPlace> for SealedPlace {
    fn from(place: &CustomToolPlace) -> Self {
        let CustomToolPlace { tenant, agent, name } = place.clone();
        Self { table: SealedTable::CustomTools, tenant, agent, name: name.into() }
    }
}

/// A row of a sealed table: its value, or the reason why that is not a sealed value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedRow {
    /// Its place.
    pub place: SealedPlace,
    /// Its value.
    pub value: Result<Sealed, NotSealed>,
}

/// A replacement of a sealed value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resealed {
    /// Its place.
    pub place: SealedPlace,
    /// The expected old value.
    pub old: Sealed,
    /// The new value.
    pub new: Sealed,
}

/// The number of values that a key sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KeyUse {
    /// The key; `None` for rows that hold no sealed value.
    pub key: Option<SealKeyId>,
    /// The number of values.
    pub values: u64,
}

/// The place of a change in the order of all changes of sealed values. The default is before the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SealedMark(pub u64);

/// The tenants whose sealed values changed after a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedChanges {
    /// The mark of the last change; the mark that was asked about if there is none.
    pub mark: SealedMark,
    /// The tenants, each once, in the order of their last changes.
    pub tenants: Vec<TenantId>,
}

/// Iterates over the sealed values of all tenants, so that another key can seal them. A change is announced
/// as [`Topic::Secrets`](super::Topic::Secrets).
#[async_trait]
pub trait SealedValues: Changes {
    /// Returns the values of a table that `key` did not seal and that come after `after`, sorted by tenant,
    /// agent and name, at most `limit`. Rows that hold no sealed value are included.
    async fn not_sealed_by(
        &self,
        key: SealKeyId,
        table: SealedTable,
        after: Option<&SealedPlace>,
        limit: usize,
    ) -> Result<Vec<SealedRow>, StoreError>;
    /// Replaces values in one transaction; returns their number. A value that has changed or gone since is
    /// left alone.
    async fn reseal(&self, values: &[Resealed]) -> Result<u64, StoreError>;
    /// Counts the values of all tables that each key sealed, sorted by key.
    async fn key_use(&self) -> Result<Vec<KeyUse>, StoreError>;
    /// Returns the tenants of which a secret, a program or a custom tool was written or removed after `mark`.
    /// Marks are given in the order of commits: no later change gets a mark below one that was returned. A mark above
    /// all others comes from a store that was set back since (a restore, a failover): all tenants are returned.
    async fn changed_since(&self, mark: SealedMark) -> Result<SealedChanges, StoreError>;
}

#[cfg(test)]
mod tests;
