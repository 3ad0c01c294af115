//! Following store and configuration: a rule or a secret that another process writes, or that a reload brings, holds here
//! within a second, for calls and runs that are under way too.

use std::time::Duration;

use claw_core::store::Topic;
use claw_registry::{Executor, WeakExecutor};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::secrets::HiddenSecrets;
use super::{App, Error, Hooks};
use crate::Toolbox;

/// The wait before a change is read again that could not be, which doubles with each failure.
const AGAIN: Duration = Duration::from_millis(500);
/// The longest of these waits.
const LONGEST: Duration = Duration::from_secs(60);

/// The next attempt at a change that could not be read. Other changes do not wait for it.
#[derive(Debug, Default)]
struct Retry {
    wait: Duration,
    at: Option<Instant>,
}

impl Retry {
    fn later(&mut self, error: &Error) {
        tracing::error!(%error, "a change of the store could not be read; the read is retried");
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

/// Keeps policy and scrubbers of an executor as store and configuration have them, until it is dropped or nobody uses the
/// executor any more.
#[derive(Debug)]
pub struct Following {
    task: AbortHandle,
    executor: WeakExecutor,
    /// Keeps the configuration of a process that does not reload it.
    _app: Option<watch::Sender<App>>,
}

impl Following {
    /// Whether nobody uses the executor any more.
    pub(super) fn is_over(&self) -> bool {
        // The task itself notices with the next change.
        self.executor.upgrade().is_none()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The changes of store and configuration from one moment on. Taken before a toolbox is built, so that a change is not missed
/// that comes meanwhile.
pub(super) struct ChangesToFollow {
    secrets: SecretChanges,
    policy: PolicyChanges,
}

impl ChangesToFollow {
    /// Follows secrets, custom tools, agents and tenants of the store, and the configuration of the application that `current`
    /// holds.
    pub(super) async fn from_now(current: watch::Receiver<App>) -> Result<Self, Error> {
        let app = current.borrow().clone();
        let changes = |topic| app.store.changes(topic);
        let policy =
            PolicyChanges { agents: changes(Topic::Agents), access: changes(Topic::Access), current };
        let (secrets, tools) = (changes(Topic::Secrets), changes(Topic::Tools));
        let hidden = HiddenSecrets::from_now(&app).await?;
        Ok(Self { secrets: SecretChanges { secrets, tools, hidden }, policy })
    }

    /// Keeps an executor up to date.
    pub(super) fn apply_to(self, executor: &Executor) -> Following {
        Following { task: self.spawn(executor), executor: executor.downgrade(), _app: None }
    }

    fn spawn(self, executor: &Executor) -> AbortHandle {
        let (of_secrets, of_policy) = (executor.downgrade(), executor.downgrade());
        // Apart from each other: a new secret does not wait for the rules of all tenants. Each ends when nobody uses the
        // executor any more, and then the other has nothing to do either.
        let both = async move {
            tokio::select! {
                () = self.secrets.follow(of_secrets) => {}
                () = self.policy.follow(of_policy) => {}
            }
        };
        tokio::spawn(both).abort_handle()
    }
}

/// Changes of sealed values.
struct SecretChanges {
    secrets: watch::Receiver<u64>,
    tools: watch::Receiver<u64>,
    hidden: HiddenSecrets,
}

impl SecretChanges {
    async fn follow(mut self, executor: WeakExecutor) {
        let mut retry = Retry::default();
        loop {
            let changed = tokio::select! {
                changed = self.secrets.changed() => changed,
                changed = self.tools.changed() => changed,
                () = retry.due() => {
                    self.hidden.retry_failed();
                    retry.at = None;
                    Ok(())
                }
            };
            let Some(executor) = executor.upgrade().filter(|_| changed.is_ok()) else { return };
            match self.hidden.catch_up(&executor).await {
                Ok(()) if retry.at.is_none() => retry = Retry::default(),
                Ok(()) => {}
                Err(error) => retry.later(&error),
            }
        }
    }
}

/// Changes of rules.
struct PolicyChanges {
    agents: watch::Receiver<u64>,
    access: watch::Receiver<u64>,
    current: watch::Receiver<App>,
}

impl PolicyChanges {
    async fn follow(mut self, executor: WeakExecutor) {
        let mut retry = Retry::default();
        loop {
            let changed = tokio::select! {
                changed = self.agents.changed() => changed,
                changed = self.access.changed() => changed,
                changed = self.current.changed() => changed,
                () = retry.due() => Ok(()),
            };
            let Some(executor) = executor.upgrade().filter(|_| changed.is_ok()) else { return };
            // One reading covers all that changed before it.
            self.agents.mark_unchanged();
            self.access.mark_unchanged();
            let app = self.current.borrow_and_update().clone();
            match app.policy().await {
                Ok(policy) => {
                    executor.set_policy(policy);
                    retry = Retry::default();
                }
                Err(error) => retry.later(&error),
            }
        }
    }
}

impl App {
    /// Builds the executor as [`toolbox`](Self::toolbox) does, and keeps it up to date until the [`Following`] is dropped:
    /// secrets and rules that any process writes hold within a second.
    pub async fn followed_toolbox(&self, hooks: Hooks) -> Result<(Toolbox, Following), Error> {
        let (app, current) = watch::channel(self.clone());
        let changes = ChangesToFollow::from_now(current).await?;
        let toolbox = self.toolbox(hooks).await?;
        let executor = toolbox.executor();
        let following =
            Following { task: changes.spawn(executor), executor: executor.downgrade(), _app: Some(app) };
        Ok((toolbox, following))
    }
}
