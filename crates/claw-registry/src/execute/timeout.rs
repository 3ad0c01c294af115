//! Waits for a tool, within its time limit.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use claw_core::tool::{ErrorKind, Output, ToolError};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Time limits of a tool.
pub(super) struct Bounds {
    /// For its work.
    pub(super) limit: Duration,
    /// For cleaning up after it was told to stop.
    pub(super) grace: Duration,
}

/// A limit of time that stands still while a person is asked. Clones are the same limit.
#[derive(Debug, Clone)]
pub struct TimeLimit {
    limit: Duration,
    pauses: Arc<Pauses>,
}

/// The time that does not count. Most calls ask nobody, and pay one small allocation for it.
#[derive(Debug, Default)]
struct Pauses {
    state: Mutex<PauseState>,
    /// Rings when the last approval was answered.
    resumed: Notify,
}

#[derive(Debug, Default)]
struct PauseState {
    /// The number of pending approvals.
    open: usize,
    /// The time when the first of them was asked.
    since: Option<Instant>,
    /// The time of pauses that are over and were not added to the limit yet.
    passed: Duration,
}

impl Pauses {
    fn state(&self) -> MutexGuard<'_, PauseState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Holds a limit of time until it is dropped.
#[derive(Debug)]
pub struct Paused(Arc<Pauses>);

impl Drop for Paused {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.open = state.open.saturating_sub(1);
        if state.open == 0 {
            let begun = state.since.take();
            state.passed += begun.map_or(Duration::ZERO, |begun| begun.elapsed());
            drop(state);
            self.0.resumed.notify_one();
        }
    }
}

impl TimeLimit {
    /// A limit that nothing holds yet.
    pub fn new(limit: Duration) -> Self {
        Self { limit, pauses: Arc::default() }
    }

    /// Holds the limit: time that passes until the value is dropped does not count.
    #[must_use]
    pub fn pause(&self) -> Paused {
        let mut state = self.pauses.state();
        state.open += 1;
        state.since.get_or_insert_with(Instant::now);
        drop(state);
        Paused(Arc::clone(&self.pauses))
    }

    /// Waits until the time is over.
    pub async fn over(&self) {
        let Some(mut deadline) = Instant::now().checked_add(self.limit) else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep_until(deadline).await;
            // Pauses are looked at once the time seems over, so that a call without one costs nothing more.
            if self.pauses.state().open > 0 {
                self.pauses.resumed.notified().await;
            }
            let mut state = self.pauses.state();
            let passed = std::mem::take(&mut state.passed);
            if passed.is_zero() && state.open == 0 {
                return;
            }
            drop(state);
            deadline += passed;
        }
    }
}

pub(super) type Caught = Result<Result<Output, ToolError>, Box<dyn Any + Send>>;

/// Waits until the work is done, the caller gives up or the time is up. A tool that is told to stop has a
/// moment to clean up; then it is dropped.
pub(super) async fn bounded(
    work: impl Future<Output = Caught>,
    time: &TimeLimit,
    grace: Duration,
    cancel: &CancellationToken,
) -> Result<Output, ToolError> {
    let mut work = std::pin::pin!(work);
    let mut stopped = tokio::select! {
        biased;
        () = cancel.cancelled() => ToolError::new(ErrorKind::Cancelled, "the call was cancelled"),
        caught = &mut work => return uncaught(caught),
        () = time.over() => {
            let message = format!("the call took longer than {} s and was stopped", time.limit.as_secs_f64());
            ToolError::new(ErrorKind::TimedOut, message).try_instead("ask for less in one call, or set a longer timeout")
        }
    };
    cancel.cancel();
    // Whatever it returns now, it was stopped; its partial output may still help.
    if let Ok(caught) = tokio::time::timeout(grace, work).await {
        let said = match uncaught(caught) {
            Ok(output) => output.model_text(),
            Err(error) => error.message,
        };
        stopped.message.push_str("; its output until then:\n");
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
    ToolError::new(ErrorKind::Internal, "the tool crashed, because of a bug in it")
        .try_instead("call it with other arguments, or use another tool")
        .because(format!("it panicked: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_in_which_a_person_is_asked_does_not_count() {
        let limit = TimeLimit::new(Duration::from_secs(10));
        let begun = Instant::now();
        let asked = limit.clone();
        tokio::spawn(async move {
            for _ in 0..2 {
                tokio::time::sleep(Duration::from_secs(3)).await;
                let _paused = asked.pause();
                tokio::time::sleep(Duration::from_secs(600)).await;
            }
        });
        limit.over().await;
        assert_eq!(begun.elapsed().as_secs(), 1_210);
    }
}
