//! Following store and configuration: a rule or a secret that another process writes, or that a reload brings, holds here
//! within a second, for runs that are under way too.

use std::time::Duration;

use claw_core::store::Topic;
use claw_registry::Executor;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::{App, Error};

/// The wait before a change is read again that could not be, which doubles with each failure.
const AGAIN: Duration = Duration::from_millis(500);
/// The longest of these waits.
const LONGEST: Duration = Duration::from_secs(60);

/// The part of store and configuration that is read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Secrets,
    Policy,
    Both,
}

/// The next attempt at a change that could not be read. Other changes do not wait for it.
#[derive(Debug, Default)]
struct Retry {
    wait: Duration,
    at: Option<Instant>,
}

impl Retry {
    fn later(&mut self) {
        self.wait = (self.wait * 2).clamp(AGAIN, LONGEST);
        self.at = Some(Instant::now() + self.wait);
    }

    /// Waits until the next attempt; for ever if there is nothing to read again.
    async fn due(&self) {
        match self.at {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    }
}

/// A task that keeps policy and scrubbers of an executor as store and configuration have them. It ends when it is dropped,
/// or when nobody uses the executor any more.
#[derive(Debug)]
pub(super) struct Following(AbortHandle);

impl Following {
    /// Follows agents, tenants and secrets of the store, and the configuration of the application that `current` holds.
    pub(super) fn begin(executor: &Executor, mut current: watch::Receiver<App>) -> Self {
        let (executor, store) = (executor.downgrade(), current.borrow_and_update().store.clone());
        let mut secrets = store.changes(Topic::Secrets);
        let (mut agents, mut access) = (store.changes(Topic::Agents), store.changes(Topic::Access));
        let following = tokio::spawn(async move {
            let mut retry = Retry::default();
            loop {
                let (changed, work) = tokio::select! {
                    changed = secrets.changed() => (changed, Work::Secrets),
                    changed = agents.changed() => (changed, Work::Policy),
                    changed = access.changed() => (changed, Work::Policy),
                    changed = current.changed() => (changed, Work::Policy),
                    () = retry.due() => (Ok(()), Work::Both),
                };
                let Some(executor) = executor.upgrade().filter(|_| changed.is_ok()) else { return };
                let app = current.borrow_and_update().clone();
                match app.follow_changes(&executor, work).await {
                    Ok(()) if work == Work::Both => retry = Retry::default(),
                    Ok(()) => {}
                    Err(error) => {
                        tracing::error!(%error, "a change of the store could not be read; it will be read again");
                        retry.later();
                    }
                }
            }
        });
        Self(following.abort_handle())
    }

    /// Whether nobody uses the executor any more.
    pub(super) fn is_over(&self) -> bool {
        self.0.is_finished()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl App {
    /// Reads again what changed.
    async fn follow_changes(&self, executor: &Executor, work: Work) -> Result<(), Error> {
        let hidden = match work {
            Work::Policy => Ok(()),
            Work::Secrets | Work::Both => self.hide_sealed(executor).await,
        };
        let renewed = match work {
            Work::Secrets => Ok(()),
            Work::Policy | Work::Both => self.renew_policy(executor).await,
        };
        hidden.and(renewed)
    }

    async fn renew_policy(&self, executor: &Executor) -> Result<(), Error> {
        executor.set_policy(self.policy().await?);
        Ok(())
    }
}
