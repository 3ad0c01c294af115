//! A minimal system: a shell and a few programs, no git, no ripgrep, no interpreter, and nothing in `PATH`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Home, Ran};

/// The programs of the system, beside the shell.
const PROGRAMS: &[&str] = &["cat", "env", "grep", "id", "ls", "rm", "sleep", "touch", "true", "wc"];

/// Enters the system: `$1` is its root, `$2` this program, `$3` the home; what follows is run there.
const ENTER: &str = r#"
set -e
root=$1 program=$2 home=$3; shift 3
mount --make-rprivate /
mount -t tmpfs system "$root"
mkdir -p "$root/usr/bin" "$root/usr/lib" "$root/proc" "$root/dev" "$root/tmp" "$root/etc" "$root/home" "$root/old"
for name in bin lib lib64; do ln -s usr/$name "$root/$name"; done
for name in lib lib64; do
    if [ -d /usr/$name ]; then mkdir -p "$root/usr/$name"; mount --rbind /usr/$name "$root/usr/$name"; fi
done
for name in bash $PROGRAMS; do
    touch "$root/usr/bin/$name"; mount --bind "$(type -P $name)" "$root/usr/bin/$name"
done
ln -s bash "$root/usr/bin/sh"
for name in null zero full random urandom; do touch "$root/dev/$name"; mount --bind /dev/$name "$root/dev/$name"; done
mkdir -p "$root/opt"; touch "$root/opt/clawsmith"; mount --bind "$program" "$root/opt/clawsmith"
mount --bind "$home" "$root/home"
mount -t proc proc "$root/proc"
umount=$(type -P umount)
cd "$root"; pivot_root . old; cd /; "/old$umount" -l /old
cd /home/project
echo entered >&2
PATH= exec /usr/bin/env -i HOME=/home USER=tester /opt/clawsmith "$@"
"#;

/// Runs this program in a minimal system with this home; `None` if none can be made here.
fn run(home: &Home, words: &[&str]) -> Option<Ran> {
    let root = tempfile::tempdir().unwrap();
    let program = assert_cmd::cargo::cargo_bin!("clawsmith");
    let mut command = Command::new("unshare");
    command.args([
        "--user",
        "--map-root-user",
        "--mount",
        "--pid",
        "--fork",
        "--ipc",
        "bash",
        "-c",
        ENTER,
        "-",
    ]);
    command.args([root.path(), program, home.path()]).args(words);
    command.env("PROGRAMS", PROGRAMS.join(" ")).stdin(std::process::Stdio::null());
    let output = command.output().ok()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let code = output.status.code().unwrap_or(-1);
    let stderr = text(output.stderr);
    let Some(stderr) = stderr.strip_prefix("entered\n").map(ToOwned::to_owned) else {
        eprintln!("skipped: no minimal system can be made here: {stderr}");
        return None;
    };
    let ran = Ran { code, stdout: text(output.stdout), stderr };
    assert!(!ran.shown().contains("panicked"), "{words:?}: {}", ran.shown());
    Some(ran)
}

/// Returns whether the system that the tests run on has the shape that the minimal one is made from.
fn is_like_others() -> bool {
    let merged = |name: &str| {
        fs::read_link(Path::new("/").join(name)).is_ok_and(|to| to == PathBuf::from("usr").join(name))
    };
    ["bin", "lib"].into_iter().all(merged)
}

#[test]
fn works_in_a_system_that_has_only_a_shell_and_claims_nothing_untrue() {
    if !is_like_others() {
        eprintln!("skipped: `/bin` is not a link to `/usr/bin` here");
        return;
    }
    let home = Home::new();
    home.write("project/a.txt", "hello\nworld\n");
    // A link that leads nowhere in the small system.
    symlink("/usr/bin/git", home.path().join("project/git")).unwrap();
    let Some(doctor) = run(&home, &["doctor"]) else { return };
    assert_eq!(doctor.code, 0, "{}", doctor.shown());
    let call = |tool: &str, args: &str| run(&home, &["tools", "call", tool, args]).unwrap();
    for (tool, args, expected) in [
        ("read_file", r#"{"path":"a.txt"}"#, "     1\thello"),
        ("edit", r#"{"path":"a.txt","old_string":"world","new_string":"there"}"#, "+there"),
        ("search", r#"{"pattern":"the.e"}"#, "     2: there"),
        ("glob", r#"{"pattern":"**/*.txt"}"#, "a.txt"),
        ("write_file", r#"{"path":"b/c.txt","content":"x\n"}"#, "created `b/c.txt`"),
    ] {
        let ran = call(tool, args);
        assert!(ran.code == 0 && ran.stdout.contains(expected), "{tool}: {}", ran.shown());
    }
    let status = run(&home, &["sandbox", "status", "--json"]).unwrap().json();
    let shown = run(&home, &["sandbox", "status"]).unwrap().stdout;
    let is_missing = shown.lines().any(|line| line.starts_with("process-count") && line.contains("missing"));
    let limit = shown.lines().find(|line| line.starts_with("processes ") && !line.contains("namespace"));
    let is_none = limit.is_some_and(|line| line.ends_with("no limit"));
    assert_eq!(is_missing, is_none, "a limit that nothing holds is not claimed: {shown}");
    let ran = call("exec", r#"{"command":"cat a.txt; echo more >> a.txt; git status"}"#);
    match status["usable"].as_bool() {
        Some(true) => {
            for expected in
                ["hello\nthere\n", "git: command not found", "[exit code 127]", "1 file changed, +1 -0"]
            {
                assert!(ran.stdout.contains(expected), "{expected}: {}", ran.shown());
            }
            assert_eq!(
                fs::read_to_string(home.path().join("project/a.txt")).unwrap(),
                "hello\nthere\nmore\n"
            );
            let left = call("exec", r#"{"command":"sleep 60 & echo left"}"#);
            assert!(left.stdout.contains("killed 1 process that it left running"), "{}", left.shown());
            let probe = run(&home, &["sandbox", "probe"]).unwrap();
            assert_eq!(probe.code, 0, "{}", probe.shown());
            // A program that is missing proves nothing.
            let result = |what: &str| {
                let line = probe.stdout.lines().find(|line| line.starts_with(what));
                line.unwrap_or_default().strip_prefix(what).unwrap_or_default().trim_start().to_owned()
            };
            for what in ["mount a file system", "make a user namespace"] {
                assert!(result(what).starts_with("not tried"), "{}", probe.shown());
            }
            for what in ["read /etc/shadow", "write to /usr", "list the home of root", "see a block device"] {
                assert!(result(what).starts_with("held"), "{}", probe.shown());
            }
            assert!(!probe.stdout.contains("held    /bin/sh: line 1: mount"), "{}", probe.shown());
        }
        usable => assert!(usable == Some(false) && ran.code == 3, "{status}: {}", ran.shown()),
    }
    let tour = run(&home, &["tour"]).unwrap();
    assert_eq!(tour.code, 0, "{}", tour.shown());
    let undone = run(&home, &["undo", "list"]).unwrap();
    assert!(undone.code == 0 && !undone.stdout.contains("not covered"), "{}", undone.shown());
}

#[test]
fn doctor_does_not_promise_a_store_that_no_call_can_make() {
    let home = Home::new();
    let ran = home.ran(home.command(&["doctor"]).env("HOME", "/no/such/home"));
    let store = ran.stdout.lines().find(|line| line.contains("store ")).unwrap_or_default();
    assert!(store.starts_with("bad") && store.contains("no call can create it"), "{}", ran.shown());
    assert!(!ran.stdout.contains("toolchains"), "a missing home is told once: {}", ran.shown());
}
