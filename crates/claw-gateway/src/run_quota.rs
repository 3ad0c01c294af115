//! The number of runs that one user may have open.

use std::hash::{BuildHasher as _, RandomState};

use axum::http::StatusCode;
use clawsmith::app::Error;
use clawsmith::app::access::Visitor;

use tokio::sync::{Mutex, MutexGuard};

use crate::Gateway;
use crate::error::ApiError;

/// The most runs of one user that may be open at a time: running, waiting or parked.
const MOST_OPEN_RUNS: u64 = 16;

/// Locks under which users start runs. Several users may share one.
pub(crate) struct StartLocks {
    locks: [Mutex<()>; 64],
    hasher: RandomState,
}

impl Default for StartLocks {
    fn default() -> Self {
        Self { locks: std::array::from_fn(|_| Mutex::default()), hasher: RandomState::new() }
    }
}

impl StartLocks {
    async fn of(&self, visitor: &Visitor) -> MutexGuard<'_, ()> {
        let hash = self.hasher.hash_one((&visitor.tenant, &visitor.user));
        let at = usize::try_from(hash % 64).unwrap_or_default();
        self.locks[at].lock().await
    }
}

impl Gateway {
    /// Refuses another run of a user who has many open: they would starve all others. The user's next request waits until
    /// the guard is dropped, so that requests at once do not take the same last place.
    pub(crate) async fn check_open_runs(&self, visitor: &Visitor) -> Result<MutexGuard<'_, ()>, ApiError> {
        let starting = self.0.starts.of(visitor).await;
        let own = self.app().store().open_jobs_of(&visitor.tenant, visitor.user.as_ref()).await;
        let own = own.map_err(Error::from)?;
        if own < MOST_OPEN_RUNS {
            return Ok(starting);
        }
        let what = format!("you have {own} open runs, and at most {MOST_OPEN_RUNS} are allowed");
        Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_runs", what)
            .hint("wait for one to end, or cancel one"))
    }
}
