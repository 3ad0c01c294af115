//! git with a login: the token is bound to one host, and a command that has it reads no configuration that an
//! agent could have written.
//!
//! A repository's configuration can make git send a header to another machine (`http.<url>.proxy` with
//! `http.<url>.sslVerify`, `url.<base>.insteadOf`), and a more specific setting there beats one from outside.
//! So a command with the token gets a common directory of ours in place of the repository's: its
//! configuration holds only harmless settings, as they were when the command started, and links lead to the
//! repository's objects and references. A clone has no repository yet; it works on a layer that nobody else
//! sees until it has ended.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use claw_core::port::ProgramRun;
use claw_core::tool::{ErrorKind, ToolError};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

/// The variable that holds the token. The program never gets it as a variable.
const TOKEN: &str = "GIT_HTTP_TOKEN";
/// The variable that names the host that the token is for.
const HOST: &str = "GIT_HTTP_HOST";
/// The variable that names the user that the token is for.
const USER: &str = "GIT_HTTP_USER";
const DEFAULT_HOST: &str = "github.com";
/// The services that know users by their token alone take any name.
const DEFAULT_USER: &str = "x-access-token";

/// Commands that talk to a remote repository.
const REMOTE: &[&str] = &["fetch", "ls-remote", "pull", "push"];
/// Options that may precede a command that gets the token. Others could name another configuration.
const BEFORE: &[&str] =
    &["--no-pager", "-P", "--no-optional-locks", "--no-replace-objects", "--literal-pathspecs"];
/// Options of `clone` that write no configuration of the caller's choice.
const OF_CLONE: &[&str] = &[
    "--branch",
    "-b",
    "--depth",
    "--filter",
    "--jobs",
    "-j",
    "--no-checkout",
    "-n",
    "--no-single-branch",
    "--no-tags",
    "--origin",
    "-o",
    "--progress",
    "--quiet",
    "-q",
    "--shallow-since",
    "--single-branch",
    "--sparse",
];
/// The parts of a repository that its working trees share and that hold data only. The first two may not
/// exist yet.
const SHARED: &[&str] =
    &["packed-refs", "shallow", "info", "logs", "objects", "refs", "reftable", "worktrees"];
/// Most bytes of a configuration.
const CONFIG: u64 = 1 << 20;

/// Settings that override those of any file. The kernel refuses to run the programs they would name; these
/// keep git from trying.
const SETTINGS: &[(&str, &str)] = &[
    ("branch.autoSetupMerge", "false"),
    ("commit.gpgSign", "false"),
    ("core.askPass", ""),
    ("core.attributesFile", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.sshCommand", "false"),
    ("credential.helper", ""),
    ("fetch.recurseSubmodules", "false"),
    ("gc.auto", "0"),
    ("http.followRedirects", "false"),
    ("http.sslVerify", "true"),
    ("maintenance.auto", "false"),
    ("push.gpgSign", "false"),
    ("push.recurseSubmodules", "no"),
    ("safe.bareRepository", "explicit"),
    ("submodule.recurse", "false"),
    ("tag.gpgSign", "false"),
];

/// Reads a git configuration; returns the settings of it that run nothing and send nothing elsewhere.
pub type Harmless = fn(&[u8]) -> String;

/// The need of a git call for the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Errand {
    /// The program has no token, or its command does not use the network: it gets none.
    Local,
    /// The command talks to the remotes of its repository.
    Remote,
    /// The command creates a repository.
    Clone,
}

/// Decides whether a call needs the token.
pub(super) fn errand(run: &ProgramRun) -> Errand {
    let command = run.arguments.iter().map(String::as_str).find(|word| !BEFORE.contains(word));
    match command {
        _ if !has_token(run) => Errand::Local,
        Some("clone") => Errand::Clone,
        Some(command) if REMOTE.contains(&command) => Errand::Remote,
        _ => Errand::Local,
    }
}

fn has_token(run: &ProgramRun) -> bool {
    run.program.variables.iter().any(|name| name == TOKEN)
}

/// The variables of a command and the resources behind them, held until it has ended.
pub(super) struct Login {
    pub(super) variables: Vec<(String, String)>,
    /// A secret beside the token itself.
    pub(super) secret: Option<String>,
    /// The common directory that it gets, to be shown in the sandbox.
    pub(super) common: Option<CommonDirectory>,
}

