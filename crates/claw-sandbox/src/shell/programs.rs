//! Registered programs, run with their credentials: without a shell, in a sandbox of their own with the network.
//!
//! Only the registered file runs: at its registered path, with its registered content, and writable by nobody
//! but its owner or root. The kernel lets it execute itself and its helpers and nothing else, so that nothing
//! an agent planted runs. It has an empty home and `/tmp` of its own, so that no configuration written by an
//! agent is taken for the user's, and no `/proc`, so that it cannot be tricked into reading its own
//! environment as a file.

mod executables;
mod file;
mod git;
mod python;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use claw_core::port::{HostRan, ProgramHost, ProgramRun, Registered, RunContext, WorkspaceAccess};
use claw_core::store::{Credentials, OpenProgram, ProgramCard, ProgramPlace, StoreError};
use claw_core::tool::{Digest, ErrorKind, Sight, Target, ToolError};
use claw_core::{AgentId, TenantId};
use smol_str::SmolStr;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use self::git::{Errand, Login};
use super::process::Streams;
use super::{Command, LocalShell, identify_files};
use crate::{Execute, Grant, LayerName};

pub use self::file::{check as check_program, digest as digest_program};
pub use self::git::Harmless;

/// The home of a program in its sandbox, where `/tmp` is its own and empty.
const HOME: &str = "/tmp";
/// The home of a program outside a sandbox: `/tmp` is shared with everybody there.
const NO_HOME: &str = "/nonexistent";
/// The variable that names directories of Python's modules.
const MODULES: &str = "PYTHONPATH";
/// A file of credentials is not longer than this.
const MOST: u64 = 256 * 1024;
/// A line of a value that has several counts as secret too, from this length on.
const LINE: usize = 16;

/// Runs registered programs on this machine.
pub struct CredentialedPrograms {
    shell: LocalShell,
    source: Arc<dyn Credentials>,
    changes: watch::Receiver<u64>,
    known: Mutex<HashMap<TenantId, Known>>,
    /// The digests of files, by path and identity.
    digests: Mutex<HashMap<(String, String), Digest>>,
    rules: ProgramRules,
    /// Directories that agents can change, whoever calls.
    changeable: Vec<PathBuf>,
}

/// The policy's rules for registered programs.
#[derive(Debug, Clone, Copy)]
pub struct ProgramRules {
    /// Variables that are no secrets: a region, a host.
    pub open: &'static [&'static str],
    /// The harmless settings of a git configuration.
    pub harmless: Harmless,
}

/// A source without programs, for deployments without a store.
#[derive(Debug, Default)]
pub struct NoCredentials;

#[async_trait]
impl Credentials for NoCredentials {
    fn changes(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }

    async fn programs(&self, _: &TenantId) -> Result<Vec<ProgramCard>, StoreError> {
        Ok(Vec::new())
    }

    async fn open(&self, _: &ProgramPlace) -> Result<Option<OpenProgram>, StoreError> {
        Ok(None)
    }
}

/// The programs of a tenant, as of a number of changes.
#[derive(Clone)]
struct Known {
    changes: u64,
    cards: Arc<[Arc<ProgramCard>]>,
}

impl CredentialedPrograms {
    /// Programs of this source, run by this shell.
    pub fn new(shell: LocalShell, source: Arc<dyn Credentials>, rules: ProgramRules) -> Self {
        let changes = source.changes();
        let (known, digests) = (Mutex::default(), Mutex::default());
        Self { shell, source, changes, known, digests, rules, changeable: Vec::new() }
    }

    /// Refuses programs and helpers in these directories too: those that agents other than the caller can change.
    #[must_use]
    pub fn refusing(self, changeable: Vec<PathBuf>) -> Self {
        Self { changeable, ..self }
    }

    async fn of_tenant(&self, tenant: &TenantId) -> Result<Arc<[Arc<ProgramCard>]>, StoreError> {
        // Looked at before the rows are read: a change in between makes them old, and they are read again.
        let changes = *self.changes.borrow();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(tenant).cloned();
        if let Some(known) = known.filter(|known| known.changes == changes) {
            return Ok(known.cards);
        }
        let cards: Arc<[_]> = self.source.programs(tenant).await?.into_iter().map(Arc::new).collect();
        let now = Known { changes, cards: Arc::clone(&cards) };
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(tenant.clone(), now);
        Ok(cards)
    }

