//! A PostgreSQL database as one side of a copy.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use claw_core::store::StoreError;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Executor as _, Postgres, Row as _, SqlSafeStr, query, query_as, query_scalar};
use uuid::Uuid;

use super::side::{Side, Source, Target};
use super::sql::{self, Words, quoted};
use super::tables::{Column, Derived, Kind, Part, Shape};
use super::value::{Row, Value};
use super::{COPY, put_there, refused, schema};
use crate::ledger::chain::ChainReport;
use crate::postgres::connections::Link;
use crate::postgres::failure::failed;
use crate::postgres::{self, ledger};
use crate::{migrate, row};

const WORDS: Words = Words {
    read: |column| match column.kind {
        Kind::Json => format!("{}::text", quoted(&column.name)),
        Kind::Integer => format!("{}::int8", quoted(&column.name)),
        Kind::Real => format!("{}::float8", quoted(&column.name)),
        _ => quoted(&column.name),
    },
    // By bytes, as SQLite orders, whatever language the database was made for.
    order: |column| match column.kind {
        Kind::Text => format!("{} COLLATE \"C\"", quoted(&column.name)),
        _ => quoted(&column.name),
    },
    write: |number, column| match column.kind {
        Kind::Json => format!("${number}::json"),
        _ => format!("${number}"),
    },
    values: "OVERRIDING SYSTEM VALUE VALUES",
};

/// The settings of a connection that copies: no timeouts, and more memory for sorting.
const SETTINGS: [(&str, &str); 3] =
    [("statement_timeout", "0"), ("idle_in_transaction_session_timeout", "0"), ("work_mem", "65536")];
/// The writer's lock: one copy at a time into a database. A server may take a moment to notice that a client
/// is gone.
const LOCK: [&str; 4] = [
    "BEGIN",
    "SET LOCAL lock_timeout = '5s'",
    "SELECT pg_advisory_lock(hashtext('clawsmith copy'), 0)",
    "COMMIT",
];
/// An error ends the copy, and with its connection the transaction.
const BEGIN: &str = "BEGIN";
const COMMIT: &str = "COMMIT";
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const TABLES: &str = "SELECT relname::text FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') ORDER BY relname";

/// The database.
pub(crate) struct PostgresSide {
    label: String,
    link: Link<'static>,
    /// The row counts at the moment that is read, by table.
    counted: BTreeMap<String, (u64, String)>,
}

impl PostgresSide {
    /// Opens a database to read, as it stands now. Each wait for its answer is bounded by `patience`.
    pub(crate) async fn source(url: &str, patience: Duration) -> Result<Self, StoreError> {
        let mut side = Self::connect(url, patience).await?;
        side.execute(SNAPSHOT).await?;
        side.check_schema().await?;
        Ok(side)
    }

    /// Opens a database to write, and migrates its schema. Nobody else copies to it meanwhile.
    pub(crate) async fn target(url: &str, patience: Duration) -> Result<Self, StoreError> {
        let mut side = Self::connect(url, patience).await?;
        for statement in LOCK {
            side.link.execute(statement).await.map_err(|error| match is_locked(&error) {
                true => refused("another copy into this database is running; wait for it".to_owned()),
                false => failed(COPY)(error),
            })?;
        }
        postgres::bring_up_to_date(&mut side.link).await?;
        Ok(side)
    }

    async fn connect(url: &str, patience: Duration) -> Result<Self, StoreError> {
        let options = postgres::read(url)?;
        let label = label(&options);
        let link = postgres::open(&options.options(SETTINGS), patience).await?;
        Ok(Self { label, link, counted: BTreeMap::new() })
    }

    async fn execute(&mut self, sql: impl SqlSafeStr + Send) -> Result<(), StoreError> {
        self.link.execute(sql.into_sql_str()).await.map_err(failed(COPY)).map(drop)
    }

