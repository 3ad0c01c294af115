//! The operations of an operator on a store, for either backend.

use async_trait::async_trait;
use claw_core::store::{Store, StoreError};

use crate::installation::Installation;
use crate::ledger::chain::ChainReport;

/// An open store, with the operations that only its operator may use.
#[async_trait]
pub trait Backend: Store {
    /// Checks every chain of the ledger, of all tenants and nodes. Changes nothing.
    async fn verify(&self) -> Result<Vec<ChainReport>, StoreError>;
    /// Returns the installation that owns the store.
    fn installation(&self) -> Installation;
    /// Closes its connections. SQLite then has a single file, unless another process has it open.
    async fn disconnect(&self);
}
