//! Commands on a layer: their changes are applied as one, and reverted as one.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use claw_core::port::{ChangeKind, HostRan, PendingChanges, ShellHost as _, WorkspaceAccess};
use claw_core::tool::{ErrorKind, Script, Target};
use claw_host::transaction::{TransactionState, Transactions};
use proptest::prelude::*;
use tempfile::TempDir;

use super::kit::Kit;

/// A workspace whose commands run on layers kept in a directory beside it.
pub(crate) struct Layered {
    pub(crate) kit: Kit,
    data: TempDir,
}

impl Layered {
    pub(crate) fn new() -> Self {
        let mut kit = Kit::new();
        let data = tempfile::tempdir().unwrap();
        kit.options.transactions = Some(Transactions::new(data.path()));
        kit.context.access = WorkspaceAccess::Layer;
        Self { kit, data }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.kit.context.workspace.clone()
    }

    pub(crate) fn transactions(&self) -> Transactions {
        Transactions::new(self.data.path())
    }

    pub(crate) async fn run(&self, text: &str) -> HostRan {
        let script = Script { text: text.to_owned(), directory: ".".to_owned(), ..Script::default() };
        self.kit.shell().run(&self.kit.context, &script).await.unwrap()
    }

    /// Runs a script and returns its changes, not yet applied.
    pub(crate) async fn changes(&self, text: &str) -> Box<dyn PendingChanges> {
        let HostRan { ran, pending } = self.run(text).await;
        assert_eq!(ran.unlayered, None);
        assert_eq!(ran.exit, Some(0), "{}", ran.output);
        pending.unwrap()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.workspace().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.workspace().join(path)).unwrap()
    }
}

fn listed(pending: &dyn PendingChanges) -> Vec<(String, ChangeKind)> {
    pending.list().iter().map(|change| (change.path.display().to_string(), change.kind)).collect()
}

#[tokio::test]
async fn applies_and_reverts_what_a_command_changed() {
    let layered = Layered::new();
    layered.write("kept", "same");
    layered.write("changed", "before");
    layered.write("gone/deep/file", "bye");
    let before = tree(&layered.workspace(), Times::All);
    let mut pending = layered
        .changes(
            "echo after > changed; rm -r gone; mkdir -p new/sub; echo hi > new/sub/file; ln -s kept link",
        )
        .await;
    assert_eq!(
        tree(&layered.workspace(), Times::All),
        before,
        "nothing happens before the changes are applied"
    );
    use ChangeKind::{Changed, Created, Deleted};
    let expected = [
        ("changed", Changed),
        ("gone", Deleted),
        ("gone/deep", Deleted),
        ("gone/deep/file", Deleted),
        ("link", Created),
        ("new", Created),
        ("new/sub", Created),
        ("new/sub/file", Created),
    ];
    assert_eq!(listed(&*pending), expected.map(|(path, kind)| (path.to_owned(), kind)));
    let [old, new] = pending.contents(Path::new("changed"), 100).await;
    assert_eq!((old.unwrap(), new.unwrap()), (b"before".to_vec(), b"after\n".to_vec()));
    assert_eq!(pending.apply(&[]).await.unwrap(), []);
    assert_eq!(layered.read("changed"), "after\n");
    assert_eq!(layered.read("new/sub/file"), "hi\n");
    assert_eq!(fs::read_link(layered.workspace().join("link")).unwrap(), Path::new("kept"));
    assert!(!layered.workspace().join("gone").exists());

    let id = pending.id();
    drop(pending);
    let after = tree(&layered.workspace(), Times::All);
    let mut applied = layered.transactions().open(id).unwrap();
    assert_eq!(applied.state().unwrap(), TransactionState::Applied);
    assert_eq!(applied.revert(false).unwrap(), Vec::<PathBuf>::new());
    assert_eq!(tree(&layered.workspace(), Times::All), before);
    assert_eq!(applied.state().unwrap(), TransactionState::Reverted);
    assert_eq!(applied.apply().unwrap(), []);
    assert_eq!(tree(&layered.workspace(), Times::All), after);
}

