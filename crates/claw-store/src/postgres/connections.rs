//! Connections to the server, with a bound on each wait for its answer.
//!
//! A server that is frozen, or behind a network that drops packets, keeps its connections open and answers nothing:
//! the driver would wait for ever. Here each answer must come in time, row by row. A connection that got none is
//! closed, so that the pool makes another one in its place.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{
    PgConnection, PgPool, PgQueryResult, PgRow, PgStatement, PgTransactionManager, PgTypeInfo, Postgres,
};
use sqlx::{Connection as _, Either, Error, Execute, Executor, SqlSafeStr as _, SqlStr};
use sqlx_core::transaction::TransactionManager as _;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::options::StoreOptions;

/// The extra time for an answer beyond the server's own statement timeout.
const GRACE: Duration = Duration::from_secs(2);
/// The longest that closing waits for connections whose callers gave up.
const CLOSING: Duration = Duration::from_secs(2);
/// The longest that a pool waits for a connection that owes an answer.
const RETURNING: Duration = Duration::from_secs(2);

/// A pool of connections. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    pool: PgPool,
    patience: Duration,
    /// The runtime on which the store was opened.
    home: Handle,
}

impl Connections {
    /// Bounds each wait on connections of this pool by `patience`. Panics outside of a runtime.
    pub(super) fn new(pool: PgPool, patience: Duration) -> Self {
        Self { pool, patience, home: Handle::current() }
    }

    /// Lends a connection. The pool bounds the wait for it.
    pub(super) async fn acquire(&self) -> Result<Link<'static>, Error> {
        let mut acquiring = std::pin::pin!(self.pool.acquire());
        // A connection belongs to the runtime on which it is made. Others end earlier than the pool.
        let acquired = std::future::poll_fn(|context| {
            let _home = self.home.enter();
            acquiring.as_mut().poll(context)
        });
        let (connection, home) = (acquired.await?, self.home.clone());
        let pooled =
            Pooled { connection, patience: self.patience, home, is_unanswered: false, is_beginning: false };
        Ok(Link { kind: Kind::Pooled(pooled), patience: self.patience })
    }

    /// Begins a transaction.
    pub(super) async fn begin(&self) -> Result<Transaction, Error> {
        Transaction::begin(self.acquire().await?, None).await
    }

    /// Begins a transaction with a statement of its own.
    pub(super) async fn begin_with(&self, statement: &'static str) -> Result<Transaction, Error> {
        Transaction::begin(self.acquire().await?, Some(statement.into_sql_str())).await
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
    Pooled(Pooled),
    Owned(PgConnection, bool),
    Lent(&'a mut PgConnection, &'a mut bool),
}

/// A connection of a pool, which has it back once this is dropped.
///
/// The pool tests a connection that comes back, and waits for the answer for ever; until then it counts as one of the
/// pool's. A network that forgot a few connections would leave the pool none.
#[derive(Debug)]
struct Pooled {
    connection: PoolConnection<Postgres>,
    /// The longest that the test may take.
    patience: Duration,
    /// The runtime of the pool.
    home: Handle,
    /// True if the server owes an answer: none came in time, or the caller gave up.
    is_unanswered: bool,
    /// True if a transaction may have begun of which the driver does not know: it would not be rolled back.
    is_beginning: bool,
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let patience = if self.is_unanswered { RETURNING } else { self.patience };
        let returned = self.connection.return_to_pool();
        if self.is_beginning {
            // Unused, it closes the connection.
            drop(returned);
            return;
        }
        self.home.spawn(async move {
            if timeout(patience, returned).await.is_err() {
                tracing::warn!("a connection to the store is closed: the server does not answer on it");
            }
        });
    }
}

/// The parts of a [`Link`] that a wait for an answer needs.
struct Parts<'a> {
    connection: &'a mut PgConnection,
    wait: Wait<'a>,
}

/// A wait for an answer.
struct Wait<'a> {
    patience: Duration,
    is_unanswered: &'a mut bool,
}

impl Link<'static> {
    /// Bounds the waits on a connection that is no pool's.
    pub(crate) const fn new(connection: PgConnection, patience: Duration) -> Self {
        Self { kind: Kind::Owned(connection, false), patience }
    }

    /// Closes a connection that is no pool's; a pool has its own back.
    pub(crate) async fn close(self) -> Result<(), Error> {
        match self.kind {
            Kind::Owned(connection, _) => in_time(self.patience, connection.close()).await,
            Kind::Pooled(_) | Kind::Lent(..) => Ok(()),
        }
    }
}

