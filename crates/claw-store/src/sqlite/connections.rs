//! Connections to one file, or to one memory, each lent to one caller at a time.
//!
//! The driver's own pool checks each returned connection, and the next caller waits for the check. Here a
//! connection whose last operation succeeded is lent again as it is, and only others are checked.
//!
//! A connection that writes to a file shares its syncs: a commit, a statement or a look returns once everything that
//! it did or saw of this process is on the disk, and does not keep the connection while it waits for that.

use std::ops::{Deref, DerefMut};
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use std::{fmt, io, mem};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use sqlx::sqlite::{SqliteConnectOptions, SqliteQueryResult, SqliteRow, SqliteStatement, SqliteTypeInfo};
use sqlx::{
    ConnectOptions as _, Connection as _, Database, Either, Error, Execute, Executor, SqlSafeStr as _,
    SqlStr, Sqlite, SqliteConnection, query, query_scalar,
};
use sqlx_core::transaction::TransactionManager as _;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::shared_sync::{Log, SyncCounts, Ticket, Waited};

type Manager = <Sqlite as Database>::TransactionManager;

/// Connections that are opened when first needed and kept from then on: reopening costs more than keeping,
/// and in memory the connection is the store itself.
#[derive(Clone)]
pub(super) struct Connections(Arc<Shared>);

struct Shared {
    connect: SqliteConnectOptions,
    most: u32,
    /// The longest a caller waits for a connection.
    patience: Duration,
    free: Semaphore,
    idle: Mutex<Vec<Idle>>,
    durable: Durable,
    /// The device and inode number of the file that the first connection opened.
    opened: OnceLock<(u64, u64)>,
}

/// The way in which rows that were written or seen become durable.
enum Durable {
    /// SQLite syncs each commit by itself, or the store is in memory.
    BySqlite,
    /// The commits of these connections share the syncs of a log.
    ByLog(Arc<Log>),
    /// These connections see the commits of others, which share the syncs of a log.
    By(Connections),
}

struct Idle {
    connection: SqliteConnection,
    /// True if its last operation succeeded.
    is_well: bool,
    /// SQLite syncs its commits. Never wrongly `true`.
    is_full: bool,
}

impl Connections {
    /// Creates connections whose commits SQLite syncs, or that need no sync.
    pub(super) fn new(connect: SqliteConnectOptions, most: u32, patience: Duration) -> Self {
        Self::with(connect, most, patience, Durable::BySqlite)
    }

    /// Creates a single writing connection, whose commits share the syncs of `log`.
    pub(super) fn writing(connect: SqliteConnectOptions, patience: Duration, log: Arc<Log>) -> Self {
        Self::with(connect, 1, patience, Durable::ByLog(log))
    }

    /// Creates connections that read what `writer` writes. A row is returned once it is as durable as the
    /// writer's own.
    pub(super) fn reading(
        connect: SqliteConnectOptions,
        most: u32,
        patience: Duration,
        writer: &Connections,
    ) -> Self {
        Self::with(connect, most, patience, Durable::By(writer.clone()))
    }

