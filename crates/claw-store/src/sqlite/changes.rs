//! Waking up those who wait: at once in this process, by looking now and then for other ones.

use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, query_scalar};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};

/// How often to look; the promise is 250 ms.
const LOOK: Duration = Duration::from_millis(100);

/// Bells that ring after a commit.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes {
    /// Of questions to people.
    pub(super) approvals: Bell,
    /// Of work that may be claimable.
    pub(super) work: Bell,
}

/// A number that rises.
#[derive(Debug, Clone, Default)]
pub(super) struct Bell(Arc<watch::Sender<u64>>);

impl Bell {
    pub(super) fn ring(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(super) fn listen(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }

    fn is_heard(&self) -> bool {
        self.0.receiver_count() > 0
    }
}

/// A task that rings the bells when another connection has changed the file. Dropping it ends the task.
#[derive(Debug)]
pub(super) struct Tail(AbortHandle);

impl Tail {
    pub(super) async fn follow(
        options: &SqliteConnectOptions,
        changes: Changes,
    ) -> Result<Self, sqlx::Error> {
        let mut connection = options.connect().await?;
        let seen = version(&mut connection).await?;
        Ok(Self(tokio::spawn(watch(connection, seen, changes)).abort_handle()))
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn watch(mut connection: SqliteConnection, mut seen: i64, changes: Changes) {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if !changes.approvals.is_heard() && !changes.work.is_heard() {
            continue;
        }
        match version(&mut connection).await {
            Ok(now) if now == seen => continue,
            Ok(now) => seen = now,
            // Better to wake somebody for nothing than not at all.
            Err(error) => tracing::warn!(%error, "could not look for changes by other programs"),
        }
        changes.approvals.ring();
        changes.work.ring();
    }
}

/// A number that differs once another connection has committed something.
async fn version(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    query_scalar("PRAGMA data_version").fetch_one(connection).await
}
