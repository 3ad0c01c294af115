//! What changed, told from node to node.
//!
//! The tables announce changes themselves: triggers send `topic tenant` on one channel, at commit. Here one
//! task listens. Whenever it begins to, something may have been missed, so everyone is woken.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// As in the migrations.
const CHANNEL: &str = "clawsmith";
/// How long to wait before another try to listen.
const RETRY: Duration = Duration::from_millis(500);

/// What can change, by the word that the triggers send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    /// `approvals`: a question to a person.
    Approvals,
    /// `work`: a job may have become claimable.
    Work,
}

/// The bells of one store, and the task that rings them for other nodes. It ends with them.
#[derive(Debug)]
pub(super) struct Changes {
    bells: Arc<Bells>,
    listener: AbortHandle,
}

#[derive(Debug, Default)]
struct Bells {
    approvals: watch::Sender<u64>,
    work: watch::Sender<u64>,
}

impl Changes {
    /// Listens on a connection of its own, from now on.
    pub(super) fn listen(options: PgConnectOptions) -> Self {
        let bells = Arc::<Bells>::default();
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(options);
        let listener = tokio::spawn(listen(pool, Arc::clone(&bells))).abort_handle();
        Self { bells, listener }
    }

    /// Wakes those of this process, who need not wait for the database to tell.
    pub(super) fn ring(&self, topic: Topic) {
        self.bells.ring(topic);
    }

    pub(super) fn subscribe(&self, topic: Topic) -> watch::Receiver<u64> {
        self.bells.of(topic).subscribe()
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

impl Bells {
    fn of(&self, topic: Topic) -> &watch::Sender<u64> {
        match topic {
            Topic::Approvals => &self.approvals,
            Topic::Work => &self.work,
        }
    }

    fn ring(&self, topic: Topic) {
        self.of(topic).send_modify(|count| *count = count.wrapping_add(1));
    }

    fn ring_all(&self) {
        self.ring(Topic::Approvals);
        self.ring(Topic::Work);
    }

    fn heard(&self, payload: &str) {
        match payload.split(' ').next() {
            Some("approvals") => self.ring(Topic::Approvals),
            Some("work") => self.ring(Topic::Work),
            // From a newer node, perhaps.
            _ => self.ring_all(),
        }
    }
}

async fn listen(pool: PgPool, bells: Arc<Bells>) {
    loop {
        if let Err(error) = hear(&pool, &bells).await {
            tracing::warn!(%error, "lost the connection that tells of changes; trying again");
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Rings for what is heard until the connection is lost.
async fn hear(pool: &PgPool, bells: &Bells) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    bells.ring_all();
    while let Some(notification) = listener.try_recv().await? {
        bells.heard(notification.payload());
    }
    Ok(())
}
