//! Grants: directories beside the workspace that agents reach, and the toolchains of this machine that are worth one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use claw_core::port::{Access, Allowed, Root};
use claw_policy::approval::Grantable;
use serde::Serialize;

use super::{Error, Setup, real};
use crate::config::Surroundings;

/// Programs whose toolchain agents are likely to need, each with the toolchain's display name.
const PROGRAMS: &[(&str, &str)] = &[
    ("cargo", "Rust"),
    ("node", "Node.js"),
    ("python3", "Python"),
    ("go", "Go"),
    ("java", "Java"),
    ("uv", "uv"),
    ("bun", "Bun"),
    ("deno", "Deno"),
];

/// Directories that every sandbox shows.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix/store"];

/// A toolchain outside of the system's directories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Toolchain {
    /// The toolchain's name.
    pub name: &'static str,
    /// The program that was found.
    pub program: PathBuf,
    /// The directories that commands need to read.
    pub directories: Vec<PathBuf>,
    /// True if all of them are granted to every agent.
    pub granted: bool,
}

impl Setup {
    /// Returns the directories that an agent reaches beside its workspace, as absolute paths; `""` stands for
    /// every agent.
    pub(crate) fn grants(&self, agent: &str) -> Result<Vec<Root>, Error> {
        let files = &self.config().files;
        let of_all = [("files.read", &files.read), ("files.write", &files.write)];
        let of_agent = self.config().agents.get(agent).map(|own| {
            let key = |name: &str| format!("agents.{agent}.{name}");
            [(key("read_paths"), &own.read_paths), (key("write_paths"), &own.write_paths)]
        });
        let of_all = of_all.map(|(key, paths)| (key.to_owned(), paths));
        let lists: Vec<_> =
            if agent.is_empty() { of_all.into() } else { of_agent.into_iter().flatten().collect() };
        let mut roots = Vec::new();
        for (key, paths) in lists {
            let access = if key.contains("write") { Access::Write } else { Access::Read };
            for path in paths {
                roots.push(Root { path: self.granted(&key, path)?, access });
            }
        }
        // Deeper directories say more precisely what may be done in them.
        roots.sort_by_key(|root| root.path.components().count());
        Ok(roots)
    }

    /// Returns the directories that commands of every agent reach beside the workspace.
    pub fn granted_to_commands(&self) -> Result<Vec<Allowed>, Error> {
        let allowed = |root: Root| Allowed { path: root.path, write: root.access == Access::Write };
        Ok(self.grants("")?.into_iter().map(allowed).collect())
    }

    /// Resolves a grant. Refuses one by which an agent could give itself more, or see another agent's data.
    fn granted(&self, key: &str, path: &Path) -> Result<PathBuf, Error> {
        let full = real(&self.loaded.resolved(key, path, &self.around));
        let refused = |why: &str| {
            let what = format!("`{key}` entry `{}`: {why}", path.display());
            Error::invalid(what).hint("grant a smaller directory, or remove the entry")
        };
        if full.exists() && !full.is_dir() {
            return Err(refused("it is a file, and only directories can be granted"));
        }
        match self.grantable()?.refusal(&full) {
            Some(why) => Err(refused(&why)),
            None => Ok(full),
        }
    }

    /// The directories that can be granted to agents, by configuration or by the answer of the person who runs this program.
    pub(crate) fn grantable(&self) -> Result<Grantable, Error> {
        let data = self.data_dir()?;
        let own = std::iter::once(data).chain(self.around.config_dir()).chain(self.around.trusted());
        Ok(Grantable { home: self.around.home().map(real), own: own.map(|own| real(&own)).collect() })
    }

    /// The toolchains that this program's user has in `$PATH` and that a command does not find without a grant.
    pub fn toolchains(&self) -> Vec<Toolchain> {
        let granted = self.grants("").unwrap_or_default();
        let is_granted =
            |directory: &PathBuf| granted.iter().any(|root| real(directory).starts_with(&root.path));
        let found = PROGRAMS.iter().filter_map(|(program, name)| {
            let (program, directories) = toolchain(program, &self.around)?;
            let granted = directories.iter().all(is_granted);
            Some(Toolchain { name, program, directories, granted })
        });
        let mut all: Vec<Toolchain> = Vec::new();
        for toolchain in found {
            let is_new = |other: &Toolchain| other.directories != toolchain.directories;
            if all.iter().all(is_new) {
                all.push(toolchain);
            }
        }
        all
    }
}

/// Finds the program of this name in the user's path, and the directories that it needs; `None` if every
/// sandbox shows it.
fn toolchain(name: &str, around: &Surroundings) -> Option<(PathBuf, Vec<PathBuf>)> {
    let places = std::env::split_paths(around.variable("PATH")?).collect::<Vec<_>>();
    let program = places.iter().filter(|place| place.is_absolute()).map(|place| place.join(name));
    let program = program.into_iter().find(|file| file.is_file())?;
    let home = around.home().map(real);
    let file = program.canonicalize().ok()?;
    if SYSTEM.iter().any(|system| file.starts_with(system)) {
        return None;
    }
    let directory = real(program.parent()?);
    let variable = |name: &str, below: &str| {
        let set = around.variable(name).map(PathBuf::from);
        set.or_else(|| Some(home.as_ref()?.join(below))).map(|path| real(&path))
    };
    // The programs of rustup and pyenv choose among toolchains that are elsewhere.
    let choosers = [
        (file.file_name() == Some(OsStr::new("rustup")))
            .then(|| variable("RUSTUP_HOME", ".rustup"))
            .flatten(),
        (directory.file_name() == Some(OsStr::new("shims")))
            .then(|| variable("PYENV_ROOT", ".pyenv"))
            .flatten(),
    ];
    if let Some(chosen) = choosers.into_iter().flatten().find(|path| path.is_dir()) {
        let mut directories = vec![directory, chosen];
        let [first, second] = &directories[..] else { return None };
        if first.starts_with(second) {
            directories.remove(0);
        }
        return Some((program, directories));
    }
    // The programs of most others lie in the `bin` of their own directory.
    let bin = file.parent()?;
    let prefix = bin.parent().filter(|_| bin.file_name() == Some(OsStr::new("bin")))?;
    let is_shared = |prefix: &Path| {
        let local = home.as_ref().map(|home| home.join(".local"));
        home.as_ref().is_some_and(|home| home.starts_with(prefix))
            || local.is_some_and(|local| local == prefix)
            || prefix.components().count() < 3
    };
    Some((program, vec![if is_shared(prefix) { bin.to_owned() } else { prefix.to_owned() }]))
}

/// Setting by which agents may read these directories, as text of a configuration file. Directories of the user's home are
/// written with `~`.
pub fn read_setting<'a>(directories: impl IntoIterator<Item = &'a PathBuf>, around: &Surroundings) -> String {
    let home = around.home().map(real);
    let shown = |path: &PathBuf| match home.as_ref().and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    };
    let entries: Vec<String> =
        directories.into_iter().map(|path| toml::Value::from(shown(path)).to_string()).collect();
    format!("read = [{}]", entries.join(", "))
}
