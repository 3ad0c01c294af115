//! Why a run did not come to its end.

use claw_core::port::ModelError;
use claw_core::store::StoreError;

/// Why a run did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It is someone else's by now: nothing that it would say is stored.
    #[error("the run is someone else's by now")]
    Lost,
    /// What it is to do does not read.
    #[error("the run cannot be read: {0}; send the message again")]
    Unreadable(String),
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
    /// The model did not answer.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl RunError {
    /// Whether trying again later may help.
    pub fn passes(&self) -> bool {
        match self {
            Self::Lost | Self::Unreadable(_) => false,
            Self::Store(error) => error.is_transient(),
            Self::Model(error) => error.fault.passes(),
        }
    }
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::LeaseLost { .. } => Self::Lost,
            error => Self::Store(error),
        }
    }
}
