//! A SQLite file as one side of a copy.

use std::collections::BTreeMap;
use std::path::Path;

use async_trait::async_trait;
use claw_core::store::StoreError;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow, SqliteSynchronous};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Row as _, Sqlite, query, query_as,
    query_scalar,
};

use super::side::{Side, Source, Target};
use super::sql::{self, Words, quoted};
use super::tables::{Column, Derived, Kind, Part, Shape};
use super::value::{Row, Value};
use super::{COPY, put_there, refused, schema};
use crate::ledger::chain::ChainReport;
use crate::options::StoreOptions;
use crate::sqlite::error::{at, failed};
use crate::sqlite::{bring_up_to_date, connect, ledger, make_file};
use crate::{migrate, row};

const WORDS: Words = Words {
    read: |column| quoted(&column.name),
    order: |column| quoted(&column.name),
    // Unnumbered: a number is a name, and SQLite looks through all names for each value that is bound.
    write: |_, _| "?".to_owned(),
    values: "VALUES",
};

/// The page cache while a file is written, in KiB (negative by SQLite's convention), so that indexes are not
/// read again and again.
const CACHE: &str = "-65536";

/// The file.
pub(crate) struct SqliteSide {
    label: String,
    connection: SqliteConnection,
    /// A connection that notices other writers, and the version it saw before.
    watch: Option<(SqliteConnection, i64)>,
}

impl SqliteSide {
    /// Opens a file to read, as it stands now.
    pub(crate) async fn source(path: &Path) -> Result<Self, StoreError> {
        let side = async {
            let options = connect(&StoreOptions::default())
                .filename(path)
                .create_if_missing(false)
                .pragma("query_only", "ON");
            let mut watch = options.connect().await.map_err(failed(COPY))?;
            let seen = version(&mut watch).await?;
            let mut connection = options.connect().await.map_err(failed(COPY))?;
            // The transaction sees the file as it is when it first looks.
            connection.execute("BEGIN").await.map_err(failed(COPY))?;
            check_schema(&mut connection).await?;
            Ok(Self { label: label(path), connection, watch: Some((watch, seen)) })
        };
        side.await.map_err(|error| at(path, error))
    }

    /// Opens a file to write, making it if it is missing. Nobody else can open it meanwhile.
    pub(crate) async fn target(path: &Path) -> Result<Self, StoreError> {
        let options = StoreOptions::default();
        make_file(path, &options)?;
        let side = async {
            // Rows are durable when the copy is finished; a power cut before costs the last batches.
            let options = connect(&options)
                .filename(path)
                .foreign_keys(false)
                .synchronous(SqliteSynchronous::Normal)
                .pragma("cache_size", CACHE)
                .pragma("locking_mode", "EXCLUSIVE");
            let mut connection = options.connect().await.map_err(failed(COPY))?;
            bring_up_to_date(&mut connection).await?;
            Ok(Self { label: label(path), connection, watch: None })
        };
        side.await.map_err(|error| at(path, error))
    }

