//! The shelf: all skills of a caller, who may use which, and which one a name means.

mod precedence;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use claw_core::port::{
    ActiveSkills, Clock, Narrowing, OpenedSkill, Owner, PublishedSkill, SkillHost, UnixMillis,
};
use claw_core::skill::{SKILL_FILE, SkillCard, SkillPackage, SkillTier};
use claw_core::store::{
    AcceptedSkill, NewSkillVersion, SkillAccess, SkillStore, SkillUse, SkillVisibility, StoreError,
    StoredSkill, Topic,
};
use claw_core::tool::{Caller, Digest, ErrorKind, ToolError};
use claw_core::{JobId, SkillName, TenantId};
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use self::precedence::{EntryPlace, View};
use super::local::{Directories, LocalSkill, LocalSkills};
use super::{SkillError, builtin, package, snapshot};

/// The time for which the uses of a session are cached. A use in this process is known at once.
const REMEMBERED: Duration = Duration::from_secs(1);
/// The most sessions and workspaces that are remembered.
const MOST_SESSIONS: usize = 10_000;
const MOST_VIEWS: usize = 64;
/// The shortest interval between sweeps for unused copies.
const SWEPT: Duration = Duration::from_secs(60 * 60);
/// The placeholder in a body for the skill's directory.
const BASE_DIR: &str = "{baseDir}";

/// The directories that skills come from and go to.
#[derive(Debug, Clone)]
pub struct SkillOptions {
    /// The directory of snapshots; nothing else lies in it.
    pub snapshots: PathBuf,
    /// The skills of the person at this machine. `None` if calls come from others too.
    pub user: Option<PathBuf>,
    /// The deployment's directories, the first before the others.
    pub deployment: Vec<PathBuf>,
    /// The deployment's own tenant: no other sees the skills of the person at this machine.
    pub tenant: TenantId,
}

/// Skills in use by session, with the time at which they were read.
type Uses = HashMap<Owner, (Instant, Arc<Vec<SkillUse>>)>;

/// The skills of a deployment.
pub struct SkillShelf {
    store: Arc<dyn SkillStore>,
    clock: Arc<dyn Clock>,
    options: SkillOptions,
    local: Arc<LocalSkills>,
    built_in: Vec<SkillPackage>,
    known: Mutex<Known>,
    uses: Mutex<Uses>,
    /// The time of the last sweep for unused copies.
    swept: Mutex<Option<Instant>>,
}

/// Facts of the store, until it tells of a change.
struct Known {
    changes: watch::Receiver<u64>,
    generation: u64,
    tenants: HashMap<TenantId, Arc<Stored>>,
    views: HashMap<(TenantId, PathBuf), Arc<View>>,
}

/// The store's skills of one tenant, and the digests that its people accepted.
#[derive(Debug)]
struct Stored {
    skills: Vec<StoredSkill>,
    accepted: HashSet<Digest>,
}

impl SkillShelf {
    /// A shelf over this store.
    pub fn new(store: Arc<dyn SkillStore>, clock: Arc<dyn Clock>, options: SkillOptions) -> Self {
        let built_in = builtin::all().unwrap_or_else(|error| {
            tracing::error!(%error, "the skills of this program cannot be read");
            Vec::new()
        });
        let (tenants, views) = (HashMap::new(), HashMap::new());
        let known = Known { changes: store.changes(Topic::Skills), generation: 0, tenants, views };
        Self {
            store,
            clock,
            options,
            local: Arc::default(),
            built_in,
            known: Mutex::new(known),
            uses: Mutex::default(),
            swept: Mutex::default(),
        }
    }

    /// Returns every skill that concerns the caller, by tier and then by name, with the reason if one cannot
    /// be used.
    pub async fn inventory(&self, caller: &Caller) -> Result<Vec<SkillCard>, ToolError> {
        Ok(self.view(caller).await?.inventory(caller))
    }

