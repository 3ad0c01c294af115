//! The reason why a run failed.

use claw_core::port::ModelError;
use claw_core::store::StoreError;

/// The reason why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The lease is lost to another worker: nothing more is stored.
    #[error("another worker has taken the run over")]
    Lost,
    /// The job's order is invalid.
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
    /// Returns whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Lost | Self::Unreadable(_) => false,
            Self::Store(error) => error.is_transient(),
            Self::Model(error) => error.fault.is_transient(),
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
