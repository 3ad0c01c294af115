//! Rows that hold sealed values.

use std::collections::BTreeMap;

use claw_core::port::UnixMillis;
use claw_core::store::{
    KeyUse, NotSealed, SEALED_VERSION, SealKeyId, Sealed, SealedPlace, SealedRow, SealedTable, SecretCard,
    SecretPlace, StoreError,
};
use claw_core::{AgentId, TenantId};

use super::{count, word};

/// Returns an agent as a column: none is the empty text, so that it can be part of a key.
pub(crate) fn agent_text(agent: Option<&AgentId>) -> &str {
    agent.map_or("", AgentId::as_str)
}

/// An agent as [`agent_text`] keeps it.
pub(crate) fn agent_of(what: &str, text: &str) -> Result<Option<AgentId>, StoreError> {
    if text.is_empty() { Ok(None) } else { word(what, text).map(Some) }
}

/// Returns the key after which to continue; for `None`, one before every place.
pub(crate) fn place_text(place: Option<&SealedPlace>) -> (&str, &str, &str) {
    place.map_or(("", "", ""), |place| {
        (place.tenant.as_str(), agent_text(place.agent.as_ref()), place.name.as_str())
    })
}

/// A secret in a list.
pub(crate) fn secret(
    tenant: &TenantId,
    of: &str,
    name: &str,
    made: i64,
    at: i64,
) -> Result<SecretCard, StoreError> {
    let (agent, name) = (agent_of("a secret's agent", of)?, word("a secret's name", name)?);
    let place = SecretPlace { tenant: tenant.clone(), agent, name };
    Ok(SecretCard { place, made: UnixMillis(made), at: UnixMillis(at) })
}

/// A sealed value; anything else in its place is damage.
pub(crate) fn sealed(place: &SealedPlace, bytes: Vec<u8>) -> Result<Sealed, StoreError> {
    Sealed::from_bytes(bytes).map_err(|why| unsealed(place, why))
}

/// Returns the error for a stored value that is not a sealed one.
pub(crate) fn unsealed(place: &SealedPlace, why: NotSealed) -> StoreError {
    StoreError::Damaged { what: place.to_string(), why: format!("{why}; set it again, or remove it") }
}

/// A sealed value with its place: tenant, agent, name and the value.
pub(crate) fn sealed_row(
    table: SealedTable,
    (tenant, of, name, value): (String, String, String, Vec<u8>),
) -> Result<SealedRow, StoreError> {
    let tenant = word("an encrypted value's tenant", &tenant)?;
    let place =
        SealedPlace { table, tenant, agent: agent_of("an encrypted value's agent", &of)?, name: name.into() };
    Ok(SealedRow { place, value: Sealed::from_bytes(value) })
}

/// Counts the values that each key sealed, from the first bytes of values.
pub(crate) fn key_use(rows: Vec<(Vec<u8>, i64)>) -> Result<Vec<KeyUse>, StoreError> {
    let mut counts = BTreeMap::<Option<SealKeyId>, u64>::new();
    for (head, values) in rows {
        let key = match head.split_first() {
            Some((&SEALED_VERSION, id)) => id.try_into().ok().map(SealKeyId),
            _ => None,
        };
        *counts.entry(key).or_default() += count::<u64>(values)?;
    }
    Ok(counts.into_iter().map(|(key, values)| KeyUse { key, values }).collect())
}
