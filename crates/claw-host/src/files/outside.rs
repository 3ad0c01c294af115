//! Paths outside every root, looked at so that a person can be asked about them.

use std::path::{Path, PathBuf};

use claw_core::port::normalise;

use crate::secret_files::is_below_secret;

/// The real directory that a path is, or is in. `None` where there is none, where a link leads elsewhere than the path says,
/// and where a name on the way says that it holds secrets.
pub(super) fn directory_of(path: &Path) -> Option<PathBuf> {
    let path = normalise(path)?;
    let directory = if path.is_dir() { path.clone() } else { path.parent()?.to_owned() };
    // File tools find the path below the directory that was granted only if it is spelled so.
    let is_real = directory.is_dir() && directory.canonicalize().is_ok_and(|real| real == directory);
    (is_real && !is_below_secret(&path)).then_some(directory)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_path_with_a_link_or_a_secret_name_leads_nowhere() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for directory in ["data/deep", "home/.ssh", "home/.aws/cli"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        for file in ["data/a.txt", "home/.env", "home/.ssh/config"] {
            fs::write(root.join(file), "x").unwrap();
        }
        std::os::unix::fs::symlink(root.join("home"), root.join("link")).unwrap();
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(directory_of(&root.join(path)), expected.map(|path| root.join(path)), "{path}");
        };
        check("data", Some("data"));
        check("data/a.txt", Some("data"));
        check("data/new.txt", Some("data"));
        check("data/deep/../a.txt", Some("data"));
        check("data/missing/new.txt", None);
        for secret in ["home/.ssh", "home/.ssh/config", "home/.env", "home/.aws/cli", "link", "link/x"] {
            check(secret, None);
        }
    }
}
