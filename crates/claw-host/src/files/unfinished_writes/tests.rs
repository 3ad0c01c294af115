use std::fs;
use std::os::fd::AsFd as _;

use tempfile::TempDir;

use super::*;

#[test]
fn sweeps_what_is_old_and_nothing_else() {
    let place = TempDir::new().unwrap();
    for name in [".clawsmith-tmp-0123", ".clawsmith-tm", "clawsmith-tmp-0123", "a"] {
        fs::write(place.path().join(name), "x").unwrap();
    }
    let directory = Directory::trusted(place.path()).unwrap();
    let readable = directory.readable().unwrap();
    let names = || fs::read_dir(place.path()).unwrap().count();
    let now = SystemTime::now();
    Swept::default().sweep(&directory, readable.as_fd(), now);
    assert_eq!(names(), 4, "it is young: its writer may be alive");
    let swept = Swept::default();
    swept.sweep(&directory, readable.as_fd(), now + OLD + Duration::from_secs(2));
    assert_eq!(names(), 3);
    fs::write(place.path().join(".clawsmith-tmp-4567"), "x").unwrap();
    swept.sweep(&directory, readable.as_fd(), now + 2 * OLD);
    assert_eq!(names(), 4, "each directory is looked through once");
}

#[test]
fn leaves_nothing_where_it_is_not_put_in_place() {
    let place = TempDir::new().unwrap();
    let directory = Directory::trusted(place.path()).unwrap();
    let unfinished = Unfinished::write(&directory, None, b"half", None).unwrap();
    assert!(is_unfinished(&unfinished.name));
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    drop(unfinished);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}
