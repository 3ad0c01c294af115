//! Guard of skills: any caller finds and uses them; publishing needs a plan, and the directory must be as it
//! was seen then.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::SkillName;
use claw_core::port::{OpenedSkill, PublishedSkill, Scope, SkillHost, SkillRequest, Skills};
use claw_core::skill::{SkillCard, SkillPackage};
use claw_core::tool::{Ask, Caller, Effect, ErrorKind, Sight, Target, ToolError};

use super::{Grant, Site, unplanned};
use crate::{Executor, Offer, skill_checks};

pub(super) fn guard(site: &Site<'_>) -> Option<Arc<dyn Skills>> {
    Some(Arc::new(OwnSkills {
        host: site.world().skills.clone()?,
        executor: site.executor.clone(),
        caller: Arc::clone(site.caller()),
        grant: site.grant(),
    }))
}

struct OwnSkills {
    host: Arc<dyn SkillHost>,
    executor: Executor,
    caller: Arc<Caller>,
    grant: Arc<Grant>,
}

#[async_trait]
impl Skills for OwnSkills {
    async fn search(&self, query: &str, limit: usize) -> Result<Vec<SkillCard>, ToolError> {
        self.grant.live()?;
        self.host.search(&self.caller, query, limit).await
    }

    async fn open(&self, name: &SkillName) -> Result<OpenedSkill, ToolError> {
        self.grant.live()?;
        self.host.open(&self.caller, self.grant.run, name).await
    }

    async fn end(&self) -> Result<Option<SkillName>, ToolError> {
        self.grant.live()?;
        self.host.end(&self.caller, self.grant.run).await
    }

    async fn publish(&self, request: &SkillRequest) -> Result<PublishedSkill, ToolError> {
        self.grant.live()?;
        let SkillRequest { path, visibility } = request;
        let named = |ask: &Ask| matches!(ask, Ask::Publish { path: named } if named == path);
        if !(self.grant.effects.has(Effect::Write) && self.grant.plan.asks.iter().any(named)) {
            return Err(unplanned(format!("publishing `{path}`")));
        }
        let package = pack(&*self.host, &self.caller, path, &self.grant.scope).await?;
        let of_path = |sight: &&Sight| matches!(&sight.target, Target::Skill { path: seen } if seen == path);
        let seen = self.grant.sights.iter().find(of_path).and_then(|sight| sight.identity.clone());
        if seen != Some(package.digest().to_string()) {
            let message = format!("`{path}` changed since the call was judged");
            return Err(ToolError::new(ErrorKind::Conflict, message)
                .try_instead("call again, so that it is judged again"));
        }
        let scrubber = self.executor.scrubbers().for_tenant(&self.caller.tenant);
        let findings = skill_checks::inspect(&package, &scrubber)?;
        self.host.publish(&self.caller, package, *visibility, findings).await
    }
}

/// Has the host of skills look at directories that a plan would publish. One with a secret is refused before
/// anybody is asked.
pub(crate) async fn look_at_skills(
    executor: &Executor,
    offer: &Offer,
    targets: &[Target],
    scope: &Scope,
) -> Result<Vec<Sight>, ToolError> {
    let Some(host) = &offer.0.registry.world().skills else { return Ok(Vec::new()) };
    let mut sights = Vec::new();
    for target in targets {
        let Target::Skill { path } = target else { continue };
        let package = pack(&**host, offer.caller(), path, scope).await?;
        let scrubber = executor.scrubbers().for_tenant(&offer.caller().tenant);
        let findings = skill_checks::inspect(&package, &scrubber)?;
        sights.push(Sight {
            target: target.clone(),
            path: Some(skill_checks::summary(&package, &findings)),
            identity: Some(package.digest().to_string()),
            credential: None,
            writable: true,
        });
    }
    Ok(sights)
}

/// Reads a directory to be published; the caller must be allowed to read every file of it.
async fn pack(
    host: &dyn SkillHost,
    caller: &Caller,
    path: &str,
    scope: &Scope,
) -> Result<SkillPackage, ToolError> {
    use claw_core::port::Access;
    scope.resolve_text(&caller.workspace, path, Access::Read)?;
    let package = host.pack(caller, path).await?;
    for file in &package.files {
        scope.resolve_text(&caller.workspace, &format!("{path}/{}", file.path), Access::Read)?;
    }
    Ok(package)
}
