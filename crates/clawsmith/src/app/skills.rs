//! Skills: listing, accepting and publishing them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use claw_core::port::{Clock as _, SkillHost as _};
use claw_core::skill::{SkillCard, SkillManifest, SkillPackage, SkillState, SkillTier};
use claw_core::store::{
    AcceptedSkill, NewSkillVersion, SkillChange, SkillGrant, SkillGrantee, SkillVersion, SkillVisibility,
    StoredSkill,
};
use claw_core::tool::{Caller, Digest, ErrorKind, ToolError};
use claw_core::{SkillName, UserId};
use claw_host::SystemClock;
use claw_host::skills::{SkillOptions, SkillShelf, read_directory};
use claw_registry::{FileRules, skill_checks};
use serde::Serialize;

use super::{App, Error, Setup, real};

/// A skill with everything that is known of it.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillView {
    /// The skill's name, place and state.
    #[serde(flatten)]
    pub card: SkillCard,
    /// The skill's front matter.
    pub manifest: SkillManifest,
    /// The skill's instructions.
    pub body: String,
    /// The skill's files, with their sizes in bytes.
    pub files: Vec<(String, usize)>,
    /// Lines that look like an attack.
    pub findings: Vec<String>,
    /// The skill's entry in the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredSkill>,
    /// The skill's versions in the store, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<SkillVersion>,
}

/// A directory that a person publishes.
#[derive(Debug, Clone)]
pub struct SkillPublication {
    /// The directory.
    pub directory: PathBuf,
    /// The visibility of a new skill.
    pub visibility: SkillVisibility,
    /// The user who owns a new skill.
    pub owner: Option<UserId>,
    /// The person who publishes it.
    pub by: String,
}

impl Setup {
    /// The places of skills.
    fn skill_options(&self) -> Result<SkillOptions, Error> {
        let home = self.around.home().filter(|_| self.local_user);
        let beside = self.loaded.found.as_ref().and_then(|found| found.path.parent()).map(Path::to_owned);
        let beside = beside.unwrap_or_else(|| self.around.directory.clone());
        let beside = self.around.directory.join(beside);
        let deployment = self.config().skills.directories.iter();
        Ok(SkillOptions {
            snapshots: real(&self.data_dir()?).join(FileRules::SKILLS),
            user: home.map(|home| home.join(".agents").join("skills")),
            deployment: deployment.map(|directory| beside.join(directory)).collect(),
            tenant: self.tenant().clone(),
        })
    }
}

impl App {
    /// The skills of this deployment.
    pub(crate) fn skill_shelf(&self) -> Result<SkillShelf, Error> {
        let options = self.setup().skill_options()?;
        Ok(SkillShelf::new(Arc::clone(&self.store) as _, Arc::new(SystemClock), options))
    }

    /// Returns every skill that concerns this caller, with the reason if one cannot be used.
    pub async fn skills(&self, caller: &Caller) -> Result<Vec<SkillCard>, Error> {
        self.skill_shelf()?.inventory(caller).await.map_err(told)
    }

    /// The usable skills that fit a query best.
    pub async fn search_skills(
        &self,
        caller: &Caller,
        query: &str,
        limit: usize,
    ) -> Result<Vec<SkillCard>, Error> {
        self.skill_shelf()?.search(caller, query, limit).await.map_err(told)
    }

    /// Returns a skill as this caller gets it: the usable one of that name, else one of the workspace that
    /// waits to be accepted.
    pub async fn skill(&self, caller: &Caller, name: &SkillName) -> Result<SkillView, Error> {
        let shelf = self.skill_shelf()?;
        let cards = shelf.inventory(caller).await.map_err(told)?;
        let of_name = |state: &dyn Fn(&SkillState) -> bool| {
            cards.iter().find(|card| card.name == name.as_str() && state(&card.state)).cloned()
        };
        let usable = of_name(&|state| *state == SkillState::Usable);
        let (card, package) = match (usable, of_name(&|state| *state == SkillState::Unaccepted)) {
            (Some(card), _) => (card, shelf.read(caller, name).await.map_err(told)?.1),
            (None, Some(card)) => (card, shelf.read_workspace(caller, name).await.map_err(told)?),
            (None, None) => {
                return Err(told(shelf.read(caller, name).await.err().unwrap_or_else(|| gone(name))));
            }
        };
        let findings = skill_checks::findings(&package);
        let files = package.files.iter().map(|file| (file.path.clone(), file.bytes.len())).collect();
        let (mut stored, mut versions) = (None, Vec::new());
        if card.tier == SkillTier::Store {
            stored = self.store.stored_skill(&caller.tenant, name).await?;
            versions = self.store.skill_versions(&caller.tenant, name).await?;
        }
        let (manifest, body) = (package.manifest, package.body);
        Ok(SkillView { card, manifest, body, files, findings, stored, versions })
    }

