//! Announces changes from node to node.
//!
//! The tables announce changes themselves: triggers send `topic tenant` on one channel, at commit, and
//! `sessions tenant session` for events. One task listens here. Whenever it starts, it may have missed
//! something, so everyone is woken.

use std::sync::Arc;
use std::time::Duration;

use claw_core::port::Owner;
use claw_core::store::{Bells, Changes, SessionBells, Topic};
use claw_core::{SessionKey, TenantId};
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use tokio::sync::watch::Receiver;
use tokio::task::AbortHandle;

use super::PostgresStore;
use super::connections::close;
use super::live_streams::{self, Ours};

/// The channel's name, as in the migrations.
const CHANNEL: &str = "clawsmith";
/// The wait before another attempt to listen.
const RETRY: Duration = Duration::from_millis(500);

/// The bells of one store, and the task that rings them for other nodes' changes. The task ends with them.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) bells: Arc<Bells>,
    pub(super) sessions: Arc<SessionBells>,
    pool: PgPool,
    task: AbortHandle,
}

impl Listener {
    /// Listens on a connection of its own, from now on.
    pub(super) fn start(options: PgConnectOptions, streams: Arc<Ours>) -> Self {
        let (bells, sessions) = (Arc::<Bells>::default(), Arc::<SessionBells>::default());
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(options);
        let listening = listen(pool.clone(), Arc::clone(&bells), Arc::clone(&sessions), streams);
        let task = tokio::spawn(listening).abort_handle();
        Self { bells, sessions, pool, task }
    }

    /// Ends the task and closes its connection.
    pub(super) async fn close(&self) {
        self.task.abort();
        close(&self.pool).await;
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

/// Rings the bells that a notification names.
fn heard(bells: &Bells, sessions: &SessionBells, payload: &str) {
    let mut words = payload.split(' ');
    let Some(topic) = words.next().and_then(Topic::named) else {
        // From a newer node, perhaps.
        bells.ring_all();
        return sessions.ring_all();
    };
    bells.ring(topic);
    if topic == Topic::Sessions {
        match (words.next().map(TenantId::new), words.next().map(SessionKey::new)) {
            (Some(Ok(tenant)), Some(Ok(session))) => sessions.ring(&Owner { tenant, session }),
            _ => sessions.ring_all(),
        }
    }
}

async fn listen(pool: PgPool, bells: Arc<Bells>, sessions: Arc<SessionBells>, streams: Arc<Ours>) {
    loop {
        if let Err(error) = hear(&pool, &bells, &sessions, &streams).await {
            tracing::warn!(%error, "lost the connection for change notifications; trying again");
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Rings for each notification until the connection is lost.
async fn hear(
    pool: &PgPool,
    bells: &Bells,
    sessions: &SessionBells,
    streams: &Ours,
) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.eager_reconnect(false);
    listener.listen_all([CHANNEL, live_streams::CHANNEL]).await?;
    sessions.ring_all();
    bells.ring_all();
    streams.joined();
    while let Some(notification) = listener.try_recv().await? {
        match notification.channel() {
            live_streams::CHANNEL => streams.heard(notification.payload()),
            _ => heard(bells, sessions, notification.payload()),
        }
    }
    Ok(())
}
