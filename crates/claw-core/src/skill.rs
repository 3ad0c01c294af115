//! Skills: instructions for one kind of job, with the files that they need.
//!
//! A skill is a directory with `SKILL.md` in the published Agent Skills format: front matter with a name and
//! a description, then Markdown. These types hold a skill once it is read; the host reads and checks it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::SkillName;
use crate::tool::Digest;

/// The file that makes a directory a skill.
pub const SKILL_FILE: &str = "SKILL.md";

/// The front matter of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillManifest {
    /// Its name, which is also that of its directory.
    pub name: SkillName,
    /// Its purpose and when to use it; at most 1,024 characters.
    pub description: String,
    /// The licence that its author names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// The environment that it is made for, in its author's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compatibility: Option<String>,
    /// Further fields of its author's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// The only tools that may be called while the skill is active, as its author writes them; `None` for all
    /// that the policy allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
}

/// One file of a skill.
#[derive(Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// Its path below the skill's directory, with `/` between names.
    pub path: String,
    /// True for an executable file.
    pub executable: bool,
    /// Its contents.
    pub bytes: Vec<u8>,
}

impl fmt::Debug for SkillFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SkillFile({}, {} bytes)", self.path, self.bytes.len())
    }
}

/// A whole skill, read and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillPackage {
    /// Its front matter.
    pub manifest: SkillManifest,
    /// Its instructions: the text after the front matter.
    pub body: String,
    /// All its files, `SKILL.md` among them, by path.
    pub files: Vec<SkillFile>,
}

impl SkillPackage {
    /// The digest of the whole directory: every path, mode and byte.
    pub fn digest(&self) -> Digest {
        let files = self.files.iter();
        let files: Vec<_> =
            files.map(|file| (&file.path, file.executable, Digest::of_bytes(&file.bytes))).collect();
        Digest::of(&files)
    }

    /// Bytes of all files together.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes.len() as u64).sum()
    }
}

/// The tier a skill comes from. Of two skills with one name the one from the earlier tier is used.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SkillTier {
    /// The workspace: `skills/`, `.agents/skills/` and `.claude/skills/`, in that order.
    Workspace,
    /// The home directory of the person at this machine: `~/.agents/skills/`.
    User,
    /// A directory that the configuration names.
    Deployment,
    /// The store.
    Store,
    /// This program.
    BuiltIn,
}

impl SkillTier {
    /// The tier as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::User => "user",
            Self::Deployment => "deployment",
            Self::Store => "store",
            Self::BuiltIn => "built-in",
        }
    }
}

impl fmt::Display for SkillTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The summary of a skill, known without reading its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillCard {
    /// Its name; of a skill that cannot be read, the name of its directory.
    pub name: String,
    /// Its description; empty if the skill cannot be read.
    pub description: String,
    /// The tier it comes from.
    pub tier: SkillTier,
    /// Its directory, or its version in the store.
    pub source: String,
    /// The digest of the whole skill; `None` if it cannot be read.
    pub digest: Option<Digest>,
    /// The state: usable, or the reason why not.
    #[serde(flatten)]
    pub state: SkillState,
}

/// The state of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum SkillState {
    /// It can be used.
    Usable,
    /// It lies in a workspace and no person has accepted its digest. It shadows nothing.
    Unaccepted,
    /// A skill of the same name from an earlier tier is used instead.
    Shadowed {
        /// The tier of that skill.
        by: SkillTier,
    },
    /// It breaks a rule of the format or a limit.
    Invalid {
        /// The reason.
        why: String,
    },
}

impl SkillState {
    /// The state as a word.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Usable => "usable",
            Self::Unaccepted => "unaccepted",
            Self::Shadowed { .. } => "shadowed",
            Self::Invalid { .. } => "invalid",
        }
    }
}
