//! Snapshots: the files of a skill in use, in a directory that is named by their digest.
//!
//! A skill is used as it was accepted: the shown bytes are the hashed bytes, whatever happens to their source
//! meanwhile. Agents see a snapshot read-only, and no other part of the directory that holds them.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use claw_core::skill::SkillPackage;
use claw_core::tool::Digest;
use claw_core::{CallId, SkillName};

use super::package;

/// The time after which a copy that no session used is removed. It is copied again when needed.
pub(super) const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// A use is noted on a copy at most so often.
const NOTED: Duration = Duration::from_secs(60 * 60);

/// The digits of a digest in the name of its directory: enough that nobody can construct a collision, and too
/// few to be taken for a key and scrubbed.
const DIGITS: usize = 40;

/// The directory of a skill with this digest.
pub(super) fn place(base: &Path, digest: &Digest, name: &SkillName) -> PathBuf {
    let digits: String = digest.to_string().trim_start_matches("sha256:").chars().take(DIGITS).collect();
    base.join(digits).join(name.as_str())
}

/// Returns the directory that holds exactly the skill's files. An existing one is verified, and made anew if
/// it differs.
pub(super) fn show(base: &Path, package: &SkillPackage) -> io::Result<PathBuf> {
    let digest = package.digest();
    let name = &package.manifest.name;
    let place = place(base, &digest, name);
    touch(&place);
    if holds(&place, name, &digest) {
        return Ok(place);
    }
    DirBuilder::new().recursive(true).mode(0o700).create(base)?;
    // Nobody else has this name, and what a killed process left of one is not taken for a skill.
    let new = base.join(format!("new-{}", CallId::new()));
    let written = write(&new.join(name.as_str()), package).and_then(|()| {
        let above = place.parent().unwrap_or(base);
        if above.exists() {
            fs::remove_dir_all(above)?;
        }
        fs::rename(&new, above)
    });
    match written {
        Ok(()) => Ok(place),
        // Another process may have been first.
        Err(error) => {
            let _ = fs::remove_dir_all(&new);
            if holds(&place, name, &digest) { Ok(place) } else { Err(error) }
        }
    }
}

/// Notes that a copy is in use; returns false if there is none.
pub(super) fn touch(place: &Path) -> bool {
    let Some(above) = place.parent() else { return false };
    let Ok(age) = age(above) else { return false };
    if age > NOTED {
        // A copy whose time cannot be set is made again some day.
        let _ = fs::File::open(above).and_then(|above| above.set_modified(SystemTime::now()));
    }
    place.is_dir()
}

/// Removes the copies that nobody has used for `kept`, and incomplete ones of killed processes.
pub(super) fn sweep(base: &Path, kept: Duration) -> io::Result<usize> {
    let mut removed = 0;
    for entry in fs::read_dir(base)? {
        let path = entry?.path();
        if age(&path).is_ok_and(|age| age > kept) {
            // Out of sight first: a copy is there whole or not at all.
            let gone = base.join(format!("new-{}", CallId::new()));
            if fs::rename(&path, &gone).is_ok() && fs::remove_dir_all(&gone).is_ok() {
                removed += 1;
            }
        }
    }
    Ok(removed)
}

/// Returns the time since a directory was changed; zero if the clock went backwards.
fn age(directory: &Path) -> io::Result<Duration> {
    let changed = fs::symlink_metadata(directory)?.modified()?;
    Ok(SystemTime::now().duration_since(changed).unwrap_or_default())
}

/// Returns whether a directory holds exactly this skill.
fn holds(place: &Path, name: &SkillName, digest: &Digest) -> bool {
    let opened = package::open_named(place).ok();
    opened.is_some_and(|opened| {
        package::read(&opened, name.as_str()).is_ok_and(|package| package.digest() == *digest)
    })
}

fn write(directory: &Path, package: &SkillPackage) -> io::Result<()> {
    let make = |directory: &Path| DirBuilder::new().recursive(true).mode(0o755).create(directory);
    make(directory)?;
    for file in &package.files {
        // Paths were checked when the files were read; a package of another origin is checked here.
        let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
        if !file.path.split('/').all(is_plain) {
            let why = format!("`{}` is not a valid path", file.path);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let path = directory.join(&file.path);
        make(path.parent().unwrap_or(directory))?;
        let mode = if file.executable { 0o555 } else { 0o444 };
        let mut new = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?;
        new.write_all(&file.bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use claw_core::skill::SkillFile;

    use super::*;

    fn package(files: &[(&str, &str)]) -> SkillPackage {
        let file = |(path, text): &(&str, &str)| SkillFile {
            path: (*path).to_owned(),
            executable: path.ends_with(".sh"),
            bytes: text.as_bytes().to_vec(),
        };
        let main = ("SKILL.md", "---\nname: demo\ndescription: d\n---\nx");
        let files = files.iter().chain([&main]).map(file).collect();
        package::from_files("demo", files).unwrap()
    }

    #[test]
    fn holds_exactly_the_files_that_were_hashed() {
        let base = tempfile::tempdir().unwrap();
        let package = package(&[("scripts/run.sh", "echo hi")]);
        let place = show(base.path(), &package).unwrap();
        assert_eq!(fs::read_to_string(place.join("scripts/run.sh")).unwrap(), "echo hi");
        // Files changed or added behind our back are not shown again.
        fs::remove_file(place.join("scripts/run.sh")).unwrap();
        fs::write(place.join("scripts/run.sh"), "echo evil").unwrap();
        fs::write(place.join("more"), "evil").unwrap();
        assert_eq!(show(base.path(), &package).unwrap(), place);
        assert_eq!(fs::read_to_string(place.join("scripts/run.sh")).unwrap(), "echo hi");
        assert!(!place.join("more").exists());
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
    }

    #[test]
    fn removes_copies_that_nobody_uses_any_more() {
        let base = tempfile::tempdir().unwrap();
        let age = |place: &Path| {
            let long_ago = SystemTime::now() - 2 * KEPT;
            fs::File::open(place).unwrap().set_modified(long_ago).unwrap();
        };
        let (old, used) = (package(&[("a", "old")]), package(&[("a", "used")]));
        let old = show(base.path(), &old).unwrap();
        let used = show(base.path(), &used).unwrap();
        let left = base.path().join("new-left-by-a-killed-process");
        fs::create_dir(&left).unwrap();
        [old.parent().unwrap(), used.parent().unwrap(), &left].into_iter().for_each(age);
        assert!(touch(&used));
        assert_eq!(sweep(base.path(), KEPT).unwrap(), 2);
        assert!(!old.exists() && !left.exists() && used.join("SKILL.md").exists());
        assert!(!touch(&old));
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
    }

    #[test]
    fn refuses_a_path_that_leaves_the_directory() {
        let base = tempfile::tempdir().unwrap();
        for path in ["../x", "a/../../x", "/etc/x", "a//b"] {
            assert!(show(base.path(), &package(&[(path, "x")])).is_err(), "{path}");
        }
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }
}