    /// Reads the skill of this name in the caller's workspace that `accept` would accept, accepted or not. Of several,
    /// it is the first that could be used.
    pub async fn read_workspace(&self, caller: &Caller, name: &SkillName) -> Result<SkillPackage, ToolError> {
        let local = self.local(caller).await?;
        let of_name = |skill: &&LocalSkill| skill.tier == SkillTier::Workspace && skill.name == name.as_str();
        let valid = local.iter().filter(of_name).find(|skill| skill.read.is_ok());
        let Some(skill) = valid.or_else(|| local.iter().find(of_name)) else {
            let message =
                format!("there is no skill `{name}` in the workspace `{}`", caller.workspace.display());
            return Err(ToolError::not_found(message));
        };
        let origin = skill.origin.clone();
        Ok(blocking(move || origin.read()).await??)
    }

    /// Remembers that a person accepts a skill of a workspace, as it was read.
    pub async fn accept(
        &self,
        tenant: &TenantId,
        package: &SkillPackage,
        by: &str,
    ) -> Result<AcceptedSkill, StoreError> {
        let (digest, name) = (package.digest(), package.manifest.name.clone());
        let accepted = AcceptedSkill { digest, name, by: by.to_owned(), at: self.clock.now() };
        self.store.accept_skill(tenant, accepted.clone()).await?;
        Ok(accepted)
    }

    /// Reads a skill that the caller may use.
    pub async fn read(
        &self,
        caller: &Caller,
        name: &SkillName,
    ) -> Result<(SkillTier, SkillPackage), ToolError> {
        let view = self.view(caller).await?;
        let Some(entry) = view.chosen(name.as_str(), caller) else { return Err(view.missing(name, caller)) };
        let package = match &entry.place {
            EntryPlace::BuiltIn(package) => SkillPackage::clone(package),
            EntryPlace::Local(origin) => {
                let origin = origin.clone();
                blocking(move || origin.read()).await??
            }
            EntryPlace::Stored(skill) => self.read_stored(skill, caller).await?,
        };
        // It may have changed since it was listed: what was accepted is what is used.
        if entry.card.tier == SkillTier::Workspace && !view.is_accepted(&package.digest()) {
            return Err(unaccepted(name));
        }
        Ok((entry.card.tier, package))
    }

    async fn read_stored(&self, skill: &StoredSkill, caller: &Caller) -> Result<SkillPackage, ToolError> {
        let SkillAccess::Version(version) = skill.access(&caller.agent, caller.user.as_ref()) else {
            return Err(ToolError::not_found(format!("there is no skill `{}`", skill.name)));
        };
        let files = self.store.skill_files(&skill.tenant, &skill.name, version).await.map_err(unreadable)?;
        let package = package::from_files(skill.name.as_str(), files)?;
        let is_whole = version != skill.current.version || package.digest() == skill.current.digest;
        match is_whole {
            true => Ok(package),
            false => Err(ToolError::new(
                ErrorKind::Failed,
                format!("version {version} of skill `{}` is damaged in the store", skill.name),
            )
            .try_instead("ask a person to publish it again")),
        }
    }

    async fn local(&self, caller: &Caller) -> Result<Vec<LocalSkill>, ToolError> {
        let is_own = caller.tenant == self.options.tenant;
        let directories = Directories {
            workspace: caller.workspace.clone(),
            user: self.options.user.clone().filter(|_| is_own),
            deployment: self.options.deployment.clone(),
        };
        let local = Arc::clone(&self.local);
        blocking(move || local.load(&directories)).await
    }

    async fn view(&self, caller: &Caller) -> Result<Arc<View>, ToolError> {
        let (stored, local) = (self.stored(&caller.tenant).await?, self.local(caller).await?);
        let key = (caller.tenant.clone(), caller.workspace.clone());
        let known = self.known().views.get(&key).cloned();
        if let Some(view) = known.filter(|view| view.is_of(&stored, &local)) {
            return Ok(view);
        }
        let view = Arc::new(View::new(stored, local, &self.built_in));
        let mut known = self.known();
        if known.views.len() >= MOST_VIEWS {
            known.views.clear();
        }
        known.views.insert(key, Arc::clone(&view));
        Ok(view)
    }