    #[cfg(test)]
    pub(crate) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }

    async fn shape(&mut self, name: String, without_rowid: bool) -> Result<Shape, StoreError> {
        type Info = (String, String, bool, i64, i64);
        let columns: Vec<Info> = query_as(
            "SELECT name, upper(type), \"notnull\", pk, hidden FROM pragma_table_xinfo(?1) ORDER BY cid",
        )
        .bind(&name)
        .fetch_all(&mut self.connection)
        .await
        .map_err(failed(COPY))?;
        let kept: Vec<&Info> = columns.iter().filter(|(.., hidden)| *hidden == 0).collect();
        let kind = |(column, declared, ..): &&Info| match kind(declared) {
            Some(kind) => Ok(Column { name: column.clone(), kind }),
            None => Err(refused(format!("`{column}` in `{name}` is of the unknown type `{declared}`"))),
        };
        let kinds = kept.iter().map(kind).collect::<Result<Vec<_>, _>>()?;

        let mut primary: Vec<_> = kept.iter().filter(|(_, _, _, place, _)| *place > 0).collect();
        primary.sort_by_key(|(_, _, _, place, _)| *place);
        let primary: Vec<String> = primary.iter().map(|(column, ..)| column.clone()).collect();
        let is_rowid = primary.len() == 1
            && !without_rowid
            && kept.iter().any(|(_, declared, _, place, _)| *place == 1 && declared == "INTEGER");
        let filled = |column: &String| kept.iter().any(|(name, _, filled, ..)| name == column && *filled);
        let mut keys = Vec::new();
        if is_rowid || (!primary.is_empty() && primary.iter().all(filled)) {
            keys.push(primary);
        }
        for unique in self.unique(&name).await? {
            if unique.iter().all(filled) && !keys.contains(&unique) {
                keys.push(unique);
            }
        }
        let references = query_scalar("SELECT DISTINCT \"table\" FROM pragma_foreign_key_list(?1)")
            .bind(&name)
            .fetch_all(&mut self.connection)
            .await
            .map_err(failed(COPY))?;
        Ok(Shape { name, columns: kinds, keys, references })
    }

    /// Returns the columns of each unique index that is neither partial nor over expressions.
    async fn unique(&mut self, table: &str) -> Result<Vec<Vec<String>>, StoreError> {
        let rows: Vec<(String, Option<String>)> = query_as(
            "SELECT list.name, info.name FROM pragma_index_list(?1) AS list, pragma_index_info(list.name) AS info
             WHERE list.\"unique\" AND NOT list.partial ORDER BY list.seq DESC, info.seqno",
        )
        .bind(table)
        .fetch_all(&mut self.connection)
        .await
        .map_err(failed(COPY))?;
        let mut keys: Vec<(String, Option<Vec<String>>)> = Vec::new();
        for (index, column) in rows {
            match keys.last_mut().filter(|(last, _)| *last == index) {
                Some((_, key)) => {
                    let more = |(mut key, column): (Vec<String>, String)| {
                        key.push(column);
                        key
                    };
                    *key = key.take().zip(column).map(more);
                }
                None => keys.push((index, column.map(|column| vec![column]))),
            }
        }
        Ok(keys.into_iter().filter_map(|(_, key)| key).collect())
    }

    async fn run(&mut self, statement: String) -> Result<(), StoreError> {
        self.connection.execute(AssertSqlSafe(statement)).await.map_err(failed(COPY)).map(drop)
    }
}

#[async_trait]
impl Side for SqliteSide {
    fn label(&self) -> &str {
        &self.label
    }

    async fn shapes(&mut self) -> Result<Vec<Shape>, StoreError> {
        // Tables that belong to a virtual one are its own affair; the virtual one is not.
        let tables: Vec<(String, bool)> = query_as(
            "SELECT name, wr FROM pragma_table_list
             WHERE schema = 'main' AND type IN ('table', 'virtual') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
             ORDER BY name",
        )
        .fetch_all(&mut self.connection)
        .await
        .map_err(failed(COPY))?;
        let virtuals: Vec<String> =
            query_scalar("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'virtual'")
                .fetch_all(&mut self.connection)
                .await
                .map_err(failed(COPY))?;
        let mut shapes = Vec::with_capacity(tables.len());
        for (name, without_rowid) in tables {
            shapes.push(if virtuals.contains(&name) || name == schema::TABLE {
                Shape { name, columns: Vec::new(), keys: Vec::new(), references: Vec::new() }
            } else {
                self.shape(name, without_rowid).await?
            });
        }
        Ok(shapes)
    }

    async fn count(&mut self, part: &Part) -> Result<(u64, String), StoreError> {
        let sql = format!("SELECT count(*) FROM {}", quoted(&part.name));
        let rows = query_scalar(AssertSqlSafe(sql)).fetch_one(&mut self.connection).await;
        Ok((row::count(rows.map_err(failed(COPY))?)?, String::new()))
    }

