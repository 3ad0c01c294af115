//! The write-ahead log of one file, and the syncs that its commits share.
//!
//! While several callers write at once, the writing connection runs with `synchronous = NORMAL`: its commits
//! append to the `-wal` file and do not sync it. Each caller then waits here for a sync that began after its
//! commit. One sync runs at a time and covers every commit before it, so callers that commit together pay for
//! one. A lone caller has nobody to share with: SQLite syncs its commit (`FULL`), which saves a hand-over
//! between threads. `docs/decisions/0019-shared-syncs.md` shows why an acknowledged commit survives a power
//! loss.
//!
//! Syncs use a descriptor of their own on the `-wal` file, kept open: the kernel reports a failed write-back
//! once to each open descriptor, so this one learns of every failure since it was opened. The database and
//! its `-shm` file are never opened here: SQLite locks those with `fcntl`, and closing any descriptor of a
//! file drops all such locks of the process. The `-wal` file carries no locks.

use std::fs::File;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::{Error, SqliteConnection, query};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Commits for which a sync no longer waits for more, though other callers hold the writer or wait for it.
const GROUP: u64 = 16;
/// The longest time for which a commit waits for others to share its sync.
const GATHER: Duration = Duration::from_millis(5);

/// The log of one file.
#[derive(Debug)]
pub(super) struct Log {
    /// Path of the database; the log lies beside it.
    database: PathBuf,
    state: Mutex<State>,
    /// True if the writer changed a row since it was made ready. Some changes go unnoticed, as those of
    /// tables without row ids.
    has_written: AtomicBool,
    /// Notified whenever the state changes in a way that somebody may wait for.
    changed: watch::Sender<()>,
}

/// A commit by its number. Numbers rise from 1 in the order of the commits.
pub(super) type Ticket = u64;

#[derive(Debug, Default)]
struct State {
    /// The last commit that began; its rows may be visible.
    announced: Ticket,
    /// The last commit that is known to have ended.
    committed: Ticket,
    /// The last commit that a sync covers.
    synced: Ticket,
    /// Syncs so far.
    syncs: u64,
    /// A sync is running.
    syncing: bool,
    /// Callers that hold the writer or wait for it.
    users: usize,
    /// The last holder of the writer went before its work ended; a commit of it may still be running.
    abandoned: bool,
    /// Somebody waits for a commit to end.
    awaited: bool,
    /// `PRAGMA data_version` of the writer when its last commit was counted.
    version: Option<i64>,
    /// The error of a failed sync. Nothing is durable from then on.
    failed: Option<(io::ErrorKind, String)>,
    file: Option<Arc<File>>,
    /// The time for which a commit waits for others to share its sync.
    gather: Duration,
}

/// Commits of a store, and the syncs that made them durable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SyncCounts {
    /// Transactions that were committed.
    pub commits: u64,
    /// The syncs that commits waited for, without those of checkpoints.
    pub syncs: u64,
}

/// The end of a wait for a commit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// A sync covers the commit.
    Durable,
    /// No caller is left that would learn whether the commit ended: the writer has to be acquired first.
    Abandoned,
}

enum Step {
    End(Result<Waited, Error>),
    Sync(Flight),
    /// Others are about to commit: wait for them, but not for long.
    Gather(Duration),
    Wait,
}

impl Log {
    /// The log of the database at `database`. Nothing is opened yet.
    pub(super) fn new(database: &Path) -> Arc<Self> {
        let (changed, _) = watch::channel(());
        let state = Mutex::new(State { gather: GATHER, ..State::default() });
        Arc::new(Self { database: database.to_owned(), state, has_written: AtomicBool::new(false), changed })
    }

    /// Counts the commits of `connection` from now on, and opens the log that it writes to.
    ///
    /// The log is checkpointed into the database first, as far as readers allow. A log that an earlier
    /// program could not sync may have a gap on the disk that memory hides, and everything behind the gap
    /// would be lost.
    pub(super) async fn attach(self: &Arc<Self>, connection: &mut SqliteConnection) -> Result<(), Error> {
        query("PRAGMA wal_checkpoint(PASSIVE)").execute(&mut *connection).await?;
        // The connection has the file open from here on, so nobody removes or replaces it.
        let file = File::open(beside(&self.database)?)?;
        self.sync_to(file);
        let (commits, changes) = (Arc::clone(self), Arc::clone(self));
        let mut handle = connection.lock_handle().await?;
        handle.set_commit_hook(move || {
            commits.state().announced += 1;
            true
        });
        handle.set_update_hook(move |_| changes.has_written.store(true, Ordering::Relaxed));
        Ok(())
    }

    /// Counts a caller that wants the writer. Refused once a sync has failed.
    pub(super) fn enter(&self) -> Result<(), Error> {
        let mut state = self.state();
        if let Some(error) = state.failure() {
            return Err(error);
        }
        state.users += 1;
        Ok(())
    }

    /// Counts it out again.
    pub(super) fn leave(&self) {
        let mut state = self.state();
        state.users -= 1;
        let is_awaited = state.users == 0 && state.committed > state.synced && !state.syncing;
        drop(state);
        if is_awaited {
            self.tell();
        }
    }

    /// Marks the writer as returned before its work ended.
    pub(super) fn abandon(&self) {
        self.state().abandoned = true;
        self.tell();
    }

    /// Returns whether the holder of the writer is the only caller, so that nobody could share a sync with
    /// it. To be called before each use of the writer.
    pub(super) fn is_alone(&self) -> bool {
        self.has_written.store(false, Ordering::Relaxed);
        let state = self.state();
        state.users == 1 && state.committed == state.synced
    }