/// A file of 64 MiB that holds a few bytes stays one, when it is applied, taken back and applied again.
#[tokio::test]
async fn holes_of_a_file_stay_holes() {
    let layered = Layered::new();
    let large = 64 << 20;
    fs::File::create(layered.workspace().join("changed")).unwrap().set_len(large).unwrap();
    let script = "truncate -s 64M new; echo end >> new; printf x | dd of=changed conv=notrunc seek=40M oflag=seek_bytes";
    let mut pending = layered.changes(script).await;
    assert_eq!(pending.apply(&[]).await.unwrap(), []);
    let used = |name: &str| {
        let file = fs::metadata(layered.workspace().join(name)).unwrap();
        assert!(file.len() >= large, "{name}");
        std::os::unix::fs::MetadataExt::blocks(&file) * 512
    };
    let check = |names: &[&str]| {
        for name in names {
            assert!(used(name) < 1 << 20, "`{name}` takes {} bytes", used(name));
        }
    };
    check(&["new", "changed"]);
    let id = pending.id();
    drop(pending);
    let mut applied = layered.transactions().open(id).unwrap();
    assert_eq!(applied.revert(false).unwrap(), Vec::<PathBuf>::new());
    check(&["changed"]);
    assert_eq!(applied.apply().unwrap(), []);
    check(&["new", "changed"]);
}

#[tokio::test]
async fn discards_what_is_not_applied() {
    let layered = Layered::new();
    layered.write("a", "1");
    drop(layered.changes("echo 2 > a; mkdir -m 0 closed").await);
    assert_eq!(layered.read("a"), "1");
    let text = "echo 2 > a; mkdir -p $(printf 'd/%.0s' $(seq 900))";
    let script = Script { text: text.to_owned(), directory: ".".to_owned(), ..Script::default() };
    let error = layered.kit.shell().run(&layered.kit.context, &script).await.unwrap_err().to_string();
    assert!(error.contains("nested deeper than 200 levels"), "{error}");
    assert_eq!(layered.read("a"), "1");
    for _ in 0..100 {
        if fs::read_dir(layered.data.path().join("undo/layers")).unwrap().next().is_none() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the layer is still there");
}

#[tokio::test]
async fn a_denied_path_stays_hidden_when_it_is_replaced_while_a_command_runs() {
    let mut layered = Layered::new();
    layered.write(".env", "SECRET=1");
    layered.write("sub/.env", "SECRET=2");
    layered.write("sub/other", "x");
    std::os::unix::fs::symlink("sub", layered.workspace().join("link")).unwrap();
    let hidden =
        [".env", "link/.env", "later/deep/.env", "later.env"].map(|path| layered.workspace().join(path));
    layered.kit.context.hidden = hidden.to_vec();
    let workspace = layered.workspace();
    // Replaces the files by renaming, as an editor saves, while the command waits for it.
    let replace = tokio::spawn(async move {
        while !workspace.join("ready").exists() && !workspace.join("sub").join("ready").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            fs::create_dir_all(workspace.join("later/deep")).unwrap();
            for path in [".env", "sub/.env", "later.env", "later/deep/.env"] {
                fs::write(workspace.join("saved"), "SECRET=3").unwrap();
                fs::rename(workspace.join("saved"), workspace.join(path)).unwrap();
            }
        }
    });
    let HostRan { ran, pending } = layered
        .run("for i in 1 2 3 4 5 6 7 8; do sleep 0.1; cat .env sub/.env later.env later/deep/.env; ls -A . sub; done 2>&1; rm -r sub")
        .await;
    replace.abort();
    assert!(!ran.output.contains("SECRET"), "{}", ran.output);
    assert!(!ran.output.contains("\n.env"), "{}", ran.output);
    let mut pending = pending.unwrap();
    pending.apply(&[]).await.unwrap();
    assert!(
        layered.workspace().join("sub/.env").exists(),
        "what was hidden is not deleted with its directory"
    );
    assert!(!layered.workspace().join("sub/other").exists());
}