    /// Accepts a skill of the caller's workspace. If a digest is given, the skill must have it: it is the one
    /// that the person saw.
    pub async fn accept_skill(
        &self,
        caller: &Caller,
        name: &SkillName,
        seen: Option<&Digest>,
        by: &str,
    ) -> Result<AcceptedSkill, Error> {
        let shelf = self.skill_shelf()?;
        let package = shelf.read_workspace(caller, name).await.map_err(told)?;
        let digest = package.digest();
        if seen.is_some_and(|seen| *seen != digest) {
            let error = Error::invalid(format!("skill `{name}` has changed: it is {digest} now"));
            return Err(error.hint("review it again, then accept it"));
        }
        Ok(shelf.accept(&caller.tenant, &package, by).await?)
    }

    /// Publishes a directory of this machine as a skill's newest version. Refused if a file holds a secret.
    pub async fn publish_skill(&self, publication: SkillPublication) -> Result<StoredSkill, Error> {
        let directory = publication.directory.clone();
        let read = tokio::task::spawn_blocking(move || read_directory(&directory)).await;
        let package: SkillPackage = read
            .map_err(|stopped| Error::failed("the directory was not read").because(stopped))?
            .map_err(|error| {
                Error::invalid(format!("`{}` is not a skill: {error}", publication.directory.display()))
            })?;
        let scrubber = self.scrubber(self.tenant()).await?;
        let findings = skill_checks::inspect(&package, &scrubber).map_err(told)?;
        let new = NewSkillVersion {
            tenant: self.tenant().clone(),
            digest: package.digest(),
            manifest: package.manifest,
            files: package.files,
            visibility: publication.visibility,
            owner: publication.owner,
            findings,
            by: publication.by,
            at: SystemClock.now(),
        };
        Ok(self.store.publish_skill(new).await?)
    }

    /// Changes who may use a published skill, or which version they get.
    pub async fn change_skill(&self, name: &SkillName, change: SkillChange) -> Result<StoredSkill, Error> {
        self.store.change_skill(self.tenant(), name, change).await?.ok_or_else(|| unpublished(name))
    }

    /// Grants a published skill to an agent or a user.
    pub async fn grant_skill(&self, name: &SkillName, grant: SkillGrant) -> Result<StoredSkill, Error> {
        self.store.grant_skill(self.tenant(), name, grant).await?.ok_or_else(|| unpublished(name))
    }

    /// Revokes a grant.
    pub async fn revoke_skill(&self, name: &SkillName, grantee: &SkillGrantee) -> Result<(), Error> {
        match self.store.revoke_skill(self.tenant(), name, grantee).await? {
            true => Ok(()),
            false => Err(Error::not_found(format!("skill `{name}` is not granted to {grantee}"))
                .hint(format!("clawsmith skills show {name}"))),
        }
    }

    /// Removes a published skill with all its versions, and all acceptances of skills of this name. Returns
    /// whether there was a published one, and the number of acceptances.
    pub async fn remove_skill(&self, name: &SkillName) -> Result<(bool, u64), Error> {
        let removed = self.store.remove_skill(self.tenant(), name).await?;
        let forgotten = self.store.forget_skill(self.tenant(), name).await?;
        match (removed, forgotten) {
            (false, 0) => Err(unpublished(name)),
            done => Ok(done),
        }
    }
}

fn unpublished(name: &SkillName) -> Error {
    Error::not_found(format!("there is no skill `{name}` in the store")).hint("clawsmith skills list")
}

fn gone(name: &SkillName) -> ToolError {
    ToolError::not_found(format!("there is no skill `{name}`"))
}

/// Converts a tool's error.
fn told(error: ToolError) -> Error {
    let mut told = match error.kind {
        ErrorKind::NotFound => Error::not_found(error.message.clone()),
        _ => Error::invalid(error.message.clone()),
    };
    if let Some(advice) = &error.advice {
        // The advice is meant for models; a person has a command for it.
        told = told.hint(advice.replace("`skill_search`", "`clawsmith skills search`"));
    }
    match error.cause {
        Some(cause) => told.because(cause),
        None => told,
    }
}
