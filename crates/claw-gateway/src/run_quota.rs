//! The number of runs that one user may have open.

use axum::http::StatusCode;
use clawsmith::app::Error;
use clawsmith::app::access::Visitor;

use crate::Gateway;
use crate::error::ApiError;

/// The most runs of one user that may be open at a time: running, waiting or parked.
const MOST_OPEN_RUNS: u64 = 16;

impl Gateway {
    /// Refuses another run of a user who has many open: they would starve all others.
    pub(crate) async fn check_open_runs(&self, visitor: &Visitor) -> Result<(), ApiError> {
        let own = self.app().store().open_jobs_of(&visitor.tenant, visitor.user.as_ref()).await;
        let own = own.map_err(Error::from)?;
        if own < MOST_OPEN_RUNS {
            return Ok(());
        }
        let what = format!("you have {own} open runs, and at most {MOST_OPEN_RUNS} are allowed");
        Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_runs", what)
            .hint("wait for one to end, or cancel one"))
    }
}
