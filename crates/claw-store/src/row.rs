//! Between rows and types, for both dialects: what does not read is damage, and named.

use std::collections::BTreeMap;

use claw_core::port::UnixMillis;
use claw_core::store::{
    Approval, ApprovalState, KeyId, KeyUse, NewMessage, NotSealed, SEALED_VERSION, Sealed, SealedPlace,
    SealedRow, SealedTable, SecretCard, SecretPlace, StoreError, Tally,
};
use claw_core::{AgentId, ApprovalId, TenantId};
use serde::de::IntoDeserializer as _;
use serde::de::value::{BytesDeserializer, Error, StrDeserializer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The kind of the event that tells of a message.
pub(crate) const MESSAGE: &str = "message";

/// The body of the event that tells of a message: where it is, not what it says.
pub(crate) fn message_event(message: &NewMessage, seq: u64) -> Value {
    json!({ "id": message.id, "role": message.role, "seq": seq })
}

/// A name, key, state or digest from its text.
pub(crate) fn word<'de, T: Deserialize<'de>>(what: &str, text: &'de str) -> Result<T, StoreError> {
    let text: StrDeserializer<'de, Error> = text.into_deserializer();
    T::deserialize(text).map_err(|error| damaged(what, error))
}

/// An id that we made, from its sixteen bytes.
pub(crate) fn id<'de, T: Deserialize<'de>>(what: &str, bytes: &'de [u8]) -> Result<T, StoreError> {
    T::deserialize(BytesDeserializer::<Error>::new(bytes)).map_err(|error| damaged(what, error))
}

/// A value from its JSON text.
pub(crate) fn json<'de, T: Deserialize<'de>>(what: &str, text: &'de str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| damaged(what, error))
}

/// A value as JSON text.
pub(crate) fn text(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Database {
        what: "could not write to the store",
        why: error.to_string(),
        transient: false,
    })
}

/// A number that must fit its type.
pub(crate) fn count<T: TryFrom<i64, Error: std::fmt::Display>>(number: i64) -> Result<T, StoreError> {
    T::try_from(number).map_err(|error| damaged("a number", error))
}

/// A number for a `LIMIT` or a comparison; one too large for the database means all.
pub(crate) fn number(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// What is stored does not read.
pub(crate) fn damaged(what: &str, why: impl std::fmt::Display) -> StoreError {
    StoreError::Damaged { what: what.to_owned(), why: why.to_string() }
}

/// Whether a question that waits, or a yes that was not used, is out of time.
pub(crate) fn is_lapsed(approval: &Approval, now: UnixMillis) -> bool {
    let open = matches!(approval.state, ApprovalState::Pending | ApprovalState::Approved);
    open && approval.request.expires <= now
}

/// A question does not stand as it would have to.
pub(crate) fn wrong_state(approval: &Approval) -> StoreError {
    StoreError::ApprovalState { id: approval.id, state: approval.state.name() }
}

/// There is no such question, or it is somebody else's or about something else.
pub(crate) fn missing(id: ApprovalId) -> StoreError {
    StoreError::ApprovalState { id, state: "missing" }
}

/// What became of calls, from how many entries of a session there are of each event and outcome.
pub(crate) fn tally(counts: &[(String, Option<String>, i64)]) -> Result<Tally, StoreError> {
    let mut tally = Tally::default();
    for (event, outcome, many) in counts {
        let many: u64 = count(*many)?;
        match (event.as_str(), outcome.as_deref()) {
            ("refused", _) => tally.refused += many,
            ("intent", _) => tally.open += many,
            (_, Some("done")) => tally.done += many,
            (_, Some("failed")) => tally.failed += many,
            _ => {}
        }
    }
    tally.open = tally.open.saturating_sub(tally.done + tally.failed);
    Ok(tally)
}

/// An agent as it is kept: none is the empty text, so that it can be part of a key.
pub(crate) fn agent_text(agent: Option<&AgentId>) -> &str {
    agent.map_or("", AgentId::as_str)
}

/// An agent as [`agent_text`] keeps it.
pub(crate) fn agent(what: &str, text: &str) -> Result<Option<AgentId>, StoreError> {
    if text.is_empty() { Ok(None) } else { word(what, text).map(Some) }
}

/// Where to go on after a place; what comes before every place where there is none.
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
    (made, at): (i64, i64),
) -> Result<SecretCard, StoreError> {
    let (agent, name) = (agent("a secret's agent", of)?, word("a secret's name", name)?);
    let place = SecretPlace { tenant: tenant.clone(), agent, name };
    Ok(SecretCard { place, made: UnixMillis(made), at: UnixMillis(at) })
}

/// A sealed value; anything else in its place is damage.
pub(crate) fn sealed(place: &SealedPlace, bytes: Vec<u8>) -> Result<Sealed, StoreError> {
    Sealed::from_bytes(bytes).map_err(|why| unsealed(place, why))
}

/// Something else than a sealed value is in its place.
pub(crate) fn unsealed(place: &SealedPlace, why: NotSealed) -> StoreError {
    StoreError::Damaged { what: place.to_string(), why: format!("{why}; set it again, or remove it") }
}

/// A sealed value with its place: tenant, agent, name and the value.
pub(crate) fn sealed_row(
    table: SealedTable,
    (tenant, of, name, value): (String, String, String, Vec<u8>),
) -> Result<SealedRow, StoreError> {
    let tenant = word("a sealed value's tenant", &tenant)?;
    let place =
        SealedPlace { table, tenant, agent: agent("a sealed value's agent", &of)?, name: name.into() };
    Ok(SealedRow { place, value: Sealed::from_bytes(value) })
}

/// How many values each key sealed, from the first bytes of values.
pub(crate) fn key_use(rows: Vec<(Vec<u8>, i64)>) -> Result<Vec<KeyUse>, StoreError> {
    let mut counts = BTreeMap::<Option<KeyId>, u64>::new();
    for (head, values) in rows {
        let key = match head.split_first() {
            Some((&SEALED_VERSION, id)) => id.try_into().ok().map(KeyId),
            _ => None,
        };
        *counts.entry(key).or_default() += count::<u64>(values)?;
    }
    Ok(counts.into_iter().map(|(key, values)| KeyUse { key, values }).collect())
}
