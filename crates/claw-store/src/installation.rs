//! The owner of a store: one id for the database and for every data directory that goes with it.

use claw_core::InstallationId;
use claw_core::store::StoreError;

/// The installation that a store belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Installation {
    /// The installation's id.
    pub id: InstallationId,
    /// True if opening the store just created the id: it was empty, or made by an older Clawsmith.
    pub is_new: bool,
}

/// Refuses a store with another id than the wanted one.
pub(crate) fn check(wanted: Option<InstallationId>, found: Option<InstallationId>) -> Result<(), StoreError> {
    match wanted {
        Some(node) if found != Some(node) => Err(StoreError::OtherInstallation { node, store: found }),
        _ => Ok(()),
    }
}
