//! Skills: finding, using and publishing them, and the host that stores them.

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
    /// Returns the usable skills that match a query best.
    async fn search(&self, query: &str, limit: usize) -> Result<Vec<SkillCard>, ToolError>;
    /// Activates a skill: from now on its directory can be read in this session, and its `allowed-tools`
    /// restrict the calls of this run.
    async fn open(&self, name: &SkillName) -> Result<OpenedSkill, ToolError>;
    /// Ends the skill that restricts the calls of this run; its directory stays readable. Returns its name;
    /// `None` if no skill restricts them.
    async fn end(&self) -> Result<Option<SkillName>, ToolError>;
    /// Publishes a directory of the workspace to the store. Refused if the plan does not name this path, if
    /// the directory has changed since, and if a file holds a secret.
    async fn publish(&self, request: &SkillRequest) -> Result<PublishedSkill, ToolError>;
}

/// A host that stores skills.
#[async_trait]
pub trait SkillHost: Send + Sync {
    /// Returns the skills that the caller may use, by tier and then by name.
    async fn skills(&self, caller: &Caller) -> Result<Vec<SkillCard>, ToolError>;
    /// Returns the usable skills that match a query best.
    async fn search(&self, caller: &Caller, query: &str, limit: usize) -> Result<Vec<SkillCard>, ToolError>;
    /// Reads a skill, exposes its files in a read-only directory, and stores that it is in use.
    async fn open(
        &self,
        caller: &Caller,
        run: Option<JobId>,
        name: &SkillName,
    ) -> Result<OpenedSkill, ToolError>;
    /// Ends the skill that restricts the calls of a run, or of calls outside a run; returns its name.
    async fn end(&self, caller: &Caller, run: Option<JobId>) -> Result<Option<SkillName>, ToolError>;
    /// Returns the active skills of a session that affect a call of this run.
    async fn active(&self, owner: &Owner, run: Option<JobId>) -> Result<Arc<ActiveSkills>, StoreError>;
    /// Reads and checks a directory of the caller's workspace as a skill.
    async fn pack(&self, caller: &Caller, path: &str) -> Result<SkillPackage, ToolError>;
    /// Stores a checked skill as its newest version.
    async fn publish(
        &self,
        caller: &Caller,
        package: SkillPackage,
        visibility: SkillVisibility,
        findings: Vec<String>,
    ) -> Result<PublishedSkill, ToolError>;
}

/// An activated skill.
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

/// The active skills, as they affect a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActiveSkills {
    /// Directories that the session can read.
    pub directories: Vec<PathBuf>,
    /// The skill that restricts the calls of the run; `None` if no skill does.
    pub narrowing: Option<Narrowing>,
}

/// A skill that restricts the tools that may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Narrowing {
    /// The skill.
    pub skill: SkillName,
    /// Its `allowed-tools`.
    pub tools: Vec<String>,
}

/// A directory to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillRequest {
    /// The directory, relative to the workspace.
    pub path: String,
    /// The visibility: its owner alone, or the tenant.
    pub visibility: SkillVisibility,
}

/// A published skill.
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