    /// Returns whether the writer is known to have changed something since then.
    pub(super) fn has_written(&self) -> bool {
        self.has_written.load(Ordering::Relaxed)
    }

    /// Records that all work of the writer is done; returns the last commit. Only the holder of the writer
    /// may call it.
    pub(super) fn settle(&self) -> Ticket {
        self.settle_by(false)
    }

    /// Like `settle`, after a commit that wrote something and that SQLite has synced. That sync counts only
    /// if nothing else waits for one: the log's own descriptor may know of failures that SQLite does not.
    pub(super) fn settle_synced(&self) -> Ticket {
        self.settle_by(true)
    }

    fn settle_by(&self, is_synced: bool) -> Ticket {
        let mut state = self.state();
        if is_synced && state.committed == state.synced && state.announced > state.committed {
            state.synced = state.announced;
            state.syncs += 1;
        }
        state.abandoned = false;
        state.committed = state.announced;
        let (ticket, is_awaited) = (state.committed, mem::take(&mut state.awaited));
        drop(state);
        if is_awaited {
            self.tell();
        }
        ticket
    }

    /// Returns whether a commit began since the last one that ended. Only the holder of the writer may ask.
    pub(super) fn has_begun(&self) -> bool {
        let state = self.state();
        state.announced > state.committed
    }

    /// Takes back a commit that wrote nothing; returns the one before it. `version` is the writer's
    /// `data_version`: if another program has committed since, its rows may be why there was nothing to
    /// write, so the commit stays and is synced as if it had written them.
    pub(super) fn withdraw(&self, version: i64) -> Ticket {
        let mut state = self.state();
        if state.version.replace(version) == Some(version) {
            state.announced = state.committed;
        }
        drop(state);
        self.settle()
    }

    /// The last commit whose rows may be visible.
    pub(super) fn visible(&self) -> Ticket {
        self.state().announced
    }

    /// Waits until a sync covers a commit, and starts one if nobody else does.
    pub(super) async fn durable(self: &Arc<Self>, ticket: Ticket) -> Result<Waited, Error> {
        let mut changed = self.changed.subscribe();
        let mut may_gather = true;
        loop {
            let told = match self.step(ticket, may_gather) {
                Step::End(ended) => return ended,
                Step::Gather(time) => {
                    may_gather = timeout(time, changed.changed()).await.is_ok();
                    continue;
                }
                Step::Sync(flight) => {
                    // Told of by the flight itself: this caller may be gone before it ends.
                    drop(spawn_blocking(move || flight.run()));
                    changed.changed().await
                }
                Step::Wait => changed.changed().await,
            };
            // The sender is our own.
            told.map_err(|_| Error::PoolClosed)?;
        }
    }

    pub(super) fn counts(&self) -> SyncCounts {
        let state = self.state();
        SyncCounts { commits: state.committed, syncs: state.syncs }
    }

    fn sync_to(&self, file: File) {
        let mut state = self.state();
        (state.file, state.version) = (Some(Arc::new(file)), None);
    }

    fn step(self: &Arc<Self>, ticket: Ticket, may_gather: bool) -> Step {
        let mut state = self.state();
        // It may have been taken back meanwhile.
        let ticket = ticket.min(state.announced);
        if state.synced >= ticket {
            return Step::End(Ok(Waited::Durable));
        }
        if let Some(error) = state.failure() {
            return Step::End(Err(error));
        }
        if state.committed < ticket && state.abandoned {
            return Step::End(Ok(Waited::Abandoned));
        }
        if state.committed < ticket {
            state.awaited = true;
            return Step::Wait;
        }
        if state.syncing {
            return Step::Wait;
        }
        if may_gather && state.users > 0 && state.committed - state.synced < GROUP {
            return Step::Gather(state.gather);
        }
        let Some(file) = state.file.clone() else { return Step::End(Err(Error::PoolClosed)) };
        state.syncing = true;
        Step::Sync(Flight { log: Arc::clone(self), upto: state.committed, file })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.changed.send_replace(());
    }
}

impl State {
    fn failure(&self) -> Option<Error> {
        let (kind, why) = self.failed.clone()?;
        Some(Error::Io(io::Error::new(kind, why)))
    }
}

/// A sync that runs, or is about to.
struct Flight {
    log: Arc<Log>,
    /// The last commit that it covers.
    upto: Ticket,
    file: Arc<File>,
}

impl Flight {
    fn run(self) {
        let synced = self.file.sync_data();
        let mut state = self.log.state();
        state.syncs += 1;
        match synced {
            Ok(()) => state.synced = state.synced.max(self.upto),
            Err(error) => {
                tracing::error!(%error, "the store's log could not be synced; it takes no more writes");
                let why = format!(
                    "the log could not be synced ({error}), so the last writes may be lost; check the disk, then \
                     restart"
                );
                state.failed = Some((error.kind(), why));
            }
        }
    }
}

/// If a runtime ends before the sync ran, a caller that still waits starts another one.
impl Drop for Flight {
    fn drop(&mut self) {
        self.log.state().syncing = false;
        self.log.tell();
    }
}

/// Returns the log's path. SQLite follows links to the database, and puts the log beside the file itself.
fn beside(database: &Path) -> io::Result<PathBuf> {
    let mut name = database.canonicalize()?.into_os_string();
    name.push("-wal");
    Ok(name.into())
}

#[cfg(test)]
mod tests;
