//! Copies a whole installation from one database to another.
//!
//! The source is read as it stood at one moment. The target stores the progress together with the rows, so an
//! interrupted copy resumes after its last row; until it is finished, the target cannot be opened as a store.
//! At the end every row is compared with the source, and the ledger's chains are verified. Data outside the
//! database (artifacts, undo blobs, the key of secrets) is not copied.

mod postgres;
pub(crate) mod schema;
mod side;
mod sql;
pub(crate) mod sqlite;
mod state;
mod tables;
mod value;
mod verify;

use std::time::Duration;

use claw_core::store::StoreError;
use claw_core::tool::Digest;
use futures_util::TryStreamExt as _;
use serde::Serialize;

use self::postgres::PostgresSide;
use self::side::{Source, Target};
use self::sqlite::SqliteSide;
use self::state::{Header, Mark, Reached};
pub(crate) use self::state::{PROGRESS, UNFINISHED, refuse_unfinished, source};
pub(crate) use self::tables::put_there;
use self::tables::{CountedTable, Kind, Part, Plan, Table, plan};
use self::value::{Row, Value};
use crate::ledger::chain::ChainReport;
use crate::location::StoreLocation;
use crate::progress::{Progress, Tell};
use crate::row;

const COPY: &str = "could not copy";
/// The longest wait for an answer of a PostgreSQL: some statements read a whole table before they answer.
const PATIENCE: Duration = Duration::from_secs(600);
/// The most rows held and written at a time.
const BATCH_ROWS: usize = 2_000;
const BATCH_BYTES: usize = 1 << 20;
/// The most placeholders of a statement that both databases support, about.
const BATCH_VALUES: usize = 30_000;

/// The options of a copy.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Restart an unfinished copy instead of resuming it.
    pub restart: bool,
    /// The source may be written to meanwhile: the copy is of the moment when it began. For a backup; a move
    /// would lose later writes, so without this they are an error.
    pub online: bool,
}

/// The result of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CopyReport {
    /// The source, without a password.
    pub from: String,
    /// The target, without a password.
    pub to: String,
    /// The tables.
    pub tables: Vec<TableReport>,
    /// Rows in all of them.
    pub rows: u64,
    /// Rows that were compared, each equal.
    pub verified: u64,
    /// Texts in which PostgreSQL stores U+FFFD for a NUL.
    pub replaced: u64,
    /// True if it resumed an interrupted copy.
    pub resumed: bool,
    /// The ledger's chains, the same on both sides.
    pub chains: Vec<ChainReport>,
}

/// The result of copying one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableReport {
    /// The table's name.
    pub table: String,
    /// The number of rows.
    pub rows: u64,
}

/// Copies everything from one store to another, which must be empty or hold an unfinished copy of the same
/// source.
pub async fn copy(
    from: &StoreLocation,
    to: &StoreLocation,
    options: Options,
    tell: Tell<'_>,
) -> Result<CopyReport, StoreError> {
    copy_with(from, to, options, PATIENCE, tell).await
}

/// Copies the same way, and waits for each answer of a PostgreSQL at most for `patience`.
pub async fn copy_with(
    from: &StoreLocation,
    to: &StoreLocation,
    options: Options,
    patience: Duration,
    tell: Tell<'_>,
) -> Result<CopyReport, StoreError> {
    let (source, target) = (label(from)?, label(to)?);
    if source == target {
        return Err(refused(format!(
            "source and target are the same store, `{target}`; name another target"
        )));
    }
    let mut source: Box<dyn Source> = match from {
        StoreLocation::Memory => return Err(in_memory()),
        StoreLocation::File(path) if !path.exists() => {
            return Err(refused(format!("there is no store at `{}`", path.display())));
        }
        StoreLocation::File(path) => Box::new(SqliteSide::source(path).await?),
        StoreLocation::Postgres(url) => Box::new(PostgresSide::source(url.expose(), patience).await?),
    };
    let mut target: Box<dyn Target> = match to {
        StoreLocation::Memory => return Err(in_memory()),
        StoreLocation::File(path) => Box::new(SqliteSide::target(path).await?),
        StoreLocation::Postgres(url) => Box::new(PostgresSide::target(url.expose(), patience).await?),
    };
    let report = run(&mut *source, &mut *target, options, tell).await;
    // Whether it went well or not: whoever comes next finds nobody there.
    let closed = target.close().await;
    let report = report?;
    closed?;
    Ok(report)
}

