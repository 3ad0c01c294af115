//! Sealed values: bytes that say nothing without the key that sealed them.
//!
//! A store keeps them and opens none. What is not of their form is not taken for one, so that a plain text
//! never gets into a place for sealed values by mistake, nor out of it as if it had been sealed.

use std::fmt;

use async_trait::async_trait;
use serde::{Serialize, Serializer};
use smol_str::SmolStr;

use super::{Changes, CustomToolPlace, ProgramPlace, SecretPlace, StoreError};
use crate::id::{AgentId, TenantId};

/// The form that is written today. No text begins with this byte.
pub const SEALED_VERSION: u8 = 1;
/// Version, key id, nonce.
pub const SEALED_HEAD: usize = 1 + SealKeyId::LENGTH + SEALED_NONCE;
/// The length of the nonce.
pub const SEALED_NONCE: usize = 12;
/// The length of the tag at the end.
pub const SEALED_TAG: usize = 16;

/// Which key sealed a value: the beginning of a hash of the key, which tells nothing of it.
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
/// Having one means that bytes have the form, not that they open: only a key ring makes one that does.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(Vec<u8>);

impl Sealed {
    /// Takes bytes that have the form of a sealed value.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, NotSealed> {
        match bytes.first() {
            None => Err(NotSealed::Empty),
            Some(&SEALED_VERSION) if bytes.len() < SEALED_HEAD + SEALED_TAG => Err(NotSealed::Short),
            Some(&SEALED_VERSION) => Ok(Self(bytes)),
            // No text begins with such a byte; a later Clawsmith's form may.
            Some(&version) if version < b'\t' => Err(NotSealed::Version(version)),
            Some(_) => Err(NotSealed::Plain),
        }
    }

    /// All of it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Which key sealed it.
    pub fn key(&self) -> SealKeyId {
        let mut id = [0; SealKeyId::LENGTH];
        id.copy_from_slice(&self.0[1..=SealKeyId::LENGTH]);
        SealKeyId(id)
    }

    /// The nonce.
    pub fn nonce(&self) -> &[u8] {
        &self.0[1 + SealKeyId::LENGTH..SEALED_HEAD]
    }

    /// What was sealed, enciphered, with its tag.
    pub fn ciphertext(&self) -> &[u8] {
        &self.0[SEALED_HEAD..]
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed(key {}, {} bytes)", self.key(), self.0.len())
    }
}

/// Why bytes are no sealed value. It holds none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSealed {
    /// There are none.
    #[error("it is empty")]
    Empty,
    /// They begin like one and end too soon.
    #[error("it is cut off")]
    Short,
    /// They begin like one of another Clawsmith.
    #[error("it was sealed in form {0}, which this Clawsmith does not know")]
    Version(u8),
    /// They begin like a text.
    #[error("it is not sealed: something wrote a plain value into the database")]
    Plain,
}

/// The tables that hold sealed values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SealedTable {
    /// Named secrets.
    Secrets,
    /// What credentialed programs are given.
    Programs,
    /// Values of custom tools.
    CustomTools,
}

impl SealedTable {
    /// Every table.
    pub const ALL: [Self; 3] = [Self::Secrets, Self::Programs, Self::CustomTools];

    /// The table's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Secrets => "secrets",
            Self::Programs => "programs",
            Self::CustomTools => "custom_tools",
        }
    }

    /// The column that is sealed.
    pub const fn field(self) -> &'static str {
        match self {
            Self::Secrets => "value",
            Self::Programs | Self::CustomTools => "env",
        }
    }
}

/// Where a sealed value is. It is sealed for this place and opens at no other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SealedPlace {
    /// In which table.
    pub table: SealedTable,
    /// Whose data it is.
    pub tenant: TenantId,
    /// Which agent's; `None` is the tenant's, for all its agents.
    pub agent: Option<AgentId>,
    /// Its name.
    pub name: SmolStr,
}

impl SealedPlace {
    /// The place as bytes that no other place has.
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

/// A sealed value where it lies. One that is no sealed value is given with what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedRow {
    /// Where.
    pub place: SealedPlace,
    /// What is there.
    pub value: Result<Sealed, NotSealed>,
}

/// A value to be put in place of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resealed {
    /// Where.
    pub place: SealedPlace,
    /// What was there.
    pub old: Sealed,
    /// What shall be there.
    pub new: Sealed,
}

/// How many values a key sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KeyUse {
    /// The key; `None` for rows that hold no sealed value.
    pub key: Option<SealKeyId>,
    /// How many.
    pub values: u64,
}

/// Goes through the sealed values of all tenants, so that another key can seal them. A change is told as
/// [`Topic::Secrets`](super::Topic::Secrets).
#[async_trait]
pub trait SealedValues: Changes {
    /// The values of a table that `key` did not seal, sorted by tenant, agent and name, those after `after`, at
    /// most `limit`. Rows that hold no sealed value are among them.
    async fn not_sealed_by(
        &self,
        key: SealKeyId,
        table: SealedTable,
        after: Option<&SealedPlace>,
        limit: usize,
    ) -> Result<Vec<SealedRow>, StoreError>;
    /// Puts values in place of others, together; gives how many. One that is not there any more as it was seen,
    /// since somebody wrote or removed it, is left as it is.
    async fn reseal(&self, values: &[Resealed]) -> Result<u64, StoreError>;
    /// How many values of all tables each key sealed, sorted by key.
    async fn key_use(&self) -> Result<Vec<KeyUse>, StoreError>;
}

#[cfg(test)]
mod tests;
