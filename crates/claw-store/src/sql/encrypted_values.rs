//! All sealed values: by which key they are sealed, and the tenants whose values changed.

use async_trait::async_trait;
use claw_core::store::{
    KeyUse, Resealed, SEALED_VERSION, SealKeyId, SealedChanges, SealedMark, SealedPlace, SealedRow,
    SealedTable, SealedValues, StoreError, Topic,
};
use sqlx::{query, query_as};

use super::dialect::{Store, failed};
use crate::row;

const WRITE: &str = "could not encrypt values again";
const READ: &str = "could not read encrypted values";

#[async_trait]
impl SealedValues for Store {
    async fn not_sealed_by(
        &self,
        key: SealKeyId,
        table: SealedTable,
        after: Option<&SealedPlace>,
        limit: usize,
    ) -> Result<Vec<SealedRow>, StoreError> {
        let sql = match table {
            SealedTable::Secrets => {
                "SELECT tenant, agent, name, value FROM secrets
                 WHERE substr(value, 1, 9) <> $1 AND (tenant, agent, name) > ($2, $3, $4)
                 ORDER BY tenant, agent, name LIMIT $5"
            }
            SealedTable::Programs => {
                "SELECT tenant, agent, name, env FROM programs
                 WHERE substr(env, 1, 9) <> $1 AND (tenant, agent, name) > ($2, $3, $4)
                 ORDER BY tenant, agent, name LIMIT $5"
            }
            SealedTable::CustomTools => {
                "SELECT tenant, agent, name, env FROM custom_tools
                 WHERE substr(env, 1, 9) <> $1 AND (tenant, agent, name) > ($2, $3, $4)
                 ORDER BY tenant, agent, name LIMIT $5"
            }
        };
        let (tenant, agent, name) = row::place_text(after);
        let rows: Vec<(String, String, String, Vec<u8>)> = query_as(sql)
            .bind([&[SEALED_VERSION][..], &key.0].concat())
            .bind(tenant)
            .bind(agent)
            .bind(name)
            .bind(row::number(limit))
            .fetch_all(self.reading())
            .await
            .map_err(failed(READ))?;
        rows.into_iter().map(|found| row::sealed_row(table, found)).collect()
    }

    async fn reseal(&self, values: &[Resealed]) -> Result<u64, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let mut changed = 0;
        for Resealed { place, old, new } in values {
            let sql = match place.table {
                SealedTable::Secrets => {
                    "UPDATE secrets SET value = $5 WHERE tenant = $1 AND agent = $2 AND name = $3 AND value = $4"
                }
                SealedTable::Programs => {
                    "UPDATE programs SET env = $5 WHERE tenant = $1 AND agent = $2 AND name = $3 AND env = $4"
                }
                SealedTable::CustomTools => {
                    "UPDATE custom_tools SET env = $5
                     WHERE tenant = $1 AND agent = $2 AND name = $3 AND env = $4"
                }
            };
            let done = query(sql)
                .bind(place.tenant.as_str())
                .bind(row::agent_text(place.agent.as_ref()))
                .bind(place.name.as_str())
                .bind(old.as_bytes())
                .bind(new.as_bytes())
                .execute(&mut *transaction)
                .await
                .map_err(failed(WRITE))?;
            changed += done.rows_affected();
        }
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring(Topic::Secrets);
        Ok(changed)
    }

    async fn key_use(&self) -> Result<Vec<KeyUse>, StoreError> {
        let rows: Vec<(Vec<u8>, i64)> = query_as(
            "SELECT head, count(*) FROM (
                 SELECT substr(value, 1, 9) AS head FROM secrets UNION ALL SELECT substr(env, 1, 9) FROM programs
                 UNION ALL SELECT substr(env, 1, 9) FROM custom_tools
             ) AS heads GROUP BY head",
        )
        .fetch_all(self.reading())
        .await
        .map_err(failed(READ))?;
        row::key_use(rows)
    }

    // Triggers write the marks, so that no writer can forget one.
    async fn changed_since(&self, mark: SealedMark) -> Result<SealedChanges, StoreError> {
        let rows: Vec<(String, i64)> = query_as(
            "SELECT tenant, mark FROM sealed_marks
             WHERE mark > CASE WHEN $1 > (SELECT coalesce(max(mark), 0) FROM sealed_marks) THEN 0 ELSE $1 END
             ORDER BY mark",
        )
        .bind(row::number(mark.0))
        .fetch_all(self.reading())
        .await
        .map_err(failed(READ))?;
        let last = rows.last().map(|(_, last)| row::count(*last)).transpose()?;
        let tenants = rows.iter().map(|(tenant, _)| row::word("the tenant of encrypted values", tenant));
        let tenants = tenants.collect::<Result<_, _>>()?;
        Ok(SealedChanges { mark: last.map_or(mark, SealedMark), tenants })
    }
}
