//! Files in a store: the conformance suite of every bridge, and features that only a store has.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use claw_core::NodeId;
use claw_core::port::{Access, Expect, FilePlace, FsBridge as _, Quota, Root, Scope, Search, Version, Walk};
use claw_core::redact::Redactor;
use claw_core::tool::{Caller, ErrorKind};
use claw_host::SystemClock;
use claw_host::files::StoreFiles;
use claw_store::SqliteStore;
use claw_testkit::conformance;
use claw_testkit::fixture::{caller, tenant};
use tempfile::TempDir;

use crate::trees::{Open, all, text};

fn over(store: SqliteStore) -> StoreFiles {
    StoreFiles::new(Arc::new(store), Arc::new(SystemClock))
}

async fn memory() -> StoreFiles {
    over(SqliteStore::memory(NodeId::local()).await.unwrap())
}

async fn at(path: &Path) -> StoreFiles {
    over(SqliteStore::open(path, NodeId::local()).await.unwrap())
}

/// A caller's view of `/w`.
struct World {
    files: StoreFiles,
    caller: Caller,
    scope: Scope,
}

impl World {
    async fn new() -> Self {
        Self { files: memory().await, caller: caller(), scope: Scope::workspace("/w") }
    }

    fn place(&self) -> FilePlace<'_> {
        let directory = Path::new("/w");
        FilePlace { caller: &self.caller, directory, scope: &self.scope, expect: Expect::Anything }
    }

    async fn write(&self, path: &str, bytes: impl AsRef<[u8]>) -> Version {
        self.files.write(&self.place(), path, bytes.as_ref()).await.unwrap().version
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conforms_in_memory() {
    conformance::bridge(async || (memory().await, "/ws".into())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conforms_in_a_file() {
    let (directory, count) = (TempDir::new().unwrap(), Cell::new(0));
    conformance::bridge(async || {
        count.set(count.get() + 1);
        (at(&directory.path().join(format!("{}.db", count.get()))).await, "/srv/deep/ws".into())
    })
    .await;
}

/// A workspace in a store shared by many suites: neighbours, and paths with the same beginning, do not
/// matter.
#[tokio::test(flavor = "multi_thread")]
async fn conforms_beside_others() {
    let (directory, count) = (TempDir::new().unwrap(), Cell::new(0));
    conformance::bridge(async || {
        count.set(count.get() + 1);
        (at(&directory.path().join("one.db")).await, format!("/ws{}", "-".repeat(count.get())).into())
    })
    .await;
}

#[tokio::test]
async fn what_one_program_writes_another_reads() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("claw.db");
    let (one, other) = (at(&path).await, at(&path).await);
    let (caller, scope) = (caller(), Scope::workspace("/w"));
    let place =
        FilePlace { caller: &caller, directory: Path::new("/w"), scope: &scope, expect: Expect::Anything };
    let written = one.write(&place, "a", b"one").await.unwrap();
    assert_eq!(other.read(&place, "a").await.unwrap(), (b"one".to_vec(), written.clone()));
    other.write(&place, "a", b"two").await.unwrap();
    let stale = FilePlace { expect: Expect::Version(&written.version), ..place };
    assert_eq!(one.write(&stale, "a", b"three").await.unwrap_err().kind, ErrorKind::Conflict);
    drop((one, other));
    assert_eq!(at(&path).await.read(&place, "a").await.unwrap().0, b"two", "it is there the next time");
}

#[tokio::test]
async fn refuses_the_files_of_another_tenant() {
    let mut world = World::new().await;
    let mine = world.write("a", "mine").await;
    let us = std::mem::replace(&mut world.caller.tenant, tenant("other"));
    let (files, place) = (&world.files, world.place());
    for path in ["a", "/w/a", "../w/a"] {
        assert_eq!(files.stat(&place, path).await.unwrap(), None, "{path}");
        assert_eq!(files.read(&place, path).await.unwrap_err().kind, ErrorKind::NotFound);
        assert_eq!(files.remove(&place, path).await.unwrap_err().kind, ErrorKind::NotFound);
        assert_eq!(files.look(&place, path).await.unwrap().identity, None);
    }
    assert_eq!(files.walk(&place, &all(".")).await.unwrap_err().kind, ErrorKind::NotFound);
    files.write(&place, "a", b"theirs").await.unwrap();
    let redactor: Arc<dyn Redactor> = Arc::new(Open);
    assert_eq!(files.search(&place, &text("mine|theirs"), &redactor).await.unwrap().hits, 1);
    world.caller.tenant = us;
    assert_eq!(world.files.stat(&world.place(), "a").await.unwrap().unwrap().version, mine);
}

#[tokio::test]
async fn searches_more_than_it_holds_in_memory() {
    let world = World::new().await;
    // Three batches by their bytes, one of them a single file, and more files than are asked for at once.
    for name in ["large1", "large2", "large3"] {
        world.write(name, [&vec![b'x'; 5 << 20][..], b"\nneedle\n"].concat()).await;
    }
    world.write("huge", [&vec![b'y'; 9 << 20][..], b"\nneedle\n"].concat()).await;
    for number in 0..600 {
        world.write(&format!("many/{number}"), if number % 100 == 0 { "a needle" } else { "hay" }).await;
    }
    let redactor: Arc<dyn Redactor> = Arc::new(Open);
    let found = world.files.search(&world.place(), &text("needle"), &redactor).await.unwrap();
    assert_eq!((found.hits, found.searched, found.failed, found.stopped), (10, 604, 0, false));
    assert_eq!(found.files[0].path, "huge", "sorted, whichever batch it was in");
}

/// A root within another: ignore rules of the outer one apply there, and denied files are not read.
#[tokio::test]
async fn rules_above_the_start_hold_and_denied_ones_do_not() {
    let mut world = World::new().await;
    for (path, text) in [(".gitignore", "*.log\n"), ("a/.gitignore", "*.tmp\n"), ("a/b/.ignore", "!x.log\n")]
    {
        world.write(path, text).await;
    }
    for path in ["a/b/x.log", "a/b/y.log", "a/b/z.tmp", "a/b/c/deep.tmp", "a/b/c/kept"] {
        world.write(path, "word").await;
    }
    world.scope.roots.push(Root { path: "/w/a/b".into(), access: Access::Read });
    let walk = Walk { ignored: false, hidden: false, directories: false, ..all("a/b") };
    let paths = async |world: &World| -> Vec<String> {
        let walked = world.files.walk(&world.place(), &walk).await.unwrap();
        walked.entries.into_iter().map(|entry| entry.path).collect()
    };
    assert_eq!(paths(&world).await, ["c/kept", "x.log"]);
    world.scope.denied = vec!["/w/a/.gitignore".into(), "/w/a/b/c/kept".into()];
    assert_eq!(paths(&world).await, ["c/deep.tmp", "x.log", "z.tmp"], "what is denied says nothing");
    let redactor: Arc<dyn Redactor> = Arc::new(Open);
    let search = Search { within: walk.clone(), ..text("word") };
    let found = world.files.search(&world.place(), &search, &redactor).await.unwrap();
    assert_eq!((found.hits, found.searched), (3, 3));
}

#[tokio::test]
async fn refuses_what_is_too_large_or_too_deep_and_says_so() {
    let world = World::new().await;
    let (files, place) = (&world.files, world.place());
    let large = vec![0; (64 << 20) + 1];
    let told = files.write(&place, "large", &large).await.unwrap_err();
    assert_eq!(told.kind, ErrorKind::Invalid);
    assert!(told.message.contains("at most 67108864"), "{}", told.message);
    let deep = format!("{}x", "d/".repeat(1_100));
    let long = format!("{}x", format!("{}/", "n".repeat(250)).repeat(70));
    for path in [&deep, &long] {
        assert!(files.stat(&place, path).await.unwrap_err().message.contains("is too long for a path"));
        assert_eq!(files.write(&place, path, b"x").await.unwrap_err().kind, ErrorKind::Invalid);
        assert_eq!(files.mkdirp(&place, path).await.unwrap_err().kind, ErrorKind::Invalid);
        assert_eq!(files.walk(&place, &all(path)).await.unwrap_err().kind, ErrorKind::Invalid);
    }
    assert_eq!(files.stat(&place, "d").await.unwrap(), None, "nothing was made");
}

#[tokio::test]
async fn a_quota_is_that_of_the_first_root_however_it_is_spelled() {
    let mut world = World::new().await;
    world.scope.roots = vec![Root { path: "/w/.".into(), access: Access::Write }];
    world.scope.quota = Some(Quota { bytes: 3, files: 2 });
    world.write("a", "123").await;
    let told = world.files.write(&world.place(), "b", b"4").await.unwrap_err();
    assert!(told.message.contains("4 bytes in 2 files"), "{}", told.message);
    world.write("a", "12").await;
    world.write("b", "4").await;
}