    /// Returns the digest of a file; it is read again only if the file was replaced or changed.
    async fn digest(&self, path: &str, identity: &str) -> Result<Digest, ToolError> {
        let key = (path.to_owned(), identity.to_owned());
        if let Some(digest) = self.digests.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(*digest);
        }
        let file = PathBuf::from(path);
        let read = spawn_blocking(move || file::digest(&file)).await;
        let digest = read
            .map_err(|error| error.to_string())
            .and_then(|read| read.map_err(|error| error.to_string()))
            .map_err(|error| {
                ToolError::new(ErrorKind::Failed, format!("`{path}` cannot be read: {error}"))
            })?;
        self.digests.lock().unwrap_or_else(PoisonError::into_inner).insert(key, digest);
        Ok(digest)
    }

    /// Returns the registered file, after checking that it is unchanged and that the call means it.
    async fn file(&self, context: &RunContext, run: &ProgramRun) -> Result<(String, String), ToolError> {
        let settings = &run.program.settings;
        let (name, binary) = (&run.program.place.name, settings.binary.as_str());
        let (workspace, meant, writable) = (context.workspace.clone(), run.clone(), self.writable(context));
        let (path, identity) = on_thread(move || registered(&workspace, &meant, &writable)).await??;
        let digest = self.digest(&path, &identity).await?;
        if settings.digest != Some(digest) {
            let message = format!("`{binary}` has changed since `{name}` was registered");
            let advice = format!(
                "if it was updated, a person can accept it with `clawsmith credentials accept {name}`"
            );
            return Err(forbidden(message, &advice));
        }
        Ok((path, format!("{identity} {digest} {}", run.program.at.0)))
    }

    /// The directories that agents can change. A `/tmp` of this machine is none of theirs; the directories that hold
    /// the `/tmp` of sessions and the homes of commands are.
    fn writable(&self, context: &RunContext) -> Vec<PathBuf> {
        let is_temporary =
            |path: &PathBuf| identify_files::TEMPORARY.iter().any(|temporary| path == Path::new(temporary));
        let of_caller = self.shell.writable(context).into_iter().filter(|path| !is_temporary(path));
        let options = self.shell.options();
        let kept = options.homes.iter().chain(&options.temporary);
        of_caller.chain(kept.chain(&self.changeable).cloned()).collect()
    }

    /// The command as it runs, with its credentials.
    async fn command(&self, context: &RunContext, run: &ProgramRun, opened: &Opened) -> Command {
        let argv = std::iter::once(&opened.binary).chain(&run.arguments).cloned().collect();
        let home = if context.sandboxed { HOME } else { NO_HOME };
        let mut env = vec![("HOME".to_owned(), home.to_owned())];
        env.extend(opened.login.variables.iter().cloned());
        // Those added last win.
        env.extend(opened.python());
        let mut command = self.shell.command(context, argv, &run.directory, &env).await;
        if run.apart {
            command.streams = Streams::Apart;
        }
        if let Some(confinement) = &mut command.confinement {
            let reach = &mut confinement.reach;
            reach.processes = false;
            // The session's `/tmp` and the home have what other commands left there.
            (reach.temporary, reach.home) = (None, None);
            reach.execute = Execute::Only(opened.executables.clone());
            reach.grants.extend(opened.files.iter().map(|path| Grant { path: path.clone(), write: false }));
            // Without them `/proc` would be open, `/tmp` everybody's, and planted files could be run.
            for layer in [LayerName::Landlock, LayerName::Mounts] {
                if !confinement.required.contains(&layer) {
                    confinement.required.push(layer);
                }
            }
        }
        command
    }

    /// Returns all secrets of a tenant's programs, for scrubbing: one program may write a secret where
    /// another reads.
    pub async fn secrets(&self, tenant: &TenantId) -> Result<Vec<String>, StoreError> {
        let mut secrets = Vec::new();
        for card in self.of_tenant(tenant).await?.iter() {
            if let Some(opened) = self.source.open(&card.place).await? {
                let open = self.rules.open;
                let read = spawn_blocking(move || secrets_of(&opened.variables, open)).await;
                let unread = |stopped| StoreError::Io {
                    what: format!("could not read the files of `{}`", card.place.name),
                    source: std::io::Error::other(stopped),
                };
                secrets.extend(read.map_err(unread)?);
            }
        }
        Ok(secrets)
    }
}

