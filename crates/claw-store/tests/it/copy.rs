//! Copying a whole installation from one database to another.

use std::path::{Path, PathBuf};
use std::time::Duration;

use claw_core::port::{MemoryReader, UnixMillis};
use claw_core::provenance::Provenance;
use claw_core::store::{
    AccessStore as _, Claim, Conversations as _, DocumentKey, Documents, EmbeddingDone, EntityQuery, Failure,
    FoundPassage, GraphStore, GraphWalk, Ledger as _, Memories, PassageQuery, Queue as _, SealedMark,
    SealedValues as _, SessionLog as _, SimilarQuery, StoreError, TenantChange,
};
use claw_core::{CallId, InstallationId, NodeId, TenantId, UserId};
use claw_store::copy::{CopyReport, Options, copy, copy_with};
use claw_store::progress::Progress;
use claw_store::{Backend, PostgresStore, SqliteStore, StoreLocation, StoreOptions};
use claw_testkit::fixture::{NOW, agent, job, job_of, message, owner, refused, session, worker};
use claw_testkit::killing::Random;
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::filled::{beside, carried, document, file, fill, index, tables, talk, tamper};
use crate::postgres::STUCK;
use crate::postgres::database::Database;

const LEASE: Duration = Duration::from_secs(1);

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
}

fn place(url: &str) -> StoreLocation {
    url.parse().unwrap()
}

async fn try_copy(from: &str, to: &str, restart: bool) -> Result<CopyReport, StoreError> {
    copy(&place(from), &place(to), Options { restart, online: false }, &mut |_| {}).await
}

async fn copied(from: &str, to: &str) -> CopyReport {
    try_copy(from, to, false).await.unwrap()
}

#[track_caller]
fn check_says(result: Result<CopyReport, StoreError>, says: &str) {
    let error = result.unwrap_err().to_string();
    assert!(error.contains(says), "{error}");
}

