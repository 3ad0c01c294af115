//! Rows of skills, for both dialects.

use std::collections::HashMap;

use claw_core::store::{SkillGrant, SkillGrantee, SkillVersion, SkillVisibility, StoreError, StoredSkill};
use claw_core::{SkillName, TenantId};

use crate::row;

pub(crate) const WRITE: &str = "could not write the skill";
pub(crate) const READ: &str = "could not read skills";

/// Name, owner, visibility, pinned version, newest version, and the record of the current one.
pub(crate) type SkillRow = (String, Option<String>, String, Option<i64>, i64, String);
/// Skill, kind of grantee, grantee, pinned version.
pub(crate) type GrantRow = (String, String, String, Option<i64>);

/// Reads skills from their rows and those of their grants.
pub(crate) fn skills(
    tenant: &TenantId,
    rows: Vec<SkillRow>,
    grants: Vec<GrantRow>,
) -> Result<Vec<StoredSkill>, StoreError> {
    let mut granted: HashMap<String, Vec<SkillGrant>> = HashMap::new();
    for (name, kind, id, version) in grants {
        let grantee = match kind.as_str() {
            "agent" => SkillGrantee::Agent(row::word("a skill's agent", &id)?),
            _ => SkillGrantee::User(row::word("a skill's user", &id)?),
        };
        let version = version.map(row::count).transpose()?;
        granted.entry(name).or_default().push(SkillGrant { grantee, version });
    }
    let skill = |(name, owner, visibility, pinned, newest, record): SkillRow| {
        let current: SkillVersion = row::json("a skill's version", &record)?;
        Ok(StoredSkill {
            tenant: tenant.clone(),
            owner: owner.map(|owner| row::word("a skill's owner", &owner)).transpose()?,
            visibility: row::word::<SkillVisibility>("a skill's visibility", &visibility)?,
            pinned: pinned.map(row::count).transpose()?,
            current,
            newest: row::count(newest)?,
            grants: granted.remove(&name).unwrap_or_default(),
            name: row::word("a skill's name", &name)?,
        })
    };
    rows.into_iter().map(skill).collect()
}

/// The refusal of a version that a skill does not have.
pub(crate) fn no_version(name: &SkillName, version: u64, newest: i64) -> StoreError {
    StoreError::Refused {
        what: WRITE,
        why: format!("skill `{name}` has no version {version}; its versions are 1 to {newest}"),
    }
}