    fn rows<'a>(
        &'a mut self,
        part: &'a Part,
        after: Option<&'a [Value]>,
    ) -> BoxStream<'a, Result<Row, StoreError>> {
        let mut rows = query(AssertSqlSafe(sql::select(part, &WORDS, after.is_none())));
        for value in after.into_iter().flatten() {
            rows = bind(rows, value);
        }
        let row = move |row: Result<SqliteRow, _>| read(&row.map_err(failed(COPY))?, &part.columns);
        Box::pin(rows.fetch(&mut self.connection).map(row))
    }

    async fn chains(&mut self) -> Result<Vec<ChainReport>, StoreError> {
        ledger::verify_all(&mut self.connection).await
    }
}

#[async_trait]
impl Source for SqliteSide {
    async fn has_moved(&mut self, _parts: &[&Part]) -> Result<bool, StoreError> {
        self.connection.execute("COMMIT").await.map_err(failed(COPY))?;
        match &mut self.watch {
            Some((watch, seen)) => Ok(version(watch).await? != *seen),
            None => Ok(false),
        }
    }
}

#[async_trait]
impl Target for SqliteSide {
    async fn progress(&mut self) -> Result<BTreeMap<String, String>, StoreError> {
        let parts: Vec<(String, String)> = query_as("SELECT part, state FROM copy_progress")
            .fetch_all(&mut self.connection)
            .await
            .map_err(failed(COPY))?;
        Ok(parts.into_iter().collect())
    }

    async fn held(&mut self, part: &Part) -> Result<u64, StoreError> {
        let (table, rows) = (quoted(&part.name), put_there(&part.name));
        let sql = AssertSqlSafe(format!("SELECT count(*) FROM {table} WHERE {rows}"));
        row::count(query_scalar(sql).fetch_one(&mut self.connection).await.map_err(failed(COPY))?)
    }

    async fn start(&mut self, tables: &[&str], state: &str) -> Result<(), StoreError> {
        let mut transaction = self.connection.begin_with("BEGIN IMMEDIATE").await.map_err(failed(COPY))?;
        for table in tables.iter().chain(&["copy_progress"]) {
            let sql = format!("DELETE FROM {}", quoted(table));
            transaction.execute(AssertSqlSafe(sql)).await.map_err(failed(COPY))?;
        }
        keep(&mut transaction, "", state).await?;
        transaction.commit().await.map_err(failed(COPY))
    }

    async fn write(&mut self, part: &Part, rows: &[Row], state: &str) -> Result<(), StoreError> {
        let mut transaction = self.connection.begin_with("BEGIN IMMEDIATE").await.map_err(failed(COPY))?;
        if !rows.is_empty() {
            let mut insert = query(AssertSqlSafe(sql::insert(part, &WORDS, rows.len())));
            for value in rows.iter().flatten() {
                insert = bind(insert, value);
            }
            insert.execute(&mut *transaction).await.map_err(failed(COPY))?;
        }
        keep(&mut transaction, &part.name, state).await?;
        transaction.commit().await.map_err(failed(COPY))
    }

    async fn fill(&mut self, derived: &Derived) -> Result<(), StoreError> {
        self.run(format!("DELETE FROM {}", quoted(derived.name))).await?;
        match derived.sqlite {
            Some(sql) => self.connection.execute(sql).await.map_err(failed(COPY)).map(drop),
            None => Ok(()),
        }
    }

    async fn settle(&mut self, _parts: &[&Part]) -> Result<(), StoreError> {
        let broken: Vec<String> = query_scalar("SELECT DISTINCT \"table\" FROM pragma_foreign_key_check")
            .fetch_all(&mut self.connection)
            .await
            .map_err(failed(COPY))?;
        match broken.first() {
            None => Ok(()),
            Some(table) => Err(refused(format!("rows of `{table}` refer to rows that are not there"))),
        }
    }

