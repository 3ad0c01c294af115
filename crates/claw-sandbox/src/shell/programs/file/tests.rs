use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use claw_core::tool::Digest;

use super::{check, digest};

#[test]
fn a_file_that_others_could_replace_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let (directory, file) = (root.path().join("bin"), root.path().join("bin/gh"));
    fs::create_dir(&directory).unwrap();
    fs::write(&file, "#!/bin/sh\n").unwrap();
    let set = |path: &std::path::Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    for (directory_mode, file_mode, refused) in [
        (0o755, 0o755, None),
        (0o755, 0o644, Some("is not a program")),
        (0o755, 0o775, Some("who could change it")),
        (0o777, 0o755, Some("who could change what is in it")),
        (0o775, 0o755, Some("who could change what is in it")),
        (0o1777, 0o755, None),
    ] {
        set(&file, file_mode);
        set(&directory, directory_mode);
        let checked = check(&file);
        match refused {
            None => assert_eq!(checked, Ok(())),
            Some(why) => assert!(checked.as_ref().is_err_and(|said| said.contains(why)), "{checked:?}"),
        }
    }
    assert!(check(&directory.join("none")).unwrap_err().contains("cannot be run"));
    assert!(check(&directory).unwrap_err().contains("is not a program"));
    assert_eq!(digest(&file).unwrap(), Digest::of_bytes(b"#!/bin/sh\n"));
}