    /// Checks that the database holds a finished store of exactly our schema.
    async fn check_schema(&mut self) -> Result<(), StoreError> {
        let known: Option<String> = query_scalar("SELECT to_regclass($1)::text")
            .bind(schema::TABLE)
            .fetch_one(&mut self.link)
            .await
            .map_err(failed(COPY))?;
        let applied = match known {
            None => Vec::new(),
            Some(_) => query_as(schema::APPLIED).fetch_all(&mut self.link).await.map_err(failed(COPY))?,
        };
        schema::check(&applied, &migrate::postgres())?;
        let unfinished = query_scalar(super::UNFINISHED).fetch_optional(&mut self.link).await;
        super::refuse_unfinished(unfinished.map_err(failed(COPY))?)
    }

    async fn shape(&mut self, name: String) -> Result<Shape, StoreError> {
        let columns: Vec<(String, String, bool)> = query_as(
            "SELECT attname::text, typname::text, attgenerated <> ''
             FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
             WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        )
        .bind(quoted(&name))
        .fetch_all(&mut self.link)
        .await
        .map_err(failed(COPY))?;
        let computed = |kind: &str, generated: bool| generated || kind == "tsvector" || kind == "vector";
        let kept = columns.iter().filter(|(_, kind, generated)| !computed(kind, *generated));
        let kind = |(column, declared, _): &(String, String, bool)| match kind(declared) {
            Some(kind) => Ok(Column { name: column.clone(), kind }),
            None => Err(refused(format!("`{column}` in `{name}` is of the unknown type `{declared}`"))),
        };
        let kinds = kept.map(kind).collect::<Result<Vec<_>, _>>()?;
        let keys: Vec<(Vec<String>,)> = query_as(
            "SELECT array_agg(attname::text ORDER BY place)
             FROM pg_index, unnest(indkey::int2[]) WITH ORDINALITY AS part (number, place)
             JOIN pg_attribute ON attrelid = $1::regclass AND attnum = number
             WHERE indrelid = $1::regclass AND indisunique AND indpred IS NULL AND indexprs IS NULL
                 AND place <= indnkeyatts
             GROUP BY indexrelid, indisprimary HAVING bool_and(attnotnull)
             ORDER BY indisprimary DESC, indexrelid",
        )
        .bind(quoted(&name))
        .fetch_all(&mut self.link)
        .await
        .map_err(failed(COPY))?;
        let references = query_scalar(
            "SELECT DISTINCT relname::text FROM pg_constraint JOIN pg_class ON pg_class.oid = confrelid
             WHERE conrelid = $1::regclass AND contype = 'f'",
        )
        .bind(quoted(&name))
        .fetch_all(&mut self.link)
        .await
        .map_err(failed(COPY))?;
        Ok(Shape { name, columns: kinds, keys: keys.into_iter().map(|(key,)| key).collect(), references })
    }

    /// Returns the row count, and a number that changes with every row added, changed or removed: each
    /// version of a row carries the number of its transaction.
    async fn stamp(&mut self, part: &Part) -> Result<(u64, String), StoreError> {
        let sql =
            format!("SELECT count(*), coalesce(sum(xmin::text::int8), 0)::text FROM {}", quoted(&part.name));
        let counted = query_as(AssertSqlSafe(sql)).fetch_one(&mut self.link).await;
        let (rows, stamp): (i64, String) = counted.map_err(failed(COPY))?;
        Ok((row::count(rows)?, stamp))
    }
}

#[async_trait]
impl Side for PostgresSide {
    fn label(&self) -> &str {
        &self.label
    }

    async fn shapes(&mut self) -> Result<Vec<Shape>, StoreError> {
        let tables: Vec<String> =
            query_scalar(TABLES).fetch_all(&mut self.link).await.map_err(failed(COPY))?;
        let mut shapes = Vec::with_capacity(tables.len());
        for name in tables {
            shapes.push(if name == schema::TABLE {
                Shape { name, columns: Vec::new(), keys: Vec::new(), references: Vec::new() }
            } else {
                self.shape(name).await?
            });
        }
        Ok(shapes)
    }

    async fn count(&mut self, part: &Part) -> Result<(u64, String), StoreError> {
        let counted = self.stamp(part).await?;
        self.counted.insert(part.name.clone(), counted.clone());
        Ok(counted)
    }

