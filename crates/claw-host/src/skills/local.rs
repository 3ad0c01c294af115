//! Skills in directories of this machine, read again only when something in them changed.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use claw_core::skill::{SkillManifest, SkillPackage, SkillTier};
use claw_core::tool::Digest;

use super::{SkillError, package};

/// The directories of a workspace that may hold skills, the first before the others.
const OF_WORKSPACE: [&str; 3] = ["skills", ".agents/skills", ".claude/skills"];
/// The most skills whose contents are cached.
const MOST_KNOWN: usize = 4_096;

/// A skill in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LocalSkill {
    /// The name of its directory.
    pub(super) name: String,
    pub(super) tier: SkillTier,
    pub(super) origin: Origin,
    /// The front matter and digest, or why the skill cannot be used.
    pub(super) read: Result<Summary, String>,
}

/// The front matter and the digest of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) manifest: SkillManifest,
    pub(super) digest: Digest,
}

/// The way to a skill's directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    /// A directory that a person chose; links on the way to it are followed.
    base: PathBuf,
    /// The path from `base` to the directory with the skills; no link is followed.
    below: PathBuf,
    name: String,
    /// True if the skill's directory may be a link, as where a person keeps their own skills.
    follow: bool,
}

impl Origin {
    /// Returns the directory, for display.
    pub(super) fn path(&self) -> PathBuf {
        self.base.join(&self.below).join(&self.name)
    }

    fn open(&self) -> Result<OwnedFd, SkillError> {
        let failed = |error: rustix::io::Errno| match error {
            rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR => {
                SkillError::Invalid(format!("`{}` is a symbolic link or not a directory", self.name))
            }
            error => SkillError::Failed(format!("`{}` cannot be opened: {error}", self.path().display())),
        };
        let base = package::open_named(&self.base).map_err(failed)?;
        let root = package::open_below(base, &self.below)?;
        package::open_skill(&root, &self.name, self.follow).map_err(failed)
    }

    /// Reads the skill as it is now.
    pub(super) fn read(&self) -> Result<SkillPackage, SkillError> {
        package::read(&self.open()?, &self.name)
    }
}

/// Directories to look for skills in.
#[derive(Debug, Clone)]
pub(super) struct Directories {
    pub(super) workspace: PathBuf,
    pub(super) user: Option<PathBuf>,
    pub(super) deployment: Vec<PathBuf>,
}

/// Directories that were read, each with the digest of its metadata and its summary or the reason why it has none.
type Known = HashMap<Origin, (Digest, Result<Summary, String>)>;

/// A directory of skills.
struct SkillRoot<'a> {
    base: &'a Path,
    /// The path below `base`, on which no link is followed.
    below: &'a Path,
    tier: SkillTier,
    /// True if the skills may be links.
    follow: bool,
}

impl<'a> SkillRoot<'a> {
    fn whole(base: &'a Path, tier: SkillTier) -> Self {
        Self { base, below: Path::new(""), tier, follow: true }
    }
}

/// Skills in directories of this machine, read again when a directory changed.
#[derive(Debug, Default)]
pub(super) struct LocalSkills(Mutex<Known>);

impl LocalSkills {
    /// Returns the skills in these directories, by tier and then by name; of several with one name in a tier, those of
    /// the earlier directory first. All are kept: the first may be one that nobody accepted.
    pub(super) fn load(&self, directories: &Directories) -> Vec<LocalSkill> {
        let mut skills = Vec::new();
        for below in OF_WORKSPACE {
            let (base, tier) = (directories.workspace.as_path(), SkillTier::Workspace);
            self.add(&mut skills, SkillRoot { base, below: Path::new(below), tier, follow: false });
        }
        if let Some(user) = &directories.user {
            self.add(&mut skills, SkillRoot::whole(user, SkillTier::User));
        }
        for directory in &directories.deployment {
            self.add(&mut skills, SkillRoot::whole(directory, SkillTier::Deployment));
        }
        skills.sort_by(|a, b| (a.tier, &a.name).cmp(&(b.tier, &b.name)));
        skills
    }

    fn add(&self, skills: &mut Vec<LocalSkill>, root: SkillRoot<'_>) {
        let SkillRoot { base, below, tier, follow } = root;
        let Ok(opened) = package::open_named(base) else { return };
        // A directory that is missing or a link holds no skill.
        let Ok(root) = package::open_below(opened, below) else { return };
        let names = package::names(&root, follow).unwrap_or_else(|error| {
            tracing::warn!(directory = %base.join(below).display(), %error, "skills cannot be listed");
            Vec::new()
        });
        for name in names {
            let Ok(directory) = package::open_skill(&root, &name, follow) else { continue };
            if !package::is_skill(&directory) {
                continue;
            }
            let (base, below) = (base.to_owned(), below.to_owned());
            let origin = Origin { base, below, name: name.clone(), follow };
            let read = self.summary(&origin, &directory);
            skills.push(LocalSkill { name, tier, origin, read });
        }
    }

    fn summary(&self, origin: &Origin, directory: &OwnedFd) -> Result<Summary, String> {
        let state = package::fingerprint(directory).map_err(|error| error.to_string())?;
        let known = self.lock().get(origin).filter(|(known, _)| *known == state).cloned();
        if let Some((_, summary)) = known {
            return summary;
        }
        let read = package::read(directory, &origin.name);
        let summary = match read {
            Ok(package) => Ok(Summary { digest: package.digest(), manifest: package.manifest }),
            // An unreadable skill may be readable the next time.
            Err(SkillError::Failed(why)) => return Err(why),
            Err(error) => Err(error.to_string()),
        };
        // If a file changed while it was read, this is not the state of what was read.
        if package::fingerprint(directory).is_ok_and(|now| now == state) {
            let mut known = self.lock();
            if known.len() >= MOST_KNOWN {
                known.clear();
            }
            known.insert(origin.clone(), (state, summary.clone()));
        }
        summary
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
