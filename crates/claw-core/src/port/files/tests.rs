use super::*;

fn scope() -> Scope {
    Scope {
        roots: vec![
            Root { path: "/w".into(), access: Access::Write },
            Root { path: "/skills".into(), access: Access::Read },
        ],
        denied: vec!["/w/.clawsmith".into()],
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