#[tokio::test]
async fn a_denied_path_stays_hidden_from_a_command_that_only_reads() {
    let mut layered = Layered::new();
    layered.write(".env", "SECRET=1");
    layered.kit.context.hidden = [".env", "later"].map(|path| layered.workspace().join(path)).to_vec();
    layered.kit.context.access = WorkspaceAccess::ReadOnly;
    let workspace = layered.workspace();
    let replace = tokio::spawn(async move {
        for _ in 0..60 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            for path in [".env", "later"] {
                fs::write(workspace.join("saved"), "SECRET=2").unwrap();
                fs::rename(workspace.join("saved"), workspace.join(path)).unwrap();
            }
        }
    });
    let ran = layered
        .run("for i in 1 2 3 4 5 6; do sleep 0.1; cat .env later; ls -A; done 2>&1; echo x > new")
        .await;
    replace.abort();
    assert!(!ran.output.contains("SECRET") && !ran.output.contains("\n.env"), "{}", ran.output);
    assert!(ran.output.contains("Read-only file system") && ran.pending.is_none(), "{}", ran.output);
}

#[tokio::test]
async fn space_cannot_be_set_aside_without_writing_it() {
    let layered = Layered::new();
    let ran = layered.run("for i in $(seq 40); do fallocate -l 4G f$i & done; wait; du -s . | cut -f1").await;
    let kept: u64 = ran.output.lines().last().unwrap().parse().unwrap();
    assert!(kept < 1024, "{}", ran.output);
}

#[tokio::test]
async fn a_denied_path_is_not_written() {
    let mut layered = Layered::new();
    layered.write(".env", "SECRET=1");
    layered.kit.context.hidden = [".env", "new/.env"].map(|path| layered.workspace().join(path)).to_vec();
    let mut pending =
        layered.changes("echo mine > .env; mkdir new; echo mine > new/.env; echo x > new/x").await;
    assert_eq!(pending.refused(), [Path::new(".env"), Path::new("new/.env")]);
    pending.apply(&[]).await.unwrap();
    assert_eq!(layered.read(".env"), "SECRET=1");
    assert_eq!(layered.read("new/x"), "x\n");
    assert!(!layered.workspace().join("new/.env").exists());
}

#[tokio::test]
async fn somebody_elses_change_stays_and_ours_is_kept_beside_it() {
    let layered = Layered::new();
    for path in ["edited", "removed", "deleted"] {
        layered.write(path, "before");
    }
    let workspace = layered.workspace();
    let mut pending =
        layered.changes("echo ours >> edited; echo ours >> removed; rm deleted; echo ours > new").await;
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::write(workspace.join("new"), "theirs").unwrap();
    fs::write(workspace.join("edited"), "theirs").unwrap();
    let conflicts = pending.apply(&[]).await.unwrap();
    let paths: Vec<_> = conflicts.iter().map(|conflict| conflict.path.display().to_string()).collect();
    assert_eq!(paths, ["edited", "new"]);
    assert_eq!((layered.read("edited"), layered.read("new")), ("theirs".into(), "theirs".into()));
    for conflict in &conflicts {
        let kept = fs::read_to_string(workspace.join(conflict.kept.as_ref().unwrap())).unwrap();
        assert!(kept.ends_with("ours\n"), "{kept}");
    }
    assert!(!workspace.join("deleted").exists());
    let mut applied = layered.transactions().open(pending.id()).unwrap_or_else(|_| {
        let id = pending.id();
        drop(pending);
        std::thread::sleep(std::time::Duration::from_millis(200));
        layered.transactions().open(id).unwrap()
    });
    applied.revert(false).unwrap();
    assert_eq!(layered.read("deleted"), "before");
    assert_eq!(layered.read("removed"), "before");
    assert_eq!((layered.read("edited"), layered.read("new")), ("theirs".into(), "theirs".into()));
}

#[tokio::test]
async fn what_is_moved_to_tmp_is_there_for_the_next_command_of_the_session() {
    let mut layered = Layered::new();
    let outside = crate::kit::outside_tmp();
    let (workspace, data) = (outside.path().join("workspace"), outside.path().join("data"));
    fs::create_dir(&workspace).unwrap();
    fs::write(workspace.join("data"), "precious").unwrap();
    layered.kit.context.workspace = workspace.clone();
    layered.kit.options.grants.clear();
    layered.kit.options.transactions = Some(Transactions::new(&data));
    layered.kit.options.temporary = Some(data.join("sandbox"));
    layered.changes("mv data /tmp/x").await.apply(&[]).await.unwrap();
    assert!(!workspace.join("data").exists());
    assert_eq!(layered.run("cat /tmp/x").await.output, "precious");
    let mut other = layered.kit.context.clone();
    other.sandbox_key = "another session".into();
    std::mem::swap(&mut layered.kit.context, &mut other);
    assert_eq!(layered.run("ls -A /tmp").await.output, "", "another session has its own");
}

