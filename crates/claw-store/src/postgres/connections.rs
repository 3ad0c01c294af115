//! Connections to the server, with a bound on each wait for its answer.
//!
//! A server that is frozen, or behind a network that drops packets, keeps its connections open and answers nothing:
//! the driver would wait for ever. Here each answer must come in time, row by row.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{
    PgConnection, PgPool, PgQueryResult, PgRow, PgStatement, PgTransaction, PgTypeInfo, Postgres,
};
use sqlx::{Connection as _, Either, Error, Execute, Executor, SqlStr};
use tokio::time::timeout;

use crate::options::StoreOptions;

/// The extra time for an answer beyond the server's own statement timeout.
const GRACE: Duration = Duration::from_secs(2);
/// The longest that closing waits for connections whose callers gave up.
const CLOSING: Duration = Duration::from_secs(2);

/// A pool of connections. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    pool: PgPool,
    patience: Duration,
}

impl Connections {
    /// Bounds each wait on connections of this pool by `patience`.
    pub(super) const fn new(pool: PgPool, patience: Duration) -> Self {
        Self { pool, patience }
    }

    /// Lends a connection. The pool bounds the wait for it.
    pub(super) async fn acquire(&self) -> Result<Link<'static>, Error> {
        let kind = Kind::Pooled(self.pool.acquire().await?);
        Ok(Link { kind, patience: self.patience })
    }

    /// Begins a transaction.
    pub(super) async fn begin(&self) -> Result<Transaction, Error> {
        let begun = in_time(self.patience, self.pool.begin()).await?;
        Ok(Transaction(Link { kind: Kind::Begun(begun), patience: self.patience }))
    }

    /// Begins a transaction with a statement of its own.
    pub(super) async fn begin_with(&self, statement: &'static str) -> Result<Transaction, Error> {
        let begun = in_time(self.patience, self.pool.begin_with(statement)).await?;
        Ok(Transaction(Link { kind: Kind::Begun(begun), patience: self.patience }))
    }

    /// Closes every connection.
    pub(super) async fn close(&self) {
        close(&self.pool).await;
    }
}

/// Returns the longest wait for an answer of a server that ends its statements itself.
pub(super) fn patience(options: &StoreOptions) -> Duration {
    options.statement_timeout + GRACE
}

/// Closes every connection of a pool; one that is not returned in time is left to the server.
pub(super) async fn close(pool: &PgPool) {
    if timeout(CLOSING, pool.close()).await.is_err() {
        tracing::warn!("connections to the store were not closed in time and are abandoned");
    }
}

/// A connection, for as long as its caller holds it.
#[derive(Debug)]
pub(crate) struct Link<'a> {
    kind: Kind<'a>,
    patience: Duration,
}

#[derive(Debug)]
enum Kind<'a> {
    Pooled(PoolConnection<Postgres>),
    Begun(PgTransaction<'static>),
    Owned(PgConnection),
    Lent(&'a mut PgConnection),
}

impl Link<'static> {
    /// Bounds the waits on a connection that is no pool's.
    pub(crate) const fn new(connection: PgConnection, patience: Duration) -> Self {
        Self { kind: Kind::Owned(connection), patience }
    }

    /// Closes a connection that is no pool's; a pool has its own back.
    pub(crate) async fn close(self) -> Result<(), Error> {
        match self.kind {
            Kind::Owned(connection) => in_time(self.patience, connection.close()).await,
            Kind::Pooled(_) | Kind::Begun(_) | Kind::Lent(_) => Ok(()),
        }
    }
}

impl Link<'_> {
    /// Lends the connection with other patience.
    pub(super) fn with_patience(&mut self, patience: Duration) -> Link<'_> {
        Link { kind: Kind::Lent(self.parts().0), patience }
    }

    pub(super) fn parts(&mut self) -> (&mut PgConnection, Duration) {
        let connection = match &mut self.kind {
            Kind::Pooled(connection) => &mut **connection,
            Kind::Begun(transaction) => &mut **transaction,
            Kind::Owned(connection) => connection,
            Kind::Lent(connection) => connection,
        };
        (connection, self.patience)
    }
}

/// A transaction; without [`commit`](Self::commit) it is rolled back.
#[derive(Debug)]
pub(super) struct Transaction(Link<'static>);

impl Transaction {
    pub(super) async fn commit(self) -> Result<(), Error> {
        let Link { kind, patience } = self.0;
        match kind {
            Kind::Begun(transaction) => in_time(patience, transaction.commit()).await,
            Kind::Pooled(_) | Kind::Owned(_) | Kind::Lent(_) => Ok(()),
        }
    }

    pub(super) async fn rollback(self) -> Result<(), Error> {
        let Link { kind, patience } = self.0;
        match kind {
            Kind::Begun(transaction) => in_time(patience, transaction.rollback()).await,
            Kind::Pooled(_) | Kind::Owned(_) | Kind::Lent(_) => Ok(()),
        }
    }
}

impl Deref for Transaction {
    type Target = Link<'static>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

/// The failure of a server that does not answer.
fn silent(patience: Duration) -> Error {
    let why = format!("no answer from the server within {} s", patience.as_secs());
    Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, why))
}

/// Waits for an answer, but not for longer than `patience`.
pub(super) async fn in_time<T>(
    patience: Duration,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    timeout(patience, answer).await.unwrap_or_else(|_| Err(silent(patience)))
}

type Step = Result<Either<PgQueryResult, PgRow>, Error>;

/// Ends a stream with an error if the next row does not come in time.
fn each_in_time(patience: Duration, rows: BoxStream<'_, Step>) -> BoxStream<'_, Step> {
    stream::unfold(Some(rows), move |rows| async move {
        let mut rows = rows?;
        match timeout(patience, rows.next()).await {
            Ok(row) => row.map(|row| (row, Some(rows))),
            Err(_) => Some((Err(silent(patience)), None)),
        }
    })
    .boxed()
}

impl<'c> Executor<'c> for &'c mut Link<'_> {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Step>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let (connection, patience) = self.parts();
        each_in_time(patience, connection.fetch_many(query))
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let (connection, patience) = self.parts();
        Box::pin(in_time(patience, connection.fetch_optional(query)))
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'c: 'e,
    {
        let (connection, patience) = self.parts();
        Box::pin(in_time(patience, connection.prepare_with(sql, parameters)))
    }
}

/// Runs one statement on any connection of the pool.
impl<'c> Executor<'c> for &'c Connections {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Step>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        each_in_time(self.patience, (&self.pool).fetch_many(query))
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(in_time(self.patience, (&self.pool).fetch_optional(query)))
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'c: 'e,
    {
        Box::pin(in_time(self.patience, (&self.pool).prepare_with(sql, parameters)))
    }
}