    fn with(connect: SqliteConnectOptions, most: u32, patience: Duration, durable: Durable) -> Self {
        let most = most.max(1);
        let free = Semaphore::new(usize::try_from(most).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS));
        Self(Arc::new(Shared {
            connect,
            most,
            patience,
            free,
            idle: Mutex::default(),
            durable,
            opened: OnceLock::new(),
        }))
    }

    /// Lends a connection, in the order of requests.
    pub(super) async fn acquire(&self) -> Result<Lent<'_>, Error> {
        let using = Using::of(self)?;
        self.check_file()?;
        let permit = match self.0.free.try_acquire() {
            Ok(permit) => permit,
            Err(_) => {
                let waited = timeout(self.0.patience, self.0.free.acquire()).await;
                waited.map_err(|_| Error::PoolTimedOut)?.map_err(|_| Error::PoolClosed)?
            }
        };
        let idle = self.idle().pop();
        let is_well = idle.as_ref().is_some_and(|idle| idle.is_well);
        let is_full = idle.as_ref().is_none_or(|idle| idle.is_full);
        let (connection, is_new) = match idle {
            Some(idle) => (idle.connection, false),
            None => (self.connect().await?, true),
        };
        // It comes back even if the caller gives up while it is asked.
        let connection = Some(connection);
        let mut lent = Lent { connection, is_well: false, is_full, of: self, _permit: permit, _using: using };
        if !is_well && !is_new {
            if let Err(error) = mend(&mut lent).await {
                tracing::warn!(%error, "a connection to the store is unusable; another is opened");
                *lent = self.connect().await?;
                lent.is_full = true;
            }
            if let Some(log) = self.log() {
                log.settle();
            }
        }
        Ok(lent)
    }

    async fn connect(&self) -> Result<SqliteConnection, Error> {
        let mut connection = self.0.connect.connect().await?;
        if let Ok(file) = std::fs::metadata(self.0.connect.get_filename()) {
            self.0.opened.get_or_init(|| (file.dev(), file.ino()));
        }
        if let Some(log) = self.log() {
            log.attach(&mut connection).await?;
        }
        Ok(connection)
    }

    /// Refuses to write to a file that was renamed or removed: nobody would find the data.
    fn check_file(&self) -> Result<(), Error> {
        let (Some(_), Some(opened)) = (self.log(), self.0.opened.get()) else { return Ok(()) };
        let path = self.0.connect.get_filename();
        if std::fs::metadata(path).is_ok_and(|file| (file.dev(), file.ino()) == *opened) {
            return Ok(());
        }
        let why = format!(
            "`{}` was removed or replaced while it was open; restart the program, and restore a backup if \
             needed",
            path.display()
        );
        Err(Error::Io(io::Error::new(io::ErrorKind::NotFound, why)))
    }

    /// Waits until all visible commits of this process are on the disk.
    pub(super) async fn settled(&self) -> Result<(), Error> {
        let writer = match &self.0.durable {
            Durable::BySqlite => return Ok(()),
            Durable::ByLog(_) => self,
            Durable::By(writer) => writer,
        };
        match writer.log() {
            Some(log) => writer.synced(log, log.visible()).await,
            None => Ok(()),
        }
    }

    async fn synced(&self, log: &Arc<Log>, ticket: Ticket) -> Result<(), Error> {
        while log.durable(ticket).await? == Waited::Abandoned {
            // The next holder of the connection learns whether the commit succeeded.
            drop(self.acquire().await?);
        }
        Ok(())
    }

    /// The log, if these connections write to one.
    pub(super) fn log(&self) -> Option<&Arc<Log>> {
        match &self.0.durable {
            Durable::ByLog(log) => Some(log),
            Durable::BySqlite | Durable::By(_) => None,
        }
    }

    /// Begins a transaction.
    pub(super) async fn begin(&self, statement: &'static str) -> Result<Begun<'_>, Error> {
        let mut lent = self.acquire().await?;
        lent.ready().await?;
        Manager::begin(&mut lent, Some(statement.into_sql_str())).await?;
        Ok(Begun { lent, is_over: false })
    }

    /// Runs one statement and returns all its results.
    async fn run<'q>(
        &self,
        query: impl Execute<'q, Sqlite> + 'q,
    ) -> Result<Vec<Either<SqliteQueryResult, SqliteRow>>, Error> {
        let mut lent = self.acquire().await?;
        lent.ready().await?;
        let read: Vec<_> = lent.fetch_many(query).try_collect().await?;
        let has_changed =
            read.iter().any(|one| one.as_ref().left().is_some_and(|end| end.rows_affected() > 0));
        lent.end(has_changed).await?;
        Ok(read)
    }

    /// Counts the commits so far and their syncs; nothing is counted without a log.
    pub(super) fn sync_counts(&self) -> SyncCounts {
        self.log().map_or(SyncCounts::default(), |log| log.counts())
    }

    /// Closes every connection once it is free; none is lent after that.
    pub(super) async fn close(&self) {
        // Refused where they are closed already.
        let all = self.0.free.acquire_many(self.0.most).await;
        self.0.free.close();
        let idle = mem::take(&mut *self.idle());
        for Idle { connection, .. } in idle {
            if let Err(error) = connection.close().await {
                tracing::warn!(%error, "a connection to the store could not be closed");
            }
        }
        drop(all);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("most", &self.0.most).finish_non_exhaustive()
    }
}

/// Takes a connection out of its transaction. The driver rolls back what its last user began and did not end
/// before it answers here. A full disk makes SQLite roll back by itself, which the driver does not notice: it
/// would count a transaction for ever and begin no other, so it is given one to end. If a caller that gave up
/// here has done that already, there is one, and beginning another fails.
async fn mend(connection: &mut SqliteConnection) -> Result<(), Error> {
    connection.ping().await?;
    if connection.is_in_transaction() {
        let begun = query("BEGIN").execute(&mut *connection).await;
        if let Err(error) = Manager::rollback(connection).await {
            return Err(begun.err().unwrap_or(error));
        }
    }
    Ok(())
}

/// A connection for the time being.
pub(super) struct Lent<'c> {
    /// The connection; `None` once it is returned.
    connection: Option<SqliteConnection>,
    is_well: bool,
    is_full: bool,
    of: &'c Connections,
    /// Released after the connection is returned.
    _permit: SemaphorePermit<'c>,
    _using: Using<'c>,
}

