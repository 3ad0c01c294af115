//! Converts between rows and types, for both dialects: a value that cannot be read is reported as damage,
//! with its name.

mod sealed;

use std::collections::BTreeMap;

use claw_core::port::{UnixMillis, Version};
use claw_core::store::{
    AcceptedSkill, AccessRole, Agent, Answer, Approval, ApprovalState, Blob, BlobCard, KEY_USE_EVERY,
    KeyScopes, Layer, NewApproval, NewKey, NewMessage, NewSkillVersion, ProcessEnd, Rule, SessionEventBody,
    SkillVersion, StoreError, StoredSettings, Tally,
};
use claw_core::tool::Digest;
use claw_core::{AgentId, ApprovalId, JobId, RuleId, TenantId, ToolName, UserId};
use serde::de::IntoDeserializer as _;
use serde::de::value::{BytesDeserializer, Error, StrDeserializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(crate) use self::sealed::*;

/// The values given to an approved request for input, from its columns; `None` for an approval that is no such request.
pub(crate) fn input_values(
    values: Option<String>,
    request: &str,
) -> Result<Option<Map<String, Value>>, StoreError> {
    let request: NewApproval = json("an approval", request)?;
    let values = values.map(|values| json("an approval's values", &values)).transpose()?;
    Ok(request.input.map(|_| values.unwrap_or_default()))
}

/// Returns the event for a message: its place, not its content.
pub(crate) fn message_event(message: &NewMessage, seq: u64, run: JobId) -> SessionEventBody {
    SessionEventBody::Message { id: message.id, seq, role: message.role, run }
}

/// An event as columns: its kind, and the rest as JSON text.
pub(crate) fn event_columns(event: &SessionEventBody) -> Result<(&'static str, String), StoreError> {
    let unwritable =
        |why: String| StoreError::Database { what: "could not write the event", why, transient: false };
    match serde_json::to_value(event) {
        Ok(Value::Object(mut body)) => {
            body.remove(KIND);
            Ok((event.kind(), text(&body)?))
        }
        Ok(other) => Err(unwritable(format!("`{other}` is not an object"))),
        Err(error) => Err(unwritable(error.to_string())),
    }
}

/// An event from its columns.
pub(crate) fn event(kind: &str, body: Value) -> Result<SessionEventBody, StoreError> {
    let Value::Object(mut body) = body else { return Err(damaged("an event", "it is not an object")) };
    body.insert(KIND.to_owned(), Value::String(kind.to_owned()));
    SessionEventBody::deserialize(Value::Object(body)).map_err(|error| damaged("an event", error))
}

/// The name of the kind in an event's JSON form.
const KIND: &str = "type";

/// A name, key, state or digest from its text.
pub(crate) fn word<'de, T: Deserialize<'de>>(what: &str, text: &'de str) -> Result<T, StoreError> {
    let text: StrDeserializer<'de, Error> = text.into_deserializer();
    T::deserialize(text).map_err(|error| damaged(what, error))
}

/// Reads an id from its sixteen bytes.
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

/// Converts a number for a `LIMIT` or a comparison; one too large for the database means all.
pub(crate) fn number(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Sums the uses of each tool; tools without a use are left out.
pub(crate) fn counts(uses: &[(ToolName, u64)]) -> BTreeMap<&str, i64> {
    let mut counts = BTreeMap::new();
    for (tool, uses) in uses.iter().filter(|(_, uses)| *uses > 0) {
        let count: &mut i64 = counts.entry(tool.as_str()).or_default();
        *count = count.saturating_add(number(*uses));
    }
    counts
}

/// The state of a file, as its bridge called it.
pub(crate) fn version(bytes: Vec<u8>) -> Result<Version, StoreError> {
    let text = String::from_utf8(bytes).map_err(|error| damaged("the state of a file", error))?;
    Ok(Version(text.into()))
}

/// A blob from its columns; bytes that its digest does not name are damage.
pub(crate) fn blob(digest: &Digest, (mime, bytes): (String, Vec<u8>)) -> Result<Blob, StoreError> {
    if Digest::of_bytes(&bytes) != *digest {
        return Err(damaged(&format!("the blob `{digest}`"), "its bytes have another digest"));
    }
    Ok(Blob { mime: mime.into(), bytes: bytes.into() })
}

/// A blob without its bytes, from its columns.
pub(crate) fn blob_card((mime, size, at): (String, i64, i64)) -> Result<BlobCard, StoreError> {
    Ok(BlobCard { mime: mime.into(), bytes: count(size)?, at: UnixMillis(at) })
}

/// A skill's version as it is stored.
pub(crate) fn skill_version(new: &NewSkillVersion, number: i64) -> Result<SkillVersion, StoreError> {
    Ok(SkillVersion {
        version: count(number)?,
        manifest: new.manifest.clone(),
        digest: new.digest,
        bytes: new.files.iter().map(|file| file.bytes.len() as u64).sum(),
        findings: new.findings.clone(),
        by: new.by.clone(),
        at: new.at,
    })
}

/// An accepted skill from its columns.
pub(crate) fn accepted_skill(
    (digest, name, by, at): (Vec<u8>, String, String, i64),
) -> Result<AcceptedSkill, StoreError> {
    let digest: [u8; 32] =
        digest.try_into().map_err(|_| damaged("an accepted skill", "its digest is invalid"))?;
    let (digest, name) = (Digest::from_bytes(digest), word("an accepted skill's name", &name)?);
    Ok(AcceptedSkill { digest, name, by, at: UnixMillis(at) })
}

/// Returns the key by which a path is found: a path can be longer than an index takes, and hold any
/// character.
pub(crate) fn place(place: &str) -> String {
    Digest::of_bytes(place.as_bytes()).to_string()
}

/// Returns the error for stored data that cannot be read.
pub(crate) fn damaged(what: &str, why: impl std::fmt::Display) -> StoreError {
    StoreError::Damaged { what: what.to_owned(), why: why.to_string() }
}

/// Returns whether a pending approval, or an unused approved one, has expired.
pub(crate) fn is_lapsed(approval: &Approval, now: UnixMillis) -> bool {
    let open = matches!(approval.state, ApprovalState::Pending | ApprovalState::Approved);
    open && approval.request.expires <= now
}

/// Returns the error for an approval in the wrong state.
pub(crate) fn wrong_state(approval: &Approval) -> StoreError {
    StoreError::ApprovalState { id: approval.id, state: approval.state.name() }
}

/// Returns the error for a rule that no longer holds.
pub(crate) fn not_live(rule: &Rule, now: UnixMillis) -> StoreError {
    StoreError::RuleState { id: rule.new.id, state: rule.state(now) }
}

/// Returns the error for a rule that does not exist or has another owner.
pub(crate) fn no_rule(id: RuleId) -> StoreError {
    StoreError::RuleState { id, state: "missing" }
}

/// Returns the error for a rule that cannot be stored.
pub(crate) fn rule_refused(why: &str) -> StoreError {
    StoreError::Database { what: "could not store the rule", why: why.to_owned(), transient: false }
}

/// Checks that an answer that comes with a rule approves.
pub(crate) fn check_yes(answer: &Answer) -> Result<(), StoreError> {
    let no = "it comes with a denial; only an approval can be remembered";
    if answer.approve { Ok(()) } else { Err(rule_refused(no)) }
}

/// Returns the end of a process as columns: state, exit code and signal.
pub(crate) fn end_columns(end: ProcessEnd) -> (&'static str, Option<i32>, Option<i32>) {
    match end {
        ProcessEnd::Exited { code, signal } => ("exited", code, signal),
        ProcessEnd::Killed => ("killed", None, None),
        ProcessEnd::Lost => ("lost", None, None),
    }
}

/// Reads the end of a process from its columns, with the time; `None` if it runs.
pub(crate) fn ended(
    state: &str,
    code: Option<i32>,
    signal: Option<i32>,
    at: Option<i64>,
) -> Result<Option<(ProcessEnd, UnixMillis)>, StoreError> {
    let end = match (state, at) {
        ("running", None) => return Ok(None),
        ("exited", _) => ProcessEnd::Exited { code, signal },
        ("killed", _) => ProcessEnd::Killed,
        ("lost", _) => ProcessEnd::Lost,
        _ => return Err(damaged("a process's state", format!("`{state}` is not a state"))),
    };
    let at = at.ok_or_else(|| damaged("a process's state", "it has no end time"))?;
    Ok(Some((end, UnixMillis(at))))
}

/// Returns the error for an approval that does not exist, has another owner or is about something else.
pub(crate) fn missing(id: ApprovalId) -> StoreError {
    StoreError::ApprovalState { id, state: "missing" }
}

/// Tallies the outcomes of a session's calls, from the number of entries of each event and outcome.
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

/// Parses the scopes of a key; an unknown scope is damage, and the key is rejected.
pub(crate) fn scopes(words: &str) -> Result<KeyScopes, StoreError> {
    words.parse().map_err(|error| damaged("a key's scope list", error))
}

/// Reads the user and role of a key.
pub(crate) fn admitted_user(
    user: Option<&str>,
    role: Option<&str>,
) -> Result<Option<(UserId, AccessRole)>, StoreError> {
    match (user, role) {
        (None, _) => Ok(None),
        (Some(_), None) => Err(damaged("a key's user", "it has no role")),
        (Some(user), Some(role)) => Ok(Some((word("a key's user", user)?, word("a user's role", role)?))),
    }
}

/// Returns the time before which the last use of a key must have been written for another to be written now.
pub(crate) fn use_before(now: UnixMillis) -> i64 {
    now.0.saturating_sub(number(KEY_USE_EVERY.as_millis()))
}

/// Returns the error for adding to an unknown tenant.
pub(crate) fn no_tenant(what: &'static str, tenant: &TenantId) -> StoreError {
    StoreError::Refused { what, why: format!("there is no tenant `{tenant}`; add it first") }
}

/// Returns the error for a key of an unknown tenant or user.
pub(crate) fn no_holder(what: &'static str, new: &NewKey) -> StoreError {
    match &new.user {
        None => no_tenant(what, &new.tenant),
        Some(user) => {
            let why = format!("there is no user `{user}` in a tenant `{}`; add them first", new.tenant);
            StoreError::Refused { what, why }
        }
    }
}

/// Returns the error for a key whose id or hash is taken.
pub(crate) fn taken_key(what: &'static str) -> StoreError {
    StoreError::Refused { what, why: "its id or hash exists already; create another key".to_owned() }
}

/// An agent is not as the writer saw it.
pub(crate) fn stale_agent(id: &AgentId, now: Option<i64>) -> Result<StoreError, StoreError> {
    Ok(StoreError::Stale { path: id.to_string(), now: now.map(count).transpose()? })
}

/// The columns of an agent beside its tenant and id.
pub(crate) struct AgentColumns<'a> {
    pub(crate) version: i64,
    pub(crate) setup: &'a str,
    pub(crate) created: i64,
    pub(crate) updated: i64,
}

/// Reads an agent from its row.
pub(crate) fn agent(
    tenant: &TenantId,
    id: AgentId,
    AgentColumns { version, setup, created, updated }: AgentColumns<'_>,
) -> Result<Agent, StoreError> {
    let (setup, version) = (json("an agent", setup)?, count(version)?);
    let (created, updated) = (UnixMillis(created), UnixMillis(updated));
    Ok(Agent { tenant: tenant.clone(), id, setup, version, created, updated })
}

/// Returns the text in the tenant column for settings of this layer. No tenant's id is empty.
pub(crate) fn layer(layer: &Layer) -> &str {
    match layer {
        Layer::Deployment => "",
        Layer::Tenant(tenant) => tenant.as_str(),
    }
}

/// Reads the settings of a tool from their row. A value that is not an object is damage.
pub(crate) fn settings(
    (tool, settings, updated): &(String, String, i64),
) -> Result<StoredSettings, StoreError> {
    Ok(StoredSettings {
        tool: word("a tool's name", tool)?,
        settings: json("a tool's settings row", settings)?,
        updated: UnixMillis(*updated),
    })
}