    async fn stored(&self, tenant: &TenantId) -> Result<Arc<Stored>, ToolError> {
        let generation = {
            let mut known = self.known();
            if known.changes.has_changed().unwrap_or(true) {
                known.changes.mark_unchanged();
                known.generation += 1;
                known.tenants.clear();
                // Removed skills are in use no more.
                self.uses().clear();
            }
            if let Some(stored) = known.tenants.get(tenant) {
                return Ok(Arc::clone(stored));
            }
            known.generation
        };
        let skills = self.store.stored_skills(tenant).await.map_err(unreadable)?;
        let accepted = self.store.accepted_skills(tenant).await.map_err(unreadable)?;
        let accepted = accepted.into_iter().map(|accepted| accepted.digest).collect();
        let stored = Arc::new(Stored { skills, accepted });
        let mut known = self.known();
        // Facts that were read before a change are not kept after it.
        if known.generation == generation {
            known.tenants.insert(tenant.clone(), Arc::clone(&stored));
        }
        Ok(stored)
    }

    async fn uses_of(&self, owner: &Owner) -> Result<Arc<Vec<SkillUse>>, StoreError> {
        {
            let mut known = self.known();
            if known.changes.has_changed().unwrap_or(true) {
                known.changes.mark_unchanged();
                known.generation += 1;
                known.tenants.clear();
                self.uses().clear();
            }
        }
        let found = self.uses().get(owner).filter(|(since, _)| since.elapsed() < REMEMBERED).cloned();
        if let Some((_, uses)) = found {
            return Ok(uses);
        }
        let uses = Arc::new(self.store.skill_uses(owner).await?);
        let mut known = self.uses();
        if known.len() >= MOST_SESSIONS {
            known.clear();
        }
        known.insert(owner.clone(), (Instant::now(), Arc::clone(&uses)));
        Ok(uses)
    }

