//! The directories in which commands find programs, and the variables that locate toolchains.
//!
//! A command in the sandbox finds the programs of the system and of directories granted for reading. A
//! command on the host finds what this program finds.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use claw_core::port::Allowed;

/// The directories of the system; the same for everybody, regardless of this program's environment.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Names of directories with programs, if such a directory is granted itself.
const OF_PROGRAMS: [&str; 2] = ["bin", "shims"];

/// Variables that name the directory of a toolchain, and the place below the user's home that each has by default.
const HOMES: &[(&str, Option<&str>)] = &[
    ("GOROOT", None),
    ("JAVA_HOME", None),
    ("NODENV_ROOT", Some(".nodenv")),
    ("PYENV_ROOT", Some(".pyenv")),
    ("RUSTUP_HOME", Some(".rustup")),
    ("UV_PYTHON_INSTALL_DIR", Some(".local/share/uv/python")),
    ("VOLTA_HOME", Some(".volta")),
];

/// The directories in which a command finds programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SearchPath {
    /// The directories, in order.
    pub(super) directories: Vec<PathBuf>,
    /// Variables that locate toolchains.
    pub(super) variables: Vec<(String, String)>,
}

impl Default for SearchPath {
    fn default() -> Self {
        Self { directories: PATH.split(':').map(PathBuf::from).collect(), variables: Vec::new() }
    }
}

impl SearchPath {
    /// Searches the granted directories; `None` means the host, where everything is in reach. Asks the file
    /// system.
    pub(super) fn find(variable: impl Fn(&str) -> Option<String>, granted: Option<&[Allowed]>) -> Self {
        // A directory that commands can write to must not provide programs found by name.
        let readable = granted.map(|granted| {
            let readable = granted.iter().filter(|granted| !granted.write);
            readable.filter_map(|granted| granted.path.canonicalize().ok()).collect::<Vec<PathBuf>>()
        });
        let is_shown = |path: &Path| match &readable {
            None => true,
            Some(readable) => readable.iter().any(|granted| path.starts_with(granted)),
        };
        let mut directories: Vec<PathBuf> = Vec::new();
        let mut add = |directory: PathBuf| {
            // A colon would end the entry.
            let is_plain = directory.to_str().is_some_and(|text| !text.contains(':'));
            if is_plain && directory.is_dir() && !directories.contains(&directory) {
                directories.push(directory);
            }
        };
        let own = variable("PATH").unwrap_or_default();
        let own = std::env::split_paths(&own).filter(|directory| directory.is_absolute());
        for directory in own.filter_map(|directory| directory.canonicalize().ok()) {
            if is_shown(&directory) {
                add(directory);
            }
        }
        for granted in readable.iter().flatten() {
            let name = granted.file_name().and_then(OsStr::to_str).unwrap_or_default();
            add(if OF_PROGRAMS.contains(&name) { granted.clone() } else { granted.join("bin") });
        }
        for directory in PATH.split(':').map(PathBuf::from) {
            if !directories.contains(&directory) {
                directories.push(directory);
            }
        }
        let home = variable("HOME").map(PathBuf::from);
        let of = |name: &str, below: Option<&str>| {
            let set = variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
            let path = set.or_else(|| Some(home.as_ref()?.join(below?)))?.canonicalize().ok()?;
            (path.is_dir() && is_shown(&path)).then(|| path.to_str().map(str::to_owned)).flatten()
        };
        let variables =
            HOMES.iter().filter_map(|(name, below)| Some(((*name).to_owned(), of(name, *below)?)));
        Self { directories, variables: variables.collect() }
    }

    /// The value of `PATH`.
    pub(super) fn value(&self) -> String {
        let directories: Vec<_> =
            self.directories.iter().map(|directory| directory.to_string_lossy()).collect();
        directories.join(":")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_directories_that_are_granted_to_be_read_are_searched() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        for directory in ["node/bin", "cargo/bin", "writable/bin", "other/bin", ".rustup/toolchains"] {
            fs::create_dir_all(home.join(directory)).unwrap();
        }
        let path = format!("{0}/other/bin:{0}/cargo/bin:relative:{0}/writable/bin", home.display());
        let variable = |name: &str| match name {
            "PATH" => Some(path.clone()),
            "HOME" => Some(home.display().to_string()),
            _ => None,
        };
        let allowed = |name: &str, write| Allowed { path: home.join(name), write };
        let granted = [
            allowed("cargo/bin", false),
            allowed("node", false),
            allowed("writable", true),
            allowed("missing", false),
        ];
        let found = SearchPath::find(variable, Some(&granted));
        assert_eq!(found.directories[..2], [home.join("cargo/bin"), home.join("node/bin")]);
        assert_eq!(found.directories[2..], SearchPath::default().directories);
        assert!(found.variables.is_empty(), "`~/.rustup` is not granted: {found:?}");
        let granted = [allowed(".rustup", false)];
        let found = SearchPath::find(variable, Some(&granted));
        assert_eq!(found.variables, [("RUSTUP_HOME".to_owned(), home.join(".rustup").display().to_string())]);
        let host = SearchPath::find(variable, None);
        assert_eq!(host.directories[0], home.join("other/bin"), "on the host everything is in reach");
    }
}
