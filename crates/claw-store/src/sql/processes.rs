//! Background processes. Statements that return rows are read to their end, as in the queue: SQLite needs it.

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{NewProcess, Process, ProcessEnd, Processes, StoreError, Topic, Worker};
use claw_core::{ProcessId, SessionKey, TenantId};
use sqlx::{query, query_as};

use super::dialect::{Store, failed, stored_id};
use crate::row;

const WRITE: &str = "could not write the process";
const READ: &str = "could not read processes";

/// The process as begun, its state, exit code, signal and end.
type Row = (String, String, Option<i32>, Option<i32>, Option<i64>);

#[async_trait]
impl Processes for Store {
    async fn begin_process(&self, new: NewProcess) -> Result<(), StoreError> {
        query(
            "INSERT INTO processes (tenant, id, session, node, boot, begun, started, state)
             VALUES ($1, $2, $3, $4, $5, $6, $7, 'running')
             ON CONFLICT (tenant, id) DO NOTHING",
        )
        .bind(new.tenant.as_str())
        .bind(stored_id(new.id.as_bytes()))
        .bind(new.session.as_str())
        .bind(new.worker.node.as_str())
        .bind(stored_id(new.worker.boot.as_bytes()))
        .bind(row::text(&new)?)
        .bind(new.started.0)
        .execute(self.writing())
        .await
        .map_err(failed(WRITE))?;
        self.ring(Topic::Processes);
        Ok(())
    }

    async fn end_process(
        &self,
        tenant: &TenantId,
        id: ProcessId,
        end: ProcessEnd,
        at: UnixMillis,
    ) -> Result<Option<Process>, StoreError> {
        let (state, code, signal) = row::end_columns(end);
        let ended: Vec<Row> = query_as(
            "UPDATE processes SET state = $3, code = $4, signal = $5, ended = $6
             WHERE tenant = $1 AND id = $2 AND state = 'running'
             RETURNING begun, state, code, signal, ended",
        )
        .bind(tenant.as_str())
        .bind(stored_id(id.as_bytes()))
        .bind(state)
        .bind(code)
        .bind(signal)
        .bind(at.0)
        .fetch_all(self.writing())
        .await
        .map_err(failed(WRITE))?;
        let Some(ended) = ended.into_iter().next() else { return self.process(tenant, id).await };
        self.ring(Topic::Processes);
        process(ended).map(Some)
    }

    async fn process(&self, tenant: &TenantId, id: ProcessId) -> Result<Option<Process>, StoreError> {
        let row: Option<Row> =
            query_as("SELECT begun, state, code, signal, ended FROM processes WHERE tenant = $1 AND id = $2")
                .bind(tenant.as_str())
                .bind(stored_id(id.as_bytes()))
                .fetch_optional(self.reading())
                .await
                .map_err(failed(READ))?;
        row.map(process).transpose()
    }

    async fn processes(&self, tenant: &TenantId, session: &SessionKey) -> Result<Vec<Process>, StoreError> {
        let rows: Vec<Row> = query_as(
            "SELECT begun, state, code, signal, ended FROM processes
             WHERE tenant = $1 AND session = $2 ORDER BY started, id",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .fetch_all(self.reading())
        .await
        .map_err(failed(READ))?;
        rows.into_iter().map(process).collect()
    }

    async fn lose_processes(&self, worker: &Worker, at: UnixMillis) -> Result<Vec<Process>, StoreError> {
        let rows: Vec<Row> = query_as(
            "UPDATE processes SET state = 'lost', ended = $3
             WHERE state = 'running' AND node = $1 AND boot < $2
             RETURNING begun, state, code, signal, ended",
        )
        .bind(worker.node.as_str())
        .bind(stored_id(worker.boot.as_bytes()))
        .bind(at.0)
        .fetch_all(self.writing())
        .await
        .map_err(failed(WRITE))?;
        if !rows.is_empty() {
            self.ring(Topic::Processes);
        }
        let mut lost = rows.into_iter().map(process).collect::<Result<Vec<_>, _>>()?;
        lost.sort_by_key(|lost| (lost.new.started, lost.new.id));
        Ok(lost)
    }
}

fn process((begun, state, code, signal, ended): Row) -> Result<Process, StoreError> {
    let ended = row::ended(&state, code, signal, ended)?;
    Ok(Process { new: row::json("a process", &begun)?, ended })
}
