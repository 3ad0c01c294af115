//! Connections to one file, or to one memory, each lent to one caller at a time.
//!
//! The driver's own pool asks each connection that comes back whether it is well, and the next caller waits for
//! the answer. Here a connection whose work ended well is lent again as it is, and only another one is asked.

use std::fmt;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use sqlx::sqlite::{SqliteConnectOptions, SqliteQueryResult, SqliteRow, SqliteStatement, SqliteTypeInfo};
use sqlx::{
    ConnectOptions as _, Connection as _, Database, Either, Error, Execute, Executor, SqlSafeStr as _,
    SqlStr, Sqlite, SqliteConnection, query,
};
use sqlx_core::transaction::TransactionManager as _;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

type Manager = <Sqlite as Database>::TransactionManager;

/// Some connections that are opened when they are first needed and kept from then on: opening one again costs
/// more than keeping it, and in memory it is the store itself.
#[derive(Clone)]
pub(super) struct Connections(Arc<Shared>);

struct Shared {
    connect: SqliteConnectOptions,
    most: u32,
    /// How long a caller waits for one.
    patience: Duration,
    free: Semaphore,
    idle: Mutex<Vec<Idle>>,
}

struct Idle {
    connection: SqliteConnection,
    /// Whether its last work ended well.
    is_well: bool,
}

impl Connections {
    pub(super) fn new(connect: SqliteConnectOptions, most: u32, patience: Duration) -> Self {
        let most = most.max(1);
        let free = Semaphore::new(usize::try_from(most).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS));
        Self(Arc::new(Shared { connect, most, patience, free, idle: Mutex::default() }))
    }

    /// Lends a connection, after those who asked before.
    pub(super) async fn acquire(&self) -> Result<Lent<'_>, Error> {
        let permit = match self.0.free.try_acquire() {
            Ok(permit) => permit,
            Err(_) => {
                let waited = timeout(self.0.patience, self.0.free.acquire()).await;
                waited.map_err(|_| Error::PoolTimedOut)?.map_err(|_| Error::PoolClosed)?
            }
        };
        let idle = self.idle().pop();
        let Some(Idle { connection, is_well }) = idle else {
            let connection = self.0.connect.connect().await?;
            return Ok(Lent { connection: Some(connection), is_well: false, of: self, _permit: permit });
        };
        // It comes back even if the caller gives up while it is asked.
        let mut lent = Lent { connection: Some(connection), is_well: false, of: self, _permit: permit };
        if !is_well && let Err(error) = mend(&mut lent).await {
            tracing::warn!(%error, "a connection to the store is of no more use; another is opened");
            *lent = self.0.connect.connect().await?;
        }
        Ok(lent)
    }

    /// Begins a transaction.
    pub(super) async fn begin(&self, statement: &'static str) -> Result<Begun<'_>, Error> {
        let mut lent = self.acquire().await?;
        Manager::begin(&mut lent, Some(statement.into_sql_str())).await?;
        Ok(Begun { lent, is_over: false })
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

/// Takes a connection out of its transaction. What its last user began and did not end, the driver takes back in
/// turn, before it answers here. A full disk makes SQLite roll back by itself, which the driver does not notice:
/// it would count a transaction for ever and begin no other, so it is given one to end.
async fn mend(connection: &mut SqliteConnection) -> Result<(), Error> {
    connection.ping().await?;
    if connection.is_in_transaction() {
        query("BEGIN").execute(&mut *connection).await?;
        Manager::rollback(connection).await?;
    }
    Ok(())
}

/// A connection for the time being.
pub(super) struct Lent<'c> {
    /// There until it is given back.
    connection: Option<SqliteConnection>,
    is_well: bool,
    of: &'c Connections,
    /// Given back after the connection.
    _permit: SemaphorePermit<'c>,
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
            self.of.idle().push(Idle { connection, is_well: self.is_well });
        }
    }
}

/// A transaction. What is not committed has not happened.
pub(super) struct Begun<'c> {
    lent: Lent<'c>,
    is_over: bool,
}

impl Begun<'_> {
    pub(super) async fn commit(mut self) -> Result<(), Error> {
        Manager::commit(&mut self.lent).await?;
        self.end();
        Ok(())
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

/// One statement on any connection. Its rows are read before they are handed on, so that nobody who is slow to
/// take them keeps a connection.
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
            let mut lent = self.acquire().await?;
            let read: Vec<_> = lent.fetch_many(query).try_collect().await?;
            lent.is_well = true;
            Ok::<_, Error>(stream::iter(read.into_iter().map(Ok)))
        };
        stream::once(read).try_flatten().boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<SqliteRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Sqlite>,
    {
        Box::pin(async move {
            let mut lent = self.acquire().await?;
            let row = lent.fetch_optional(query).await?;
            lent.is_well = true;
            Ok(row)
        })
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
            Ok(statement)
        })
    }
}