/// Returns the registered file's path and identity. Asks the file system.
fn registered(
    workspace: &Path,
    run: &ProgramRun,
    writable: &[PathBuf],
) -> Result<(String, String), ToolError> {
    let (name, binary) = (&run.program.place.name, run.program.settings.binary.as_str());
    let (Some(path), Some(identity)) = identify_files::file(Path::new(binary)) else {
        return Err(forbidden(format!("`{binary}`, the file of `{name}`, does not exist"), TELL));
    };
    if run.word.contains('/') {
        let meant = identify_files::file(&workspace.join(&run.directory).join(&run.word)).0;
        if meant.as_deref() != Some(path.as_str()) {
            let message = format!("`{}` is not the registered `{name}`, which is `{binary}`", run.word);
            return Err(forbidden(message, &format!("call it as `{name}`")));
        }
    }
    let absolute = std::path::absolute(binary).unwrap_or_else(|_| PathBuf::from(binary));
    let is_inside =
        |directory: &&PathBuf| Path::new(&path).starts_with(directory) || absolute.starts_with(directory);
    if let Some(directory) = writable.iter().find(is_inside) {
        let place = match directory == workspace {
            true => "the workspace".to_owned(),
            false => format!("`{}`", directory.display()),
        };
        let message = format!("the file of `{name}` is in {place}, where agents can change it");
        return Err(forbidden(message, TELL));
    }
    file::check(Path::new(&path)).map_err(|why| forbidden(why, TELL))?;
    Ok((path, identity))
}

/// The workspace of a call, and the directories that agents can write to.
struct Surroundings<'a> {
    workspace: &'a Path,
    writable: &'a [PathBuf],
}

/// A program that is about to run, with its credentials.
struct Opened {
    binary: String,
    /// The files that it reads beside the system's.
    files: Vec<PathBuf>,
    executables: Vec<PathBuf>,
    login: Login,
    /// True if Python runs the program's file.
    is_python_script: bool,
}

impl Opened {
    /// Asks the file system.
    fn new(
        binary: String,
        run: &ProgramRun,
        Surroundings { workspace, writable }: Surroundings<'_>,
        variables: Vec<(String, String)>,
        harmless: Harmless,
    ) -> Result<Self, ToolError> {
        let helpers = &run.program.settings.helpers;
        let executables = executables::of(Path::new(&binary), helpers, writable)
            .map_err(|why| forbidden(format!("`{}` cannot run: {why}", run.program.place.name), TELL))?;
        let mut files = files_of(&binary, &variables);
        files.extend(executables.iter().filter(|path| !is_of_system(path)).cloned());
        let login = Login::new(run, workspace, variables, harmless)?;
        files.extend(login.common.iter().map(|common| common.path.clone()));
        files.sort();
        files.dedup();
        let is_python_script = executables::is_python_script(Path::new(&binary));
        Ok(Self { binary, files, executables, login, is_python_script })
    }

    /// The variables by which Python imports nothing that an agent wrote, for whatever Python the program may execute. A
    /// script still finds the modules beside it.
    fn python(&self) -> Vec<(String, String)> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut variables: Vec<_> = python::VARIABLES.iter().map(owned).collect();
        let beside = Path::new(&self.binary).parent().and_then(Path::to_str);
        // A colon would end the entry.
        if let Some(beside) = beside.filter(|beside| self.is_python_script && !beside.contains(':')) {
            let given =
                self.login.variables.iter().find(|(name, given)| name == MODULES && !given.is_empty());
            let more = given.map(|(_, given)| format!(":{given}")).unwrap_or_default();
            variables.push((MODULES.to_owned(), format!("{beside}{more}")));
        }
        variables
    }
}

/// Returns the files that a program may read beside the system's: its own, and those that its variables name,
/// such as a file of settings. Asks the file system.
fn files_of(binary: &str, variables: &[(String, String)]) -> Vec<PathBuf> {
    let files = std::iter::once(binary).chain(variables.iter().map(|(_, value)| value.as_str()));
    let there = |path: &&str| path.starts_with('/') && Path::new(path).is_file();
    let files = files.filter(there).filter_map(|path| Path::new(path).canonicalize().ok());
    files.filter(|path| !is_of_system(path)).collect()
}

/// Returns whether every sandbox shows the file.
fn is_of_system(path: &Path) -> bool {
    path.starts_with("/usr") || path.starts_with("/nix/store")
}

/// Does work that may block, on a thread that may.
async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ToolError> {
    spawn_blocking(work).await.map_err(ToolError::internal)
}

/// Returns the secrets among a program's variables. The variables named in `open` are not secret themselves,
/// but the files that they lead to are read for secrets.
fn secrets_of(variables: &[(String, String)], open: &[&str]) -> Vec<String> {
    let mut secrets = Vec::new();
    for (name, value) in variables {
        if !open.contains(&name.as_str()) {
            secrets.push(value.clone());
            if value.contains('\n') {
                let lines = value.lines().map(str::trim).filter(|line| line.len() >= LINE);
                secrets.extend(lines.map(ToOwned::to_owned));
            }
            continue;
        }
        // An open variable may name a file that holds a secret.
        let path = Path::new(value);
        let small =
            path.is_absolute() && path.metadata().is_ok_and(|file| file.is_file() && file.len() <= MOST);
        let text = small.then(|| std::fs::read_to_string(path).ok()).flatten().unwrap_or_default();
        let words = text.split(|c: char| c.is_whitespace() || "\"',:{}[]".contains(c));
        secrets.extend(words.filter(|word| word.len() >= LINE).map(ToOwned::to_owned));
    }
    secrets
}

