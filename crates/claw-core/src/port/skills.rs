//! Skills: what a tool may find, use and publish of them, and what a place that holds them implements.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;

use super::Owner;
use crate::id::{JobId, SkillName};
use crate::skill::{SkillCard, SkillManifest, SkillPackage, SkillTier};
use crate::store::{SkillVisibility, StoreError};
use crate::tool::{Caller, Digest, ToolError};

/// The skills that the caller may use.
#[async_trait]
pub trait Skills: Send + Sync {
    /// The usable skills that fit a query best.
    async fn search(&self, query: &str, limit: usize) -> Result<Vec<SkillCard>, ToolError>;
    /// Takes up a skill: from now on its directory can be read in this session, and its `allowed-tools` narrow what may be
    /// called in this run.
    async fn open(&self, name: &SkillName) -> Result<OpenedSkill, ToolError>;
    /// Ends the skill that narrows the calls of this run; its directory stays readable. Returns its name.
    async fn end(&self) -> Result<Option<SkillName>, ToolError>;
    /// Takes a directory of the workspace into the store. Refused unless the plan asked for this path, if the directory
    /// is not as it was then, and if a file holds a secret.
    async fn publish(&self, request: &SkillRequest) -> Result<PublishedSkill, ToolError>;
}

/// A place that holds skills.
#[async_trait]
pub trait SkillHost: Send + Sync {
    /// The skills that the caller may use, by tier and then by name.
    async fn skills(&self, caller: &Caller) -> Result<Vec<SkillCard>, ToolError>;
    /// The usable skills that fit a query best.
    async fn search(&self, caller: &Caller, query: &str, limit: usize) -> Result<Vec<SkillCard>, ToolError>;
    /// Reads a skill, shows its files in a directory that nobody changes, and remembers its use.
    async fn open(
        &self,
        caller: &Caller,
        run: Option<JobId>,
        name: &SkillName,
    ) -> Result<OpenedSkill, ToolError>;
    /// Ends the skill that narrows the calls of a run, or of calls outside of one.
    async fn end(&self, caller: &Caller, run: Option<JobId>) -> Result<Option<SkillName>, ToolError>;
    /// The skills that are in use in a session, as far as they matter to a call of this run.
    async fn active(&self, owner: &Owner, run: Option<JobId>) -> Result<Arc<ActiveSkills>, StoreError>;
    /// Reads and checks a directory of the caller's workspace as a skill.
    async fn pack(&self, caller: &Caller, path: &str) -> Result<SkillPackage, ToolError>;
    /// Puts a checked skill into the store as its newest version.
    async fn publish(
        &self,
        caller: &Caller,
        package: SkillPackage,
        visibility: SkillVisibility,
        findings: Vec<String>,
    ) -> Result<PublishedSkill, ToolError>;
}

/// A skill that was taken up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSkill {
    /// Its front matter.
    pub manifest: SkillManifest,
    /// Its instructions; `{baseDir}` is replaced by the directory.
    pub body: String,
    /// The place that it comes from.
    pub tier: SkillTier,
    /// The digest of the whole skill.
    pub digest: Digest,
    /// The directory of its files; read-only.
    pub directory: PathBuf,
    /// Its files below that directory, with their sizes in bytes; without `SKILL.md`.
    pub files: Vec<(String, u64)>,
}

/// Skills in use, as a call meets them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActiveSkills {
    /// Directories that the session can read.
    pub directories: Vec<PathBuf>,
    /// The skill that narrows the calls of the run.
    pub narrowing: Option<Narrowing>,
}

/// A skill that narrows which tools may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Narrowing {
    /// The skill.
    pub skill: SkillName,
    /// Its `allowed-tools`.
    pub tools: Vec<String>,
}

/// A directory that is to be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillRequest {
    /// The directory, relative to the workspace.
    pub path: String,
    /// The visibility: its owner alone, or the tenant.
    pub visibility: SkillVisibility,
}

/// A skill that was published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PublishedSkill {
    /// Its name.
    pub name: SkillName,
    /// Its version; 1 for a new skill.
    pub version: u64,
    /// The digest of the whole skill.
    pub digest: Digest,
    /// The visibility: its owner alone, or the tenant.
    pub visibility: SkillVisibility,
    /// Lines that look like instructions to hide, exfiltrate or override something, for a person to read.
    pub findings: Vec<String>,
}
