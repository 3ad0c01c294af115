use claw_core::port::Order;
use claw_core::tool::ErrorKind;

use super::*;

fn walk(globs: &[&str], types: &[&str]) -> Walk {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Walk {
        path: ".".into(),
        depth: None,
        globs: owned(globs),
        types: owned(types),
        hidden: false,
        ignored: false,
        directories: true,
        order: Order::Path,
        limit: 10,
    }
}

#[track_caller]
fn check(globs: &[&str], types: &[&str], cases: &[(&str, bool)]) {
    let filter = Filter::new(&walk(globs, types)).unwrap();
    for (path, expected) in cases {
        let path = format!("/{path}");
        assert_eq!(filter.wants_file(Path::new(&path)), *expected, "{path} by {globs:?} {types:?}");
    }
}

#[test]
fn globs_take_in_and_out() {
    check(&[], &[], &[("a", true)]);
    check(&["*.rs"], &[], &[("a.rs", true), ("deep/a.rs", true), ("a.py", false)]);
    check(&["src/*.rs"], &[], &[("src/a.rs", true), ("src/b/a.rs", false), ("x/src/a.rs", false)]);
    check(&["./src/**/*.rs"], &[], &[("src/a.rs", true), ("src/b/a.rs", true)]);
    check(&["*.{ts,tsx}"], &[], &[("a.ts", true), ("b/a.tsx", true), ("a.t", false)]);
    check(&["!*.md"], &[], &[("a.md", false), ("a.rs", true)]);
    check(&["*.rs", "!test*"], &[], &[("a.rs", true), ("test.rs", false), ("a.py", false)]);
}

#[test]
fn types_go_by_ripgreps_names() {
    check(&[], &["rust"], &[("a.rs", true), ("a.py", false)]);
    check(&["!b*"], &["rust", "py"], &[("a.rs", true), ("a.py", true), ("b.rs", false), ("a.c", false)]);
}

#[test]
fn directories_are_gone_into_unless_taken_out() {
    let filter = Filter::new(&walk(&["*.rs", "!vendor"], &[])).unwrap();
    assert!(filter.enters(Path::new("/src")));
    assert!(!filter.enters(Path::new("/vendor")));
    assert!(!filter.wants_directory(Path::new("/src")));
    let filter = Filter::new(&walk(&["src"], &[])).unwrap();
    assert!(filter.wants_directory(Path::new("/src")));
}

#[test]
fn says_what_is_wrong() {
    let says = |globs: &[&str], types: &[&str]| {
        let error = Filter::new(&walk(globs, types)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
        error.for_model()
    };
    assert!(
        says(&["a[b"], &[]).contains("`a[b` is not a glob: unclosed character class"),
        "{}",
        says(&["a[b"], &[])
    );
    assert!(says(&["{a"], &[]).contains("`{a` is not a glob"));
    assert!(says(&[], &["pyton"]).contains("`pyton` is not a file type"));
    assert!(says(&[], &["pyton"]).contains("python"));
    assert!(says(&[], &["§"]).contains("rust"));
}
