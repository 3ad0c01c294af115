//! The same attacks, made and held by an ordinary user.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

#[test]
fn everything_holds_for_an_ordinary_user() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("these tests are run by an ordinary user already");
    }
    let directory = tempfile::tempdir().unwrap();
    let open = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(directory.path(), 0o755);
    let exe = directory.path().join("suite");
    std::fs::copy(std::env::current_exe().unwrap(), &exe).unwrap();
    open(&exe, 0o755);
    let temporary = directory.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    open(&temporary, 0o1777);
    let ran = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&exe)
        // Containers are held by the engine, which an ordinary user cannot ask.
        .args(["escape::", "left_behind::", "shell::", "meanwhile::", "--skip=docker::", "--test-threads=2"])
        .env("TMPDIR", &temporary)
        .current_dir(&temporary)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(!said.contains("running 0 tests"), "{said}");
}
