use super::*;

fn scope() -> Scope {
    Scope {
        roots: vec![
            Root { path: "/w".into(), access: Access::Write },
            Root { path: "/skills".into(), access: Access::Read },
            Root { path: "/w/vendor".into(), access: Access::Read },
            Root { path: "/skills/mine".into(), access: Access::Write },
            Root { path: "/skills".into(), access: Access::Write },
        ],
        denied: vec!["/w/.clawsmith".into(), "/w/clawsmith.toml".into()],
        configuration: vec!["/w/clawsmith.toml".into()],
        covered: Vec::new(),
        quota: None,
    }
}

#[track_caller]
fn check(path: &str, access: Access, expected: Result<&str, ErrorKind>) {
    let got = scope().resolve_text(Path::new("/w"), path, access);
    match (got, expected) {
        (Ok(got), Ok(expected)) => assert_eq!(got, Path::new(expected)),
        (Err(got), Err(expected)) => assert_eq!(got.kind, expected, "{got}"),
        (got, expected) => panic!("{path}: got {got:?}, expected {expected:?}"),
    }
}

#[test]
fn resolves_what_stays_inside() {
    check("a.txt", Access::Write, Ok("/w/a.txt"));
    check("./a/../b.txt", Access::Write, Ok("/w/b.txt"));
    check("/w/a.txt", Access::Read, Ok("/w/a.txt"));
    check("/skills/x/SKILL.md", Access::Read, Ok("/skills/x/SKILL.md"));
}

#[test]
fn refuses_what_leaves() {
    for path in
        ["..", "../w2/a", "/w2/a", "/w-evil/a", "a/../../etc/passwd", "/etc/passwd", "../../../../../x"]
    {
        check(path, Access::Read, Err(ErrorKind::Forbidden));
    }
    check("/skills/x", Access::Write, Err(ErrorKind::Forbidden));
}

#[test]
fn the_innermost_root_says_what_may_be_done() {
    check("vendor/a", Access::Read, Ok("/w/vendor/a"));
    check("vendor/a", Access::Write, Err(ErrorKind::Forbidden));
    check("vendor/../vendor", Access::Write, Err(ErrorKind::Forbidden));
    check("vendored", Access::Write, Ok("/w/vendored"));
    check("/skills/mine/a", Access::Write, Ok("/skills/mine/a"));
    check("/skills/other", Access::Write, Err(ErrorKind::Forbidden));
}

#[test]
fn a_configuration_file_is_denied_and_that_is_said() {
    for (path, access) in [("clawsmith.toml", Access::Read), ("./a/../clawsmith.toml", Access::Write)] {
        check(path, access, Err(ErrorKind::Forbidden));
        let error = scope().resolve_text(Path::new("/w"), path, access).unwrap_err();
        assert!(error.to_string().contains("configuration file of Clawsmith"), "{error}");
    }
    check("clawsmith.toml.bak", Access::Write, Ok("/w/clawsmith.toml.bak"));
}

#[test]
fn a_denied_directory_does_not_exist() {
    for path in [".clawsmith", ".clawsmith/ledger", "a/../.clawsmith/x", "/w/.clawsmith"] {
        check(path, Access::Read, Err(ErrorKind::NotFound));
    }
    check(".clawsmith-notes", Access::Read, Ok("/w/.clawsmith-notes"));
}

#[test]
fn refuses_empty_and_nul() {
    check("", Access::Read, Err(ErrorKind::Invalid));
    check("a\0b", Access::Read, Err(ErrorKind::Invalid));
}