    async fn finish(&mut self) -> Result<(), StoreError> {
        // This sync is for everything before it as well.
        self.run("PRAGMA synchronous = FULL".to_owned()).await?;
        self.run("DELETE FROM copy_progress".to_owned()).await
    }

    fn loses_nul(&self) -> bool {
        false
    }

    async fn close(self: Box<Self>) -> Result<(), StoreError> {
        self.connection.close().await.map_err(failed(COPY))
    }
}

/// Returns the name of a file in messages.
pub(crate) fn label(path: &Path) -> String {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    format!("sqlite:{}", path.display())
}

/// Checks that the file holds a finished store of exactly our schema.
async fn check_schema(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    schema::check(&applied(connection).await?, &migrate::sqlite())?;
    check_finished(connection).await
}

/// Returns the migrations applied to a file; empty if it is not a store.
pub(crate) async fn applied(connection: &mut SqliteConnection) -> Result<Vec<(i64, Vec<u8>)>, StoreError> {
    if !has_table(connection, schema::TABLE).await? {
        return Ok(Vec::new());
    }
    query_as(schema::APPLIED).fetch_all(connection).await.map_err(failed(COPY))
}

/// Refuses a file into which a copy is unfinished.
pub(crate) async fn check_finished(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    if !has_table(connection, super::PROGRESS).await? {
        return Ok(());
    }
    let unfinished = query_scalar(super::UNFINISHED).fetch_optional(connection).await;
    super::refuse_unfinished(unfinished.map_err(failed(COPY))?)
}

async fn has_table(connection: &mut SqliteConnection, name: &str) -> Result<bool, StoreError> {
    query_scalar("SELECT count(*) > 0 FROM sqlite_master WHERE type = 'table' AND name = ?1")
        .bind(name)
        .fetch_one(connection)
        .await
        .map_err(failed(COPY))
}

async fn version(connection: &mut SqliteConnection) -> Result<i64, StoreError> {
    query_scalar("PRAGMA data_version").fetch_one(connection).await.map_err(failed(COPY))
}

async fn keep(connection: &mut SqliteConnection, part: &str, state: &str) -> Result<(), StoreError> {
    query(
        "INSERT INTO copy_progress (part, state) VALUES (?1, ?2)
           ON CONFLICT (part) DO UPDATE SET state = excluded.state",
    )
    .bind(part)
    .bind(state)
    .execute(connection)
    .await
    .map_err(failed(COPY))
    .map(drop)
}

fn kind(declared: &str) -> Option<Kind> {
    match declared {
        "INTEGER" | "INT" => Some(Kind::Integer),
        "REAL" => Some(Kind::Real),
        "TEXT" => Some(Kind::Text),
        "BLOB" => Some(Kind::Blob),
        _ => None,
    }
}

fn read(row: &SqliteRow, columns: &[Column]) -> Result<Row, StoreError> {
    let value = |(at, column): (usize, &Column)| {
        let value = match column.kind {
            Kind::Integer | Kind::Boolean => row.try_get::<Option<i64>, _>(at)?.map(Value::Integer),
            Kind::Real => row.try_get::<Option<f64>, _>(at)?.map(Value::Real),
            Kind::Text | Kind::Json => row.try_get::<Option<String>, _>(at)?.map(Value::Text),
            Kind::Blob | Kind::Uuid => row.try_get::<Option<Vec<u8>>, _>(at)?.map(Value::Bytes),
        };
        Ok(value.unwrap_or(Value::Null))
    };
    columns.iter().enumerate().map(value).collect::<Result<_, sqlx::Error>>().map_err(failed(COPY))
}

fn bind<'q>(query: Query<'q, Sqlite, SqliteArguments>, value: &Value) -> Query<'q, Sqlite, SqliteArguments> {
    match value {
        Value::Null => query.bind(None::<i64>),
        Value::Integer(number) => query.bind(*number),
        Value::Real(number) => query.bind(*number),
        Value::Text(text) => query.bind(text.clone()),
        Value::Bytes(bytes) => query.bind(bytes.clone()),
    }
}