    /// Returns whether a sweep for unused copies is due, and records it.
    fn sweeps_now(&self) -> bool {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_time = swept.is_none_or(|at| at.elapsed() >= SWEPT);
        if is_time {
            *swept = Some(Instant::now());
        }
        is_time
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SkillHost for SkillShelf {
    async fn skills(&self, caller: &Caller) -> Result<Vec<SkillCard>, ToolError> {
        Ok(self.view(caller).await?.usable(caller))
    }

    async fn search(&self, caller: &Caller, query: &str, limit: usize) -> Result<Vec<SkillCard>, ToolError> {
        Ok(self.view(caller).await?.search(caller, query, limit))
    }

    async fn open(
        &self,
        caller: &Caller,
        run: Option<JobId>,
        name: &SkillName,
    ) -> Result<OpenedSkill, ToolError> {
        let (tier, package) = self.read(caller, name).await?;
        let digest = package.digest();
        let base = self.options.snapshots.clone();
        let sweeps = self.sweeps_now();
        let (package, shown) = blocking(move || {
            let shown = snapshot::show(&base, &package);
            if sweeps && let Err(error) = snapshot::sweep(&base, snapshot::KEPT) {
                tracing::warn!(%error, "unused copies of skills cannot be removed");
            }
            (package, shown)
        })
        .await?;
        let directory = shown.map_err(|error| {
            ToolError::new(ErrorKind::Failed, format!("the files of skill `{name}` cannot be shown"))
                .try_instead("try again later")
                .because(error)
        })?;
        let owner = owner(caller);
        let allowed = package.manifest.allowed_tools.clone();
        // The one that was taken up last counts, also within a millisecond.
        let last = self.uses_of(&owner).await.map_err(unreadable)?.first().map(|used| used.at.0);
        let at = UnixMillis(self.clock.now().0.max(last.map_or(i64::MIN, |last| last.saturating_add(1))));
        let used = SkillUse { name: name.clone(), digest, tier, run, allowed, at };
        self.store.use_skill(&owner, used).await.map_err(unwritable)?;
        self.uses().remove(&owner);
        let files = package.files.iter().filter(|file| file.path != SKILL_FILE);
        let files = files.map(|file| (file.path.clone(), file.bytes.len() as u64)).collect();
        let body = package.body.replace(BASE_DIR, &directory.display().to_string());
        Ok(OpenedSkill { manifest: package.manifest, body, tier, digest, directory, files })
    }

    async fn end(&self, caller: &Caller, run: Option<JobId>) -> Result<Option<SkillName>, ToolError> {
        let owner = owner(caller);
        let active = self.active(&owner, run).await.map_err(unreadable)?;
        self.store.end_skills(&owner, run).await.map_err(unwritable)?;
        self.uses().remove(&owner);
        Ok(active.narrowing.as_ref().map(|narrowing| narrowing.skill.clone()))
    }

    async fn active(&self, owner: &Owner, run: Option<JobId>) -> Result<Arc<ActiveSkills>, StoreError> {
        let uses = self.uses_of(owner).await?;
        if uses.is_empty() {
            return Ok(Arc::default());
        }
        let place = |used: &SkillUse| snapshot::place(&self.options.snapshots, &used.digest, &used.name);
        let mut directories: Vec<PathBuf> = uses.iter().map(place).collect();
        let is_there = blocking(move || {
            // A copy that was removed while its session slept is not shown; the skill can be taken up again.
            directories.retain(|place| snapshot::touch(place));
            directories
        });
        let directories = is_there.await.unwrap_or_default();
        // The skill that was taken up last counts.
        let last = uses.iter().find(|used| used.run == run);
        let narrowing =
            last.and_then(|used| Some(Narrowing { skill: used.name.clone(), tools: used.allowed.clone()? }));
        Ok(Arc::new(ActiveSkills { directories, narrowing }))
    }

    async fn pack(&self, caller: &Caller, path: &str) -> Result<SkillPackage, ToolError> {
        let (workspace, path) = (caller.workspace.clone(), PathBuf::from(path));
        let packed = blocking(move || {
            let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
            let name = name.ok_or_else(|| {
                SkillError::Invalid("name the directory of the skill, relative to the workspace".to_owned())
            })?;
            let opened = package::open_named(&workspace)
                .map_err(|error| SkillError::Failed(format!("the workspace cannot be opened: {error}")))?;
            package::read(&package::open_below(opened, &path)?, &name)
        });
        Ok(packed.await??)
    }

    async fn publish(
        &self,
        caller: &Caller,
        package: SkillPackage,
        visibility: SkillVisibility,
        findings: Vec<String>,
    ) -> Result<PublishedSkill, ToolError> {
        let name = package.manifest.name.clone();
        let there = self.store.stored_skill(&caller.tenant, &name).await.map_err(unreadable)?;
        if let Some(there) = &there
            && (there.owner.is_none() || there.owner != caller.user)
        {
            let message = format!("the skill `{name}` already exists and belongs to somebody else");
            return Err(ToolError::new(ErrorKind::Forbidden, message).try_instead("give yours another name"));
        }
        let by = match &caller.user {
            Some(user) => format!("agent {} for {user}", caller.agent),
            None => format!("agent {}", caller.agent),
        };
        let new = NewSkillVersion {
            tenant: caller.tenant.clone(),
            digest: package.digest(),
            manifest: package.manifest,
            files: package.files,
            visibility,
            owner: caller.user.clone(),
            findings,
            by,
            at: self.clock.now(),
        };
        let stored = self.store.publish_skill(new).await.map_err(unwritable)?;
        Ok(published(&stored))
    }
}

/// The report of a skill that was just published.
fn published(stored: &StoredSkill) -> PublishedSkill {
    PublishedSkill {
        name: stored.name.clone(),
        version: stored.newest,
        digest: stored.current.digest,
        visibility: stored.visibility,
        findings: stored.current.findings.clone(),
    }
}

fn owner(caller: &Caller) -> Owner {
    Owner { tenant: caller.tenant.clone(), session: caller.session.clone() }
}

fn unaccepted(name: &SkillName) -> ToolError {
    let message = format!("skill `{name}` is in the workspace, and nobody has accepted it as it is now");
    ToolError::new(ErrorKind::Forbidden, message).try_instead(format!(
        "continue without it; a person can review it and run `clawsmith skills accept {name}`"
    ))
}

fn unreadable(error: StoreError) -> ToolError {
    ToolError::new(ErrorKind::Unavailable, "the skills of the store cannot be read right now")
        .try_instead("try again later")
        .because(error)
}

fn unwritable(error: StoreError) -> ToolError {
    match error {
        StoreError::Refused { why, .. } => ToolError::invalid(why),
        error => ToolError::new(ErrorKind::Unavailable, "the store cannot be written right now")
            .try_instead("try again later")
            .because(error),
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ToolError> {
    spawn_blocking(work).await.map_err(ToolError::internal)
}

impl std::fmt::Debug for SkillShelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SkillShelf").field("options", &self.options).finish_non_exhaustive()
    }
}