#[tokio::test]
async fn no_link_leads_out_of_the_workspace() {
    let layered = Layered::new();
    layered.write("d/file", "before");
    let outside = layered.kit.outside.path().to_owned();
    fs::write(outside.join("file"), "outside").unwrap();
    let mut pending = layered.changes("echo ours > d/file").await;
    // While the changes wait, the directory becomes a link to outside.
    fs::rename(layered.workspace().join("d"), layered.workspace().join("moved")).unwrap();
    std::os::unix::fs::symlink(&outside, layered.workspace().join("d")).unwrap();
    let outcome = pending.apply(&[]).await;
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "outside", "{outcome:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "{outcome:?}");
}

#[tokio::test]
async fn a_rename_lends_no_identity() {
    let layered = Layered::new();
    layered.write("d/lent", "x");
    fs::set_permissions(layered.workspace().join("d/lent"), fs::Permissions::from_mode(0o4755)).unwrap();
    layered.changes("python3 -c \"import os; os.rename('d', 'e')\"").await.apply(&[]).await.unwrap();
    let mode = fs::metadata(layered.workspace().join("e/lent")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
}

#[tokio::test]
async fn a_rename_that_takes_long_can_be_ended() {
    let mut layered = Layered::new();
    layered.kit.options.sandbox_timeout = std::time::Duration::from_millis(1500);
    fs::create_dir(layered.workspace().join("d")).unwrap();
    for i in 0..4 {
        fs::write(layered.workspace().join(format!("d/{i}")), vec![7; 200 << 20]).unwrap();
    }
    let begun = std::time::Instant::now();
    let ran = layered.run("python3 -c \"import os; os.rename('d', 'e')\"; sleep 60").await;
    assert_eq!(ran.stopped, Some(claw_core::port::Stopped::Time));
    assert!(begun.elapsed() < std::time::Duration::from_secs(55), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn one_layer_that_cannot_be_finished_does_not_stop_the_others() {
    let layered = Layered::new();
    let layers = layered.data.path().join("undo/layers");
    for name in ["a", "b", "c"] {
        fs::create_dir_all(layers.join(name)).unwrap();
    }
    fs::write(layers.join("b/manifest.json"), "no manifest").unwrap();
    assert_eq!(layered.transactions().recover().unwrap(), 0);
    let left: Vec<_> = fs::read_dir(&layers).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["b"], "what has no manifest was never applied");
}

/// The times of a tree that are compared.
#[derive(Clone, Copy, PartialEq)]
enum Times {
    All,
    /// Only times that a command set itself, long ago.
    Set,
}

/// Returns everything in a tree except its inodes: hard links by the first name of their file.
fn tree(root: &Path, times: Times) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut files: BTreeMap<u64, PathBuf> = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(path) = left.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let relative = path.strip_prefix(root).unwrap().to_owned();
        let kind = meta.file_type();
        let holds = if kind.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            "directory".to_owned()
        } else if kind.is_symlink() {
            format!("-> {:?}", fs::read_link(&path).unwrap().as_os_str().as_bytes())
        } else if kind.is_fifo() {
            "fifo".to_owned()
        } else {
            format!("{:?}", fs::read(&path).unwrap())
        };
        if meta.nlink() > 1 && !kind.is_dir() {
            let first = files.entry(meta.ino()).or_insert_with(|| relative.clone());
            if relative < *first {
                *first = relative.clone();
            }
        }
        let time = match times {
            Times::All => Some((meta.mtime(), meta.mtime_nsec())),
            Times::Set => (meta.mtime() < 1_500_000_000).then_some((meta.mtime(), meta.mtime_nsec())),
        };
        let mode = if kind.is_symlink() { 0 } else { meta.permissions().mode() };
        found.insert(
            relative.clone(),
            format!("{mode:o} {time:?} {} {holds}", meta.nlink() * u64::from(!kind.is_dir())),
        );
    }
    found
}

