use super::*;

#[test]
fn paths_are_taken_as_they_really_are() {
    let root = tempfile::tempdir().unwrap();
    let real = root.path().canonicalize().unwrap();
    std::fs::create_dir_all(real.join("a/deep")).unwrap();
    std::os::unix::fs::symlink("a", real.join("link")).unwrap();
    let grant = |path: &str| Grant { path: real.join(path), write: false };
    let reach = Reach { grants: vec![grant("a/deep"), grant("a")], ..Reach::workspace(real.join("link")) };
    let resolved = reach.resolved().unwrap();
    assert_eq!(resolved.workspace, real.join("a"));
    let order: Vec<_> = resolved.grants.iter().map(|grant| grant.path.clone()).collect();
    assert_eq!(order, [real.join("a"), real.join("a/deep")]);
}

#[test]
fn refuses_what_would_show_the_machine() {
    for path in ["/", "/proc", "/proc/self", "/dev", "/etc", "/sys", "/usr/..", "/nowhere/at/all"] {
        let error = Reach::workspace(path).resolved().unwrap_err();
        assert!(matches!(error, SandboxError::Path { .. }), "{path}: {error}");
    }
}

#[test]
fn only_what_would_show_is_hidden() {
    let root = tempfile::tempdir().unwrap();
    let real = root.path().canonicalize().unwrap();
    for directory in ["work/data", "data"] {
        std::fs::create_dir_all(real.join(directory)).unwrap();
    }
    let hidden = vec![real.join("work/data"), real.join("data"), real.join("none")];
    let reach = Reach { hidden, ..Reach::workspace(real.join("work")) };
    assert_eq!(reach.resolved().unwrap().hidden, [real.join("work/data")]);
    let reach = Reach { hidden: vec![real], ..reach };
    assert!(reach.resolved().unwrap_err().to_string().contains("must be hidden"));
}

#[test]
fn refuses_to_hide_what_a_command_could_put_there_first() {
    let root = tempfile::tempdir().unwrap();
    let reach = Reach::workspace(root.path());
    for missing in ["data", "a/b/data"] {
        let reach = Reach { hidden: vec![root.path().join(missing)], ..reach.clone() };
        assert!(reach.resolved().unwrap_err().to_string().contains("does not exist yet"));
    }
}