/// A caller that has or waits for a connection, counted by the log.
struct Using<'c>(Option<&'c Arc<Log>>);

impl<'c> Using<'c> {
    fn of(connections: &'c Connections) -> Result<Self, Error> {
        let log = connections.log();
        if let Some(log) = log {
            log.enter()?;
        }
        Ok(Self(log))
    }
}

impl Drop for Using<'_> {
    fn drop(&mut self) {
        if let Some(log) = self.0 {
            log.leave();
        }
    }
}

#[expect(clippy::expect_used, reason = "it is taken in `drop` alone")]
impl Deref for Lent<'_> {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        self.connection.as_ref().expect("it is there until it is given back")
    }
}

#[expect(clippy::expect_used, reason = "it is taken in `drop` alone")]
impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        self.connection.as_mut().expect("it is there until it is given back")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.of.idle().push(Idle { connection, is_well: self.is_well, is_full: self.is_full });
        }
        if !self.is_well
            && let Some(log) = self.of.log()
        {
            log.abandon();
        }
    }
}

/// A transaction. Dropped without a commit, it is rolled back.
pub(super) struct Begun<'c> {
    lent: Lent<'c>,
    is_over: bool,
}

impl Begun<'_> {
    /// Commits, returns the connection, and waits until all rows written and seen are on the disk.
    pub(super) async fn commit(mut self) -> Result<(), Error> {
        Manager::commit(&mut self.lent).await?;
        self.end();
        let of = self.lent.of;
        let Some(log) = of.log() else {
            drop(self);
            return of.settled().await;
        };
        let is_synced = self.lent.is_full && log.has_written();
        let ticket = if is_synced { log.settle_synced() } else { log.settle() };
        drop(self);
        of.synced(log, ticket).await
    }

    pub(super) async fn rollback(mut self) -> Result<(), Error> {
        Manager::rollback(&mut self.lent).await?;
        self.end();
        Ok(())
    }

    fn end(&mut self) {
        (self.is_over, self.lent.is_well) = (true, true);
    }
}

impl Deref for Begun<'_> {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.lent
    }
}

impl DerefMut for Begun<'_> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.lent
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            Manager::start_rollback(&mut self.lent);
        }
    }
}

impl Lent<'_> {
    /// Makes SQLite sync commits for a lone caller, and share the log's syncs for several.
    async fn ready(&mut self) -> Result<(), Error> {
        let Some(log) = self.of.log() else { return Ok(()) };
        let is_alone = log.is_alone();
        if is_alone == self.is_full {
            return Ok(());
        }
        // Not full while it changes: whoever gives up in between does not know.
        self.is_full = false;
        let mode = if is_alone { "PRAGMA synchronous = FULL" } else { "PRAGMA synchronous = NORMAL" };
        query(mode).execute(&mut **self).await?;
        self.is_full = is_alone;
        Ok(())
    }

    /// Ends a statement outside a transaction, and waits until the rows it wrote or saw are on the disk.
    async fn end(mut self, has_changed: bool) -> Result<(), Error> {
        let of = self.of;
        let Some(log) = of.log() else {
            self.is_well = true;
            drop(self);
            return of.settled().await;
        };
        let ticket = if has_changed && self.is_full {
            log.settle_synced()
        } else if has_changed || !log.has_begun() {
            log.settle()
        } else {
            let version = query_scalar("PRAGMA data_version").fetch_one(&mut *self).await?;
            log.withdraw(version)
        };
        self.is_well = true;
        drop(self);
        of.synced(log, ticket).await
    }
}

/// Runs one statement on any connection. Its rows are read before they are handed on, so that a slow reader
/// does not keep a connection.
impl<'c> Executor<'c> for &'c Connections {
    type Database = Sqlite;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, Result<Either<SqliteQueryResult, SqliteRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Sqlite>,
    {
        let read = async move {
            let read = self.run(query).await?;
            Ok::<_, Error>(stream::iter(read.into_iter().map(Ok)))
        };
        stream::once(read).try_flatten().boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<SqliteRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Sqlite>,
    {
        Box::pin(async move { Ok(self.run(query).await?.into_iter().find_map(Either::right)) })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [SqliteTypeInfo],
    ) -> BoxFuture<'e, Result<SqliteStatement, Error>>
    where
        'c: 'e,
    {
        Box::pin(async move {
            let mut lent = self.acquire().await?;
            let statement = lent.prepare_with(sql, parameters).await?;
            lent.is_well = true;
            drop(lent);
            Ok(statement)
        })
    }
}

#[cfg(test)]
mod tests;
