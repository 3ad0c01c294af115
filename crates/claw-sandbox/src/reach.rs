//! The reach of a command: the paths, the network and the programs that exist for it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::SandboxError;

/// The paths and the network that a sandboxed command reaches beside the programs and libraries of the
/// system. All else is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// The workspace, at the same path inside as outside.
    pub workspace: PathBuf,
    /// True if it can change the workspace.
    pub write: bool,
    /// Layer over the workspace that changes go to; `None` changes the workspace itself.
    pub layer: Option<WorkspaceLayer>,
    /// The machine's directory that is its `/tmp`; `None` gives it a temporary one of its own.
    pub temporary: Option<PathBuf>,
    /// The machine's directory that is its home, shown at [`HOME`]; `None` shows none there.
    pub home: Option<Grant>,
    /// Further paths.
    pub grants: Vec<Grant>,
    /// Paths that are hidden even inside the workspace or a grant: the store, the keys.
    pub hidden: Vec<PathBuf>,
    /// The network that it reaches.
    pub network: Network,
    /// TCP ports that it cannot connect to, on this or any other machine: those on which this program listens.
    pub closed_ports: Vec<u16>,
    /// True if it can read `/proc`, where a process's environment can be read like a file.
    pub processes: bool,
    /// The files that it can execute.
    pub execute: Execute,
}

/// The files that a command can execute.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Execute {
    /// Every file that it can read.
    #[default]
    Any,
    /// These files, and those below these directories. The workspace, `/tmp` and grants without any of them
    /// are mounted so that nothing in them can be mapped as code either; a program loader runs nothing from
    /// there.
    Only(Vec<PathBuf>),
}

/// Directories of a layer, on the workspace's file system. Hidden paths of the workspace are whiteouts in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceLayer {
    /// Collects the changes.
    pub upper: PathBuf,
    /// Used by overlayfs itself.
    pub work: PathBuf,
    /// Directories of the workspace that are written directly.
    pub direct: Vec<PathBuf>,
    /// True if nothing can be changed: the layer only hides paths.
    pub read_only: bool,
    /// Layer over its lasting `/tmp`, which is discarded like this one; `None` changes `/tmp` itself.
    pub temporary: Option<Discarded>,
    /// Layer over its home, which is discarded like this one; `None` changes the home itself.
    pub home: Option<Discarded>,
}

/// Directories of a layer whose changes nobody reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discarded {
    /// Collects the changes.
    pub upper: PathBuf,
    /// Used by overlayfs itself.
    pub work: PathBuf,
}

/// An additional path that a command reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// A file or a directory with all below it.
    pub path: PathBuf,
    /// True if it can be changed.
    pub write: bool,
}

/// The network that a command reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// No network, not even loopback.
    #[default]
    None,
    /// A loopback interface of its own, on which no other program listens.
    Loopback,
    /// The network of this machine.
    Host,
}

/// Paths of the system that every sandbox shows, read-only. Missing ones are left out; in `/etc` only the
/// files that programs need are listed, since secrets lie beside them.
pub(super) const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/group",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/profile",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
];

/// The home directory inside a sandbox that has one.
pub const HOME: &str = "/run/home";

/// The file that is shown if a network is granted.
pub(super) const RESOLVER: &str = "/etc/resolv.conf";

/// Devices that do nothing to the machine.
pub(super) const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

impl Reach {
    /// A workspace that can be changed, and nothing else.
    pub fn workspace(path: impl Into<PathBuf>) -> Self {
        Self {
            workspace: path.into(),
            write: true,
            layer: None,
            temporary: None,
            home: None,
            grants: Vec::new(),
            hidden: Vec::new(),
            network: Network::None,
            closed_ports: Vec::new(),
            processes: true,
            execute: Execute::Any,
        }
    }

    /// Returns whether an agent's command changes the workspace itself. A program with credentials does too, but nobody
    /// else decides which files it executes.
    pub(super) fn writes_directly(&self) -> bool {
        self.write && self.layer.is_none() && self.execute == Execute::Any
    }

    /// Returns the reach with every path resolved: no links on the way, no missing paths. Hidden paths that
    /// would not show anyway are dropped.
    pub(super) fn resolved(&self) -> Result<Self, SandboxError> {
        self.resolved_around(resolve(&self.workspace)?)
    }

    /// Returns the resolved reach around a workspace that is not shown, and so need not exist.
    pub(super) fn resolved_around(&self, workspace: PathBuf) -> Result<Self, SandboxError> {
        let grant = |grant: &Grant| Ok(Grant { path: resolve(&grant.path)?, write: grant.write });
        let mut grants = self.grants.iter().map(grant).collect::<Result<Vec<_>, SandboxError>>()?;
        // A deeper path is mounted over the one it lies in.
        grants.sort_by_key(|grant| grant.path.components().count());
        let shown = |path: &Path| {
            path.starts_with(&workspace) || grants.iter().any(|grant| path.starts_with(&grant.path))
        };
        let mut hidden = Vec::new();
        for path in &self.hidden {
            let (path, there) = as_it_would_be(path);
            if workspace.starts_with(&path) {
                return Err(refused(&path, "the workspace is inside it, but it must be hidden"));
            }
            if shown(&path) && !there {
                // A command could put a link there, and what comes later would be written where it leads.
                return Err(refused(&path, "it must be hidden but does not exist yet; create it first"));
            }
            if shown(&path) {
                hidden.push(path);
            }
        }
        let Self { write, network, processes, .. } = *self;
        // Files that a command leaves in a lasting `/tmp` must not decide where something is shown to the
        // next one.
        let in_tmp = |path: &Path| path.starts_with("/tmp") || path.starts_with("/var/tmp");
        let is_clear = !in_tmp(&workspace) && !grants.iter().any(|grant| in_tmp(&grant.path));
        let home = self.home.as_ref().map(grant).transpose()?;
        let (layer, temporary) = (self.layer.clone(), self.temporary.clone().filter(|_| is_clear));
        let execute = match &self.execute {
            Execute::Any => Execute::Any,
            Execute::Only(files) => {
                Execute::Only(files.iter().map(|file| resolve(file)).collect::<Result<_, _>>()?)
            }
        };
        let closed_ports = self.closed_ports.clone();
        Ok(Self {
            workspace,
            grants,
            hidden,
            layer,
            temporary,
            home,
            write,
            network,
            closed_ports,
            processes,
            execute,
        })
    }
}

fn resolve(path: &Path) -> Result<PathBuf, SandboxError> {
    let real = path.canonicalize().map_err(|error| refused(path, &error.to_string()))?;
    let whole = ["/", "/proc", "/dev", "/sys", "/etc", "/run"];
    if whole.iter().any(|whole| real == Path::new(whole)) || real.starts_with("/proc") {
        return Err(refused(
            &real,
            "it contains files that the sandbox must hide; grant only the directories that are needed",
        ));
    }
    Ok(real)
}

/// Resolves a path, and returns whether it exists; a missing part keeps its spelling.
fn as_it_would_be(path: &Path) -> (PathBuf, bool) {
    for above in path.ancestors() {
        if let Ok(real) = above.canonicalize() {
            let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
            let there = rest.as_os_str().is_empty();
            return (if there { real } else { real.join(rest) }, there);
        }
    }
    (path.to_owned(), false)
}

fn refused(path: &Path, reason: &str) -> SandboxError {
    SandboxError::Path { path: path.display().to_string(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests;