/// Copies until `stop` returns true, and aborts there.
async fn cut_off(from: &str, to: &str, stop: impl FnMut(Progress<'_>) -> bool + Send) {
    let done = copied_until(from, to, stop).await;
    assert!(done.is_none(), "it was to be cut off: {done:?}");
}

/// Copies until `stop` returns true; returns the report if it never does.
async fn copied_until(
    from: &str,
    to: &str,
    mut stop: impl FnMut(Progress<'_>) -> bool + Send,
) -> Option<CopyReport> {
    let (now, from, to) = (Notify::new(), place(from), place(to));
    let mut tell = |progress: Progress<'_>| {
        if stop(progress) {
            now.notify_one();
        }
    };
    tokio::select! {
        biased;
        () = now.notified() => None,
        done = copy(&from, &to, Options::default(), &mut tell) => Some(done.unwrap()),
    }
}

fn in_messages(rows: u64) -> impl FnMut(Progress<'_>) -> bool + Send {
    move |progress| matches!(progress, Progress::Copied { table: "messages", rows: now, .. } if now >= rows)
}

#[tokio::test(flavor = "multi_thread")]
async fn there_and_back_is_the_same_to_the_byte() {
    let (files, database) = (Files::new(), Database::create().await);
    file(&files.path("a.db"), 1).await;
    let there = copied(&files.url("a.db"), &database.url()).await;
    let back = copied(&database.url(), &files.url("b.db")).await;
    let before = carried(&files.path("a.db")).await;
    assert_eq!(before, carried(&files.path("b.db")).await);
    assert_eq!(there.tables, back.tables);
    assert_eq!((there.rows, there.verified, there.replaced), (before.len() as u64, there.rows, 0));
    assert!(there.rows > 100 && !there.resumed, "{there:?}");
    assert!(there.chains.iter().all(|chain| chain.fault.is_none()) && !there.chains.is_empty());

    let again = Database::create().await;
    copied(&files.url("b.db"), &again.url()).await;
    let sessions = "SELECT count(*) FROM sessions";
    assert_eq!(database.count(sessions).await, again.count(sessions).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_table_is_copied_or_made_from_others() {
    let (files, database) = (Files::new(), Database::create().await);
    file(&files.path("a.db"), 1).await;
    let report = copied(&files.url("a.db"), &database.url()).await;
    let copied: Vec<&str> = report.tables.iter().map(|table| table.table.as_str()).collect();
    let mut all: Vec<String> = tables(&files.path("a.db")).await;
    let made = ["copy_progress", "feed", "passages", "passage_vectors", "sealed_marks"];
    all.retain(|table| !made.contains(&table.as_str()));
    assert!(all.iter().all(|table| copied.contains(&table.as_str())), "{all:?}, {copied:?}");
    assert_eq!(all.len(), copied.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_goes_on_where_it_was() {
    let (files, database) = (Files::new(), Database::create().await);
    let original = SqliteStore::open(&files.path("a.db"), NodeId::local()).await.unwrap();
    fill(&original, 1).await;
    original.refuse(refused(CallId::new())).await.unwrap();
    let (main, big) = (TenantId::main(), session("cli:big"));
    let messages = original.messages(&main, &big, 0, 100).await.unwrap();
    let lanes = original.lanes(&main).await.unwrap();
    let fed = original.feed(&main, 0, 1_000).await.unwrap();
    let mut sealed = original.changed_since(SealedMark::default()).await.unwrap().tenants;
    sealed.sort();
    assert!(!fed.is_empty() && !sealed.is_empty());
    drop(original);
    copied(&files.url("a.db"), &database.url()).await;

    let store = PostgresStore::connect(&database.url(), NodeId::local()).await.unwrap();
    assert_eq!(store.messages(&main, &big, 0, 100).await.unwrap(), messages);
    assert_eq!(store.lanes(&main).await.unwrap(), lanes);
    assert_eq!(store.feed(&main, 0, 1_000).await.unwrap().len(), fed.len(), "no event is lost to followers");
    let mut marked = store.changed_since(SealedMark::default()).await.unwrap().tenants;
    marked.sort();
    assert_eq!(marked, sealed, "every tenant's secrets are still hidden");
    let next = store.accept_message(message("cli:big", "and then"), job_of("cli:big")).await.unwrap();
    assert_eq!(next.seq, messages.len() as u64 + 1);
    let events = store.events(&main, &big, 0, 100).await.unwrap();
    assert_eq!(events.last().unwrap().seq, events.len() as u64);
    store.enqueue(job()).await.unwrap();
    let doubled =
        "SELECT count(*) FROM (SELECT position FROM jobs GROUP BY position HAVING count(*) > 1) AS d";
    assert_eq!(database.count(doubled).await, 0, "places are given on from the last");
    store.refuse(refused(CallId::new())).await.unwrap();
    let chains = store.verify().await.unwrap();
    assert!(chains.iter().all(|chain| chain.fault.is_none()), "{chains:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn goes_on_after_being_cut_off_anywhere() {
    let (files, database) = (Files::new(), Database::create().await);
    file(&files.path("a.db"), 1).await;
    talk(&files.path("a.db"), 40).await;
    let mut random = Random::part(7, 7);
    for (from, to) in [(files.url("a.db"), database.url()), (database.url(), files.url("b.db"))] {
        let mut cuts = 0;
        let report = loop {
            // Every table is compared in one go, so that it must be let run longer and longer to get through.
            let (mut steps, most) = (0, 2 + random.below(12) + 2 * cuts);
            // Not at the very end: what is on its way then may still finish it.
            let stop = |step: Progress<'_>| {
                steps += 1;
                steps == most && !matches!(step, Progress::Chains)
            };
            match copied_until(&from, &to, stop).await {
                None => cuts += 1,
                Some(report) => break report,
            }
        };
        assert!(report.resumed && report.verified == report.rows && cuts > 2, "{cuts} cuts, {report:?}");
    }
    assert_eq!(carried(&files.path("a.db")).await, carried(&files.path("b.db")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_freezes_meanwhile_ends_the_copy_in_time() {
    let (files, database) = (Files::new(), Database::create().await);
    talk(&files.path("a.db"), 40).await;
    let (proxy, url) = database.behind_a_proxy();
    for (from, to) in [(files.url("a.db"), url.clone()), (url, files.url("b.db"))] {
        let (from, to) = (place(&from), place(&to));
        let mut before = in_messages(0);
        let mut tell = |progress: Progress<'_>| {
            if before(progress) {
                proxy.freeze();
            }
        };
        let copying = copy_with(&from, &to, Options::default(), Duration::from_secs(1), &mut tell);
        let result = tokio::time::timeout(STUCK, copying).await.expect("each wait has a bound");
        check_says(result, "could not copy: `messages`: no answer from the server within 1 s");
        proxy.thaw();
        let report = copy(&from, &to, Options::default(), &mut |_| {}).await.unwrap();
        assert!(report.resumed && report.verified == report.rows, "{report:?}");
    }
    assert_eq!(carried(&files.path("a.db")).await, carried(&files.path("b.db")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_copy_is_not_opened() {
    let (files, database) = (Files::new(), Database::create().await);
    talk(&files.path("a.db"), 30).await;
    let says = |error: StoreError| {
        let error = error.to_string();
        assert!(error.contains("a copy from `sqlite:") && error.contains("is not finished"), "{error}");
    };
    cut_off(&files.url("a.db"), &database.url(), in_messages(10)).await;
    says(PostgresStore::connect(&database.url(), NodeId::local()).await.unwrap_err());
    // Nor by who knows whose it is to be: that it is unfinished is what there is to say.
    let options = StoreOptions { installation: Some(InstallationId::new()), ..StoreOptions::default() };
    says(claw_store::migrate(&place(&database.url()), &options).await.unwrap_err());
    cut_off(&files.url("a.db"), &files.url("b.db"), in_messages(10)).await;
    says(claw_store::migrate(&place(&files.url("b.db")), &options).await.unwrap_err());
    says(SqliteStore::open(&files.path("b.db"), NodeId::local()).await.unwrap_err());
    says(try_copy(&files.url("b.db"), &files.url("c.db"), false).await.unwrap_err());
    copied(&files.url("a.db"), &files.url("b.db")).await;
    SqliteStore::open(&files.path("b.db"), NodeId::local()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_changed_is_not_gone_on_with() {
    let (files, database) = (Files::new(), Database::create().await);
    talk(&files.path("a.db"), 30).await;
    cut_off(&files.url("a.db"), &database.url(), in_messages(10)).await;
    talk(&files.path("a.db"), 1).await;
    let again = try_copy(&files.url("a.db"), &database.url(), false).await;
    check_says(again, "the source has changed since the copy began: `events` had 30 rows and has 31");
    // The same number of rows, so that only comparing them tells.
    tamper(&files.path("a.db"), "DELETE FROM messages WHERE seq = 31").await;
    tamper(&files.path("a.db"), "DELETE FROM events WHERE seq = 31").await;
    tamper(&files.path("a.db"), "DELETE FROM jobs WHERE position = (SELECT max(position) FROM jobs)").await;
    tamper(&files.path("a.db"), "UPDATE messages SET at = at + 1 WHERE seq = 3").await;
    let again = try_copy(&files.url("a.db"), &database.url(), false).await;
    check_says(again, "the row (main, cli:talk, 3) of `messages` differs from the source");
    talk(&files.path("b.db"), 1).await;
    let other = try_copy(&files.url("b.db"), &database.url(), false).await;
    check_says(other, "holds an unfinished copy of `sqlite:");
    let report = try_copy(&files.url("a.db"), &database.url(), true).await.unwrap();
    assert!(!report.resumed, "{report:?}");
    drop(database.store("a").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_in_postgres_that_changed_is_not_gone_on_with() {
    let (files, database) = (Files::new(), Database::create().await);
    talk(&files.path("a.db"), 30).await;
    copied(&files.url("a.db"), &database.url()).await;
    cut_off(&database.url(), &files.url("b.db"), in_messages(10)).await;
    database.run("UPDATE jobs SET attempts = attempts + 1 WHERE position = 1").await;
    let again = try_copy(&database.url(), &files.url("b.db"), false).await;
    check_says(again, "the source has changed since the copy began: rows were changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn finds_rows_that_were_changed_added_or_taken_away_in_the_target() {
    for (sql, says) in [
        ("UPDATE jobs SET attempts = 7 WHERE position = 2", "of `jobs` differs from the source"),
        ("UPDATE events SET body = '{}' WHERE seq = 5", "(main, cli:talk, 5) of `events` differs"),
        ("DELETE FROM jobs WHERE position = 3", "of `jobs` is in the place of another row"),
        ("DELETE FROM events WHERE seq = 30", "(main, cli:talk, 30) of `events` is missing"),
        (
            "INSERT INTO events SELECT tenant, session, 31, at, kind, body FROM events WHERE seq = 1",
            "(main, cli:talk, 31) of `events` is too many",
        ),
    ] {
        let (files, database) = (Files::new(), Database::create().await);
        talk(&files.path("a.db"), 30).await;
        cut_off(&files.url("a.db"), &database.url(), in_messages(10)).await;
        database.wait_until_alone().await;
        database.run(sql).await;
        check_says(try_copy(&files.url("a.db"), &database.url(), false).await, says);
        let unopened = PostgresStore::connect(&database.url(), NodeId::local()).await;
        assert!(unopened.is_err(), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_target_that_is_not_empty() {
    let (files, database) = (Files::new(), Database::create().await);
    talk(&files.path("a.db"), 1).await;
    talk(&files.path("b.db"), 2).await;
    database.store("a").await.enqueue(job()).await.unwrap();
    for to in [files.url("b.db"), database.url()] {
        for restart in [false, true] {
            check_says(try_copy(&files.url("a.db"), &to, restart).await, "is not empty: `");
        }
    }
    assert_eq!(database.count("SELECT count(*) FROM jobs").await, 1, "it is left alone");
    let same = try_copy(&files.url("a.db"), &files.url("a.db"), false).await;
    check_says(same, "the same store");
    check_says(try_copy("sqlite::memory:", &files.url("c.db"), false).await, "a store in memory");
    let missing = try_copy(&files.url("nothing.db"), &files.url("c.db"), false).await;
    assert!(missing.is_err() && !files.path("nothing.db").exists() && !files.path("c.db").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_source_that_is_written_to_meanwhile() {
    let (files, database) = (Files::new(), Database::create().await);
    talk(&files.path("a.db"), 3).await;
    copied(&files.url("a.db"), &database.url()).await;
    for (number, from) in [files.url("a.db"), database.url()].into_iter().enumerate() {
        let to = format!("to-{number}.db");
        let mut written = false;
        let mut tell = |progress: Progress<'_>| {
            if matches!(progress, Progress::Chains) && !written {
                written = true;
                write_beside(&from);
            }
        };
        let result = copy(&place(&from), &place(&files.url(&to)), Options::default(), &mut tell).await;
        check_says(result, "was written to while it was copied");
        assert!(SqliteStore::open(&files.path(&to), NodeId::local()).await.is_err());
        let online = Options { online: true, restart: true };
        copy(&place(&from), &place(&files.url(&to)), online, &mut |_| {}).await.unwrap();
    }
}

/// Writes to a store as another program would, and is done when this returns.
fn write_beside(url: &str) {
    let url = url.to_owned();
    let written = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store =
                claw_store::open(&place(&url), NodeId::local(), &StoreOptions::default()).await.unwrap();
            store.enqueue(job()).await.unwrap();
        });
    });
    written.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_keeps_a_sign_where_there_was_a_nul() {
    let (files, database) = (Files::new(), Database::create().await);
    let store = SqliteStore::open(&files.path("a.db"), NodeId::local()).await.unwrap();
    store.enqueue(job()).await.unwrap();
    let claim = Claim { worker: worker("a"), lanes: vec!["main".into()], now: NOW, until: NOW };
    let (_, lease) = store.claim(claim).await.unwrap().unwrap();
    store.fail_job(&lease, Failure { error: "a\0b".to_owned(), retry: None }).await.unwrap();
    drop(store);
    let report = copied(&files.url("a.db"), &database.url()).await;
    assert_eq!(report.replaced, 1);
    let kept = "SELECT count(*) FROM jobs WHERE error = 'a' || chr(65533) || 'b'";
    assert_eq!(database.count(kept).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_was_damaged_before_is_copied_as_it_is_and_said_to_be() {
    let files = Files::new();
    let store = SqliteStore::open(&files.path("a.db"), NodeId::local()).await.unwrap();
    for _ in 0..3 {
        store.refuse(refused(CallId::new())).await.unwrap();
    }
    drop(store);
    tamper(&files.path("a.db"), "DELETE FROM ledger WHERE seq = 3").await;
    let report = copied(&files.url("a.db"), &files.url("b.db")).await;
    assert!(report.chains.iter().any(|chain| chain.fault.is_some()), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_table_that_it_does_not_know_how_to_carry() {
    let (files, database) = (Files::new(), Database::create().await);
    talk(&files.path("a.db"), 1).await;
    tamper(&files.path("a.db"), "CREATE TABLE notes (id INTEGER NOT NULL PRIMARY KEY) STRICT").await;
    let one_sided = try_copy(&files.url("a.db"), &database.url(), false).await;
    check_says(one_sided, "the table `notes` exists in only one of the two databases");
    database.run("CREATE TABLE notes (id JSONB NOT NULL PRIMARY KEY)").await;
    let unknown = try_copy(&files.url("a.db"), &database.url(), false).await;
    check_says(unknown, "`id` in `notes` is of the unknown type `jsonb`");
}

#[tokio::test(flavor = "multi_thread")]
async fn carries_tables_that_nobody_told_it_of() {
    let (files, database) = (Files::new(), Database::create().await);
    talk(&files.path("a.db"), 1).await;
    drop(database.store("a").await);
    let path: &Path = &files.path("a.db");
    for sql in [
        "CREATE TABLE b_parents (tenant TEXT NOT NULL, name TEXT NOT NULL, is_open INTEGER NOT NULL,
             part REAL, seal BLOB, PRIMARY KEY (tenant, name)) STRICT, WITHOUT ROWID",
        "CREATE TABLE a_children (id BLOB NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, parent TEXT NOT NULL,
             FOREIGN KEY (tenant, parent) REFERENCES b_parents (tenant, name)) STRICT",
        "INSERT INTO b_parents VALUES ('main', 'one', 1, 0.1, x'00ff'), ('main', 'two', 0, NULL, NULL)",
        "INSERT INTO a_children VALUES (x'000102030405060708090a0b0c0d0e0f', 'main', 'two')",
    ] {
        tamper(path, sql).await;
    }
    for sql in [
        "CREATE TABLE b_parents (tenant TEXT NOT NULL, name TEXT NOT NULL, is_open BOOLEAN NOT NULL,
             part DOUBLE PRECISION, seal BYTEA, words TSVECTOR GENERATED ALWAYS AS (to_tsvector('english', name))
             STORED, PRIMARY KEY (tenant, name))",
        "CREATE TABLE a_children (id UUID NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, parent TEXT NOT NULL,
             FOREIGN KEY (tenant, parent) REFERENCES b_parents (tenant, name))",
    ] {
        database.run(sql).await;
    }
    copied(&files.url("a.db"), &database.url()).await;
    let kept =
        "SELECT count(*) FROM b_parents WHERE is_open AND part = 0.1::float8 AND seal = '\\x00ff'::bytea";
    assert_eq!(database.count(kept).await, 1);
    let kept = "SELECT count(*) FROM a_children WHERE id = '00010203-0405-0607-0809-0a0b0c0d0e0f'";
    assert_eq!(database.count(kept).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_was_only_opened_is_empty() {
    let (files, database) = (Files::new(), Database::create().await);
    talk(&files.path("a.db"), 1).await;
    drop(database.store("a").await);
    drop(SqliteStore::open(&files.path("b.db"), NodeId::local()).await.unwrap());
    for to in [database.url(), files.url("b.db")] {
        copied(&files.url("a.db"), &to).await;
    }
    // One whose only tenant was given a name is not.
    let (named, other) = (files.url("c.db"), Database::create().await);
    let change = || TenantChange { name: Some("ours".to_owned()), ..TenantChange::default() };
    let store = SqliteStore::open(&files.path("c.db"), NodeId::local()).await.unwrap();
    store.change_tenant(&TenantId::main(), change()).await.unwrap();
    store.disconnect().await;
    other.store("a").await.change_tenant(&TenantId::main(), change()).await.unwrap();
    for to in [other.url(), named] {
        let refused = try_copy(&files.url("a.db"), &to, false).await;
        check_says(refused, "is not empty: `tenants` has 1 rows");
    }
}

/// Opens a store for a node of this installation.
async fn open_for(url: &str, installation: InstallationId) -> Result<(), StoreError> {
    let options = StoreOptions { installation: Some(installation), ..StoreOptions::default() };
    let store = claw_store::open(&place(url), NodeId::local(), &options).await?;
    assert_eq!(store.installation().id, installation);
    store.disconnect().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_belongs_to_the_installation_of_its_source() {
    let (files, database) = (Files::new(), Database::create().await);
    let source = SqliteStore::open(&files.path("a.db"), NodeId::local()).await.unwrap();
    let ours = source.installation().id;
    source.disconnect().await;
    // These were another's, and empty.
    let theirs = database.store("a").await.installation().id;
    let opened = SqliteStore::open(&files.path("b.db"), NodeId::local()).await.unwrap();
    opened.disconnect().await;
    for (from, to) in [
        (files.url("a.db"), database.url()),
        (files.url("a.db"), files.url("b.db")),
        (database.url(), files.url("c.db")),
    ] {
        copied(&from, &to).await;
        open_for(&to, ours).await.unwrap();
        for node in [theirs, InstallationId::new()] {
            let refused = open_for(&to, node).await;
            let Err(StoreError::OtherInstallation { node: wanted, store }) = refused else {
                panic!("{refused:?}")
            };
            assert_eq!((wanted, store), (node, Some(ours)), "{to}");
        }
    }
}

/// Searches the documents as the user ann.
async fn found(store: &impl Documents, text: &str) -> Vec<FoundPassage> {
    let (tenant, user) = (TenantId::main(), Some(UserId::new("ann").unwrap()));
    let query = PassageQuery { tenant, agent: agent(), user, text: text.to_owned(), limit: 100 };
    let mut found = store.search_passages(&query).await.unwrap();
    found.sort_by(|one, other| {
        (&one.key, one.passage.first_line).cmp(&(&other.key, other.passage.first_line))
    });
    found
}

/// Indexes all pending documents, as the indexer would; returns their keys.
async fn index_all(store: &impl Documents) -> Vec<DocumentKey> {
    let waiting = store.unindexed(usize::MAX).await.unwrap();
    for card in &waiting {
        index(store, &card.key, card.version).await;
    }
    assert_eq!(store.unindexed(usize::MAX).await.unwrap(), []);
    let mut keys: Vec<_> = waiting.into_iter().map(|card| card.key).collect();
    keys.sort();
    keys
}

/// Asserts that a copied store finds nothing, has every document pending for indexing, and then finds what
/// the source found.
async fn check_documents(store: &impl Documents, before: &[FoundPassage], documents: &[DocumentKey]) {
    assert_eq!(found(store, "heron kingfishers").await, []);
    assert_eq!(index_all(store).await, documents);
    assert_eq!(found(store, "heron kingfishers").await, before);

    // Numbers of rows and versions go on from the last.
    let gone = document("main", None, "memory/gone.md");
    assert_eq!(store.document(&gone).await.unwrap(), None);
    let version = store.put_document(&gone, "a heron again", None, NOW).await.unwrap();
    assert_eq!(version, 4, "written twice, removed, and written again");
    let new = document("main", Some("ben"), "memory/new.md");
    store.put_document(&new, "a heron of ben's", None, NOW).await.unwrap();
    assert_eq!(index_all(store).await, [], "what is written is indexed");
    assert_eq!(found(store, "heron kingfishers").await.len(), before.len() + 1, "ben's is not ann's");
}

/// Vectors by the passages that have them, the entities with all that is known of them, and the origin of a document.
async fn memory_of(store: &(impl Memories + GraphStore)) -> (Vec<String>, Vec<String>, Provenance) {
    let agent = document("main", None, "x").agent.unwrap();
    let user = Some(UserId::new("ann").unwrap());
    let (tenant, vector) = (TenantId::main(), vec![0.6, 0.8, 0.0]);
    let (model, limit) = ("bird".to_owned(), 1_000);
    let near = SimilarQuery {
        tenant: tenant.clone(),
        agent: agent.clone(),
        user: user.clone(),
        model,
        vector,
        limit,
    };
    let near = store.similar_passages(&near).await.unwrap();
    let mut near: Vec<String> = near
        .iter()
        .map(|near| format!("{:?} {} {}", near.found.key, near.found.passage.first_line, near.similarity))
        .collect();
    near.sort();
    let reader = MemoryReader { tenant, agent, user };
    let all = EntityQuery { reader: reader.clone(), text: None, kind: None, as_of: None, limit, after: None };
    let found = store.entities(&all).await.unwrap();
    let from = found.iter().map(|found| found.entity.id).collect();
    let walk = GraphWalk { reader, from, depth: 1, as_of: None, most_entities: limit, most_each: limit };
    let walked = store.walk_graph(&walk).await.unwrap();
    let known = walked.entities.iter().map(|entity| format!("{entity:?}"));
    let known = known.chain(walked.relations.iter().map(|relation| format!("{relation:?}"))).collect();
    let page = store.document(&document("main", Some("ann"), "memory/page.md")).await.unwrap().unwrap();
    (near, known, page.provenance)
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_facts_and_origins_are_taken_along_without_a_model() {
    let (files, database) = (Files::new(), Database::create().await);
    let source = SqliteStore::open(&files.path("a.db"), NodeId::local()).await.unwrap();
    fill(&source, 1).await;
    index_all(&source).await;
    let embed = async |store: &SqliteStore| {
        for work in store.claim_unembedded("bird", UnixMillis(i64::MAX - 10_000), LEASE, 1_000).await.unwrap()
        {
            let vectors: Vec<_> =
                work.passages.iter().map(|passage| (passage.hash, vec![0.6, 0.8, -0.0])).collect();
            store.put_embeddings(&work.key.tenant, "bird", &vectors, NOW).await.unwrap();
            let done = store.embed_document(&work.key, work.version, "bird").await.unwrap();
            assert_eq!(done, EmbeddingDone::Stored);
        }
    };
    embed(&source).await;
    let before = memory_of(&source).await;
    assert!(before.0.len() >= 5 && before.1.len() >= 4 && before.2.untrusted, "{before:?}");
    source.disconnect().await;
    copied(&files.url("a.db"), &database.url()).await;
    let store = PostgresStore::connect(&database.url(), NodeId::local()).await.unwrap();
    index_all(&store).await;
    for work in store.claim_unembedded("bird", UnixMillis(i64::MAX - 10_000), LEASE, 1_000).await.unwrap() {
        let done = store.embed_document(&work.key, work.version, "bird").await.unwrap();
        assert_eq!(done, EmbeddingDone::Stored, "`{}` gets its vectors without a model", work.key.path);
    }
    let after = memory_of(&store).await;
    assert_eq!(after, before);
    assert!(store.is_untrusted(&TenantId::main(), &owner().session).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_indexed_again_and_found() {
    let (files, database) = (Files::new(), Database::create().await);
    let source = SqliteStore::open(&files.path("a.db"), NodeId::local()).await.unwrap();
    fill(&source, 1).await;
    index_all(&source).await;
    let before = found(&source, "heron kingfishers").await;
    assert_eq!(before.len(), 5, "two of the agent's, two of ann's, and what waited: {before:?}");
    source.disconnect().await;
    for (from, to) in [
        (files.url("a.db"), database.url()),
        (files.url("a.db"), files.url("b.db")),
        (database.url(), files.url("c.db")),
    ] {
        copied(&from, &to).await;
    }
    let keys = "SELECT count(*) FROM documents WHERE text IS NOT NULL AND shelf = 'memory'";
    let store = PostgresStore::connect(&database.url(), NodeId::local()).await.unwrap();
    let waiting = store.unindexed(usize::MAX).await.unwrap();
    assert_eq!(waiting.len() as i64, database.count(keys).await);
    let mut documents: Vec<_> = waiting.into_iter().map(|card| card.key).collect();
    documents.sort();
    check_documents(&store, &before, &documents).await;
    // How common a word is, is judged by how many passages there are.
    let miscounted = "SELECT count(*) FROM document_owners AS o WHERE o.passages <>
        (SELECT count(*) FROM passages AS p JOIN documents AS d ON d.id = p.document WHERE d.owner = o.id)";
    assert_eq!(database.count(miscounted).await, 0);
    for name in ["b.db", "c.db"] {
        let store = SqliteStore::open(&files.path(name), NodeId::local()).await.unwrap();
        check_documents(&store, &before, &documents).await;
        store.disconnect().await;
        let counted: i64 =
            sqlx::query_scalar(miscounted).fetch_one(&mut beside(&files.path(name)).await).await.unwrap();
        assert_eq!(counted, 0, "{name}");
    }
    // A copy that is begun again leaves nothing of what was indexed.
    let again = files.url("d.db");
    cut_off(&files.url("c.db"), &again, |step| matches!(step, Progress::Compared { .. })).await;
    try_copy(&files.url("c.db"), &again, true).await.unwrap();
    let store = SqliteStore::open(&files.path("d.db"), NodeId::local()).await.unwrap();
    assert_eq!(found(&store, "heron").await, []);
    assert_eq!(index_all(&store).await.len(), documents.len() + 2);
    assert_eq!(found(&store, "heron kingfishers").await.len(), before.len() + 1);
}
