//! Following the store: a rule or a secret written by another process applies here within a second.

use std::time::Duration;

use claw_core::store::Topic;
use claw_registry::Executor;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::{App, Error};

/// The wait before a change is read again that could not be.
const AGAIN: Duration = Duration::from_millis(500);

/// A task that keeps policy and scrubbers of an executor as the store has them. Dropping it ends the task.
#[derive(Debug)]
pub(super) struct Following(AbortHandle);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl App {
    /// Follows agents, tenants and secrets of the store.
    pub(super) fn follow_store(&self, executor: &Executor) -> Following {
        let (app, executor) = (self.clone(), executor.clone());
        let mut secrets = self.store.changes(Topic::Secrets);
        let (mut agents, mut access) = (self.store.changes(Topic::Agents), self.store.changes(Topic::Access));
        let following = tokio::spawn(async move {
            loop {
                let done = tokio::select! {
                    changed = secrets.changed() => (changed, app.hide_sealed(&executor).await),
                    changed = agents.changed() => (changed, app.renew_policy(&executor).await),
                    changed = access.changed() => (changed, app.renew_policy(&executor).await),
                };
                match done {
                    (Err(_), _) => return,
                    (Ok(()), Ok(())) => {}
                    (Ok(()), Err(error)) => {
                        tracing::error!(%error, "a change of the store could not be read; it will be read again");
                        tokio::time::sleep(AGAIN).await;
                        again(&mut [&mut secrets, &mut agents, &mut access]);
                    }
                }
            }
        });
        Following(following.abort_handle())
    }

    async fn renew_policy(&self, executor: &Executor) -> Result<(), Error> {
        executor.set_policy(self.policy().await?);
        Ok(())
    }
}

/// Marks every topic as changed, so that each is read again.
fn again(topics: &mut [&mut watch::Receiver<u64>]) {
    topics.iter_mut().for_each(|topic| topic.mark_changed());
}
