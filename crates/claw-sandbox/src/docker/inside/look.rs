//! Looking at programs and files from inside.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::super::wire::{Mounted, Seen, Target};

/// Looks at a target: its real path and identity now.
pub(super) fn look(target: &Target) -> Seen {
    let path = match target {
        Target::File { path } => Some(path.clone()),
        Target::Program { name, directory } if name.contains('/') => Some(directory.join(name)),
        Target::Program { name, .. } => in_path(name),
    };
    let Some(path) = path.and_then(|path| path.canonicalize().ok()) else { return Seen::default() };
    let identity = match of_image(&path) {
        true => None,
        false => Some(identity(&path)),
    };
    Seen { path: Some(path.display().to_string()), identity }
}

fn in_path(name: &str) -> Option<PathBuf> {
    let places = std::env::var_os("PATH")?;
    let program = |path: &PathBuf| fs::metadata(path).is_ok_and(|at| at.is_file() && at.mode() & 0o111 != 0);
    std::env::split_paths(&places).map(|place| place.join(name)).find(program)
}

/// Returns whether a path lies in the image itself, on no mount: such a file cannot be changed.
fn of_image(path: &Path) -> bool {
    !mounts().iter().any(|mount| mount != Path::new("/") && path.starts_with(mount))
}

fn identity(path: &Path) -> String {
    let Ok(found) = fs::metadata(path) else { return "gone".to_owned() };
    let (device, inode, size) = (found.dev(), found.ino(), found.size());
    let times = [(found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec())];
    let [changed, touched] = times.map(|(seconds, nanos)| format!("{seconds}.{nanos:09}"));
    format!("{device}:{inode}:{size}:{changed}:{touched}")
}

/// Returns the mount points.
fn mounts() -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let at = |line: &str| line.split(' ').nth(4).map(|at| PathBuf::from(unescape(at)));
    text.lines().filter_map(at).collect()
}

/// The kernel writes blanks and the like as `\040`.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let code = (*byte == b'\\').then(|| after.get(..3)).flatten();
        let code = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 8).ok());
        bytes.push(code.unwrap_or(*byte));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns a path that is not mounted as intended: somebody changed the workspace while the container was
/// created.
pub(super) fn wrong(mounted: &[Mounted]) -> Option<&Path> {
    let mounts = mounts();
    let right = |wanted: &&Mounted| {
        let found = fs::symlink_metadata(&wanted.path);
        let same = found.is_ok_and(|found| (found.dev(), found.ino()) == (wanted.device, wanted.inode));
        mounts.contains(&wanted.path) && same == wanted.shown
    };
    mounted.iter().find(|wanted| !right(wanted)).map(|wanted| wanted.path.as_path())
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_with_blanks_are_read_as_they_are() {
        for (written, meant) in
            [("/a\\040b", "/a b"), ("/a", "/a"), ("/a\\", "/a\\"), ("/\\134040", "/\\040")]
        {
            assert_eq!(super::unescape(written), meant);
        }
    }
}