async fn run(
    source: &mut dyn Source,
    target: &mut dyn Target,
    options: Options,
    tell: Tell<'_>,
) -> Result<CopyReport, StoreError> {
    let plan = plan(source.shapes().await?, target.shapes().await?)?;
    let header = Header { from: source.label().to_owned(), mark: mark(source, &plan).await? };
    let resumed = begin(target, &plan, &header, options).await?;
    let reached = target.progress().await?;
    let (mut tables, mut replaced) = (Vec::new(), 0);
    for table in &plan.tables {
        let name = table.source.name.as_str();
        let start = match reached.get(name) {
            None => Reached::default(),
            Some(state) => row::json("the state of a copy", state)?,
        };
        let of = header.mark.tables.get(name).map_or(0, |(rows, _)| *rows);
        let counted = CountedTable { table, of };
        let end = if start.done { start } else { transfer(source, target, counted, start, tell).await? };
        replaced += end.replaced;
        tables.push(TableReport { table: name.to_owned(), rows: end.rows });
    }
    for derived in &plan.derived {
        target.fill(derived).await?;
    }
    let parts: Vec<&Part> = plan.tables.iter().map(|table| &table.target).collect();
    target.settle(&parts).await?;
    let mut verified = 0;
    for table in &plan.tables {
        let of = header.mark.tables.get(&table.source.name).map_or(0, |(rows, _)| *rows);
        verified += verify::table(source, target, CountedTable { table, of }, tell).await?;
    }
    tell(Progress::Chains);
    let chains = chains(source, target).await?;
    let parts: Vec<&Part> = plan.tables.iter().map(|table| &table.source).collect();
    if !options.online && source.has_moved(&parts).await? {
        return Err(refused(format!(
            "`{}` was written to while it was copied; stop every process that uses it and start over with \
             `--restart`",
            source.label()
        )));
    }
    target.finish().await?;
    Ok(CopyReport {
        from: header.from,
        to: target.label().to_owned(),
        rows: tables.iter().map(|table| table.rows).sum(),
        tables,
        verified,
        replaced,
        resumed,
        chains,
    })
}

/// Prepares the target: empty and marked, or as an earlier run left it. Returns whether it is the latter.
async fn begin(
    target: &mut dyn Target,
    plan: &Plan,
    header: &Header,
    options: Options,
) -> Result<bool, StoreError> {
    let found = target.progress().await?.remove("");
    if let Some(state) = found.as_ref().filter(|_| !options.restart) {
        let found: Header = row::json("the state of a copy", state)?;
        if found.from != header.from {
            return Err(refused(format!(
                "`{}` holds an unfinished copy of `{}`; resume that copy, or start over with `--restart`",
                target.label(),
                found.from
            )));
        }
        return match found.mark.difference(&header.mark) {
            None => Ok(true),
            Some(what) => Err(refused(format!(
                "the source has changed since the copy began: {what}; start over with `--restart`"
            ))),
        };
    }
    if found.is_none() {
        for table in &plan.tables {
            let rows = target.held(&table.target).await?;
            if rows > 0 {
                let (label, name) = (target.label(), &table.target.name);
                return Err(refused(format!(
                    "`{label}` is not empty: `{name}` has {rows} rows; name an empty store, or one that \
                     does not exist yet"
                )));
            }
        }
    }
    let copied = plan.tables.iter().map(|table| table.target.name.as_str());
    let tables: Vec<&str> = copied.chain(plan.derived.iter().map(|derived| derived.name)).collect();
    target.start(&tables, &row::text(header)?).await?;
    Ok(false)
}

/// Records the current state of the source.
async fn mark(source: &mut dyn Source, plan: &Plan) -> Result<Mark, StoreError> {
    let mut mark = Mark::default();
    for table in &plan.tables {
        mark.tables.insert(table.source.name.clone(), source.count(&table.source).await?);
    }
    if let Some(table) = plan.tables.iter().find(|table| table.source.name == "ledger_head") {
        let heads: Vec<Row> = source.rows(&table.source, None).try_collect().await?;
        mark.heads = Digest::of_bytes(row::text(&heads)?.as_bytes()).to_string();
    }
    Ok(mark)
}

