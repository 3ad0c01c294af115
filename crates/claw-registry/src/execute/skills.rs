//! Skills in use: the directories that a call can read for them, and the tools that they exclude.

use std::sync::{Arc, LazyLock};

use claw_core::port::{ActiveSkills, Owner};
use claw_core::skill::SkillCard;
use claw_core::tool::{Meta, Need, ToolError};

use super::Trip;
use crate::offer::State;
use crate::reply::{Refusal, Step};
use crate::{Executor, Offer};

impl Executor {
    /// The skills that this caller may use, by tier and then by name; empty if the tool for them is not
    /// offered.
    pub async fn skills(&self, offer: &Offer) -> Result<Vec<SkillCard>, ToolError> {
        let uses = |name: &str| offer.find(name).is_some_and(|tool| tool.state() == State::Listed);
        match &offer.0.registry.world().skills {
            Some(host) if uses(USE_SKILL) => host.skills(offer.caller()).await,
            _ => Ok(Vec::new()),
        }
    }
}

/// No skills in use, shared by all calls.
pub(super) fn none() -> Arc<ActiveSkills> {
    static NONE: LazyLock<Arc<ActiveSkills>> = LazyLock::new(Arc::default);
    Arc::clone(&NONE)
}

/// The tool that starts using a skill.
const USE_SKILL: &str = "use_skill";

impl Trip<'_> {
    /// Loads the skills in use.
    pub(super) async fn take_skills(&mut self) -> Result<(), Refusal> {
        let Some(host) = &self.offer.0.registry.world().skills else { return Ok(()) };
        let caller = self.offer.caller();
        let owner = Owner { tenant: caller.tenant.clone(), session: caller.session.clone() };
        self.skills = host.active(&owner, self.request.run).await.map_err(|error| {
            tracing::error!(%error, "the skills in use could not be read");
            let reason = "the skills in use cannot be read right now, so the call is not run";
            Refusal::at(Step::Authorise, reason).try_instead("try again later")
        })?;
        Ok(())
    }

    /// Refuses a tool that the skill in use excludes. Tools that use or find skills, find tools or read
    /// results are never excluded.
    pub(super) fn check_skill(&self) -> Result<(), Refusal> {
        let Some(narrowing) = &self.skills.narrowing else { return Ok(()) };
        let meta = &self.tool.entry.meta;
        let finds = [Need::Skills, Need::Catalogue, Need::Artifacts];
        let stays = meta.effects.read_only() && meta.needs.iter().any(|need| finds.contains(need));
        if stays || narrowing.tools.iter().any(|entry| is_named(meta, entry)) {
            return Ok(());
        }
        let reason = format!(
            "skill `{}` is in use, and its `allowed-tools` leave `{}` out: {}",
            narrowing.skill,
            meta.name,
            narrowing.tools.join(", ")
        );
        Err(Refusal::at(Step::Authorise, reason)
            .try_instead("use one of those, or end the skill with `use_skill` and `end`"))
    }
}

/// Returns whether an entry of `allowed-tools` names a tool, by its name or an alias. A pattern in brackets
/// narrows the tool for other agents; here the whole tool is allowed, within the policy.
fn is_named(meta: &Meta, entry: &str) -> bool {
    let name = entry.split('(').next().unwrap_or_default().trim();
    match name.strip_suffix('*') {
        Some(prefix) => meta.name.as_str().starts_with(prefix),
        None => meta.name.as_str() == name || meta.aliases.contains(name),
    }
}