/// Generates one operation of a script, on a few names so that operations collide.
fn operation() -> impl Strategy<Value = String> {
    let name =
        prop::sample::select(vec!["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "f", "f/a", "f/g", "x"]);
    (0..19_u8, name.clone(), name, 0..1000_u32).prop_map(|(kind, one, two, number)| match kind {
        0..=2 => format!("echo {number} > {one}"),
        3 => format!("echo {number} >> {one}"),
        4 => format!("mkdir -p {one}"),
        5 => format!("rm -f {one}"),
        6 => format!("rm -rf {one}"),
        7 | 8 => format!("mv -T {one} {two}"),
        // The result of copying a directory into itself depends on the order in which it is read.
        9 if two.starts_with(&format!("{one}/")) => "true".to_owned(),
        9 => format!("cp -a -T {one} {two}"),
        10 => format!("ln -s {number} {one}"),
        11 => format!("ln {one} {two}"),
        12 => format!("chmod {:o} {one}", 0o700 | (number & 0o77)),
        13 => format!("touch -d @{} {one}", 1_000_000_000 + number),
        14 => format!("rm -rf {one}; mkdir {one}; echo {number} > {one}/n"),
        15 => format!("rmdir {one}"),
        16 => format!("mkfifo p{number}"),
        17 => format!("python3 -c \"import os; os.rename('{one}', '{two}')\""),
        _ => format!("truncate -s {number} {one}"),
    })
}

fn prepare(workspace: &Path) {
    for path in ["d/e", "f/g"] {
        fs::create_dir_all(workspace.join(path)).unwrap();
    }
    for path in ["a", "d/a", "d/e/a", "f/a", "f/g/n"] {
        fs::write(workspace.join(path), path).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_script_on_a_layer_gives_the_tree_of_a_direct_run(lines in prop::collection::vec(operation(), 1..14)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let script = lines.join("\n") + "\ntrue";
            let layered = Layered::new();
            prepare(&layered.workspace());
            let before = tree(&layered.workspace(), Times::All);
            let mut pending = layered.changes(&script).await;
            prop_assert_eq!(tree(&layered.workspace(), Times::All), before.clone());
            prop_assert_eq!(pending.apply(&[]).await.unwrap(), []);

            let mut direct = Layered::new();
            direct.kit.context.access = WorkspaceAccess::Direct;
            prepare(&direct.workspace());
            prop_assert!(direct.run(&script).await.pending.is_none());
            prop_assert_eq!(tree(&layered.workspace(), Times::Set), tree(&direct.workspace(), Times::Set));

            let (id, changed) = (pending.id(), !pending.list().is_empty());
            drop(pending);
            if changed {
                tokio::time::sleep(std::time::Duration::from_millis(30)).await;
                let mut applied = layered.transactions().open(id).unwrap();
                prop_assert_eq!(applied.revert(false).unwrap(), Vec::<PathBuf>::new());
                prop_assert_eq!(tree(&layered.workspace(), Times::All), before);
            }
            Ok(())
        })?;
    }
}

/// Makes and applies many changes in a child process, which a test kills.
pub(crate) fn apply_if_asked() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, asked, workspace, data] = arguments.as_slice() else { return };
    if asked != "apply-a-transaction" {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut layered = Layered::new();
        layered.kit.context.workspace = workspace.into();
        layered.kit.options.transactions = Some(Transactions::new(Path::new(data)));
        let mut pending = layered.changes(MANY).await;
        println!("ready");
        pending.apply(&[]).await.unwrap();
    });
    std::process::exit(0);
}

/// Creates, replaces and deletes files and directories, a thousand in all.
const MANY: &str = "for i in $(seq 300); do echo $i > new$i; echo more >> old$i; done; \
    for i in $(seq 301 500); do rm old$i; done; rm -r d; mkdir -p e/f; for i in $(seq 200); do echo $i > e/f/$i; done";

