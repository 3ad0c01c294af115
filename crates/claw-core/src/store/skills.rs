//! Published skills, their versions and grants; accepted workspace skills; and the skills in use in each session.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Changes, StoreError};
use crate::id::{AgentId, JobId, SkillName, TenantId, UserId};
use crate::port::{Owner, UnixMillis};
use crate::skill::{SkillFile, SkillManifest, SkillTier};
use crate::tool::Digest;

/// The visibility of a published skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SkillVisibility {
    /// Its owner, and the agents and users that it is granted to.
    #[default]
    Private,
    /// Everyone of the tenant.
    Tenant,
}

impl SkillVisibility {
    /// Returns the visibility as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Tenant => "tenant",
        }
    }
}

impl fmt::Display for SkillVisibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An agent or a user that a skill is granted to.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(tag = "to", content = "id", rename_all = "lowercase")]
pub enum SkillGrantee {
    /// Every user, while this agent acts.
    Agent(AgentId),
    /// Every agent that acts for this user.
    User(UserId),
}

impl SkillGrantee {
    /// The kind of grantee as a word.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Agent(_) => "agent",
            Self::User(_) => "user",
        }
    }

    /// The id of the agent or user.
    pub fn id(&self) -> &str {
        match self {
            Self::Agent(id) => id.as_str(),
            Self::User(id) => id.as_str(),
        }
    }
}

impl fmt::Display for SkillGrantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind(), self.id())
    }
}

/// A grant of one skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SkillGrant {
    /// The agent or user that may use it.
    #[serde(flatten)]
    pub grantee: SkillGrantee,
    /// The only version that they get; `None` for the newest.
    pub version: Option<u64>,
}

/// A version before it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSkillVersion {
    /// Tenant that owns the skill.
    pub tenant: TenantId,
    /// Its front matter; names the skill.
    pub manifest: SkillManifest,
    /// The digest of the whole skill.
    pub digest: Digest,
    /// All its files.
    pub files: Vec<SkillFile>,
    /// The visibility of a new skill; an existing one keeps its own. Callers check beforehand that only its
    /// owner or an administrator publishes another version.
    pub visibility: SkillVisibility,
    /// The user who owns a new skill; an existing skill keeps its owner.
    pub owner: Option<UserId>,
    /// Doubtful lines that were found in it.
    pub findings: Vec<String>,
    /// The person, agent or key that published it, for people.
    pub by: String,
    /// The time of publication.
    pub at: UnixMillis,
}

/// A stored version, without its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillVersion {
    /// Its number, from 1 on.
    pub version: u64,
    /// Its front matter.
    pub manifest: SkillManifest,
    /// The digest of the whole skill.
    pub digest: Digest,
    /// Bytes of all files together.
    pub bytes: u64,
    /// Doubtful lines that were found in it.
    pub findings: Vec<String>,
    /// The person, agent or key that published it.
    pub by: String,
    /// The time of publication.
    pub at: UnixMillis,
}

/// A published skill with its current version.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoredSkill {
    /// Tenant that owns it.
    pub tenant: TenantId,
    /// Its name.
    pub name: SkillName,
    /// The user who owns it; `None` if a program published it.
    pub owner: Option<UserId>,
    /// The visibility: its owner alone, or the tenant.
    pub visibility: SkillVisibility,
    /// The version that everyone gets without a pinned grant; `None` for the newest.
    pub pinned: Option<u64>,
    /// The pinned version, or the newest.
    pub current: SkillVersion,
    /// The number of the newest version.
    pub newest: u64,
    /// Its grants, agents first, by id.
    pub grants: Vec<SkillGrant>,
}

/// The access of an agent and a user to a stored skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillAccess {
    /// No access.
    None,
    /// Access to the version of this number.
    Version(u64),
}

