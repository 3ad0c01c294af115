//! The ledger: entries, and the head of each chain.

mod together;

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::store::{Entry, EntryEvent, EntryPage, Ledger, Outcome, Record, StoreError, Tally, Topic};
use claw_core::{CallId, NodeId, SessionKey, TenantId};
use sqlx::sqlite::SqliteConnection;
use sqlx::{QueryBuilder, query, query_as, query_scalar};

use super::SqliteStore;
use super::approvals::spend;
use super::error::{failed, is_taken};
use crate::ledger as shared;
use crate::ledger::chain::{ChainReport, Columns, Head, Walk};
use crate::row::{self, wrong_state};

pub(super) use self::together::Together;

const WRITE: &str = "could not write to the ledger";
const READ: &str = "could not read the ledger";
/// The number of entries held at a time while a chain is verified.
const PAGE: i64 = 1_000;

#[async_trait]
impl Ledger for SqliteStore {
    async fn refuse(&self, record: Record) -> Result<(), StoreError> {
        self.append(record).await.map(|_| ())
    }

    async fn begin_call(&self, record: Record) -> Result<(), StoreError> {
        let (call, tenant) = (record.call, record.tenant.clone());
        let EntryEvent::Intent { approval: Some(id), digest, .. } = record.event else {
            return match self.append(record).await? {
                true => Ok(()),
                false => {
                    let outcome = self.fate(&tenant, call).await?.unwrap_or(Outcome::Unknown);
                    Err(StoreError::AlreadyBegun { call, outcome })
                }
            };
        };
        let mut transaction = self.write(WRITE).await?;
        if !append(&mut transaction, &self.node, &record).await? {
            let outcome = fate(&mut transaction, &tenant, call).await?;
            return Err(StoreError::AlreadyBegun { call, outcome });
        }
        if !spend(&mut transaction, id, digest, &record).await? {
            transaction.rollback().await.map_err(failed(WRITE))?;
            return Err(wrong_state(&self.lapse(&tenant, id, record.at).await?));
        }
        transaction.commit().await.map_err(failed(WRITE))?;
        self.bells.ring(Topic::Approvals);
        Ok(())
    }

    async fn finish_call(&self, record: Record) -> Result<(), StoreError> {
        self.append(record).await.map(|_| ())
    }

    async fn fate(&self, tenant: &TenantId, call: CallId) -> Result<Option<Outcome>, StoreError> {
        // The writer's word for it: a reader may be behind what was begun a moment ago.
        let mut connection = self.writer.acquire().await.map_err(failed(READ))?;
        let begun: Option<i64> = query_scalar(
            "SELECT 1 FROM ledger
             WHERE tenant = $1 AND call = $2 AND event = 'intent' AND event <> 'refused'",
        )
        .bind(tenant.as_str())
        .bind(&call.as_bytes()[..])
        .fetch_optional(&mut *connection)
        .await
        .map_err(failed(READ))?;
        let fate = match begun {
            Some(_) => Some(fate(&mut connection, tenant, call).await?),
            None => None,
        };
        drop(connection);
        self.writer.settled().await.map_err(failed(READ))?;
        Ok(fate)
    }

    async fn recent(&self, tenant: &TenantId, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let lines: Vec<String> =
            query_scalar("SELECT line FROM ledger WHERE tenant = $1 ORDER BY position DESC LIMIT $2")
                .bind(tenant.as_str())
                .bind(row::number(limit))
                .fetch_all(&self.readers)
                .await
                .map_err(failed(READ))?;
        lines.iter().rev().map(|line| row::json("an entry of the ledger", line)).collect()
    }

    async fn entries(&self, tenant: &TenantId, page: &EntryPage) -> Result<Vec<(u64, Entry)>, StoreError> {
        let mut asked = shared::page(tenant, page);
        let rows: Vec<(i64, String)> =
            asked.build_query_as().fetch_all(&self.readers).await.map_err(failed(READ))?;
        shared::entries(rows)
    }

