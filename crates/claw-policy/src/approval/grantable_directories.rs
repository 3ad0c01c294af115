//! Directories outside the workspace that can be granted, by configuration or by a person's answer.

use std::path::{Path, PathBuf};

/// Directories that can be granted to nobody, since an agent could give itself more by them or see another agent's data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grantable {
    /// The home directory of the person who runs this program: it and what holds it is never granted as a whole.
    pub home: Option<PathBuf>,
    /// Our own directories and files: nothing in them, and nothing that holds them.
    pub own: Vec<PathBuf>,
}

impl Grantable {
    /// Why a directory cannot be granted, by its real path; `None` where it can.
    pub fn refusal(&self, directory: &Path) -> Option<String> {
        let is_home = self.home.as_ref().is_some_and(|home| home.starts_with(directory));
        if directory == Path::new("/") || is_home {
            return Some("it is the home directory or holds it, and everything in it".to_owned());
        }
        let whole = ["/dev", "/etc", "/run", "/sys"];
        if whole.iter().any(|whole| directory == Path::new(whole)) || directory.starts_with("/proc") {
            return Some("it contains files that the sandbox must hide".to_owned());
        }
        let own = self.own.iter().find(|own| directory.starts_with(own) || own.starts_with(directory))?;
        Some(format!("it contains `{}` or is inside it, and no agent may reach that", own.display()))
    }
}

#[cfg(test)]
mod tests;
