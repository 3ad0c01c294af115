use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

const FRONT: &str = "---\nname: demo\ndescription: A demo.\n---\nDo it.\n";

fn skill() -> (TempDir, PathBuf) {
    let base = tempfile::tempdir().unwrap();
    let directory = base.path().join("demo");
    fs::create_dir_all(directory.join("scripts")).unwrap();
    fs::write(directory.join(SKILL_FILE), FRONT).unwrap();
    fs::write(directory.join("scripts/run.sh"), "#!/bin/sh\necho hi\n").unwrap();
    (base, directory)
}

fn load(directory: &Path) -> Result<SkillPackage, String> {
    let name = directory.file_name().unwrap().to_str().unwrap().to_owned();
    open_named(directory)
        .map_err(|error| error.to_string())
        .and_then(|opened| read(&opened, &name).map_err(|error| error.to_string()))
}

#[track_caller]
fn refused(directory: &Path, expected: &str) {
    let error = load(directory).unwrap_err();
    assert!(error.contains(expected), "{error}");
    let opened = open_named(directory).unwrap();
    // The refusal comes before the package is read whole, too.
    if expected.contains("bytes") || expected.contains("link") {
        assert!(fingerprint(&opened).is_err());
    }
}

#[test]
fn every_path_mode_and_byte_is_in_the_digest() {
    let (_base, directory) = skill();
    let package = load(&directory).unwrap();
    assert_eq!(
        package.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(),
        [SKILL_FILE, "scripts/run.sh"]
    );
    let mut digests = vec![package.digest()];
    let script = directory.join("scripts/run.sh");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    digests.push(load(&directory).unwrap().digest());
    fs::write(&script, "#!/bin/sh\necho ho\n").unwrap();
    digests.push(load(&directory).unwrap().digest());
    fs::rename(&script, directory.join("scripts/walk.sh")).unwrap();
    digests.push(load(&directory).unwrap().digest());
    fs::write(directory.join("more"), "").unwrap();
    digests.push(load(&directory).unwrap().digest());
    let count = digests.len();
    digests.sort_by_key(|digest| digest.to_string());
    digests.dedup();
    assert_eq!(digests.len(), count);
    // Files of version control and interpreters are not part of it.
    fs::create_dir(directory.join("__pycache__")).unwrap();
    fs::write(directory.join("__pycache__/x.pyc"), "x").unwrap();
    assert_eq!(load(&directory).unwrap().files.len(), 3);
}

#[test]
fn refuses_a_link_wherever_it_leads() {
    for target in ["/etc/passwd", "SKILL.md", "/nowhere", "../../outside"] {
        let (_base, directory) = skill();
        symlink(target, directory.join("reference.md")).unwrap();
        refused(&directory, "symbolic link");
    }
    let (_base, directory) = skill();
    symlink("/etc", directory.join("references")).unwrap();
    refused(&directory, "symbolic link");
    let (base, directory) = skill();
    fs::remove_file(directory.join(SKILL_FILE)).unwrap();
    fs::write(base.path().join("elsewhere.md"), FRONT).unwrap();
    symlink("../elsewhere.md", directory.join(SKILL_FILE)).unwrap();
    refused(&directory, "symbolic link");
}

#[test]
fn refuses_a_sparse_gigabyte_without_reading_it() {
    let (_base, directory) = skill();
    File::create(directory.join("assets.bin")).unwrap().set_len(1 << 30).unwrap();
    refused(&directory, "has 1073741824 bytes");
}

#[test]
fn refuses_many_files_that_are_large_together_and_many_small_ones() {
    let (_base, directory) = skill();
    for n in 0..5 {
        File::create(directory.join(format!("{n}.bin"))).unwrap().set_len(LARGEST_FILE).unwrap();
    }
    let error = load(&directory).unwrap_err();
    assert!(error.contains("20971520 are allowed"), "{error}");
    let (_base, directory) = skill();
    for n in 0..=MOST_FILES {
        fs::write(directory.join(n.to_string()), "").unwrap();
    }
    refused(&directory, "more than 500 files");
}

#[test]
fn refuses_deep_directories_pipes_and_odd_names() {
    let (_base, directory) = skill();
    fs::create_dir_all(directory.join("a/b/c/d/e/f/g/h/i/j")).unwrap();
    refused(&directory, "is deeper than 8");
    let (_base, directory) = skill();
    rustix::fs::mkfifoat(rustix::fs::CWD, directory.join("pipe"), Mode::from_raw_mode(0o600)).unwrap();
    refused(&directory, "no regular file");
    let (_base, directory) = skill();
    fs::write(directory.join("a\nb"), "").unwrap();
    refused(&directory, "not allowed");
    let (_base, directory) = skill();
    use std::os::unix::ffi::OsStrExt as _;
    fs::write(directory.join(OsStr::from_bytes(b"\xff")), "").unwrap();
    refused(&directory, "is not UTF-8 text");
}

#[test]
fn refuses_text_that_is_no_utf8_and_a_name_that_is_not_the_directorys() {
    let (_base, directory) = skill();
    fs::write(directory.join(SKILL_FILE), b"---\nname: demo\ndescription: \xff\n---\n").unwrap();
    refused(&directory, "is not UTF-8 text");
    fs::write(directory.join(SKILL_FILE), FRONT.replace("demo", "other")).unwrap();
    refused(&directory, "both must be the same");
    fs::remove_file(directory.join(SKILL_FILE)).unwrap();
    refused(&directory, "has no `SKILL.md`");
}

#[test]
fn refuses_paths_that_leave_the_workspace() {
    let (base, directory) = skill();
    let below = |path: &str| {
        open_below(open_named(base.path()).unwrap(), Path::new(path))
            .map(drop)
            .map_err(|error| error.to_string())
    };
    below("demo").unwrap();
    below("./demo/scripts").unwrap();
    for path in ["../x", "demo/../../x", "/etc"] {
        assert!(below(path).unwrap_err().contains("leads out of the workspace"), "{path}");
    }
    symlink(&directory, base.path().join("link")).unwrap();
    assert!(below("link").unwrap_err().contains("a link is on the way"));
    assert!(below("link/scripts").unwrap_err().contains("a link is on the way"));
    assert!(below("gone").unwrap_err().contains("there is no directory"));
}
