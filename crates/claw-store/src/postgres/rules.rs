//! Approval rules given by people.

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::store::{Answer, Approval, ApprovalState, NewRule, Rule, Rules, StoreError, Topic};
use claw_core::{AgentId, ApprovalId, RuleId, SessionKey, TenantId};
use sqlx::types::Json;
use sqlx::{query, query_as};

use super::failure::{failed, is_taken};
use super::{PostgresStore, approvals, uuid};
use crate::row::{self, check_yes, no_rule, not_live, rule_refused, wrong_state};

const WRITE: &str = "could not store the rule";
const READ: &str = "could not read rules";

/// The rule as given, its uses, last use and revocation.
type Row = (Json<NewRule>, i64, Option<i64>, Option<i64>);

/// Stores a rule; the added clause handles a taken id.
macro_rules! insert {
    ($rule:expr, $taken:literal) => {
        query(concat!(
            "INSERT INTO rules (tenant, id, scope, agent, session, given, created, expires)
             VALUES ($1, $2, $3, $4, $5, $6::json, $7, $8) ",
            $taken
        ))
        .bind($rule.tenant.as_str())
        .bind(uuid($rule.id.as_bytes()))
        .bind($rule.scope.name())
        .bind($rule.scope.agent().map(AgentId::as_str))
        .bind($rule.scope.session().map(SessionKey::as_str))
        .bind(row::text(&$rule)?)
        .bind($rule.created.0)
        .bind($rule.expires.map(|at| at.0))
    };
}

#[async_trait]
impl Rules for PostgresStore {
    async fn put_rule(&self, new: NewRule) -> Result<(), StoreError> {
        let put = insert!(new, "ON CONFLICT (tenant, id) DO NOTHING");
        put.execute(&self.pool).await.map_err(failed(WRITE))?;
        self.listener.bells.ring(Topic::Approvals);
        Ok(())
    }

    async fn answer_with_rule(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        answer: Answer,
        rule: NewRule,
    ) -> Result<Approval, StoreError> {
        check_yes(&answer)?;
        let mut transaction = self.begin(WRITE).await?;
        let Some(answered) = approvals::answer(&mut transaction, tenant, id, &answer).await? else {
            transaction.rollback().await.map_err(failed(WRITE))?;
            return Err(wrong_state(&self.existing(tenant, id).await?));
        };
        let expired = answered.state == ApprovalState::Expired;
        if !expired {
            if let Some(why) = rule.misfit(&answered.request) {
                return Err(rule_refused(why));
            }
            let rule = NewRule { approval: Some(id), ..rule };
            insert!(rule, "").execute(&mut *transaction).await.map_err(|error| match error {
                error if is_taken(&error, "rules_pkey") => rule_refused("its id is taken; give it a new one"),
                error => failed(WRITE)(error),
            })?;
        }
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring_for_approval(&answered);
        if expired { Err(wrong_state(&answered)) } else { Ok(answered) }
    }

    async fn rules(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
        session: &SessionKey,
        now: UnixMillis,
    ) -> Result<Vec<Rule>, StoreError> {
        let rows: Vec<Row> = query_as(
            "SELECT given, uses, last_used, revoked FROM rules
             WHERE tenant = $1 AND (agent IS NULL OR agent = $2) AND (session IS NULL OR session = $3)
               AND revoked IS NULL AND (expires IS NULL OR expires > $4)
             ORDER BY created, id",
        )
        .bind(tenant.as_str())
        .bind(agent.as_str())
        .bind(session.as_str())
        .bind(now.0)
        .fetch_all(&self.pool)
        .await
        .map_err(failed(READ))?;
        rows.into_iter().map(rule).collect()
    }

    async fn all_rules(&self, tenant: &TenantId) -> Result<Vec<Rule>, StoreError> {
        let rows: Vec<Row> = query_as(
            "SELECT given, uses, last_used, revoked FROM rules WHERE tenant = $1 ORDER BY created, id",
        )
        .bind(tenant.as_str())
        .fetch_all(&self.pool)
        .await
        .map_err(failed(READ))?;
        rows.into_iter().map(rule).collect()
    }

    async fn revoke_rule(&self, tenant: &TenantId, id: RuleId, at: UnixMillis) -> Result<Rule, StoreError> {
        let revoked: Option<Row> = query_as(
            "UPDATE rules SET revoked = coalesce(revoked, $3) WHERE tenant = $1 AND id = $2
             RETURNING given, uses, last_used, revoked",
        )
        .bind(tenant.as_str())
        .bind(uuid(id.as_bytes()))
        .bind(at.0)
        .fetch_optional(&self.pool)
        .await
        .map_err(failed(WRITE))?;
        let revoked = revoked.ok_or_else(|| no_rule(id))?;
        self.listener.bells.ring(Topic::Approvals);
        rule(revoked)
    }

    async fn use_rule(&self, tenant: &TenantId, id: RuleId, now: UnixMillis) -> Result<Rule, StoreError> {
        let used: Option<Row> = query_as(
            "UPDATE rules SET uses = uses + 1, last_used = greatest(last_used, $3)
             WHERE tenant = $1 AND id = $2 AND revoked IS NULL AND (expires IS NULL OR expires > $3)
             RETURNING given, uses, last_used, revoked",
        )
        .bind(tenant.as_str())
        .bind(uuid(id.as_bytes()))
        .bind(now.0)
        .fetch_optional(&self.pool)
        .await
        .map_err(failed(WRITE))?;
        match used {
            Some(used) => rule(used),
            None => Err(self.why_not(tenant, id, now).await?),
        }
    }
}

impl PostgresStore {
    /// Returns why a rule cannot be used: a rule that no longer holds never holds again.
    async fn why_not(
        &self,
        tenant: &TenantId,
        id: RuleId,
        now: UnixMillis,
    ) -> Result<StoreError, StoreError> {
        let row: Option<Row> =
            query_as("SELECT given, uses, last_used, revoked FROM rules WHERE tenant = $1 AND id = $2")
                .bind(tenant.as_str())
                .bind(uuid(id.as_bytes()))
                .fetch_optional(&self.pool)
                .await
                .map_err(failed(READ))?;
        let found = row.map(rule).transpose()?;
        Ok(found.map_or_else(|| no_rule(id), |found| not_live(&found, now)))
    }
}

fn rule((Json(new), uses, last_used, revoked): Row) -> Result<Rule, StoreError> {
    let (last_used, revoked) = (last_used.map(UnixMillis), revoked.map(UnixMillis));
    Ok(Rule { new, uses: row::count(uses)?, last_used, revoked })
}
