//! What changed, told from node to node.
//!
//! The tables announce changes themselves: triggers send `topic tenant` on one channel, at commit. Here one
//! task listens. Whenever it begins to, something may have been missed, so everyone is woken.

use std::sync::Arc;
use std::time::Duration;

use claw_core::store::{Bells, Changes, Topic};
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use tokio::sync::watch::Receiver;
use tokio::task::AbortHandle;

use super::PostgresStore;
use super::streams::{self, Ours};

/// As in the migrations.
const CHANNEL: &str = "clawsmith";
/// How long to wait before another try to listen.
const RETRY: Duration = Duration::from_millis(500);

/// The bells of one store, and the task that rings them for other nodes. It ends with them.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) bells: Arc<Bells>,
    pool: PgPool,
    task: AbortHandle,
}

impl Listener {
    /// Listens on a connection of its own, from now on.
    pub(super) fn start(options: PgConnectOptions, streams: Arc<Ours>) -> Self {
        let bells = Arc::<Bells>::default();
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(options);
        let task = tokio::spawn(listen(pool.clone(), Arc::clone(&bells), streams)).abort_handle();
        Self { bells, pool, task }
    }

    /// Ends the task and closes its connection.
    pub(super) async fn close(&self) {
        self.task.abort();
        self.pool.close().await;
    }
}

impl Changes for PostgresStore {
    fn changes(&self, of: Topic) -> Receiver<u64> {
        self.listener.bells.listen(of)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Rings the bell that a notification names.
fn heard(bells: &Bells, payload: &str) {
    match payload.split(' ').next().and_then(Topic::named) {
        Some(topic) => bells.ring(topic),
        // From a newer node, perhaps.
        None => bells.ring_all(),
    }
}

async fn listen(pool: PgPool, bells: Arc<Bells>, streams: Arc<Ours>) {
    loop {
        if let Err(error) = hear(&pool, &bells, &streams).await {
            tracing::warn!(%error, "lost the connection that tells of changes; trying again");
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Rings for what is heard until the connection is lost.
async fn hear(pool: &PgPool, bells: &Bells, streams: &Ours) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.eager_reconnect(false);
    listener.listen_all([CHANNEL, streams::CHANNEL]).await?;
    bells.ring_all();
    streams.joined();
    while let Some(notification) = listener.try_recv().await? {
        match notification.channel() {
            streams::CHANNEL => streams.heard(notification.payload()),
            _ => heard(bells, notification.payload()),
        }
    }
    Ok(())
}
