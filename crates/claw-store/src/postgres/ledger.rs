//! The ledger: chained lines, appended while the head's row is locked.

use async_trait::async_trait;
use claw_core::store::{Entry, EntryEvent, EntryPage, Ledger, Outcome, Record, StoreError, Tally, Topic};
use claw_core::{CallId, SessionKey, TenantId};
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use super::approvals::spend;
use super::connections::{Link, Transaction};
use super::failure::{failed, is_taken};
use super::{PostgresStore, uuid};
use crate::ledger as shared;
use crate::ledger::chain::{ChainReport, Columns, Head, Walk};
use crate::row::{self, wrong_state};

const APPEND: &str = "could not write to the ledger";
const READ: &str = "could not read the ledger";
/// The number of lines a verification reads at once.
const PAGE: i64 = 1_000;

/// Tenant and node, and the head, if there is one.
type Chain = (String, String, Option<i64>, Option<String>);

#[async_trait]
impl Ledger for PostgresStore {
    async fn refuse(&self, record: Record) -> Result<(), StoreError> {
        let mut transaction = self.begin(APPEND).await?;
        self.append(&mut transaction, &record).await?;
        transaction.commit().await.map_err(failed(APPEND))
    }

    async fn begin_call(&self, record: Record) -> Result<(), StoreError> {
        let mut transaction = self.begin(APPEND).await?;
        if !self.append(&mut transaction, &record).await? {
            let call = record.call;
            let outcome = fate(&mut transaction, &record.tenant, call).await?;
            return Err(StoreError::AlreadyBegun { call, outcome });
        }
        let approval = match &record.event {
            EntryEvent::Intent { approval, .. } => *approval,
            _ => None,
        };
        if let Some(id) = approval
            && !spend(&mut transaction, &record).await?
        {
            transaction.rollback().await.map_err(failed(APPEND))?;
            return Err(wrong_state(&self.lapse(&record.tenant, id, record.at).await?));
        }
        transaction.commit().await.map_err(failed(APPEND))?;
        if approval.is_some() {
            self.listener.bells.ring(Topic::Approvals);
        }
        Ok(())
    }

    /// Records the end of a call. The first end stands; a repetition changes nothing.
    async fn finish_call(&self, record: Record) -> Result<(), StoreError> {
        let mut transaction = self.begin(APPEND).await?;
        self.append(&mut transaction, &record).await?;
        transaction.commit().await.map_err(failed(APPEND))
    }

    async fn fate(&self, tenant: &TenantId, call: CallId) -> Result<Option<Outcome>, StoreError> {
        let mut connection = self.pool.acquire().await.map_err(failed(READ))?;
        let begun: Option<i32> =
            query_scalar("SELECT 1 FROM ledger WHERE tenant = $1 AND call = $2 AND event = 'intent'")
                .bind(tenant.as_str())
                .bind(uuid(call.as_bytes()))
                .fetch_optional(&mut connection)
                .await
                .map_err(failed(READ))?;
        match begun {
            Some(_) => fate(&mut connection, tenant, call).await.map(Some),
            None => Ok(None),
        }
    }

    async fn recent(&self, tenant: &TenantId, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let lines: Vec<String> =
            query_scalar("SELECT line FROM ledger WHERE tenant = $1 ORDER BY position DESC LIMIT $2")
                .bind(tenant.as_str())
                .bind(row::number(limit))
                .fetch_all(&self.pool)
                .await
                .map_err(failed(READ))?;
        lines.iter().rev().map(|line| row::json("an entry of the ledger", line)).collect()
    }

    async fn entries(&self, tenant: &TenantId, page: &EntryPage) -> Result<Vec<(u64, Entry)>, StoreError> {
        let mut asked = shared::page(tenant, page);
        let rows: Vec<(i64, String)> =
            asked.build_query_as().fetch_all(&self.pool).await.map_err(failed(READ))?;
        shared::entries(rows)
    }

    async fn tally(&self, tenant: &TenantId, session: &SessionKey) -> Result<Tally, StoreError> {
        let counts: Vec<(String, Option<String>, i64)> = query_as(
            "SELECT event, outcome, count(*) FROM ledger WHERE tenant = $1 AND session = $2
             GROUP BY event, outcome",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .fetch_all(&self.pool)
        .await
        .map_err(failed(READ))?;
        row::tally(&counts)
    }
}

impl PostgresStore {
    /// Checks every chain of every tenant and node as it stood at one moment. Changes nothing.
    pub async fn verify(&self) -> Result<Vec<ChainReport>, StoreError> {
        const AT_ONE_MOMENT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let mut transaction = self.pool.begin_with(AT_ONE_MOMENT).await.map_err(failed(READ))?;
        verify_all(&mut transaction).await
    }