impl Link<'_> {
    /// Lends the connection with other patience.
    pub(super) fn with_patience(&mut self, patience: Duration) -> Link<'_> {
        let Parts { connection, wait } = self.parts();
        Link { kind: Kind::Lent(connection, wait.is_unanswered), patience }
    }

    /// The connection itself, for a wait that its caller bounds.
    pub(super) fn connection(&mut self) -> &mut PgConnection {
        self.parts().connection
    }

    fn parts(&mut self) -> Parts<'_> {
        let (connection, is_unanswered) = match &mut self.kind {
            Kind::Pooled(Pooled { connection, is_unanswered, .. }) => (&mut **connection, is_unanswered),
            Kind::Owned(connection, is_unanswered) => (connection, is_unanswered),
            Kind::Lent(connection, is_unanswered) => (&mut **connection, &mut **is_unanswered),
        };
        Parts { connection, wait: Wait { patience: self.patience, is_unanswered } }
    }
}

/// A transaction; without [`commit`](Self::commit) it is rolled back.
#[derive(Debug)]
pub(super) struct Transaction {
    link: Link<'static>,
    is_open: bool,
}

impl Transaction {
    async fn begin(link: Link<'static>, statement: Option<SqlStr>) -> Result<Self, Error> {
        let mut transaction = Self { link, is_open: true };
        transaction.set_beginning(true);
        let Parts { connection, wait } = transaction.link.parts();
        wait.hear(PgTransactionManager::begin(connection, statement)).await?;
        transaction.set_beginning(false);
        Ok(transaction)
    }

    fn set_beginning(&mut self, is_beginning: bool) {
        if let Kind::Pooled(pooled) = &mut self.link.kind {
            pooled.is_beginning = is_beginning;
        }
    }

    pub(super) async fn commit(mut self) -> Result<(), Error> {
        let Parts { connection, wait } = self.link.parts();
        wait.hear(PgTransactionManager::commit(connection)).await?;
        self.is_open = false;
        Ok(())
    }

    pub(super) async fn rollback(mut self) -> Result<(), Error> {
        let Parts { connection, wait } = self.link.parts();
        wait.hear(PgTransactionManager::rollback(connection)).await?;
        self.is_open = false;
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.is_open {
            // Sent once the connection is given back.
            PgTransactionManager::start_rollback(self.link.connection());
        }
    }
}

impl Deref for Transaction {
    type Target = Link<'static>;

    fn deref(&self) -> &Self::Target {
        &self.link
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.link
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

impl<'a> Wait<'a> {
    /// Waits for an answer. If it does not come in time, or this future is dropped, the server still owes it.
    async fn hear<T>(self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        *self.is_unanswered = true;
        let heard = timeout(self.patience, answer).await.map_err(|_| silent(self.patience))?;
        *self.is_unanswered = false;
        heard
    }

    /// Ends a stream with an error if the next row does not come in time.
    fn hear_each(self, rows: BoxStream<'a, Step>) -> BoxStream<'a, Step> {
        *self.is_unanswered = true;
        stream::unfold(Some((self, rows)), |state| async move {
            let (wait, mut rows) = state?;
            match timeout(wait.patience, rows.next()).await {
                Ok(Some(row)) => Some((row, Some((wait, rows)))),
                Ok(None) => {
                    *wait.is_unanswered = false;
                    None
                }
                Err(_) => Some((Err(silent(wait.patience)), None)),
            }
        })
        .boxed()
    }
}

impl<'c> Executor<'c> for &'c mut Link<'_> {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Step>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let Parts { connection, wait } = self.parts();
        wait.hear_each(connection.fetch_many(query))
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let Parts { connection, wait } = self.parts();
        Box::pin(wait.hear(connection.fetch_optional(query)))
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'c: 'e,
    {
        let Parts { connection, wait } = self.parts();
        Box::pin(wait.hear(connection.prepare_with(sql, parameters)))
    }
}

/// Runs one statement on any connection of the pool.
impl<'c> Executor<'c> for &'c Connections {
    type Database = Postgres;

    /// Gathers the rows, so that the connection is given back before the first is handled.
    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Step>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let rows = async move {
            let mut link = self.acquire().await?;
            link.fetch_many(query).try_collect::<Vec<_>>().await
        };
        stream::once(rows).map_ok(|rows| stream::iter(rows).map(Ok)).try_flatten().boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(async move { self.acquire().await?.fetch_optional(query).await })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'c: 'e,
    {
        Box::pin(async move { self.acquire().await?.prepare_with(sql, parameters).await })
    }
}