    fn rows<'a>(
        &'a mut self,
        part: &'a Part,
        after: Option<&'a [Value]>,
    ) -> BoxStream<'a, Result<Row, StoreError>> {
        let mut rows = query(AssertSqlSafe(sql::select(part, &WORDS, after.is_none())));
        for (value, at) in after.into_iter().flatten().zip(&part.key) {
            let Some(column) = part.columns.get(*at) else { continue };
            rows = bind(rows, column.kind, value);
        }
        let row = move |row: Result<PgRow, _>| read(&row.map_err(failed(COPY))?, &part.columns);
        Box::pin(rows.fetch(&mut self.link).map(row))
    }

    async fn chains(&mut self) -> Result<Vec<ChainReport>, StoreError> {
        ledger::verify_all(&mut self.link).await
    }
}

#[async_trait]
impl Source for PostgresSide {
    async fn has_moved(&mut self, parts: &[&Part]) -> Result<bool, StoreError> {
        self.execute(COMMIT).await?;
        self.execute(SNAPSHOT).await?;
        for part in parts {
            let now = self.stamp(part).await?;
            if self.counted.get(&part.name).is_some_and(|then| *then != now) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[async_trait]
impl Target for PostgresSide {
    async fn progress(&mut self) -> Result<BTreeMap<String, String>, StoreError> {
        let parts: Vec<(String, String)> = query_as("SELECT part, state FROM copy_progress")
            .fetch_all(&mut self.link)
            .await
            .map_err(failed(COPY))?;
        Ok(parts.into_iter().collect())
    }

    async fn held(&mut self, part: &Part) -> Result<u64, StoreError> {
        let (table, rows) = (quoted(&part.name), put_there(&part.name));
        let sql = AssertSqlSafe(format!("SELECT count(*) FROM {table} WHERE {rows}"));
        row::count(query_scalar(sql).fetch_one(&mut self.link).await.map_err(failed(COPY))?)
    }

    async fn start(&mut self, tables: &[&str], state: &str) -> Result<(), StoreError> {
        let tables: Vec<String> = tables.iter().chain(&["copy_progress"]).map(|name| quoted(name)).collect();
        self.execute(BEGIN).await?;
        let empty = format!("TRUNCATE {} RESTART IDENTITY", tables.join(", "));
        self.execute(AssertSqlSafe(empty)).await?;
        keep(&mut self.link, "", state).await?;
        self.execute(COMMIT).await
    }

    async fn write(&mut self, part: &Part, rows: &[Row], state: &str) -> Result<(), StoreError> {
        self.execute(BEGIN).await?;
        if !rows.is_empty() {
            let mut insert = query(AssertSqlSafe(sql::insert(part, &WORDS, rows.len())));
            for (value, column) in rows.iter().flat_map(|row| row.iter().zip(&part.columns)) {
                insert = bind(insert, column.kind, value);
            }
            insert.execute(&mut self.link).await.map_err(failed(COPY))?;
        }
        keep(&mut self.link, &part.name, state).await?;
        self.execute(COMMIT).await
    }

    async fn fill(&mut self, derived: &Derived) -> Result<(), StoreError> {
        self.execute(BEGIN).await?;
        let empty = format!("TRUNCATE {}", quoted(derived.name));
        self.execute(AssertSqlSafe(empty)).await?;
        if let Some(sql) = derived.postgres {
            self.execute(sql).await?;
        }
        self.execute(COMMIT).await
    }

    async fn settle(&mut self, parts: &[&Part]) -> Result<(), StoreError> {
        for part in parts {
            let table = quoted(&part.name);
            for column in part.columns.iter().filter(|column| column.kind == Kind::Integer) {
                // A column that gives no numbers has no sequence; then nothing is set.
                let advance = format!(
                    "SELECT setval(pg_get_serial_sequence($1, $2), max({})) FROM {table}
                     WHERE pg_get_serial_sequence($1, $2) IS NOT NULL HAVING max({}) IS NOT NULL",
                    quoted(&column.name),
                    quoted(&column.name),
                );
                let advanced = query(AssertSqlSafe(advance)).bind(&table).bind(&column.name);
                advanced.execute(&mut self.link).await.map_err(failed(COPY))?;
            }
            // The planner has never seen these rows.
            let analyse = AssertSqlSafe(format!("ANALYZE {table}"));
            self.execute(analyse).await?;
        }
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), StoreError> {
        self.execute("DELETE FROM copy_progress").await
    }

    fn loses_nul(&self) -> bool {
        true
    }

    async fn close(self: Box<Self>) -> Result<(), StoreError> {
        self.link.close().await.map_err(failed(COPY))
    }
}

/// Returns whether the error is a lock that somebody else kept beyond the timeout.
fn is_locked(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "55P03")
}

/// Returns the name of a database in messages: its location, without user and password.
pub(crate) fn label(options: &PgConnectOptions) -> String {
    let host = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => options.get_host().to_owned(),
    };
    format!("postgres://{host}:{}/{}", options.get_port(), options.get_database().unwrap_or_default())
}

async fn keep(link: &mut Link<'_>, part: &str, state: &str) -> Result<(), StoreError> {
    query(
        "INSERT INTO copy_progress (part, state) VALUES ($1, $2)
         ON CONFLICT (part) DO UPDATE SET state = excluded.state",
    )
    .bind(part)
    .bind(state)
    .execute(link)
    .await
    .map_err(failed(COPY))
    .map(drop)
}

fn kind(declared: &str) -> Option<Kind> {
    match declared {
        "int2" | "int4" | "int8" => Some(Kind::Integer),
        "bool" => Some(Kind::Boolean),
        "float4" | "float8" => Some(Kind::Real),
        "text" | "varchar" => Some(Kind::Text),
        // Not `jsonb`, which does not keep the text that it was given.
        "json" => Some(Kind::Json),
        "bytea" => Some(Kind::Blob),
        "uuid" => Some(Kind::Uuid),
        _ => None,
    }
}

fn read(row: &PgRow, columns: &[Column]) -> Result<Row, StoreError> {
    let value = |(at, column): (usize, &Column)| {
        let bytes = |id: Uuid| Value::Bytes(id.as_bytes().to_vec());
        let value = match column.kind {
            Kind::Integer => row.try_get::<Option<i64>, _>(at)?.map(Value::Integer),
            Kind::Boolean => row.try_get::<Option<bool>, _>(at)?.map(|truth| Value::Integer(truth.into())),
            Kind::Real => row.try_get::<Option<f64>, _>(at)?.map(Value::Real),
            Kind::Text | Kind::Json => row.try_get::<Option<String>, _>(at)?.map(Value::Text),
            Kind::Blob => row.try_get::<Option<Vec<u8>>, _>(at)?.map(Value::Bytes),
            Kind::Uuid => row.try_get::<Option<Uuid>, _>(at)?.map(bytes),
        };
        Ok(value.unwrap_or(Value::Null))
    };
    columns.iter().enumerate().map(value).collect::<Result<_, sqlx::Error>>().map_err(failed(COPY))
}

/// Binds a value as the column's type. A value that does not fit is bound as it is: the server refuses it.
fn bind<'q>(
    query: Query<'q, Postgres, PgArguments>,
    kind: Kind,
    value: &Value,
) -> Query<'q, Postgres, PgArguments> {
    match (kind, value) {
        (Kind::Integer, Value::Null) => query.bind(None::<i64>),
        (Kind::Boolean, Value::Null) => query.bind(None::<bool>),
        (Kind::Real, Value::Null) => query.bind(None::<f64>),
        (Kind::Text | Kind::Json, Value::Null) => query.bind(None::<String>),
        (Kind::Blob, Value::Null) => query.bind(None::<Vec<u8>>),
        (Kind::Uuid, Value::Null) => query.bind(None::<Uuid>),
        (Kind::Boolean, Value::Integer(number @ (0 | 1))) => query.bind(*number == 1),
        (_, Value::Integer(number)) => query.bind(*number),
        (_, Value::Real(number)) => query.bind(*number),
        (_, Value::Text(text)) => query.bind(text.clone()),
        (Kind::Uuid, Value::Bytes(bytes)) => match Uuid::from_slice(bytes) {
            Ok(id) => query.bind(id),
            Err(_) => query.bind(bytes.clone()),
        },
        (_, Value::Bytes(bytes)) => query.bind(bytes.clone()),
    }
}

#[cfg(test)]
mod tests;
