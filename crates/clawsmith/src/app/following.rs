//! Following store and configuration: a rule or a secret that another process writes, or that a reload brings, holds here
//! within a second, for runs that are under way too.

use std::time::Duration;

use claw_core::store::Topic;
use claw_registry::Executor;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::{App, Error};

/// The wait before a change is read again that could not be.
const AGAIN: Duration = Duration::from_millis(500);

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
            loop {
                let (changed, of_secrets) = tokio::select! {
                    changed = secrets.changed() => (changed, true),
                    changed = agents.changed() => (changed, false),
                    changed = access.changed() => (changed, false),
                    changed = current.changed() => (changed, false),
                };
                let Some(executor) = executor.upgrade().filter(|_| changed.is_ok()) else { return };
                let app = current.borrow_and_update().clone();
                let done = match of_secrets {
                    true => app.hide_sealed(&executor).await,
                    false => app.renew_policy(&executor).await,
                };
                if let Err(error) = done {
                    tracing::error!(%error, "a change of the store could not be read; it will be read again");
                    tokio::time::sleep(AGAIN).await;
                    for topic in [&mut secrets, &mut agents, &mut access] {
                        topic.mark_changed();
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
    async fn renew_policy(&self, executor: &Executor) -> Result<(), Error> {
        executor.set_policy(self.policy().await?);
        Ok(())
    }
}
