//! Wakes waiters: at once for changes of this process, by polling for those of others.
//!
//! SQLite gives each connection a number that changes with the commits of all others. That of a connection of its own
//! tells that somebody has committed; that of the one which writes for this process tells whether it was another program.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use claw_core::port::Owner;
use claw_core::store::{Bells, Changes, SessionBells, Topic};
use sqlx::query_scalar;
use tokio::sync::watch::Receiver;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::SqliteStore;
use super::connections::Connections;

/// The polling interval; the promise is 250 ms.
const LOOK: Duration = Duration::from_millis(100);

impl Changes for SqliteStore {
    fn changes(&self, of: Topic) -> Receiver<u64> {
        self.bells.listen(of)
    }
}

/// A task that rings the bells when another connection has changed the file. Dropping it ends the task.
#[derive(Debug)]
pub(super) struct Tail {
    /// A single connection, always the same: the number it polls is its own.
    connection: Connections,
    task: AbortHandle,
}

impl Tail {
    /// Starts the task; `writer` writes for this process.
    pub(super) async fn follow(
        connection: Connections,
        writer: Connections,
        bells: Arc<Bells>,
        sessions: Arc<SessionBells>,
    ) -> Result<Self, sqlx::Error> {
        let seen = Seen { commits: version(&connection).await?, of_others: version(&writer).await? };
        let sessions = Sessions { bells: sessions, last: HashMap::new() };
        let task = tokio::spawn(watch(connection.clone(), writer, seen, bells, sessions)).abort_handle();
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

async fn watch(
    connection: Connections,
    writer: Connections,
    mut seen: Seen,
    bells: Arc<Bells>,
    mut sessions: Sessions,
) {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let heard = sessions.bells.sessions();
        if heard.is_empty() && !bells.is_heard() {
            sessions.last.clear();
            continue;
        }
        let changed = seen.changed(&connection, &writer).await.unwrap_or_else(|error| {
            // Better to wake somebody for nothing than not at all.
            tracing::warn!(%error, "could not look for changes by other programs");
            true
        });
        if changed {
            bells.ring_all();
        }
        sessions.look(&connection, heard, changed).await;
    }
}

/// The numbers of the file's state at the last look.
struct Seen {
    /// As seen by a connection that never writes: differs after any commit.
    commits: i64,
    /// As seen by the connection that writes for this process: differs after a commit of another program.
    of_others: i64,
}

impl Seen {
    /// Returns whether another program may have committed something since the last look.
    async fn changed(&mut self, connection: &Connections, writer: &Connections) -> Result<bool, sqlx::Error> {
        let commits = version(connection).await?;
        if mem::replace(&mut self.commits, commits) == commits {
            return Ok(false);
        }
        match timeout(LOOK, version(writer)).await {
            Ok(of_others) => {
                let of_others = of_others?;
                Ok(mem::replace(&mut self.of_others, of_others) != of_others)
            }
            // It is busy for long; whoever waits for others is not to wait for that.
            Err(_) => Ok(true),
        }
    }
}

/// The sessions with listeners, and the last event seen of each.
struct Sessions {
    bells: Arc<SessionBells>,
    last: HashMap<Owner, i64>,
}

impl Sessions {
    /// Rings for the sessions that have new events. If nothing changed, only unknown sessions are read.
    async fn look(&mut self, connection: &Connections, heard: Vec<Owner>, changed: bool) {
        let mut before = std::mem::take(&mut self.last);
        for session in heard {
            let before = before.remove(&session);
            if let Some(last) = before.filter(|_| !changed) {
                self.last.insert(session, last);
                continue;
            }
            let now = match last_event(connection, &session).await {
                Ok(now) => now,
                Err(error) => {
                    tracing::warn!(%error, "could not look for changes by other programs");
                    self.bells.ring(&session);
                    continue;
                }
            };
            if changed && before != Some(now) {
                self.bells.ring(&session);
            }
            self.last.insert(session, now);
        }
    }
}

/// A number that differs once another connection has committed something.
async fn version(connection: &Connections) -> Result<i64, sqlx::Error> {
    query_scalar("PRAGMA data_version").fetch_one(connection).await
}

/// The number of the last event of a session.
async fn last_event(connection: &Connections, of: &Owner) -> Result<i64, sqlx::Error> {
    query_scalar("SELECT coalesce(max(seq), 0) FROM events WHERE tenant = $1 AND session = $2")
        .bind(of.tenant.as_str())
        .bind(of.session.as_str())
        .fetch_one(connection)
        .await
}
