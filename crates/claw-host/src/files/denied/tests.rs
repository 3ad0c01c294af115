use std::fs;

use tempfile::TempDir;

use super::*;

const HERE: Id = Id { device: 1, inode: 2 };
const THERE: Id = Id { device: 1, inode: 3 };

#[track_caller]
fn check(folded: bool, name: &str, expected: bool) {
    let name_of = Name { within: HERE, name: "Own".into(), last: true, folded };
    let denied = Denied { there: Vec::new(), names: vec![name_of] };
    assert_eq!(denied.is_hidden(HERE, OsStr::new(name)), expected, "{name}, folded: {folded}");
    assert!(!denied.is_hidden(THERE, OsStr::new(name)), "it is another directory");
}

#[test]
fn what_is_missing_is_hidden_by_name() {
    check(false, "Own", true);
    check(false, "own", false);
    check(false, "Own ", false);
}

#[test]
fn where_case_does_not_count_whatever_may_be_the_name_is_hidden() {
    check(true, "own", true);
    check(true, "OWN", true);
    check(true, "\u{ff2f}wn", true);
    check(true, "owner", false);
}

#[test]
fn a_path_stands_for_what_it_names_and_for_its_name() {
    let directory = TempDir::new().unwrap();
    let root = directory.path();
    fs::create_dir(root.join("own")).unwrap();
    let id = |path: &Path| Id::of(&rustix::fs::stat(path).unwrap());
    let denied = Denied::new(&["own".into(), root.join("a/b"), root.join("c")], [root].into_iter());
    assert!(denied.is_denied(id(&root.join("own"))));
    assert!(!denied.is_denied(id(root)));
    assert!(denied.is_hidden(id(root), OsStr::new("c")));
    assert!(denied.is_hidden(id(root), OsStr::new("own")), "though it be replaced");
    assert!(!denied.is_hidden(id(root), OsStr::new("a")) && denied.leads(id(root), OsStr::new("a")));
}
