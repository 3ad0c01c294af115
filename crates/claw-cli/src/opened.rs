//! Opening the application for one command, and closing it again.

use clawsmith::app::{App, Setup};

use crate::command::tools::runtime;
use crate::failure::Failure;

/// Runs `work` with the application open; creates the store if there is none.
pub(crate) fn with_app<T>(
    setup: &Setup,
    work: impl AsyncFnOnce(&App) -> Result<T, Failure>,
) -> Result<T, Failure> {
    runtime()?.block_on(async {
        let app = setup.open().await?;
        let done = work(&app).await;
        app.close().await;
        done
    })
}

/// Runs `work` if there is a store; otherwise returns `None` and creates nothing.
pub(crate) fn with_existing_app<T>(
    setup: &Setup,
    work: impl AsyncFnOnce(&App) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    runtime()?.block_on(async {
        let Some(app) = setup.open_existing().await? else { return Ok(None) };
        let done = work(&app).await;
        app.close().await;
        done.map(Some)
    })
}
