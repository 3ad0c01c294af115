//! Snapshots: the files of a skill in use, in a directory that is named by their digest.
//!
//! A skill is used as it was accepted: the bytes that were hashed are the bytes that are shown, whatever happens
//! meanwhile where they came from. Agents see a snapshot read-only, and no other part of the directory that holds them.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use claw_core::skill::SkillPackage;
use claw_core::tool::Digest;
use claw_core::{CallId, SkillName};

use super::package;

/// Digits of a digest in the name of its directory: enough that nobody finds two skills with the same ones, and too few to
/// be taken for a key and scrubbed.
const DIGITS: usize = 40;

/// The directory of a skill with this digest.
pub(super) fn place(base: &Path, digest: &Digest, name: &SkillName) -> PathBuf {
    let digits: String = digest.to_string().trim_start_matches("sha256:").chars().take(DIGITS).collect();
    base.join(digits).join(name.as_str())
}

/// Shows a skill: returns the directory that holds exactly its files. One that is there already is read again, and made
/// anew where it differs.
pub(super) fn show(base: &Path, package: &SkillPackage) -> io::Result<PathBuf> {
    let digest = package.digest();
    let name = &package.manifest.name;
    let place = place(base, &digest, name);
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

/// Whether a directory holds exactly this skill.
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
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{}` is no path", file.path)));
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
        // What was changed or added behind our back is not shown again.
        fs::remove_file(place.join("scripts/run.sh")).unwrap();
        fs::write(place.join("scripts/run.sh"), "echo evil").unwrap();
        fs::write(place.join("more"), "evil").unwrap();
        assert_eq!(show(base.path(), &package).unwrap(), place);
        assert_eq!(fs::read_to_string(place.join("scripts/run.sh")).unwrap(), "echo hi");
        assert!(!place.join("more").exists());
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
