use std::fs;
use std::path::Path;

use super::*;

#[test]
fn python_is_known_by_its_name() {
    for path in [
        "python",
        "/usr/bin/python3",
        "/usr/bin/python3.12",
        "python3.13t",
        "python3-dbg",
        "../platform/bin/python3",
    ] {
        assert!(is_python(Path::new(path)), "{path}");
    }
    for path in ["/usr/bin/python3-config", "pythonic", "/usr/lib/python3.12/x", "perl", "/", ""] {
        assert!(!is_python(Path::new(path)), "{path}");
    }
}

#[track_caller]
fn check(name: &str, libraries: &[&str], expected: bool) {
    let prefix = tempfile::tempdir().unwrap();
    for library in libraries {
        fs::create_dir_all(prefix.path().join("lib").join(library)).unwrap();
    }
    assert_eq!(is_safe(&prefix.path().join("bin").join(name)), expected, "{name} {libraries:?}");
}

#[test]
fn refuses_a_python_that_imports_from_where_it_starts() {
    check("python3.11", &[], true);
    check("python3.14", &["python3.9"], true);
    check("python3.10", &["python3.12"], false);
    check("python2.7", &[], false);
    check("python3.9-dbg", &["python3.9"], false);
    // The name says too little: the standard library beside it does.
    check("python3", &["python3.12", "pkgconfig", "python3"], true);
    check("python3", &["python3.9"], false);
    // Not known.
    check("python3", &[], false);
    check("python3", &["python3.12", "python3.9"], false);
    check("python", &["pypy3.11"], false);
}