    /// Adds a line to this node's chain. Returns `false` and adds nothing if the call already has such a
    /// line.
    async fn append(&self, transaction: &mut Transaction, record: &Record) -> Result<bool, StoreError> {
        let head = self.lock_head(transaction, &record.tenant).await?;
        let (line, next) = head.next(&self.node, record)?;
        let columns = Columns::of(record);
        let written = query(
            "WITH written AS (
                 INSERT INTO ledger (tenant, node, seq, at, session, call, event, outcome, line, agent, user_id, tool)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $11, $12, $13)
                 ON CONFLICT (tenant, call, event) WHERE event <> 'refused' DO NOTHING
                 RETURNING seq
             )
             UPDATE ledger_head SET count = written.seq, head = $10
             FROM written WHERE tenant = $1 AND node = $2",
        )
        .bind(record.tenant.as_str())
        .bind(self.node.as_str())
        .bind(row::number(next.count))
        .bind(columns.at)
        .bind(columns.session)
        .bind(uuid(record.call.as_bytes()))
        .bind(columns.event)
        .bind(columns.outcome)
        .bind(line)
        .bind(next.hash.to_string())
        .bind(columns.agent)
        .bind(columns.user)
        .bind(columns.tool)
        .execute(&mut **transaction)
        .await
        .map_err(|error| match is_taken(&error, "ledger_pkey") {
            true => row::damaged(
                "the ledger",
                "its head does not match its entries; run `clawsmith ledger verify`",
            ),
            false => failed(APPEND)(error),
        })?;
        Ok(written.rows_affected() == 1)
    }

    /// Returns and locks the end of this node's chain. Nobody else appends to it until the transaction is
    /// over.
    async fn lock_head(&self, transaction: &mut Transaction, tenant: &TenantId) -> Result<Head, StoreError> {
        let start = Head::start();
        let (count, hash): (i64, String) = query_as(
            "INSERT INTO ledger_head (tenant, node, count, head) VALUES ($1, $2, $3, $4)
             ON CONFLICT (tenant, node) DO UPDATE SET count = ledger_head.count
             RETURNING count, head",
        )
        .bind(tenant.as_str())
        .bind(self.node.as_str())
        .bind(row::number(start.count))
        .bind(start.hash.to_string())
        .fetch_one(&mut **transaction)
        .await
        .map_err(failed(APPEND))?;
        Head::read(count, &hash)
    }
}

/// Checks every chain; the caller has begun a transaction, or is alone.
pub(crate) async fn verify_all(connection: &mut Link<'_>) -> Result<Vec<ChainReport>, StoreError> {
    let chains: Vec<Chain> = query_as(
        "SELECT tenant, node, count, head
         FROM ledger_head FULL JOIN (SELECT DISTINCT tenant, node FROM ledger) AS chain USING (tenant, node)
         ORDER BY tenant, node",
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(failed(READ))?;
    let mut reports = Vec::with_capacity(chains.len());
    for chain in &chains {
        reports.push(check(connection, chain).await?);
    }
    Ok(reports)
}

/// Returns the outcome of a call that has begun.
async fn fate(connection: &mut Link<'_>, tenant: &TenantId, call: CallId) -> Result<Outcome, StoreError> {
    let outcome: Option<String> =
        query_scalar("SELECT outcome FROM ledger WHERE tenant = $1 AND call = $2 AND event = 'outcome'")
            .bind(tenant.as_str())
            .bind(uuid(call.as_bytes()))
            .fetch_optional(connection)
            .await
            .map_err(failed(READ))?;
    outcome.map_or(Ok(Outcome::Unknown), |outcome| row::word("an outcome", &outcome))
}

/// Walks along one chain, a page of entries at a time.
async fn check(
    connection: &mut Link<'_>,
    (tenant, node, count, hash): &Chain,
) -> Result<ChainReport, StoreError> {
    type Row = (
        i64,
        i64,
        String,
        Uuid,
        String,
        Option<String>,
        String,
        Option<String>,
        Option<String>,
        Option<String>,
    );
    let head = count.zip(hash.as_deref()).map(|(count, hash)| Head::read(count, hash));
    let mut walk = Walk::new(tenant, node, head);
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
            let (user, tool, call) = (user.as_deref(), tool.as_deref(), call.as_bytes());
            let columns = Columns { at: *at, session, call, event, outcome, agent, user, tool };
            if !walk.step(columns, line) {
                return Ok(walk.report());
            }
        }
        let Some((seq, ..)) = rows.last() else { return Ok(walk.report()) };
        after = *seq;
    }
}
