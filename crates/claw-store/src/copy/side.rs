//! The operations of a copy on a database, source or target.

use std::collections::BTreeMap;

use async_trait::async_trait;
use claw_core::store::StoreError;
use futures_util::stream::BoxStream;

use super::tables::{Derived, Part, Shape};
use super::value::{Row, Value};
use crate::ledger::chain::ChainReport;

/// The source or the target of a copy.
#[async_trait]
pub(crate) trait Side: Send {
    /// Returns its location for messages, without a password.
    fn label(&self) -> &str;

    /// The tables it has.
    async fn shapes(&mut self) -> Result<Vec<Shape>, StoreError>;

    /// Returns the number of rows of a table, and a text that changes when a row changes, if the database can
    /// tell.
    async fn count(&mut self, part: &Part) -> Result<(u64, String), StoreError>;

    /// The rows after this key, in the order of the key by bytes.
    fn rows<'a>(
        &'a mut self,
        part: &'a Part,
        after: Option<&'a [Value]>,
    ) -> BoxStream<'a, Result<Row, StoreError>>;

    /// Checks the chains of the ledger.
    async fn chains(&mut self) -> Result<Vec<ChainReport>, StoreError>;
}

/// The database that is read, as it stood at one moment.
#[async_trait]
pub(crate) trait Source: Side {
    /// Returns whether somebody has written to it since that moment. Ends the snapshot.
    async fn has_moved(&mut self, parts: &[&Part]) -> Result<bool, StoreError>;
}

/// The database that is written.
#[async_trait]
pub(crate) trait Target: Side {
    /// Returns the stored progress of an unfinished copy, by part.
    async fn progress(&mut self) -> Result<BTreeMap<String, String>, StoreError>;

    /// Returns the number of rows of a table, without those that opening a store creates.
    async fn held(&mut self, part: &Part) -> Result<u64, StoreError>;

    /// Empties these tables, forgets the progress of an earlier copy and stores that of a new one, in one
    /// transaction.
    async fn start(&mut self, tables: &[&str], state: &str) -> Result<(), StoreError>;

    /// Adds rows and keeps how far that is; together.
    async fn write(&mut self, part: &Part, rows: &[Row], state: &str) -> Result<(), StoreError>;

    /// Empties a derived table, and causes it to be filled.
    async fn fill(&mut self, derived: &Derived) -> Result<(), StoreError>;

    /// Updates what rows alone do not carry: sequences, references, statistics.
    async fn settle(&mut self, parts: &[&Part]) -> Result<(), StoreError>;

    /// Marks the copy as finished: from now on the store can be opened.
    async fn finish(&mut self) -> Result<(), StoreError>;

    /// Returns whether it cannot store NUL characters.
    fn loses_nul(&self) -> bool;

    /// Lets go of it.
    async fn close(self: Box<Self>) -> Result<(), StoreError>;
}
