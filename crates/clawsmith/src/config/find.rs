//! Finds `clawsmith.toml` and the data directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// The name of a configuration file.
pub const NAME: &str = "clawsmith.toml";

/// The parts of the process environment that configuration uses.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The current directory.
    pub directory: PathBuf,
    /// All variables, sorted by name.
    pub variables: Vec<(OsString, OsString)>,
}

impl Surroundings {
    /// Reads those of this process.
    pub fn of_process() -> std::io::Result<Self> {
        let mut variables: Vec<_> = std::env::vars_os().collect();
        variables.sort();
        Ok(Self { directory: std::env::current_dir()?, variables })
    }

    /// The value of a variable that is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&OsString> {
        let found = self.variables.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value).filter(|value| !value.is_empty())
    }

    /// The home directory, if one is known.
    pub fn home(&self) -> Option<&Path> {
        self.variable("HOME").map(Path::new)
    }

    /// A directory of the desktop's base directories: the variable, or the place below the home directory.
    fn base(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let set = self.variable(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        set.or_else(|| Some(self.home()?.join(below_home)))
    }

    /// Returns the default data directory.
    pub fn data_dir(&self) -> Option<PathBuf> {
        Some(self.base("XDG_DATA_HOME", ".local/share")?.join("clawsmith"))
    }

    /// The directory of the user's own configuration file.
    pub fn config_dir(&self) -> Option<PathBuf> {
        Some(self.base("XDG_CONFIG_HOME", ".config")?.join("clawsmith"))
    }

    /// Returns the directory that records which files a person accepted.
    pub fn trusted(&self) -> Option<PathBuf> {
        Some(self.base("XDG_STATE_HOME", ".local/state")?.join("clawsmith").join("trusted"))
    }
}

/// A configuration file, and why it was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The file.
    pub path: PathBuf,
    /// Why it was chosen.
    pub by: FoundBy,
}

/// Why a file was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundBy {
    /// `--config` names it.
    Flag,
    /// `$CLAWSMITH_CONFIG` names it.
    Variable,
    /// It is in the current directory or the nearest one above.
    Project,
    /// It is the user's.
    User,
}

impl FoundBy {
    /// Returns the reason in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Flag => "named by `--config`",
            Self::Variable => "named by `$CLAWSMITH_CONFIG`",
            Self::Project => "the nearest one above the current directory",
            Self::User => "the user's",
        }
    }
}

/// Finds the configuration file: the one that `flag` or `$CLAWSMITH_CONFIG` names, the nearest
/// `clawsmith.toml` in the current directory and above, or the user's; `None` if there is none. A named file
/// need not exist.
pub fn find(flag: Option<&Path>, around: &Surroundings) -> Option<Found> {
    let found = |path: PathBuf, by| Some(Found { path, by });
    if let Some(path) = flag {
        return found(path.to_owned(), FoundBy::Flag);
    }
    if let Some(path) = around.variable("CLAWSMITH_CONFIG") {
        return found(path.into(), FoundBy::Variable);
    }
    if let Some(path) = of_project(around).find(|path| path.is_file()) {
        return found(path, FoundBy::Project);
    }
    let user = of_user(around)?;
    if user.is_file() { found(user, FoundBy::User) } else { None }
}

/// Returns every file that was looked for, or would be if another were missing, existing or not: its writer
/// could change the configuration. All are absolute.
pub fn candidates(found: Option<&Found>, around: &Surroundings) -> Vec<PathBuf> {
    let found = found.map(|found| found.path.clone());
    let named = around.variable("CLAWSMITH_CONFIG").map(PathBuf::from);
    let mut all: Vec<PathBuf> = Vec::new();
    for path in found.into_iter().chain(named).chain(of_project(around)).chain(of_user(around)) {
        let path = around.directory.join(path);
        if !all.contains(&path) {
            all.push(path);
        }
    }
    all
}

/// Every place of a project's file, the nearest first.
pub(super) fn of_project(around: &Surroundings) -> impl Iterator<Item = PathBuf> {
    around.directory.ancestors().map(|directory| directory.join(NAME))
}

pub(super) fn of_user(around: &Surroundings) -> Option<PathBuf> {
    Some(around.config_dir()?.join(NAME))
}
