//! The state of an unfinished copy, stored in the target.

use std::collections::BTreeMap;

use claw_core::store::StoreError;
use serde::{Deserialize, Serialize};

use super::value::Value;
use crate::row;

/// The table that it keeps it in.
pub(crate) const PROGRESS: &str = "copy_progress";
/// Reads the state of an unfinished copy.
pub(crate) const UNFINISHED: &str = "SELECT state FROM copy_progress WHERE part = ''";

/// The source of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The source's location, without a password.
    pub(crate) from: String,
    pub(crate) mark: Mark,
}

/// A fingerprint of the source, to notice that it has changed. Only comparing all rows shows that it has not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// By table: the number of rows, and the database's own change stamp.
    pub(crate) tables: BTreeMap<String, (u64, String)>,
    /// A hash over the heads of the ledger's chains.
    pub(crate) heads: String,
}

impl Mark {
    /// The first thing in which the source differs now.
    pub(crate) fn difference(&self, now: &Self) -> Option<String> {
        for (table, (rows, _)) in &now.tables {
            match self.tables.get(table) {
                Some((then, _)) if then == rows => {}
                Some((then, _)) => return Some(format!("`{table}` had {then} rows and has {rows}")),
                None => return Some(format!("`{table}` is new")),
            }
        }
        if self.heads != now.heads {
            return Some("the ledger has new entries".to_owned());
        }
        (self != now).then(|| "rows were changed".to_owned())
    }
}

/// The progress of one table.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Reached {
    /// The key of the last row.
    pub(crate) after: Option<Vec<Value>>,
    pub(crate) rows: u64,
    /// Texts in which NUL was replaced.
    pub(crate) replaced: u64,
    pub(crate) done: bool,
}

/// The place that an unfinished copy reads from.
pub(crate) fn source(state: Option<String>) -> Result<Option<String>, StoreError> {
    let header = |state: String| row::json::<Header>("the state of a copy", &state);
    Ok(state.map(header).transpose()?.map(|header| header.from))
}

/// Refuses a store into which a copy is unfinished.
pub(crate) fn refuse_unfinished(state: Option<String>) -> Result<(), StoreError> {
    let Some(from) = source(state)? else { return Ok(()) };
    let why =
        format!("a copy from `{from}` into it is not finished; repeat the `clawsmith db copy` that began it");
    Err(StoreError::Database { what: "could not open the store", why, transient: false })
}
