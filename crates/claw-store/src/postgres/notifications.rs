//! Announces changes from node to node.
//!
//! The tables announce changes themselves: triggers send `topic tenant` on one channel, at commit, and
//! `sessions tenant session` for events. One task listens here. Whenever it starts, it may have missed
//! something, so everyone is woken. A connection that is silent for a while is tested, since a network may have
//! forgotten it without a word.

use std::sync::Arc;
use std::time::Duration;

use claw_core::port::Owner;
use claw_core::store::{Bells, Changes, SessionBells, Topic};
use claw_core::{SessionKey, TenantId};
use sqlx::Executor as _;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use tokio::sync::watch::{self, Receiver};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::PostgresStore;
use super::connections::{close, in_time, patience};
use super::live_streams::{self, Ours};
use crate::options::StoreOptions;

/// The channel's name, as in the migrations.
const CHANNEL: &str = "clawsmith";
/// The wait before another attempt to listen.
const RETRY: Duration = Duration::from_millis(500);
/// The longest silence before the connection is tested.
const SILENCE: Duration = Duration::from_secs(30);

/// The bells of one store, and the task that rings them for other nodes' changes. The task ends with them.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) bells: Arc<Bells>,
    pub(super) sessions: Arc<SessionBells>,
    /// The pool of the current connection.
    pool: Receiver<PgPool>,
    task: AbortHandle,
}

impl Listener {
    /// Listens on a connection of its own, from now on.
    pub(super) fn start(connect: PgConnectOptions, streams: Arc<Ours>, options: &StoreOptions) -> Self {
        let (bells, sessions) = (Arc::<Bells>::default(), Arc::<SessionBells>::default());
        let line = Line {
            connect,
            acquire_timeout: options.acquire_timeout,
            silence: SILENCE.min(options.statement_timeout),
            patience: patience(options),
        };
        let (current, pool) = watch::channel(line.pool());
        let hearing = Hearing { bells: Arc::clone(&bells), sessions: Arc::clone(&sessions), streams };
        let task = tokio::spawn(listen(line, current, hearing)).abort_handle();
        Self { bells, sessions, pool, task }
    }

    /// Ends the task and closes its connection.
    pub(super) async fn close(&self) {
        self.task.abort();
        let pool = self.pool.borrow().clone();
        close(&pool).await;
    }
}

/// The way to the server, and the bounds of its waits.
#[derive(Debug)]
struct Line {
    connect: PgConnectOptions,
    acquire_timeout: Duration,
    silence: Duration,
    patience: Duration,
}

impl Line {
    /// Returns a pool for one connection. Each attempt has its own, because a connection that hangs stays in its
    /// pool until the network gives it up.
    fn pool(&self) -> PgPool {
        PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(self.acquire_timeout)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(self.connect.clone())
    }
}

/// The receivers of notifications.
#[derive(Debug)]
struct Hearing {
    bells: Arc<Bells>,
    sessions: Arc<SessionBells>,
    streams: Arc<Ours>,
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

async fn listen(line: Line, current: watch::Sender<PgPool>, hearing: Hearing) {
    loop {
        let pool = current.borrow().clone();
        if let Err(error) = hear(&pool, &line, &hearing).await {
            tracing::warn!(%error, "lost the connection for change notifications; trying again");
        }
        tokio::time::sleep(RETRY).await;
        current.send_replace(line.pool());
    }
}

/// Rings for each notification until the connection is lost.
async fn hear(pool: &PgPool, line: &Line, hearing: &Hearing) -> Result<(), sqlx::Error> {
    let Hearing { bells, sessions, streams } = hearing;
    let mut listener = PgListener::connect_with(pool).await?;
    listener.eager_reconnect(false);
    in_time(line.patience, listener.listen_all([CHANNEL, live_streams::CHANNEL])).await?;
    sessions.ring_all();
    bells.ring_all();
    streams.joined();
    loop {
        let Ok(received) = timeout(line.silence, listener.try_recv()).await else {
            in_time(line.patience, listener.execute("SELECT 1")).await?;
            continue;
        };
        let Some(notification) = received? else { return Ok(()) };
        match notification.channel() {
            live_streams::CHANNEL => streams.heard(notification.payload()),
            _ => heard(bells, sessions, notification.payload()),
        }
    }
}