impl StoredSkill {
    /// Returns the version that this agent, acting for this user, may use. A grant's pinned version takes
    /// precedence over the skill's, a user's grant over an agent's.
    pub fn access(&self, agent: &AgentId, user: Option<&UserId>) -> SkillAccess {
        let is_users =
            |grant: &&SkillGrant| matches!(&grant.grantee, SkillGrantee::User(id) if Some(id) == user);
        let is_agents =
            |grant: &&SkillGrant| matches!(&grant.grantee, SkillGrantee::Agent(id) if id == agent);
        let grant = self.grants.iter().find(is_users).or_else(|| self.grants.iter().find(is_agents));
        let is_owner = self.owner.is_some() && self.owner.as_ref() == user;
        match grant {
            Some(grant) => SkillAccess::Version(grant.version.unwrap_or(self.current.version)),
            None if is_owner || self.visibility == SkillVisibility::Tenant => {
                SkillAccess::Version(self.current.version)
            }
            None => SkillAccess::None,
        }
    }
}

/// Changes of a published skill; a field that is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillChange {
    /// The visibility: its owner alone, or the tenant.
    pub visibility: Option<SkillVisibility>,
    /// The version that everyone gets; `Some(None)` for the newest.
    pub pinned: Option<Option<u64>>,
}

/// A workspace skill whose digest a person has accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct AcceptedSkill {
    /// The digest of the whole skill.
    pub digest: Digest,
    /// Its name.
    pub name: SkillName,
    /// The person who accepted it.
    pub by: String,
    /// The time of acceptance.
    pub at: UnixMillis,
}

/// An active skill of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillUse {
    /// Its name.
    pub name: SkillName,
    /// The digest of the whole skill.
    pub digest: Digest,
    /// The tier it comes from.
    pub tier: SkillTier,
    /// The run that activated it; `None` outside runs.
    pub run: Option<JobId>,
    /// Its `allowed-tools`; `None` once it has ended, or if it has none.
    pub allowed: Option<Vec<String>>,
    /// The time of activation.
    pub at: UnixMillis,
}

impl SkillUse {
    /// The most skills of one session whose directories stay readable; the oldest are forgotten.
    pub const MOST: usize = 32;
}

