//! Waking up those who wait: at once in this process, by looking now and then for other ones.

use std::sync::Arc;
use std::time::Duration;

use claw_core::store::{Bells, Changes, Topic};
use sqlx::query_scalar;
use sqlx::sqlite::SqlitePool;
use tokio::sync::watch::Receiver;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::SqliteStore;

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
    pool: SqlitePool,
    task: AbortHandle,
}

impl Tail {
    pub(super) async fn follow(pool: SqlitePool, bells: Arc<Bells>) -> Result<Self, sqlx::Error> {
        let seen = version(&pool).await?;
        let task = tokio::spawn(watch(pool.clone(), seen, bells)).abort_handle();
        Ok(Self { pool, task })
    }

    /// Ends the task and closes its connection.
    pub(super) async fn close(&self) {
        self.task.abort();
        self.pool.close().await;
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(pool: SqlitePool, mut seen: i64, bells: Arc<Bells>) {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if !bells.is_heard() {
            continue;
        }
        match version(&pool).await {
            Ok(now) if now == seen => continue,
            Ok(now) => seen = now,
            // Better to wake somebody for nothing than not at all.
            Err(error) => tracing::warn!(%error, "could not look for changes by other programs"),
        }
        bells.ring_all();
    }
}

/// A number that differs once another connection has committed something.
async fn version(pool: &SqlitePool) -> Result<i64, sqlx::Error> {
    query_scalar("PRAGMA data_version").fetch_one(pool).await
}
