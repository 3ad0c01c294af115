//! Skills: in workspaces, in configured directories, in the store and built in.
//!
//! ```text
//!  directories ─▶ package: read by handles, within limits ─▶ shelf: who may use which ─▶ snapshot: what is shown
//! ```
//!
//! A skill of a workspace may come with a clone, or from an agent: it is used only if a person has accepted
//! the digest of the whole directory. Until then it shadows no other skill, and no model learns of it.

mod builtin;
mod caller_skills;
mod front_matter;
mod local;
mod package;
mod snapshot;

use std::fmt;

use claw_core::skill::SkillPackage;
use claw_core::tool::{ErrorKind, ToolError};

pub use self::caller_skills::{SkillOptions, SkillShelf};
pub use self::package::{LARGEST_FILE, LARGEST_SKILL, MOST_FILES};

/// Reads and checks a directory that a person named as a skill.
pub fn read_directory(path: &std::path::Path) -> Result<SkillPackage, SkillError> {
    let opened = package::open_named(path)
        .map_err(|error| SkillError::Missing(format!("`{}` cannot be opened: {error}", path.display())))?;
    // A path like `.` has a name once it is resolved.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = real.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    package::read(&opened, name)
}

/// A directory that is no skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillError {
    /// The skill breaks a rule of the format, or a limit.
    Invalid(String),
    /// The skill, or its `SKILL.md`, is missing.
    Missing(String),
    /// The skill cannot be read.
    Failed(String),
}

impl fmt::Display for SkillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Invalid(why) | Self::Missing(why) | Self::Failed(why)) = self;
        f.write_str(why)
    }
}

impl std::error::Error for SkillError {}

impl From<SkillError> for ToolError {
    fn from(error: SkillError) -> Self {
        let kind = match &error {
            SkillError::Invalid(_) => ErrorKind::Invalid,
            SkillError::Missing(_) => ErrorKind::NotFound,
            SkillError::Failed(_) => ErrorKind::Failed,
        };
        Self::new(kind, error.to_string())
    }
}
