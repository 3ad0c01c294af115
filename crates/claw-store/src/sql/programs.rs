//! Credentialed programs.

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::UnixMillis;
use claw_core::store::{Program, ProgramCard, ProgramPlace, ProgramSettings, Programs, StoreError, Topic};
use sqlx::query;

use super::dialect::{Row, Store, column, failed};
use crate::row;

const WRITE: &str = "could not write the program";
const READ: &str = "could not read programs";

#[async_trait]
impl Programs for Store {
    async fn program(&self, place: &ProgramPlace) -> Result<Option<Program>, StoreError> {
        let found = query(
            "SELECT agent, name, settings, variables, enabled, env, at FROM programs
             WHERE tenant = $1 AND agent = $2 AND name = $3",
        )
        .bind(place.tenant.as_str())
        .bind(row::agent_text(place.agent.as_ref()))
        .bind(place.name.as_str())
        .fetch_optional(self.reading())
        .await
        .map_err(failed(READ))?;
        let Some(found) = found else { return Ok(None) };
        let env = row::sealed(&place.into(), column(&found, "env")?)?;
        Ok(Some(Program { card: card(&place.tenant, &found)?, env }))
    }

    async fn put_program(&self, program: &Program) -> Result<(), StoreError> {
        let Program { card, env } = program;
        let mut transaction = self.write(WRITE).await?;
        query(
            "INSERT INTO programs (tenant, agent, name, settings, variables, enabled, env, at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
             ON CONFLICT (tenant, agent, name) DO UPDATE SET settings = excluded.settings,
                 variables = excluded.variables, enabled = excluded.enabled, env = excluded.env, at = excluded.at",
        )
        .bind(card.place.tenant.as_str())
        .bind(row::agent_text(card.place.agent.as_ref()))
        .bind(card.place.name.as_str())
        .bind(row::text(&card.settings)?)
        .bind(row::text(&card.variables)?)
        .bind(card.settings.enabled)
        .bind(env.as_bytes())
        .bind(card.at.0)
        .execute(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring(Topic::Secrets);
        Ok(())
    }

    async fn enable_program(
        &self,
        place: &ProgramPlace,
        enabled: bool,
        at: UnixMillis,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let changed =
            query("UPDATE programs SET enabled = $4, at = $5 WHERE tenant = $1 AND agent = $2 AND name = $3")
                .bind(place.tenant.as_str())
                .bind(row::agent_text(place.agent.as_ref()))
                .bind(place.name.as_str())
                .bind(enabled)
                .bind(at.0)
                .execute(&mut *transaction)
                .await
                .map_err(failed(WRITE))?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring(Topic::Secrets);
        Ok(changed.rows_affected() > 0)
    }

    async fn remove_program(&self, place: &ProgramPlace) -> Result<bool, StoreError> {
        let mut transaction = self.write(WRITE).await?;
        let removed = query("DELETE FROM programs WHERE tenant = $1 AND agent = $2 AND name = $3")
            .bind(place.tenant.as_str())
            .bind(row::agent_text(place.agent.as_ref()))
            .bind(place.name.as_str())
            .execute(&mut *transaction)
            .await
            .map_err(failed(WRITE))?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.ring(Topic::Secrets);
        Ok(removed.rows_affected() > 0)
    }

    async fn programs(&self, tenant: &TenantId) -> Result<Vec<ProgramCard>, StoreError> {
        let rows = query(
            "SELECT agent, name, settings, variables, enabled, at FROM programs
             WHERE tenant = $1 ORDER BY agent, name",
        )
        .bind(tenant.as_str())
        .fetch_all(self.reading())
        .await
        .map_err(failed(READ))?;
        rows.iter().map(|found| card(tenant, found)).collect()
    }
}

fn card(tenant: &TenantId, found: &Row) -> Result<ProgramCard, StoreError> {
    let place = ProgramPlace {
        tenant: tenant.clone(),
        agent: row::agent_of("a program's agent", column(found, "agent")?)?,
        name: row::word("a program's name", column(found, "name")?)?,
    };
    let mut settings: ProgramSettings = row::json("a program's settings", column(found, "settings")?)?;
    settings.enabled = column(found, "enabled")?;
    let variables = row::json("the names of a program's variables", column(found, "variables")?)?;
    Ok(ProgramCard { place, settings, variables, at: UnixMillis(column(found, "at")?) })
}
