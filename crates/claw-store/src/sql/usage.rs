//! Token usage and cost of model answers.

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{NewUsage, Spender, StoreError, Usage, UsageFilter, UsageLine, UsageLog};
use claw_core::{SessionKey, TenantId};
use sqlx::{query, query_as, query_scalar};

use super::dialect::{Id, Store, failed, free_text, id_bytes, stored_id};
use crate::row;
use crate::usage::{self, READ, WRITE};

/// Sums the cost for tenant `$1` since `$2`; the added condition selects whose.
macro_rules! spent {
    ($whose:literal) => {
        query_scalar(concat!(
            "SELECT CAST(coalesce(sum(cost), 0) AS BIGINT) FROM usage WHERE tenant = $1 AND at >= $2",
            $whose
        ))
    };
}

#[async_trait]
impl UsageLog for Store {
    async fn record_usage(&self, new: NewUsage) -> Result<(), StoreError> {
        usage::check(&new)?;
        query(
            "INSERT INTO usage (tenant, id, agent, user_id, session, run, provider, model,
                                input, output, cache_read, cache_write, cost, at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
             ON CONFLICT (tenant, id) DO NOTHING",
        )
        .bind(new.tenant.as_str())
        .bind(stored_id(new.id.as_bytes()))
        .bind(new.agent.as_str())
        .bind(new.user.as_ref().map(|user| user.as_str()))
        .bind(new.session.as_str())
        .bind(new.run.as_ref().map(|run| stored_id(run.as_bytes())))
        .bind(free_text(&new.provider))
        .bind(free_text(&new.model))
        .bind(row::number(new.tokens.input))
        .bind(row::number(new.tokens.output))
        .bind(row::number(new.tokens.cache_read))
        .bind(row::number(new.tokens.cache_write))
        .bind(new.cost)
        .bind(new.at.0)
        .execute(self.writing())
        .await
        .map(drop)
        .map_err(failed(WRITE))
    }

    async fn usage(&self, tenant: &TenantId, filter: &UsageFilter) -> Result<Usage, StoreError> {
        let mut asked = usage::sums(tenant, filter, |root| stored_id(root.as_bytes()));
        let sums = asked.build_query_as().fetch_one(self.reading()).await.map_err(failed(READ))?;
        usage::usage(sums)
    }

    async fn usage_lines(
        &self,
        tenant: &TenantId,
        filter: &UsageFilter,
    ) -> Result<Vec<UsageLine>, StoreError> {
        let mut asked = usage::lines(tenant, filter, |root| stored_id(root.as_bytes()));
        let lines = asked.build_query_as().fetch_all(self.reading()).await.map_err(failed(READ))?;
        usage::sorted(lines)
    }

    async fn last_usage(
        &self,
        tenant: &TenantId,
        session: &SessionKey,
    ) -> Result<Option<NewUsage>, StoreError> {
        type Answer = (Id, String, Option<String>, Option<Id>, String, String, i64, i64, i64, i64, i64, i64);
        let found: Option<Answer> = query_as(
            "SELECT id, agent, user_id, run, provider, model, input, output, cache_read, cache_write, cost, at
             FROM usage WHERE tenant = $1 AND session = $2 ORDER BY at DESC, id DESC LIMIT 1",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .fetch_optional(self.reading())
        .await
        .map_err(failed(READ))?;
        let Some((id, agent, user, run, provider, model, input, output, read, write, cost, at)) = found
        else {
            return Ok(None);
        };
        Ok(Some(NewUsage {
            id: row::id("an answer's id", id_bytes(&id))?,
            tenant: tenant.clone(),
            agent: row::word("an answer's agent", &agent)?,
            user: user.as_deref().map(|user| row::word("an answer's user", user)).transpose()?,
            session: session.clone(),
            run: run.as_ref().map(|run| row::id("an answer's run", id_bytes(run))).transpose()?,
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
        asked.fetch_one(self.reading()).await.map_err(failed(READ))
    }
}
