use std::fs;

use tempfile::TempDir;

use super::*;

const QUOTA: Quota = Quota { bytes: 10, files: 3 };

fn held(bytes: i64, files: i64) -> Change {
    Change { bytes, files }
}

#[test]
fn counts_files_and_directories_but_follows_no_link() {
    let directory = TempDir::new().unwrap();
    fs::create_dir_all(directory.path().join("a/b")).unwrap();
    fs::write(directory.path().join("a/b/c"), "123").unwrap();
    fs::write(directory.path().join("d"), "45").unwrap();
    std::os::unix::fs::symlink("/", directory.path().join("everything")).unwrap();
    let root = Directory::trusted(directory.path()).unwrap();
    assert_eq!(count(&root), Held { bytes: 5, files: 5 });
}

#[test]
fn counts_trees_that_are_deeper_than_handles_are_kept() {
    let directory = TempDir::new().unwrap();
    let mut path = directory.path().to_owned();
    for _ in 0..3 * HANDLES {
        path.push("d");
        fs::create_dir(&path).unwrap();
        fs::create_dir(path.join("e")).unwrap();
        fs::write(path.join("e/f"), "x").unwrap();
    }
    let levels = 3 * HANDLES as u64;
    let root = Directory::trusted(directory.path()).unwrap();
    assert_eq!(count(&root), Held { bytes: levels, files: 3 * levels });
}

#[test]
fn takes_room_and_gives_back_what_is_not_used() {
    let directory = TempDir::new().unwrap();
    let root = Directory::trusted(directory.path()).unwrap();
    let usages = Usages::default();
    let first = usages.take(&root, QUOTA, held(6, 1)).unwrap();
    let Err(Failure::Quota(excess)) = usages.take(&root, QUOTA, held(11, 1)) else { panic!("no room") };
    assert_eq!((excess.bytes, excess.files, excess.most_bytes, excess.most_files), (11, 1, 10, 3));
    drop(first);
    usages.take(&root, QUOTA, held(10, 3)).unwrap().keep();
}

#[test]
fn counts_again_before_it_refuses() {
    let directory = TempDir::new().unwrap();
    let root = Directory::trusted(directory.path()).unwrap();
    let usages = Usages::default();
    fs::write(directory.path().join("a"), "1234567890").unwrap();
    assert!(usages.take(&root, QUOTA, held(1, 1)).is_err());
    usages.take(&root, QUOTA, held(-3, 0)).unwrap().keep();
    fs::remove_file(directory.path().join("a")).unwrap();
    usages.take(&root, QUOTA, held(9, 1)).unwrap().keep();
}