/// Stores skills; every change but the use of a skill is announced as
/// [`Topic::Skills`](super::Topic::Skills).
#[async_trait]
pub trait SkillStore: Changes {
    /// Stores a skill's next version. An existing skill keeps its owner and visibility. A version with the
    /// digest of the newest one is not stored again.
    async fn publish_skill(&self, new: NewSkillVersion) -> Result<StoredSkill, StoreError>;
    /// Returns the skills of a tenant, by name.
    async fn stored_skills(&self, tenant: &TenantId) -> Result<Vec<StoredSkill>, StoreError>;
    /// Returns one skill; `None` if the tenant has none with that name.
    async fn stored_skill(
        &self,
        tenant: &TenantId,
        name: &SkillName,
    ) -> Result<Option<StoredSkill>, StoreError>;
    /// Returns the versions of a skill, newest first.
    async fn skill_versions(
        &self,
        tenant: &TenantId,
        name: &SkillName,
    ) -> Result<Vec<SkillVersion>, StoreError>;
    /// Returns the files of one version, by path; empty if there is no such version.
    async fn skill_files(
        &self,
        tenant: &TenantId,
        name: &SkillName,
        version: u64,
    ) -> Result<Vec<SkillFile>, StoreError>;
    /// Changes a skill; `None` if the tenant has none with that name. Refused if the pinned version does not
    /// exist. Ends the uses of the skill.
    async fn change_skill(
        &self,
        tenant: &TenantId,
        name: &SkillName,
        change: SkillChange,
    ) -> Result<Option<StoredSkill>, StoreError>;
    /// Grants a skill; a grant to the same grantee is replaced. `None` and refusal as in
    /// [`change_skill`](Self::change_skill).
    async fn grant_skill(
        &self,
        tenant: &TenantId,
        name: &SkillName,
        grant: SkillGrant,
    ) -> Result<Option<StoredSkill>, StoreError>;
    /// Removes a grant; `false` if there is none. Ends the uses of the skill.
    async fn revoke_skill(
        &self,
        tenant: &TenantId,
        name: &SkillName,
        grantee: &SkillGrantee,
    ) -> Result<bool, StoreError>;
    /// Removes a skill with its versions, files, grants and uses; `false` if there is none.
    async fn remove_skill(&self, tenant: &TenantId, name: &SkillName) -> Result<bool, StoreError>;
    /// Stores that a person accepted a workspace skill; the first acceptance of a digest stands.
    async fn accept_skill(&self, tenant: &TenantId, accepted: AcceptedSkill) -> Result<(), StoreError>;
    /// Returns the accepted workspace skills of a tenant, by name and then by time.
    async fn accepted_skills(&self, tenant: &TenantId) -> Result<Vec<AcceptedSkill>, StoreError>;
    /// Removes every acceptance of a name and ends its uses from workspaces; returns the number of
    /// acceptances.
    async fn forget_skill(&self, tenant: &TenantId, name: &SkillName) -> Result<u64, StoreError>;
    /// Stores that a session uses a skill, replacing an earlier use of that name. The newest
    /// [`MOST`](SkillUse::MOST) stay.
    async fn use_skill(&self, owner: &Owner, used: SkillUse) -> Result<(), StoreError>;
    /// Ends the restriction of tools by every skill that this run, or a call outside runs, activated in a
    /// session.
    async fn end_skills(&self, owner: &Owner, run: Option<JobId>) -> Result<(), StoreError>;
    /// Returns the active skills of a session, newest first.
    async fn skill_uses(&self, owner: &Owner) -> Result<Vec<SkillUse>, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(visibility: SkillVisibility, grants: Vec<SkillGrant>) -> StoredSkill {
        let name = SkillName::new("lint").unwrap();
        let manifest = SkillManifest {
            name: name.clone(),
            description: "Lints.".to_owned(),
            license: None,
            compatibility: None,
            metadata: std::collections::BTreeMap::new(),
            allowed_tools: None,
        };
        let (digest, at) = (Digest::of_bytes(b""), UnixMillis(0));
        let current = SkillVersion {
            version: 3,
            manifest,
            digest,
            bytes: 0,
            findings: Vec::new(),
            by: String::new(),
            at,
        };
        let owner = Some(UserId::new("ann").unwrap());
        StoredSkill {
            tenant: TenantId::main(),
            name,
            owner,
            visibility,
            pinned: None,
            current,
            newest: 3,
            grants,
        }
    }

    #[track_caller]
    fn check(skill: &StoredSkill, agent: &str, user: Option<&str>, expected: SkillAccess) {
        let user = user.map(|user| UserId::new(user).unwrap());
        assert_eq!(skill.access(&AgentId::new(agent).unwrap(), user.as_ref()), expected);
    }

    #[test]
    fn a_private_skill_is_its_owners_and_its_grantees() {
        let to_agent =
            SkillGrant { grantee: SkillGrantee::Agent(AgentId::new("coder").unwrap()), version: Some(1) };
        let to_user = SkillGrant { grantee: SkillGrantee::User(UserId::new("bob").unwrap()), version: None };
        let skill = skill(SkillVisibility::Private, vec![to_agent, to_user]);
        check(&skill, "any", Some("ann"), SkillAccess::Version(3));
        check(&skill, "any", Some("eve"), SkillAccess::None);
        check(&skill, "any", None, SkillAccess::None);
        check(&skill, "coder", Some("eve"), SkillAccess::Version(1));
        check(&skill, "coder", Some("bob"), SkillAccess::Version(3));
    }

    #[test]
    fn a_skill_of_the_tenant_is_everyones_and_one_without_an_owner_nobodys() {
        let mut open = skill(SkillVisibility::Tenant, Vec::new());
        check(&open, "any", None, SkillAccess::Version(3));
        open.visibility = SkillVisibility::Private;
        open.owner = None;
        check(&open, "any", None, SkillAccess::None);
    }
}
