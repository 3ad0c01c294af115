//! Waking up those who wait: at once in this process, by looking now and then for other ones.

use std::sync::Arc;
use std::time::Duration;

use claw_core::store::{Bells, Changes, Topic};
use sqlx::query_scalar;
use tokio::sync::watch::Receiver;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::SqliteStore;
use super::connections::Connections;

/// How often to look; the promise is 250 ms.
const LOOK: Duration = Duration::from_millis(100);

impl Changes for SqliteStore {
    fn changes(&self, of: Topic) -> Receiver<u64> {
        self.bells.listen(of)
    }
}

/// A task that rings the bells when another connection has changed the file. Dropping it ends the task.
#[derive(Debug)]
pub(super) struct Tail {
    /// One connection that is always the same: the number it looks at is its own.
    connection: Connections,
    task: AbortHandle,
}

impl Tail {
    pub(super) async fn follow(connection: Connections, bells: Arc<Bells>) -> Result<Self, sqlx::Error> {
        let seen = version(&connection).await?;
        let task = tokio::spawn(watch(connection.clone(), seen, bells)).abort_handle();
        Ok(Self { connection, task })
    }

    /// Ends the task and closes its connection.
    pub(super) async fn close(&self) {
        self.task.abort();
        self.connection.close().await;
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(connection: Connections, mut seen: i64, bells: Arc<Bells>) {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if !bells.is_heard() {
            continue;
        }
        match version(&connection).await {
            Ok(now) if now == seen => continue,
            Ok(now) => seen = now,
            // Better to wake somebody for nothing than not at all.
            Err(error) => tracing::warn!(%error, "could not look for changes by other programs"),
        }
        bells.ring_all();
    }
}

/// A number that differs once another connection has committed something.
async fn version(connection: &Connections) -> Result<i64, sqlx::Error> {
    query_scalar("PRAGMA data_version").fetch_one(connection).await
}
