//! Attacks on writing: killed, without room, and by two programs at once.

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use claw_core::port::{Expect, FilePlace, FsBridge as _, Scope};
use claw_core::tool::ErrorKind;
use claw_host::files::{Kernel, LocalFiles};
use claw_testkit::fixture::caller;
use tempfile::TempDir;

/// The variable that tells a child of this test its workspace.
const ROOT: &str = "CLAWSMITH_WRITES_ROOT";
const ROUNDS: usize = 20;
/// Larger than any single write.
const SIZE: usize = 3_000_000;
const LIMIT_BLOCKS: usize = 64;
const INCREMENTS: u64 = 100;

#[tokio::test]
async fn a_killed_writer_leaves_the_old_or_the_new() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, content(0)).unwrap();
    let mut written = 0;
    for round in 0..ROUNDS {
        let mut child = child("attack::writes::endless_writer", directory.path(), &[]).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        written += lines.by_ref().filter(|line| line.starts_with("wrote")).take(round % 4).count();
        // Somewhere in the next write: each round waits for another number of turns.
        (0..round * 20).for_each(|_| std::thread::yield_now());
        kill(child);
        let found = fs::read(&file).unwrap();
        let letter = *found.first().unwrap();
        assert_eq!(found.len(), content(letter - b'a').len(), "it is whole");
        assert!(found.iter().all(|byte| *byte == letter), "it is one of them");
    }
    assert!(written >= ROUNDS, "the writers got somewhere: {written}");
    // The files they left have hidden names, and disturb nobody.
    for entry in fs::read_dir(directory.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "file" || name.starts_with(".clawsmith-tmp-"), "{name}");
    }
    write(LocalFiles::new(), directory.path(), Expect::Anything, b"after").await.unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"after");
}

/// Not a test: the child that is killed.
#[tokio::test]
async fn endless_writer() {
    let Ok(root) = env::var(ROOT) else { return };
    let (caller, root) = (caller(), Path::new(&root));
    let scope = Scope::workspace(root);
    let place = FilePlace { caller: &caller, directory: root, scope: &scope, expect: Expect::Anything };
    let files = LocalFiles::new();
    for letter in (0..26).cycle() {
        let stat = files.stat(&place, "file").await.unwrap().unwrap();
        let expect = if letter % 2 == 0 { Expect::Anything } else { Expect::Version(&stat.version) };
        files.write(&FilePlace { expect, ..place }, "file", &content(letter)).await.unwrap();
        println!("wrote {letter}");
    }
}

#[test]
fn without_room_the_old_content_stays() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("file"), "old").unwrap();
    // The signal is ignored, so that writing past the limit fails as on a full disk.
    let script = format!("trap '' XFSZ; ulimit -f {LIMIT_BLOCKS}; exec \"$0\" \"$@\"");
    let inner = child("attack::writes::writer_without_room", directory.path(), &[]);
    let status = Command::new("sh")
        .arg("-c")
        .arg(script)
        .arg(inner.get_program())
        .args(inner.get_args())
        .env(ROOT, directory.path())
        // Output may go to a file too, to which the limit would apply.
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(fs::read_to_string(directory.path().join("file")).unwrap(), "old, changed");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing half written is left");
}

/// Not a test: the child without room on the disk.
#[tokio::test]
async fn writer_without_room() {
    let Ok(root) = env::var(ROOT) else { return };
    let root = Path::new(&root);
    let version = write(LocalFiles::new(), root, Expect::Anything, b"old").await.unwrap();
    for expect in [Expect::Anything, Expect::Version(&version)] {
        let told = write(LocalFiles::new(), root, expect, &content(1)).await.unwrap_err();
        assert_eq!(told.kind, ErrorKind::Unavailable);
        assert_eq!(told.message, "no space is left to write `file`; its old content is unchanged");
        assert_eq!(fs::read_to_string(root.join("file")).unwrap(), "old");
    }
    write(LocalFiles::new(), root, Expect::Version(&version), b"old, changed").await.unwrap();
}

#[test]
fn increments_of_several_programs_are_never_lost() {
    for without in ["", "renameat2"] {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("file"), "0").unwrap();
        let start = || child("attack::writes::incrementer", directory.path(), &[without]).spawn().unwrap();
        let children = [start(), start(), start()];
        let count = children.len() as u64;
        for mut child in children {
            // Read to the end, so that it never waits for us.
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            assert!(lines.map_while(Result::ok).count() > 0);
            assert!(child.wait().unwrap().success());
        }
        let sum = fs::read_to_string(directory.path().join("file")).unwrap();
        assert_eq!(sum, (count * INCREMENTS).to_string(), "without `{without}`");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left over");
    }
}

/// Not a test: a child that increments a number again and again.
#[tokio::test]
async fn incrementer() {
    let Ok(root) = env::var(ROOT) else { return };
    let renameat2 = env::var("CLAWSMITH_WRITES_WITHOUT").unwrap() != "renameat2";
    let files = LocalFiles::with(Kernel { renameat2, ..Kernel::default() });
    let (caller, root) = (caller(), Path::new(&root));
    let scope = Scope::workspace(root);
    let place = FilePlace { caller: &caller, directory: root, scope: &scope, expect: Expect::Anything };
    let mut left = INCREMENTS;
    // Each conflict is somebody's success, unless something is wrong.
    for _ in 0..50 * INCREMENTS {
        if left == 0 {
            break;
        }
        let (bytes, stat) = files.read(&place, "file").await.unwrap();
        let number: u64 = String::from_utf8(bytes).unwrap().parse().unwrap();
        let place = FilePlace { expect: Expect::Version(&stat.version), ..place };
        match files.write(&place, "file", (number + 1).to_string().as_bytes()).await {
            Ok(_) => left -= 1,
            Err(error) => assert_eq!(error.kind, ErrorKind::Conflict, "{error:?}"),
        }
    }
    assert_eq!(left, 0, "it never gets through");
}

async fn write(
    files: LocalFiles,
    root: &Path,
    expect: Expect<'_>,
    bytes: &[u8],
) -> Result<claw_core::port::Version, claw_core::tool::ToolError> {
    let (caller, scope) = (caller(), Scope::workspace(root));
    let place = FilePlace { caller: &caller, directory: root, scope: &scope, expect };
    Ok(files.write(&place, "file", bytes).await?.version)
}

/// Returns content whose length differs by letter.
fn content(letter: u8) -> Vec<u8> {
    vec![b'a' + letter; SIZE + usize::from(letter) * 1000]
}

/// Runs this program again as a child that is one of the tests.
fn child(test: &str, root: &Path, without: &[&str]) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]).env(ROOT, root).stdout(Stdio::piped());
    command.env("CLAWSMITH_WRITES_WITHOUT", without.first().unwrap_or(&""));
    command
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}