impl Login {
    /// Converts the registered variables of a program into those it gets. Without a token they stay the same;
    /// if the program runs git, it also gets settings that keep git from trying what the kernel would refuse.
    /// Asks the file system.
    pub(super) fn new(
        run: &ProgramRun,
        workspace: &Path,
        variables: Vec<(String, String)>,
        harmless: Harmless,
    ) -> Result<Self, ToolError> {
        let mut settings: Vec<(String, String)> =
            SETTINGS.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let value =
            |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let mut added: Vec<(String, String)> = Vec::new();
        let mut add = |name: &str, value: &str| added.push((name.to_owned(), value.to_owned()));
        add("GIT_CONFIG_NOSYSTEM", "1");
        add("GIT_CONFIG_GLOBAL", "/dev/null");
        add("GIT_TERMINAL_PROMPT", "0");
        add("GIT_EDITOR", "false");
        add("GIT_ALLOW_PROTOCOL", "https");
        add("PAGER", "cat");
        let (mut secret, mut common) = (None, None);
        let errand = errand(run);
        if let Some(token) = value(TOKEN).filter(|_| errand != Errand::Local) {
            if errand == Errand::Clone {
                check_clone(&run.arguments)?;
            }
            let host = host(value(HOST).unwrap_or(DEFAULT_HOST))?;
            let login = STANDARD.encode(format!("{}:{token}", value(USER).unwrap_or(DEFAULT_USER)));
            settings
                .push((format!("http.https://{host}/.extraHeader"), format!("Authorization: Basic {login}")));
            secret = Some(login);
            let tree = match errand {
                Errand::Remote => repository(workspace, &run.directory)?,
                Errand::Clone | Errand::Local => None,
            };
            // Where none was found, none that appears meanwhile is used either.
            add(
                "GIT_DIR",
                &tree.as_deref().unwrap_or(Path::new("/nonexistent")).join(".git").to_string_lossy(),
            );
            if let Some(tree) = tree {
                let made = CommonDirectory::new(&tree.join(".git"), harmless).map_err(|error| {
                    ToolError::failed(format!("the repository `{}` cannot be used: {error}", tree.display()))
                        .try_instead("run `git status` there to see what is wrong with it")
                })?;
                if !made.has_logs {
                    settings.push(("core.logAllRefUpdates".to_owned(), "false".to_owned()));
                }
                add("GIT_COMMON_DIR", &made.path.to_string_lossy());
                add("GIT_WORK_TREE", &tree.to_string_lossy());
                common = Some(made);
            }
        }
        add("GIT_CONFIG_COUNT", &settings.len().to_string());
        for (at, (key, value)) in settings.iter().enumerate() {
            add(&format!("GIT_CONFIG_KEY_{at}"), key);
            add(&format!("GIT_CONFIG_VALUE_{at}"), value);
        }
        added.extend(variables.into_iter().filter(|(name, _)| ![TOKEN, HOST, USER].contains(&name.as_str())));
        Ok(Self { variables: added, secret, common })
    }
}

/// A host with or without a port.
fn host(text: &str) -> Result<&str, ToolError> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
    if !text.is_empty() && text.chars().all(is_part) {
        return Ok(text);
    }
    Err(ToolError::new(ErrorKind::Forbidden, format!("`{HOST}` is `{text}`, which is not a host name"))
        .try_instead("a person has to add the program again, with a value such as `github.com`"))
}

/// Refuses options by which the caller writes the configuration of the new repository.
fn check_clone(arguments: &[String]) -> Result<(), ToolError> {
    let options = arguments.iter().take_while(|word| *word != "--").filter(|word| word.starts_with('-'));
    let name = |word: &'_ String| word.split('=').next().unwrap_or_default().to_owned();
    let mut unknown = options.map(name).filter(|name| !BEFORE.contains(&name.as_str()));
    match unknown.find(|name| !OF_CLONE.contains(&name.as_str())) {
        None => Ok(()),
        Some(option) => {
            let message = format!("`git clone` with credentials does not take `{option}`");
            Err(ToolError::new(ErrorKind::Forbidden, message)
                .try_instead(format!("leave it out; these options are allowed: {}", OF_CLONE.join(", "))))
        }
    }
}

/// Returns the directory with the `.git` that git would find from a directory of the workspace; `None` if
/// there is none.
fn repository(workspace: &Path, directory: &str) -> Result<Option<PathBuf>, ToolError> {
    let unusable = |path: &Path, why: &str| {
        let message = format!("`{}` {why}, so git gets no credentials there", path.display());
        ToolError::new(ErrorKind::Forbidden, message)
            .try_instead("call it where `.git` is a directory: the main working tree of the repository")
    };
    let start = workspace.join(directory);
    let start =
        start.canonicalize().map_err(|error| unusable(&start, &format!("cannot be entered ({error})")))?;
    for tree in start.ancestors().take_while(|tree| tree.starts_with(workspace)) {
        let git = tree.join(".git");
        match fs::symlink_metadata(&git) {
            Ok(found) if found.is_dir() => return Ok(Some(tree.to_owned())),
            Ok(_) => return Err(unusable(&git, "is a file or a link")),
            Err(_) => {}
        }
    }
    Ok(None)
}

/// A directory that replaces the one shared by the working trees of a repository. Removed on drop.
pub(super) struct CommonDirectory {
    pub(super) path: PathBuf,
    has_logs: bool,
}

impl CommonDirectory {
    fn new(git: &Path, harmless: Harmless) -> io::Result<Self> {
        let config = harmless(&read(&git.join("config"))?);
        let made = Self { path: own_directory()?, has_logs: git.join("logs").is_dir() };
        fs::write(made.path.join("config"), config)?;
        for (at, name) in SHARED.iter().enumerate() {
            let shared = git.join(name);
            if at < 2 || fs::symlink_metadata(&shared).is_ok() {
                symlink(shared, made.path.join(name))?;
            }
        }
        Ok(made)
    }
}

impl Drop for CommonDirectory {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "a temporary directory could not be removed");
        }
    }
}

/// Makes a directory that nobody else can enter.
fn own_directory() -> io::Result<PathBuf> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let base = std::env::temp_dir().canonicalize()?;
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("clawsmith-git-{}-{count}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads a file whose path contains no link; empty if there is no file.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    let file = match opened {
        Err(rustix::io::Errno::NOENT) => return Ok(Vec::new()),
        opened => File::from(opened?),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other(format!("`{}` is not a regular file", path.display())));
    }
    let mut bytes = Vec::new();
    file.take(CONFIG + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > CONFIG {
        true => Err(io::Error::other(format!("`{}` is longer than {CONFIG} bytes", path.display()))),
        false => Ok(bytes),
    }
}
