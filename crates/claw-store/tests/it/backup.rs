//! Backing up a whole store to one file, and restoring it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use claw_core::store::{Ledger as _, Queue as _, SessionLog as _, Store, StoreError};
use claw_core::{CallId, NodeId, SessionKey, TenantId};
use claw_store::backup::{self, BackupReport, RestoreReport, restore};
use claw_store::progress::{Progress, Tell};
use claw_store::{PostgresStore, SqliteStore};
use claw_testkit::fixture::{job, job_of, message, refused, session};
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;
use tempfile::TempDir;

use crate::filled::{dump, file, talk, tamper};
use crate::postgres::database::Database;

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn url(&self, name: &str) -> String {
        format!("sqlite:{}", self.path(name).display())
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

async fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, NodeId::local()).await.unwrap()
}

async fn backup(url: &str, file: &Path, force: bool, tell: Tell<'_>) -> Result<BackupReport, StoreError> {
    backup::backup(&url.parse().unwrap(), file, force, tell).await
}

async fn restored(file: &Path, url: &str, force: bool) -> Result<RestoreReport, StoreError> {
    restore(file, &url.parse().unwrap(), force, &mut |_| {}).await
}

/// Restores as soon as a store that was dropped has let go of its file.
async fn restored_when_free(file: &Path, url: &str, force: bool) -> RestoreReport {
    loop {
        match restored(file, url, force).await {
            Err(error) if error.to_string().contains("another program has") => {}
            done => break done.unwrap(),
        }
    }
}

