//! Waits for a tool, within its time limit.

use std::any::Any;
use std::time::Duration;

use claw_core::tool::{ErrorKind, Output, ToolError};
use tokio_util::sync::CancellationToken;

/// Time limits of a tool.
pub(super) struct Bounds {
    /// For its work.
    pub(super) limit: Duration,
    /// For cleaning up after it was told to stop.
    pub(super) grace: Duration,
}

pub(super) type Caught = Result<Result<Output, ToolError>, Box<dyn Any + Send>>;

/// Waits until the work is done, the caller gives up or the time is up. A tool that is told to stop has a
/// moment to clean up; then it is dropped.
pub(super) async fn bounded(
    work: impl Future<Output = Caught>,
    bounds: Bounds,
    cancel: &CancellationToken,
) -> Result<Output, ToolError> {
    let mut work = std::pin::pin!(work);
    let mut stopped = tokio::select! {
        biased;
        () = cancel.cancelled() => ToolError::new(ErrorKind::Cancelled, "the call was cancelled"),
        caught = &mut work => return uncaught(caught),
        () = tokio::time::sleep(bounds.limit) => {
            let message = format!("the call took longer than {} s and was stopped", bounds.limit.as_secs_f64());
            ToolError::new(ErrorKind::TimedOut, message).try_instead("ask for less at once, or allow more time")
        }
    };
    cancel.cancel();
    // Whatever it returns now, it was stopped; its partial output may still help.
    if let Ok(caught) = tokio::time::timeout(bounds.grace, work).await {
        let said = match uncaught(caught) {
            Ok(output) => output.model_text(),
            Err(error) => error.message,
        };
        stopped.message.push_str("; at the end it said:\n");
        stopped.message.push_str(&said);
    }
    Err(stopped)
}

fn uncaught(caught: Caught) -> Result<Output, ToolError> {
    caught.unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
}

/// The error for a panic: the model learns that the tool is at fault, the log gets the panic message.
pub(super) fn panicked(panic: &(dyn Any + Send)) -> ToolError {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    ToolError::new(ErrorKind::Internal, "the tool crashed; that is a mistake in the tool")
        .try_instead("call it with other arguments, or use another tool")
        .because(format!("it panicked: {text}"))
}