/// Copies a table from the point that was reached.
async fn transfer(
    source: &mut dyn Source,
    target: &mut dyn Target,
    CountedTable { table, of }: CountedTable<'_>,
    mut reached: Reached,
    tell: Tell<'_>,
) -> Result<Reached, StoreError> {
    let name = table.source.name.as_str();
    let most = BATCH_ROWS.min(BATCH_VALUES / table.source.columns.len().max(1)).max(1);
    let after = reached.after.clone();
    let mut rows = source.rows(&table.source, after.as_deref());
    let (mut batch, mut bytes) = (Vec::new(), 0);
    tell(Progress::Copied { table: name, rows: reached.rows, of });
    loop {
        let next = rows.try_next().await.map_err(|error| within(name, error))?;
        reached.done = next.is_none();
        if let Some(mut row) = next {
            if target.loses_nul() {
                reached.replaced += replace_nul(table, &mut row)?;
            }
            bytes += row.iter().map(Value::size).sum::<usize>();
            batch.push(row);
        }
        if reached.done || batch.len() >= most || bytes >= BATCH_BYTES {
            reached.rows += batch.len() as u64;
            reached.after = batch.last().map(|row| table.source.key_of(row)).or(reached.after);
            let state = row::text(&reached)?;
            target.write(&table.target, &batch, &state).await.map_err(|error| within(name, error))?;
            tell(Progress::Copied { table: name, rows: reached.rows, of });
            batch.clear();
            bytes = 0;
        }
        if reached.done {
            return Ok(reached);
        }
    }
}

/// Replaces each NUL in plain text by U+FFFD, since PostgreSQL cannot store it. JSON has none: it is escaped
/// there. Returns the number of texts changed; a NUL in the key is an error.
fn replace_nul(table: &Table, row: &mut [Value]) -> Result<u64, StoreError> {
    let mut replaced = 0;
    for (at, (value, column)) in row.iter_mut().zip(&table.target.columns).enumerate() {
        let Value::Text(text) = value else { continue };
        if column.kind == Kind::Text && text.contains('\0') {
            if table.target.key.contains(&at) {
                let (name, column) = (&table.source.name, &column.name);
                return Err(refused(format!(
                    "a row of `{name}` has a NUL in its key (`{column}`), which PostgreSQL cannot store"
                )));
            }
            *text = text.replace('\0', "\u{fffd}");
            replaced += 1;
        }
    }
    Ok(replaced)
}

/// Returns the chains of the target, which must equal those of the source.
async fn chains(source: &mut dyn Source, target: &mut dyn Target) -> Result<Vec<ChainReport>, StoreError> {
    let (were, are) = (source.chains().await?, target.chains().await?);
    match are.iter().find(|chain| !were.contains(chain)) {
        None if were.len() == are.len() => Ok(are),
        None => {
            Err(row::damaged("the copy", "chains of the ledger are missing; start over with `--restart`"))
        }
        Some(chain) => {
            Err(row::damaged("the copy", format!("the ledger's chain {chain}; start over with `--restart`")))
        }
    }
}

fn in_memory() -> StoreError {
    refused("a store in memory is lost when its program ends; name a file or a database".to_owned())
}

/// Names the table that an error is about.
fn within(table: &str, error: StoreError) -> StoreError {
    match error {
        StoreError::Database { what, why, transient } => {
            StoreError::Database { what, why: format!("`{table}`: {why}"), transient }
        }
        other => other,
    }
}

pub(crate) fn refused(why: String) -> StoreError {
    StoreError::Database { what: COPY, why, transient: false }
}

/// Returns the name that tells a store from others: its location, without user and password.
pub(crate) fn label(place: &StoreLocation) -> Result<String, StoreError> {
    Ok(match place {
        StoreLocation::Memory => "sqlite::memory:".to_owned(),
        StoreLocation::File(path) => sqlite::label(path),
        StoreLocation::Postgres(url) => postgres::label(&crate::postgres::read(url.expose())?),
    })
}

#[cfg(test)]
mod tests;