#[track_caller]
fn check_says<T: std::fmt::Debug>(result: Result<T, StoreError>, says: &str) {
    let error = result.unwrap_err().to_string();
    assert!(error.contains(says), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_comes_back_to_the_byte() {
    let files = Files::new();
    file(&files.path("a.db"), 1).await;
    let mut steps = 0;
    let mut tell = |progress: Progress<'_>| steps += u32::from(matches!(progress, Progress::Written { .. }));
    let report = backup(&files.url("a.db"), &files.path("kept"), false, &mut tell).await.unwrap();
    assert!(steps > 0 && report.bytes == fs::metadata(files.path("kept")).unwrap().len());
    assert!(!report.chains.is_empty() && report.chains.iter().all(|chain| chain.fault.is_none()));
    assert_eq!(fs::metadata(files.path("kept")).unwrap().permissions().mode() & 0o777, 0o600);

    let report = restored(&files.path("kept"), &files.url("new/b.db"), false).await.unwrap();
    assert_eq!(report.aside, None);
    assert_eq!(dump(&files.path("a.db")).await, dump(&files.path("new/b.db")).await);
    open(&files.path("new/b.db")).await.enqueue(job()).await.unwrap();
    let left: Vec<_> = files.names().into_iter().filter(|name| name.contains("partial")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_comes_back_to_either() {
    let (files, database, other) = (Files::new(), Database::create().await, Database::create().await);
    crate::filled::fill(&database.store("local").await, 1).await;
    backup(&database.url(), &files.path("kept"), false, &mut |_| {}).await.unwrap();
    restored(&files.path("kept"), &other.url(), false).await.unwrap();
    restored(&files.path("kept"), &files.url("b.db"), false).await.unwrap();
    backup(&other.url(), &files.path("again"), false, &mut |_| {}).await.unwrap();
    let kept = dump(&files.path("kept")).await;
    assert!(kept.len() > 100);
    assert_eq!(kept, dump(&files.path("again")).await);
    assert_eq!(kept, dump(&files.path("b.db")).await);
    check_says(restored(&files.path("kept"), &other.url(), false).await, "is not empty");
    check_says(restored(&files.path("kept"), &other.url(), true).await, "cannot be moved aside");
}

/// Writes until told to stop; counts the acknowledged writes and returns their number.
async fn write(
    store: Arc<impl Store + 'static>,
    key: SessionKey,
    said: Arc<AtomicU64>,
    stop: Arc<Mutex<bool>>,
) {
    while !*stop.lock().unwrap() {
        store.accept_message(message(key.as_str(), "hello"), job_of(key.as_str())).await.unwrap();
        store.refuse(refused(CallId::new())).await.unwrap();
        said.fetch_add(1, Ordering::SeqCst);
    }
}

/// Backs a store up while four clients write to it: all writes acknowledged before are in it, and of the
/// later ones a prefix.
async fn check_online(url: &str, stores: [Arc<impl Store + 'static>; 2]) {
    let files = Files::new();
    let keys: Vec<SessionKey> = (0..4).map(|n| session(&format!("cli:{n}"))).collect();
    let said: Vec<Arc<AtomicU64>> = keys.iter().map(|_| Arc::default()).collect();
    let stop = Arc::new(Mutex::new(false));
    let writer = |n: usize| {
        write(Arc::clone(&stores[n % 2]), keys[n].clone(), Arc::clone(&said[n]), Arc::clone(&stop))
    };
    let writers: Vec<_> = (0..4).map(|n| tokio::spawn(writer(n))).collect();
    let count = || said.iter().map(|said| said.load(Ordering::SeqCst)).collect::<Vec<_>>();
    let going_on = || assert!(writers.iter().all(|writer| !writer.is_finished()), "a writer gave up");
    while count().contains(&0) {
        going_on();
        tokio::task::yield_now().await;
    }
    let before = count();
    backup(url, &files.path("kept"), false, &mut |_| {}).await.unwrap();
    let after = count();
    // They go on afterwards: nobody was held up for good.
    while count().iter().zip(&after).any(|(now, then)| now == then) {
        going_on();
        tokio::task::yield_now().await;
    }
    *stop.lock().unwrap() = true;
    for writer in writers {
        writer.await.unwrap();
    }
    restored(&files.path("kept"), &files.url("b.db"), false).await.unwrap();
    let store = open(&files.path("b.db")).await;
    assert!(store.verify().await.unwrap().iter().all(|chain| chain.fault.is_none()));
    for (n, key) in keys.iter().enumerate() {
        let kept = store.messages(&TenantId::main(), key, 0, usize::MAX).await.unwrap();
        let all = stores[0].messages(&TenantId::main(), key, 0, usize::MAX).await.unwrap();
        assert!(kept.len() as u64 >= before[n], "{} of {} of {key}", kept.len(), before[n]);
        assert_eq!(kept, all[..kept.len()], "a beginning of what was said");
        let events = store.events(&TenantId::main(), key, 0, usize::MAX).await.unwrap();
        assert_eq!(events.len(), kept.len(), "and each is told of");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_written_to_is_backed_up_as_it_stood_at_one_moment() {
    let files = Files::new();
    talk(&files.path("a.db"), 100).await;
    let stores = [open(&files.path("a.db")).await, open(&files.path("a.db")).await].map(Arc::new);
    check_online(&files.url("a.db"), stores).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_written_to_is_backed_up_as_it_stood_at_one_moment() {
    let database = Database::create().await;
    let connect =
        async |node| PostgresStore::connect(&database.url(), NodeId::new(node).unwrap()).await.unwrap();
    let stores = [connect("a").await, connect("b").await].map(Arc::new);
    check_online(&database.url(), stores).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn overwrites_nothing_unless_told_to() {
    let files = Files::new();
    talk(&files.path("a.db"), 1).await;
    fs::write(files.path("kept"), "mine").unwrap();
    let refused = backup(&files.url("a.db"), &files.path("kept"), false, &mut |_| {}).await;
    check_says(refused, "already exists; name another file, or replace it with `--force`");
    assert_eq!(fs::read_to_string(files.path("kept")).unwrap(), "mine");
    // A backup that fails leaves what was there, and nothing of itself.
    let missing = backup(&files.url("nothing.db"), &files.path("kept"), true, &mut |_| {}).await;
    assert!(missing.is_err() && !files.path("nothing.db").exists());
    assert_eq!(fs::read_to_string(files.path("kept")).unwrap(), "mine");
    backup(&files.url("a.db"), &files.path("kept"), true, &mut |_| {}).await.unwrap();
    assert!(fs::read(files.path("kept")).unwrap().starts_with(b"SQLite format 3"));
    let no_directory = backup(&files.url("a.db"), &files.path("no/kept"), false, &mut |_| {}).await;
    assert!(matches!(&no_directory, Err(StoreError::Io { .. })), "{no_directory:?}");
    assert!(files.names().iter().all(|name| !name.contains("partial")), "{:?}", files.names());
}

#[tokio::test(flavor = "multi_thread")]
async fn moves_aside_what_it_replaces() {
    let files = Files::new();
    talk(&files.path("a.db"), 2).await;
    backup(&files.url("a.db"), &files.path("kept"), false, &mut |_| {}).await.unwrap();
    let kept = dump(&files.path("a.db")).await;
    talk(&files.path("a.db"), 3).await;
    let later = dump(&files.path("a.db")).await;
    check_says(
        restored(&files.path("kept"), &files.url("a.db"), false).await,
        "contains a store; with `--force`",
    );
    let in_use = open(&files.path("a.db")).await;
    check_says(restored(&files.path("kept"), &files.url("a.db"), true).await, "another program has");
    in_use.enqueue(job()).await.unwrap();
    let later_still = dump(&files.path("a.db")).await;
    assert_eq!(later_still.len(), later.len() + 1);
    drop(in_use);
    for number in 1..=2 {
        let report = restored_when_free(&files.path("kept"), &files.url("a.db"), true).await;
        let aside = report.aside.unwrap();
        assert_eq!(aside, files.path(&format!("a.db.before-restore-{number}")).canonicalize().unwrap());
        assert_eq!(dump(&files.path("a.db")).await, kept);
        assert_eq!(dump(&aside).await, if number == 1 { later_still.clone() } else { kept.clone() });
    }
    // A store that nobody used yet holds nothing to lose.
    drop(open(&files.path("empty.db")).await);
    restored_when_free(&files.path("kept"), &files.url("empty.db"), false).await;
    assert_eq!(dump(&files.path("empty.db")).await, kept);
}

#[tokio::test(flavor = "multi_thread")]
async fn replaces_a_damaged_store_and_none_of_its_log() {
    let files = Files::new();
    talk(&files.path("a.db"), 2).await;
    backup(&files.url("a.db"), &files.path("kept"), false, &mut |_| {}).await.unwrap();
    let kept = dump(&files.path("kept")).await;
    fs::write(files.path("bad.db"), "rubbish ".repeat(1024)).unwrap();
    fs::write(files.path("bad.db-wal"), "more rubbish").unwrap();
    restored(&files.path("kept"), &files.url("bad.db"), true).await.unwrap();
    assert!(files.path("bad.db.before-restore-1-wal").exists());
    // A connection that has just looked at the new file may still be closing.
    for _ in 0..100 {
        if !files.path("bad.db-wal").exists() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(!files.path("bad.db-wal").exists());
    assert_eq!(dump(&files.path("bad.db")).await, kept);
}

#[tokio::test(flavor = "multi_thread")]
async fn restores_nothing_that_is_damaged() {
    let files = Files::new();
    file(&files.path("a.db"), 1).await;
    open(&files.path("a.db")).await.refuse(refused(CallId::new())).await.unwrap();
    backup(&files.url("a.db"), &files.path("kept"), false, &mut |_| {}).await.unwrap();
    let before = dump(&files.path("a.db")).await;

    let mut bytes = fs::read(files.path("kept")).unwrap();
    let page = bytes.len() / 2 / 4096 * 4096;
    bytes[page..page + 4096].fill(0x5a);
    fs::write(files.path("corrupt"), bytes).unwrap();
    fs::write(files.path("text"), "remember the milk").unwrap();
    drop(
        SqliteConnectOptions::new()
            .filename(files.path("foreign"))
            .create_if_missing(true)
            .connect()
            .await
            .unwrap(),
    );
    tamper(&files.path("foreign"), "CREATE TABLE notes (id INTEGER)").await;
    fs::copy(files.path("kept"), files.path("changed")).unwrap();
    tamper(&files.path("changed"), "UPDATE ledger SET line = replace(line, 'tester', 'nobody')").await;
    fs::copy(files.path("kept"), files.path("newer")).unwrap();
    tamper(
        &files.path("newer"),
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (99, 'later', TRUE, x'00', 0)",
    )
    .await;
    for (name, says) in [
        ("corrupt", "is damaged"),
        ("text", "the file is not a SQLite database"),
        ("foreign", "it is not a Clawsmith store"),
        ("changed", "the ledger's chain"),
        ("newer", "created by a newer Clawsmith"),
        ("nothing", "there is no file"),
    ] {
        check_says(restored(&files.path(name), &files.url("a.db"), true).await, says);
        check_says(restored(&files.path(name), &files.url("new.db"), false).await, says);
        assert!(!files.path("new.db").exists(), "{name}");
    }
    assert_eq!(dump(&files.path("a.db")).await, before);
    assert!(files.names().iter().all(|name| !name.contains("partial")), "{:?}", files.names());
}
