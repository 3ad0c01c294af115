use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use super::*;

#[test]
fn keeps_bytes_once_and_for_their_owner_alone() {
    let place = TempDir::new().unwrap();
    let blobs = Blobs::new(place.path().join("undo"));
    let _lock = blobs.lock_to_name().unwrap();
    let digest = blobs.put(b"secret").unwrap();
    assert_eq!(blobs.put(b"secret").unwrap(), digest);
    assert_eq!(blobs.get(&digest).unwrap(), b"secret");
    let path = blobs.path(&digest);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert_eq!(mode(&place.path().join("undo")), 0o700);
    let files = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(files, 1);
    blobs.remove(&digest).unwrap();
    blobs.remove(&digest).unwrap();
    assert_eq!(blobs.get(&digest).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn gives_no_damaged_bytes_and_writes_them_again() {
    let place = TempDir::new().unwrap();
    let blobs = Blobs::new(place.path().into());
    let digest = blobs.put(b"whole").unwrap();
    fs::write(blobs.path(&digest), "other").unwrap();
    assert_eq!(blobs.get(&digest).unwrap_err().kind(), ErrorKind::InvalidData);
    assert_eq!(blobs.put(b"whole").unwrap(), digest);
    assert_eq!(blobs.get(&digest).unwrap(), b"whole");
}

#[test]
fn whoever_removes_is_alone() {
    let place = TempDir::new().unwrap();
    let blobs = Blobs::new(place.path().into());
    let (one, other) = (blobs.lock_to_name().unwrap(), blobs.lock_to_name().unwrap());
    assert!(blobs.lock_to_remove().unwrap().is_none());
    drop((one, other));
    let removing = blobs.lock_to_remove().unwrap().unwrap();
    assert!(blobs.lock_to_remove().unwrap().is_none());
    drop(removing);
    assert!(blobs.lock_to_remove().unwrap().is_some());
}
