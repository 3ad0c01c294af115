//! The rules for documents that both databases share: valid paths, and the next version.

use claw_core::provenance::Provenance;
use claw_core::store::{DocumentKey, Passage, PassageHash, Shelf, StoreError, UnembeddedPassage};
use claw_core::{AgentId, UserId};
use sha2::{Digest as _, Sha256};

use crate::row;

/// The longest path of a document, in bytes: well within the limit of a PostgreSQL index.
const LONGEST_PATH: usize = 1_024;

/// The row of a document; a removed document has one too.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    pub(crate) id: i64,
    pub(crate) owner: i64,
    pub(crate) version: i64,
    pub(crate) is_there: bool,
}

impl Standing {
    /// Reads its row: id, owner, version, and whether it has a text.
    pub(crate) fn of((id, owner, version, is_there): (i64, i64, i64, bool)) -> Self {
        Self { id, owner, version, is_there }
    }

    /// Returns the version of the document, if it exists.
    pub(crate) fn now(&self) -> Option<u64> {
        u64::try_from(self.version).ok().filter(|_| self.is_there)
    }
}

/// Returns the next version, for a writer that saw `seen`.
pub(crate) fn next(
    key: &DocumentKey,
    standing: Option<&Standing>,
    seen: Option<u64>,
) -> Result<i64, StoreError> {
    let now = standing.and_then(Standing::now);
    if now != seen {
        return Err(stale(key, now));
    }
    Ok(standing.map_or(0, |standing| standing.version) + 1)
}

/// The document is not as the writer saw it.
pub(crate) fn stale(key: &DocumentKey, now: Option<u64>) -> StoreError {
    StoreError::Stale { path: key.path.clone(), now }
}

/// Checks that a document can be at this path, in either database.
pub(crate) fn check_path(what: &'static str, key: &DocumentKey) -> Result<(), StoreError> {
    let refused = |why| Err(StoreError::Database { what, why, transient: false });
    if key.agent.is_none() && key.user.is_some() {
        return refused("a user's document belongs to an agent; name the agent".to_owned());
    }
    if key.path.contains('\0') {
        return refused("its path contains a NUL character; use another path".to_owned());
    }
    let length = key.path.len();
    if length > LONGEST_PATH {
        return refused(format!("its path has {length} bytes; name it with at most {LONGEST_PATH}"));
    }
    Ok(())
}

/// The agent as a column: empty is the tenant's, since no agent's id is.
pub(crate) fn agent(agent: Option<&AgentId>) -> &str {
    agent.map_or("", AgentId::as_str)
}

/// The agent, from the column.
pub(crate) fn agent_of(column: &str) -> Result<Option<AgentId>, StoreError> {
    if column.is_empty() { Ok(None) } else { row::word("a document's agent", column).map(Some) }
}

/// The passages of a document that are indexed with it.
pub(crate) fn passages(key: &DocumentKey, text: &str) -> Vec<Passage> {
    match key.shelf {
        Shelf::Memory => claw_core::store::passages(text),
        Shelf::Context => Vec::new(),
    }
}

/// Returns the text whose words find a passage: the path, the headings and the passage's text.
pub(crate) fn indexed(path: &str, passage: &Passage) -> String {
    let path = path.strip_prefix("memory/").unwrap_or(path);
    let name = path.strip_suffix(".md").unwrap_or(path);
    let name = if name.eq_ignore_ascii_case("memory") { "" } else { name };
    format!("{name}\n{}\n{}", passage.heading, passage.text)
}

/// Returns the text that the vector of a passage is computed from.
pub(crate) fn embedded(heading: &str, text: &str) -> String {
    if heading.is_empty() { text.to_owned() } else { format!("{heading}\n{text}") }
}

/// The hash by which that vector is found again.
pub(crate) fn hash(passage: &Passage) -> PassageHash {
    Sha256::digest(embedded(&passage.heading, &passage.text).as_bytes()).into()
}

/// Returns the user as a column: empty means everyone, since no user's id is empty.
pub(crate) fn user(user: Option<&UserId>) -> &str {
    user.map_or("", UserId::as_str)
}

/// Reads the user from the column.
pub(crate) fn user_of(column: &str) -> Result<Option<UserId>, StoreError> {
    if column.is_empty() { Ok(None) } else { row::word("a document's user", column).map(Some) }
}

/// The origin of a document, from its columns.
pub(crate) fn provenance(run: Option<&[u8]>, untrusted: bool) -> Result<Provenance, StoreError> {
    let run = run.map(|run| row::id("a document's run", run)).transpose()?;
    Ok(Provenance { run, untrusted })
}

/// A text from its bytes.
pub(crate) fn text(what: &str, bytes: Vec<u8>) -> Result<String, StoreError> {
    String::from_utf8(bytes).map_err(|error| row::damaged(what, error.utf8_error()))
}

/// A passage that waits for its vector, from its row: hash, heading and text.
pub(crate) fn unembedded(
    (hash, heading, passage): (Vec<u8>, Vec<u8>, Vec<u8>),
) -> Result<UnembeddedPassage, StoreError> {
    let hash: PassageHash =
        hash.try_into().map_err(|_| row::damaged("a passage's hash", "it does not have 32 bytes"))?;
    let (heading, passage) = (text("a passage's heading", heading)?, text("a passage", passage)?);
    Ok(UnembeddedPassage { hash, text: embedded(&heading, &passage) })
}
