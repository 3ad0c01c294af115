//! The toolchains of this machine that are worth a grant: where they are, and the setting that lets commands read them.

mod shell;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub(super) use self::shell::HintingShell;
use super::{Setup, real};
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

/// A version manager: its `shims` directory holds programs that choose among the versions it has installed.
struct VersionManager {
    /// The variable that names its directory.
    variable: &'static str,
    /// The directory below the user's home if the variable is not set.
    below: &'static str,
    /// The directories that commands need to read.
    needs: Needs,
}

enum Needs {
    /// The manager's whole directory: its shims run with nothing else.
    Whole,
    /// One installed version, `installs/PLUGIN/VERSION`: the shims need the manager's own program and the user's home.
    Version,
}

const MANAGERS: &[VersionManager] = &[
    VersionManager { variable: "ASDF_DATA_DIR", below: ".asdf", needs: Needs::Version },
    VersionManager { variable: "MISE_DATA_DIR", below: ".local/share/mise", needs: Needs::Version },
    VersionManager { variable: "NODENV_ROOT", below: ".nodenv", needs: Needs::Whole },
    VersionManager { variable: "PYENV_ROOT", below: ".pyenv", needs: Needs::Whole },
];

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

/// The setting by which commands read more directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadSetting {
    /// The whole list: its entries so far and the new ones, as text of a configuration file.
    pub list: String,
    /// The file or variable in which the list is set, in backticks.
    pub place: String,
}

impl Setup {
    /// The toolchains that this program's user has in `$PATH` and that a command does not find without a grant.
    pub fn toolchains(&self) -> Vec<Toolchain> {
        let found = PROGRAMS.iter().filter_map(|(program, name)| {
            let (program, directories) = toolchain(program, &self.around)?;
            let granted = directories.iter().all(|directory| self.is_granted(directory));
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

    fn is_granted(&self, directory: &Path) -> bool {
        let granted = self.granted_directories("").unwrap_or_default();
        granted.iter().any(|root| real(directory).starts_with(&root.path))
    }

    /// The setting by which commands of every agent may read these directories too. Directories of the user's home are
    /// written with `~`.
    pub fn read_setting<'a>(&self, directories: impl IntoIterator<Item = &'a PathBuf>) -> ReadSetting {
        let home = self.around.home().map(real);
        let shown = |path: &PathBuf| match home.as_ref().and_then(|home| path.strip_prefix(home).ok()) {
            Some(below) => format!("~/{}", below.display()),
            None => path.display().to_string(),
        };
        let written = &self.config().files.read;
        let mut entries: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
        for directory in directories {
            let entry = shown(directory);
            if !entries.contains(&entry) && !self.is_granted(directory) {
                entries.push(entry);
            }
        }
        let entries: Vec<String> =
            entries.into_iter().map(|entry| toml::Value::from(entry).to_string()).collect();
        ReadSetting {
            list: format!("[{}]", entries.join(", ")),
            place: self.loaded.place_to_set("files.read", &self.around),
        }
    }
}

/// Finds the program of this name in the user's path, and the directories that it needs; `None` if every
/// sandbox shows it.
fn toolchain(name: &str, around: &Surroundings) -> Option<(PathBuf, Vec<PathBuf>)> {
    let places = std::env::split_paths(around.variable("PATH")?).collect::<Vec<_>>();
    let program = places.iter().filter(|place| place.is_absolute()).map(|place| place.join(name));
    let program = program.into_iter().find(|file| file.is_file())?;
    let directory = real(program.parent()?);
    if let Some(manager) = MANAGERS.iter().find(|manager| directory == manager.root(around).join("shims")) {
        let directory = manager.directory(name, around)?;
        return Some((program, vec![directory]));
    }
    let file = program.canonicalize().ok()?;
    if SYSTEM.iter().any(|system| file.starts_with(system)) {
        return None;
    }
    // The programs of rustup choose among toolchains that are elsewhere, and uv installs its Pythons elsewhere.
    let elsewhere = match file.file_name().and_then(OsStr::to_str) {
        Some("rustup") => home_of("RUSTUP_HOME", ".rustup", around),
        Some("uv") => home_of("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python", around),
        _ => None,
    };
    let own = match file.file_name() {
        Some(name) if name == "rustup" => directory,
        _ => prefix(&file, around)?,
    };
    let elsewhere = elsewhere.filter(|path| path.is_dir() && !path.starts_with(&own));
    Some((program, [own].into_iter().chain(elsewhere).collect()))
}

/// Returns the directory of a program that lies in the `bin` of its own directory; the `bin` itself if others share it.
fn prefix(file: &Path, around: &Surroundings) -> Option<PathBuf> {
    let home = around.home().map(real);
    let bin = file.parent()?;
    let prefix = bin.parent().filter(|_| bin.file_name() == Some(OsStr::new("bin")))?;
    let local = home.as_ref().map(|home| home.join(".local"));
    let is_shared = home.as_ref().is_some_and(|home| home.starts_with(prefix))
        || local.is_some_and(|local| local == prefix)
        || prefix.components().count() < 3;
    Some(if is_shared { bin.to_owned() } else { prefix.to_owned() })
}

/// The directory that a variable names, else the one below the user's home.
fn home_of(variable: &str, below: &str, around: &Surroundings) -> Option<PathBuf> {
    let set = around.variable(variable).map(PathBuf::from);
    set.or_else(|| Some(around.home()?.join(below))).map(|path| real(&path))
}

impl VersionManager {
    fn root(&self, around: &Surroundings) -> PathBuf {
        home_of(self.variable, self.below, around).unwrap_or_default()
    }

    /// Returns the directory that commands need to read to run this program; `None` if no version of it is installed.
    fn directory(&self, program: &str, around: &Surroundings) -> Option<PathBuf> {
        let root = self.root(around);
        match self.needs {
            Needs::Whole => Some(root),
            Needs::Version => {
                let plugins = directories(&root.join("installs"));
                let versions = plugins.iter().flat_map(|plugin| directories(plugin));
                // Links name versions by other names, such as `latest`.
                let versions = versions.filter(|version| !version.is_symlink());
                // The Go of asdf has a directory of its own below that of its version.
                let homes = versions.flat_map(|version| [version.join("go"), version]);
                homes.filter(|home| home.join("bin").join(program).is_file()).max_by_key(|home| version(home))
            }
        }
    }
}

fn directories(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// The numbers in the path of a version, by which the newest is chosen.
fn version(path: &Path) -> Vec<u64> {
    let text = path.to_string_lossy();
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    numbers.filter_map(|number| number.parse().ok()).collect()
}
