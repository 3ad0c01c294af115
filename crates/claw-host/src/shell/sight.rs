//! What a command leads to: which file a name means now, and which thing that file is.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use claw_core::tool::Target;

use super::environment::PATH;

/// Where something is, and which thing it is.
type Seen = (Option<String>, Option<String>);

/// The program that a word in command position means.
pub(super) fn program(name: &str, directory: &Path) -> Seen {
    let found = match name.contains('/') {
        true => Some(directory.join(name)),
        false => PATH.split(':').map(|place| Path::new(place).join(name)).find(is_program),
    };
    found.map_or((None, None), |path| file(&path))
}

/// A file, wherever links lead.
pub(super) fn file(path: &Path) -> Seen {
    let Ok(path) = path.canonicalize() else { return (None, None) };
    let identity = std::fs::metadata(&path).ok().map(|found| {
        let (device, inode, size) = (found.dev(), found.ino(), found.size());
        // The second time is the kernel's own: nobody who changes a file can set it back.
        let times = [(found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec())];
        let [changed, touched] = times.map(|(seconds, nanos)| format!("{seconds}.{nanos:09}"));
        format!("{device}:{inode}:{size}:{changed}:{touched}")
    });
    (Some(path.display().to_string()), identity)
}

/// A target, for people.
pub(super) fn named(target: &Target) -> String {
    match target {
        Target::Program { name, .. } => format!("the program `{name}`"),
        Target::File { path } => format!("the file `{path}`"),
        Target::Sandbox => "the sandbox".to_owned(),
    }
}

fn is_program(path: &PathBuf) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
}
