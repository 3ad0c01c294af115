//! This program as it is mounted into containers: its file, its loader and its libraries. With them it runs
//! in any image of the same architecture.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tokio::task::spawn_blocking;

use super::DockerError;
use super::inside;

/// The directory inside at which libraries are mounted.
const LIBRARIES: &str = "/.clawsmith/lib";

/// This program's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Own {
    /// Each file, and its path inside.
    pub(super) files: Vec<(PathBuf, String)>,
    /// The first words of every command line inside.
    argv: Vec<String>,
    /// The identities of the files: a container with other files is another container.
    pub(super) identity: Vec<String>,
}

impl Own {
    /// Finds the files mapped into this process, on a thread that may block.
    pub(super) async fn find() -> Result<Self, DockerError> {
        if !super::super::helper::is_let_in() {
            return Err(DockerError::Own(super::super::SandboxError::NoHelper.to_string()));
        }
        let found = spawn_blocking(Self::look).await;
        found.unwrap_or_else(|stopped| Err(DockerError::Own(stopped.to_string())))
    }

    fn look() -> Result<Self, DockerError> {
        let unreadable = |error: std::io::Error| DockerError::Own(error.to_string());
        let program = fs::read_link("/proc/self/exe").map_err(unreadable)?;
        let maps = fs::read_to_string("/proc/self/maps").map_err(unreadable)?;
        Self::of(&program, &maps)
    }

    fn of(program: &Path, maps: &str) -> Result<Self, DockerError> {
        let replaced = || {
            let program = program.display();
            DockerError::Own(format!("`{program}` was replaced after it was started; restart it"))
        };
        if !program.is_file() {
            return Err(replaced());
        }
        let mut files = vec![(program.to_owned(), inside::PROGRAM.to_owned())];
        let mut loader = None;
        // address, rights, offset, device, inode, path
        for line in maps.lines() {
            let mut parts = line.splitn(6, ' ');
            let (rights, path) = (parts.nth(1).unwrap_or_default(), parts.nth(3).unwrap_or_default().trim());
            let path = Path::new(path);
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if !rights.contains('x') || !path.is_absolute() || path == program {
                continue;
            }
            if !path.is_file() {
                return Err(replaced());
            }
            let inside = format!("{LIBRARIES}/{name}");
            if name.starts_with("ld-") {
                loader = Some(inside.clone());
            }
            files.push((path.to_owned(), inside));
        }
        let argv = match loader {
            Some(loader) => vec![loader, "--library-path".into(), LIBRARIES.into(), inside::PROGRAM.into()],
            None => vec![inside::PROGRAM.into()],
        };
        let identity = files.iter().map(|(path, _)| identity(path)).collect();
        Ok(Self { files, argv, identity })
    }

    /// A command line for this program inside.
    pub(super) fn argv(&self, words: &[&str]) -> Vec<String> {
        self.argv.iter().cloned().chain(words.iter().map(|word| (*word).to_owned())).collect()
    }
}

fn identity(path: &Path) -> String {
    let found = fs::metadata(path).ok();
    let found = found.map(|at| format!("{}:{}:{}:{}", at.dev(), at.ino(), at.size(), at.mtime()));
    format!("{} {}", path.display(), found.unwrap_or_default())
}
