//! The cost of models.

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{NewUsage, Spender, StoreError, Usage, UsageFilter, UsageLine, UsageLog};
use claw_core::{SessionKey, TenantId};
use sqlx::{query, query_as, query_scalar};

use super::SqliteStore;
use super::error::failed;
use crate::row;
use crate::usage::{self, READ, WRITE};

/// Sums the cost for tenant `$1` since `$2`; the added condition selects whose.
macro_rules! spent {
    ($whose:literal) => {
        query_scalar(concat!(
            "SELECT coalesce(sum(cost), 0) FROM usage WHERE tenant = $1 AND at >= $2",
            $whose
        ))
    };
}

#[async_trait]
impl UsageLog for SqliteStore {
    async fn record_usage(&self, new: NewUsage) -> Result<(), StoreError> {
        usage::check(&new)?;
        query(
            "INSERT INTO usage (tenant, id, agent, user_id, session, run, provider, model,
                                input, output, cache_read, cache_write, cost, at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
             ON CONFLICT (tenant, id) DO NOTHING",
        )
        .bind(new.tenant.as_str())
        .bind(&new.id.as_bytes()[..])
        .bind(new.agent.as_str())
        .bind(new.user.as_ref().map(|user| user.as_str()))
        .bind(new.session.as_str())
        .bind(new.run.as_ref().map(|run| &run.as_bytes()[..]))
        .bind(new.provider.as_str())
        .bind(new.model.as_str())
        .bind(row::number(new.tokens.input))
        .bind(row::number(new.tokens.output))
        .bind(row::number(new.tokens.cache_read))
        .bind(row::number(new.tokens.cache_write))
        .bind(new.cost)
        .bind(new.at.0)
        .execute(&self.writer)
        .await
        .map(drop)
        .map_err(failed(WRITE))
    }

    async fn usage(&self, tenant: &TenantId, filter: &UsageFilter) -> Result<Usage, StoreError> {
        let mut asked = usage::sums(tenant, filter, |id| id.as_bytes().to_vec());
        let sums = asked.build_query_as().fetch_one(&self.readers).await.map_err(failed(READ))?;
        usage::usage(sums)
    }

    async fn usage_lines(
        &self,
        tenant: &TenantId,
        filter: &UsageFilter,
    ) -> Result<Vec<UsageLine>, StoreError> {
        let mut asked = usage::lines(tenant, filter, |id| id.as_bytes().to_vec());
        let lines = asked.build_query_as().fetch_all(&self.readers).await.map_err(failed(READ))?;
        usage::sorted(lines)
    }

    async fn last_usage(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
    ) -> Result<Option<NewUsage>, StoreError> {
        type Row =
            (Vec<u8>, String, Option<String>, Option<Vec<u8>>, String, String, i64, i64, i64, i64, i64, i64);
        let found: Option<Row> = query_as(
            "SELECT id, agent, user_id, run, provider, model, input, output, cache_read, cache_write, cost, at
             FROM usage WHERE tenant = $1 AND session = $2 ORDER BY at DESC, id DESC LIMIT 1",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .fetch_optional(&self.readers)
        .await
        .map_err(failed(READ))?;
        let Some((id, agent, user, run, provider, model, input, output, read, write, cost, at)) = found
        else {
            return Ok(None);
        };
        Ok(Some(NewUsage {
            id: row::id("an answer's id", &id)?,
            tenant: tenant.clone(),
            agent: row::word("an answer's agent", &agent)?,
            user: user.as_deref().map(|user| row::word("an answer's user", user)).transpose()?,
            session: session.clone(),
            run: run.as_deref().map(|run| row::id("an answer's run", run)).transpose()?,
            provider: provider.into(),
            model: model.into(),
            tokens: usage::tokens((input, output, read, write))?,
            cost,
            at: UnixMillis(at),
        }))
    }

    async fn spent(
        &self,
        tenant: &TenantId,
        spender: Spender<'_>,
        since: UnixMillis,
    ) -> Result<i64, StoreError> {
        let (asked, whose) = match spender {
            Spender::Tenant => (spent!(""), None),
            Spender::Agent(agent) => (spent!(" AND agent = $3"), Some(agent.as_str())),
            Spender::Session(session) => (spent!(" AND session = $3"), Some(session.as_str())),
        };
        let mut asked = asked.bind(tenant.as_str()).bind(since.0);
        if let Some(whose) = whose {
            asked = asked.bind(whose);
        }
        asked.fetch_one(&self.readers).await.map_err(failed(READ))
    }
}
