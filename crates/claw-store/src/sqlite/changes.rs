//! Waking up those who wait: at once in this process, by looking now and then for other ones.

use std::sync::Arc;
use std::time::Duration;

use claw_core::store::{Bells, Changes, Topic};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, query_scalar};
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
pub(super) struct Tail(AbortHandle);

impl Tail {
    pub(super) async fn follow(
        options: &SqliteConnectOptions,
        bells: Arc<Bells>,
    ) -> Result<Self, sqlx::Error> {
        let mut connection = options.connect().await?;
        let seen = version(&mut connection).await?;
        Ok(Self(tokio::spawn(watch(connection, seen, bells)).abort_handle()))
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn watch(mut connection: SqliteConnection, mut seen: i64, bells: Arc<Bells>) {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if !bells.is_heard() {
            continue;
        }
        match version(&mut connection).await {
            Ok(now) if now == seen => continue,
            Ok(now) => seen = now,
            // Better to wake somebody for nothing than not at all.
            Err(error) => tracing::warn!(%error, "could not look for changes by other programs"),
        }
        bells.ring_all();
    }
}

/// A number that differs once another connection has committed something.
async fn version(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    query_scalar("PRAGMA data_version").fetch_one(connection).await
}