#[test]
fn a_kill_at_any_point_of_applying_ends_with_all_changes_or_none() {
    let (mut all, mut none, mut finished) = (0, 0, 0);
    for round in 0..24_u64 {
        let (workspace, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = workspace.path().canonicalize().unwrap();
        for i in 1..=500 {
            fs::write(root.join(format!("old{i}")), "old\n").unwrap();
        }
        fs::create_dir(root.join("d")).unwrap();
        fs::write(root.join("d/file"), "x").unwrap();
        let before = tree(&root, Times::Set);
        let mut player = std::process::Command::new(std::env::current_exe().unwrap())
            .args([OsStr::new("apply-a-transaction"), root.as_os_str(), data.path().as_os_str()])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut output = std::io::BufReader::new(player.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut said).unwrap();
        assert_eq!(said, "ready\n");
        std::thread::sleep(std::time::Duration::from_micros(round * round * 150));
        player.kill().unwrap();
        player.wait().unwrap();
        finished += Transactions::new(data.path()).recover().unwrap();
        let now = tree(&root, Times::Set);
        if now == before {
            none += 1;
            continue;
        }
        all += 1;
        let count = |prefix: &str| {
            fs::read_dir(&root)
                .unwrap()
                .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(prefix))
                .count()
        };
        assert_eq!((count("new"), count("old"), root.join("d").exists()), (300, 300, false), "round {round}");
        assert_eq!(fs::read_dir(root.join("e/f")).unwrap().count(), 200);
        for i in 1..=300 {
            assert_eq!(fs::read_to_string(root.join(format!("old{i}"))).unwrap(), "old\nmore\n");
        }
        assert_eq!(fs::read_dir(data.path().join("undo/layers")).unwrap().count(), 1);
    }
    // How many fall before, into and after the applying depends on the machine.
    println!("{none} with none, {all} with all, {finished} of them finished later");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_swapped_between_the_look_and_the_run_never_runs() {
    const ROUNDS: u32 = 80;
    let mut layered = Layered::new();
    let target = Target::Program { name: "./tool".into(), directory: String::new() };
    let script = Script { text: "./tool".to_owned(), directory: ".".to_owned(), ..Script::default() };
    let mut ran = 0;
    for round in 0..ROUNDS {
        for (name, says) in [("tool", "judged"), ("evil", "swapped")] {
            layered.write(name, &format!("#!/bin/sh\necho {says}\n"));
            let path = layered.workspace().join(name);
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let shell = layered.kit.shell();
        layered.kit.context.sights =
            shell.look(&layered.kit.context, std::slice::from_ref(&target)).await.unwrap();
        // Each round swaps a little later, so that some swap falls between the last look and the run.
        let workspace = layered.workspace();
        let swapper = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(500) * round);
            fs::rename(workspace.join("evil"), workspace.join("tool")).unwrap();
        });
        let ended = shell.run(&layered.kit.context, &script).await;
        swapper.join().unwrap();
        match ended {
            Ok(HostRan { ran: ended, pending }) => {
                assert_eq!(ended.unlayered, None);
                assert_eq!(ended.output, "judged\n", "round {round}");
                assert_eq!(listed(&*pending.unwrap()), [], "a copy is no change of the command");
                ran += 1;
            }
            Err(error) => assert_eq!(error.kind, ErrorKind::Conflict, "{error:?}"),
        }
    }
    assert!(ran > 0, "no round reached the run");
}

#[tokio::test]
async fn a_judged_program_is_run_through_its_links_and_can_be_replaced_by_the_command() {
    let mut layered = Layered::new();
    layered.write("bin/deep/tool", "#!/bin/sh\necho judged\n");
    fs::set_permissions(layered.workspace().join("bin/deep/tool"), fs::Permissions::from_mode(0o755))
        .unwrap();
    std::os::unix::fs::symlink("bin/deep", layered.workspace().join("link")).unwrap();
    std::os::unix::fs::symlink("link/tool", layered.workspace().join("run")).unwrap();
    let target = Target::Program { name: "./run".into(), directory: String::new() };
    layered.kit.context.sights =
        layered.kit.shell().look(&layered.kit.context, std::slice::from_ref(&target)).await.unwrap();
    let pending = layered.changes("./run && test -L run && test -x bin/deep/tool").await;
    assert_eq!(listed(&*pending), []);
    drop(pending);
    let mut pending = layered.changes("echo other > bin/deep/tool && cat ./run").await;
    assert_eq!(listed(&*pending), [("bin/deep/tool".to_owned(), ChangeKind::Changed)]);
    pending.apply(&[]).await.unwrap();
    assert_eq!(layered.read("bin/deep/tool"), "other\n");
    // A link that leads elsewhere by now is not followed.
    fs::remove_file(layered.workspace().join("run")).unwrap();
    layered.write("run", "#!/bin/sh\necho evil\n");
    let script = Script { text: "./run".to_owned(), directory: ".".to_owned(), ..Script::default() };
    let error = layered.kit.shell().run(&layered.kit.context, &script).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
}