    async fn tally(&self, tenant: &TenantId, session: &SessionKey) -> Result<Tally, StoreError> {
        let counts: Vec<(String, Option<String>, i64)> = query_as(
            "SELECT event, outcome, count(*) FROM ledger WHERE tenant = $1 AND session = $2
             GROUP BY event, outcome",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .fetch_all(&self.readers)
        .await
        .map_err(failed(READ))?;
        row::tally(&counts)
    }
}

impl SqliteStore {
    /// Checks every chain, by tenant and node. Changes nothing.
    pub async fn verify(&self) -> Result<Vec<ChainReport>, StoreError> {
        // One look at all of it: entries that are added meanwhile are not seen half.
        let mut transaction = self.readers.begin("BEGIN").await.map_err(failed(READ))?;
        let reports = verify_all(&mut transaction).await?;
        transaction.commit().await.map_err(failed(READ))?;
        Ok(reports)
    }

    /// Writes an entry, together with those of other callers if there are any; returns `false` and writes nothing
    /// if the call already has one of this kind.
    async fn append(&self, record: Record) -> Result<bool, StoreError> {
        let record = Arc::new(record);
        let turn = self.together.enter();
        if !turn.is_alone()
            && let Some(is_written) = self.together.append(&record).await
        {
            return Ok(is_written);
        }
        let mut transaction = self.write(WRITE).await?;
        let is_written = append(&mut transaction, &self.node, &record).await?;
        transaction.commit().await.map_err(failed(WRITE))?;
        Ok(is_written)
    }
}

/// Checks every chain; the caller has begun a transaction, or is alone.
pub(crate) async fn verify_all(connection: &mut SqliteConnection) -> Result<Vec<ChainReport>, StoreError> {
    let chains: Vec<(String, String)> = query_as(
        "SELECT tenant, node FROM ledger UNION SELECT tenant, node FROM ledger_head ORDER BY tenant, node",
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(failed(READ))?;
    let mut reports = Vec::with_capacity(chains.len());
    for (tenant, node) in &chains {
        reports.push(verify(connection, tenant, node).await?);
    }
    Ok(reports)
}

/// Writes an entry; returns `false` and writes nothing if the call already has one of this kind.
async fn append(
    connection: &mut SqliteConnection,
    node: &NodeId,
    record: &Record,
) -> Result<bool, StoreError> {
    let tenant = record.tenant.as_str();
    let (line, next) = start(connection, tenant, node).await?.next(node, record)?;
    let entry = NewEntry { seq: next.count, record, line };
    if insert(connection, node, std::slice::from_ref(&entry)).await? == 0 {
        return Ok(false);
    }
    set_head(connection, tenant, node, next).await?;
    Ok(true)
}

/// An entry to be written.
struct NewEntry<'a> {
    seq: u64,
    record: &'a Record,
    line: String,
}

/// Writes entries, except those of calls that already have one of the same kind; returns how many were written.
async fn insert(
    connection: &mut SqliteConnection,
    node: &NodeId,
    entries: &[NewEntry<'_>],
) -> Result<u64, StoreError> {
    let mut insert = QueryBuilder::new(
        "INSERT INTO ledger (tenant, node, seq, at, session, call, event, outcome, line, agent, user_id, tool) ",
    );
    insert.push_values(entries, |mut row, NewEntry { seq, record, line }| {
        let columns = Columns::of(record);
        row.push_bind(record.tenant.as_str())
            .push_bind(node.as_str())
            .push_bind(row::number(*seq))
            .push_bind(columns.at)
            .push_bind(columns.session)
            .push_bind(columns.call)
            .push_bind(columns.event)
            .push_bind(columns.outcome)
            .push_bind(line.as_str())
            .push_bind(columns.agent)
            .push_bind(columns.user)
            .push_bind(columns.tool);
    });
    insert.push(" ON CONFLICT (tenant, call, event) WHERE event <> 'refused' DO NOTHING");
    let written = insert.build().execute(connection).await.map_err(|error| match is_taken(&error) {
        true => {
            row::damaged("the ledger", "its head does not match its entries; run `clawsmith ledger verify`")
        }
        false => failed(WRITE)(error),
    })?;
    Ok(written.rows_affected())
}

async fn set_head(
    connection: &mut SqliteConnection,
    tenant: &str,
    node: &NodeId,
    head: Head,
) -> Result<(), StoreError> {
    query(
        "INSERT INTO ledger_head (tenant, node, count, head) VALUES ($1, $2, $3, $4)
         ON CONFLICT (tenant, node) DO UPDATE SET count = excluded.count, head = excluded.head",
    )
    .bind(tenant)
    .bind(node.as_str())
    .bind(row::number(head.count))
    .bind(head.hash.to_string())
    .execute(connection)
    .await
    .map_err(failed(WRITE))?;
    Ok(())
}

/// The head that the next entry of a chain follows.
async fn start(connection: &mut SqliteConnection, tenant: &str, node: &NodeId) -> Result<Head, StoreError> {
    head(connection, tenant, node.as_str()).await?.unwrap_or_else(|| Ok(Head::start()))
}

/// Returns the head of a chain, if it has one; the inner error says that it cannot be parsed.
async fn head(
    connection: &mut SqliteConnection,
    tenant: &str,
    node: &str,
) -> Result<Option<Result<Head, StoreError>>, StoreError> {
    let head: Option<(i64, String)> =
        query_as("SELECT count, head FROM ledger_head WHERE tenant = $1 AND node = $2")
            .bind(tenant)
            .bind(node)
            .fetch_optional(connection)
            .await
            .map_err(failed(READ))?;
    Ok(head.map(|(count, hash)| Head::read(count, &hash)))
}

/// Returns the outcome of a call that has begun.
async fn fate(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    call: CallId,
) -> Result<Outcome, StoreError> {
    // The planner takes the index of calls only where its own condition is said again.
    let outcome: Option<String> = query_scalar(
        "SELECT outcome FROM ledger
         WHERE tenant = $1 AND call = $2 AND event = 'outcome' AND event <> 'refused'",
    )
    .bind(tenant.as_str())
    .bind(&call.as_bytes()[..])
    .fetch_optional(connection)
    .await
    .map_err(failed(READ))?;
    outcome.map_or(Ok(Outcome::Unknown), |outcome| row::word("an outcome", &outcome))
}

async fn verify(
    connection: &mut SqliteConnection,
    tenant: &str,
    node: &str,
) -> Result<ChainReport, StoreError> {
    type Row = (
        i64,
        i64,
        String,
        Vec<u8>,
        String,
        Option<String>,
        String,
        Option<String>,
        Option<String>,
        Option<String>,
    );
    let mut walk = Walk::new(tenant, node, head(connection, tenant, node).await?);
    let mut after = 0;
    loop {
        let rows: Vec<Row> = query_as(
            "SELECT seq, at, session, call, event, outcome, line, agent, user_id, tool FROM ledger
             WHERE tenant = $1 AND node = $2 AND seq > $3 ORDER BY seq LIMIT $4",
        )
        .bind(tenant)
        .bind(node)
        .bind(after)
        .bind(PAGE)
        .fetch_all(&mut *connection)
        .await
        .map_err(failed(READ))?;
        for (_, at, session, call, event, outcome, line, agent, user, tool) in &rows {
            let (outcome, agent) = (outcome.as_deref(), agent.as_deref());
            let (user, tool) = (user.as_deref(), tool.as_deref());
            let columns = Columns { at: *at, session, call, event, outcome, agent, user, tool };
            if !walk.step(columns, line) {
                return Ok(walk.report());
            }
        }
        let Some((seq, ..)) = rows.last() else { return Ok(walk.report()) };
        after = *seq;
    }
}
