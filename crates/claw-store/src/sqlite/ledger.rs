//! The ledger: entries, and the head of each chain.

use async_trait::async_trait;
use claw_core::store::{Entry, EntryEvent, EntryPage, Ledger, Outcome, Record, StoreError, Tally, Topic};
use claw_core::{CallId, SessionKey, TenantId};
use sqlx::sqlite::SqliteConnection;
use sqlx::{query, query_as, query_scalar};

use super::SqliteStore;
use super::approvals::spend;
use super::error::{failed, is_taken};
use crate::chain::{ChainReport, Columns, Head, Walk};
use crate::ledger as shared;
use crate::row::{self, wrong_state};

const WRITE: &str = "could not write to the ledger";
const READ: &str = "could not read the ledger";
/// The number of entries held at a time while a chain is verified.
const PAGE: i64 = 1_000;

#[async_trait]
impl Ledger for SqliteStore {
    async fn refuse(&self, record: Record) -> Result<(), StoreError> {
        self.append(record).await
    }

    async fn begin_call(&self, record: Record) -> Result<(), StoreError> {
        let call = record.call;
        let approval = match &record.event {
            EntryEvent::Intent { approval: Some(id), digest, .. } => Some((*id, *digest)),
            _ => None,
        };
        let mut transaction = self.write(WRITE).await?;
        if !append(&mut transaction, self, &record).await? {
            let outcome = fate(&mut transaction, &record.tenant, call).await?;
            return Err(StoreError::AlreadyBegun { call, outcome });
        }
        if let Some((id, digest)) = approval
            && !spend(&mut transaction, id, digest, &record).await?
        {
            transaction.rollback().await.map_err(failed(WRITE))?;
            return Err(wrong_state(&self.lapse(&record.tenant, id, record.at).await?));
        }
        transaction.commit().await.map_err(failed(WRITE))?;
        if approval.is_some() {
            self.bells.ring(Topic::Approvals);
        }
        Ok(())
    }

    async fn finish_call(&self, record: Record) -> Result<(), StoreError> {
        self.append(record).await
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

    /// Writes an entry, unless it is the second end of a call.
    async fn append(&self, record: Record) -> Result<(), StoreError> {
        let mut transaction = self.write(WRITE).await?;
        append(&mut transaction, self, &record).await?;
        transaction.commit().await.map_err(failed(WRITE))
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
    store: &SqliteStore,
    record: &Record,
) -> Result<bool, StoreError> {
    let (tenant, node) = (record.tenant.as_str(), store.node.as_str());
    let head = head(connection, tenant, node).await?.unwrap_or_else(|| Ok(Head::start()))?;
    let (line, next) = head.next(&store.node, record)?;
    let columns = Columns::of(record);
    let written = query(
        "INSERT INTO ledger (tenant, node, seq, at, session, call, event, outcome, line, agent, user_id, tool)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         ON CONFLICT (tenant, call, event) WHERE event <> 'refused' DO NOTHING",
    )
    .bind(tenant)
    .bind(node)
    .bind(row::number(next.count))
    .bind(columns.at)
    .bind(columns.session)
    .bind(columns.call)
    .bind(columns.event)
    .bind(columns.outcome)
    .bind(line)
    .bind(columns.agent)
    .bind(columns.user)
    .bind(columns.tool)
    .execute(&mut *connection)
    .await
    .map_err(|error| match is_taken(&error) {
        true => {
            row::damaged("the ledger", "its head does not match its entries; run `clawsmith ledger verify`")
        }
        false => failed(WRITE)(error),
    })?;
    if written.rows_affected() == 0 {
        return Ok(false);
    }
    query(
        "INSERT INTO ledger_head (tenant, node, count, head) VALUES ($1, $2, $3, $4)
         ON CONFLICT (tenant, node) DO UPDATE SET count = excluded.count, head = excluded.head",
    )
    .bind(tenant)
    .bind(node)
    .bind(row::number(next.count))
    .bind(next.hash.to_string())
    .execute(connection)
    .await
    .map_err(failed(WRITE))?;
    Ok(true)
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