/// Advice for problems that an agent cannot solve.
const TELL: &str = "a person has to fix this; `clawsmith credentials test` shows more";

#[async_trait]
impl ProgramHost for CredentialedPrograms {
    async fn programs(&self, tenant: &TenantId, agent: &AgentId) -> Result<Registered, StoreError> {
        let cards = self.of_tenant(tenant).await?;
        let mut programs: Vec<Arc<ProgramCard>> = Vec::new();
        let own = cards.iter().filter(|card| card.place.agent.as_ref() == Some(agent));
        let common = cards.iter().filter(|card| card.place.agent.is_none());
        for card in own.chain(common) {
            if !programs.iter().any(|program| program.place.name == card.place.name) {
                programs.push(Arc::clone(card));
            }
        }
        programs.sort_by(|a, b| a.place.name.cmp(&b.place.name));
        Ok(programs.into())
    }

    async fn look(&self, context: &RunContext, run: &ProgramRun) -> Result<Vec<Sight>, ToolError> {
        let context = in_its_sandbox(context, run);
        let (path, identity) = self.file(&context, run).await?;
        let place = self.shell.place(&context).await?;
        let credential = Some(SmolStr::new(run.program.place.name.as_str()));
        let target = Target::Program { name: run.word.clone(), directory: run.directory.clone() };
        let sandbox = Sight {
            target: Target::Sandbox,
            path: Some(self.shell.described(&context).await),
            identity: Some(place),
            credential: credential.clone(),
            writable: false,
        };
        Ok(vec![
            sandbox,
            Sight { target, path: Some(path), identity: Some(identity), credential, writable: false },
        ])
    }

    async fn run(&self, context: &RunContext, run: &ProgramRun) -> Result<HostRan, ToolError> {
        let name = &run.program.place.name;
        let changed = || {
            let message = format!("the program `{name}` changed since the call was judged");
            ToolError::new(ErrorKind::Conflict, message).try_instead("call again, so that it is judged again")
        };
        let now = self.look(context, run).await?;
        // The file that was looked at, without links that could lead elsewhere by now.
        let is_file = |sight: &Sight| matches!(sight.target, Target::Program { .. });
        let file = now.iter().find(|sight| is_file(sight)).and_then(|sight| sight.path.clone());
        let file = file.ok_or_else(changed)?;
        if !now.iter().all(|sight| context.sights.contains(sight)) {
            return Err(changed());
        }
        let opened = self.source.open(&run.program.place).await.map_err(|error| {
            ToolError::new(ErrorKind::Unavailable, format!("the credentials of `{name}` cannot be decrypted"))
                .try_instead(TELL)
                .because(error)
        })?;
        let OpenProgram { card, variables } = opened.ok_or_else(changed)?;
        if card != *run.program {
            return Err(changed());
        }
        // Known to the scrubber before anything can print it.
        let (rules, meant, workspace) = (self.rules, run.clone(), context.workspace.clone());
        let writable = self.writable(context);
        let (secrets, opened) = on_thread(move || {
            let secrets = secrets_of(&variables, rules.open);
            let places = Surroundings { workspace: &workspace, writable: &writable };
            (secrets, Opened::new(file, &meant, places, variables, rules.harmless))
        })
        .await?;
        for secret in secrets {
            context.secrets.add(secret);
        }
        let opened = opened?;
        if let Some(secret) = &opened.login.secret {
            context.secrets.add(secret.clone());
        }
        let context = RunContext { sights: Vec::new(), ..in_its_sandbox(context, run) };
        let command = self.command(&context, run, &opened).await;
        let time = Duration::from_secs(run.timeout_secs.into());
        let ran = self.shell.ran_on_layer(&context, command, Some(time), false).await;
        // Nothing of it goes before the program has ended.
        drop(opened);
        ran
    }
}

/// Returns the context for a command that reaches other machines. It changes the workspace directly, unless
/// it makes a repository whose configuration nobody may write meanwhile.
fn in_its_sandbox(context: &RunContext, run: &ProgramRun) -> RunContext {
    let access = match git::errand(run) {
        Errand::Clone => WorkspaceAccess::OnlyLayer,
        Errand::Local | Errand::Remote => WorkspaceAccess::Direct,
    };
    RunContext { network: true, access, ..context.clone() }
}

fn forbidden(message: String, advice: &str) -> ToolError {
    ToolError::new(ErrorKind::Forbidden, message).try_instead(advice)
}

impl std::fmt::Debug for CredentialedPrograms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CredentialedPrograms").field("shell", &self.shell).finish_non_exhaustive()
    }
}
