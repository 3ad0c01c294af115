//! The SQLite backend: the shared suites, and features of a file.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use claw_core::graph::EntityFacts;
use claw_core::port::{MemoryReader, Owner};
use claw_core::store::{
    AccessStore as _, Answer, ApiKey, Approvals as _, Blobs as _, Changes as _, DocumentKey, Documents as _,
    EntityQuery, FactsFrom, GraphOwner, GraphStore as _, Layer, Ledger as _, NewBlob, NewEntity, NewFacts,
    NewJob, Outcome, Queue as _, SessionLog as _, Settings, SettingsStore as _, Shelf, StoreError, Topic,
};
use claw_core::{AgentId, CallId, NodeId, TenantId, ToolName};
use claw_store::chain::Fault;
use claw_store::{SqliteStore, StoreOptions};
use claw_testkit::conformance;
use claw_testkit::fixture::{
    NOW, PNG, intent, job, job_of, key_of, message, outcome, question, refused, session,
};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, SqliteConnection};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::timeout;

async fn memory() -> SqliteStore {
    SqliteStore::memory(NodeId::local()).await.unwrap()
}

async fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, NodeId::local()).await.unwrap()
}

/// Opens one new file after the other.
struct Files(TempDir, Cell<u32>);

impl Files {
    fn new() -> Self {
        Self(TempDir::new().unwrap(), Cell::new(0))
    }

    async fn next(&self) -> SqliteStore {
        self.next_with(&StoreOptions::default()).await
    }

    async fn next_with(&self, options: &StoreOptions) -> SqliteStore {
        self.1.set(self.1.get() + 1);
        let path = self.0.path().join(format!("{}.db", self.1.get()));
        SqliteStore::open_with(&path, NodeId::local(), options).await.unwrap()
    }
}

/// A second program's view of the file.
async fn beside(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).connect().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_calls() {
    conformance::calls(memory).await;
    let files = Files::new();
    conformance::calls(async || files.next().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_work() {
    conformance::queue(memory).await;
    let files = Files::new();
    conformance::queue(async || files.next().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_conversations() {
    conformance::session_log(memory).await;
    conformance::conversations(memory).await;
    let files = Files::new();
    conformance::session_log(async || files.next().await).await;
    conformance::conversations(async || files.next().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_runs() {
    conformance::runs(memory).await;
    conformance::runs_in_store(memory).await;
    let files = Files::new();
    conformance::runs(async || files.next().await).await;
    conformance::runs_in_store(async || files.next().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_usage_and_offers() {
    conformance::usage(memory).await;
    conformance::offers(memory).await;
    let files = Files::new();
    conformance::usage(async || files.next().await).await;
    conformance::offers(async || files.next().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_rules() {
    conformance::rules(memory).await;
    let files = Files::new();
    conformance::rules(async || files.next().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_processes() {
    conformance::processes(memory).await;
    let files = Files::new();
    conformance::processes(async || files.next().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_the_indexes_of_files() {
    conformance::artifact_index(memory).await;
    conformance::undo_index(memory).await;
    conformance::seen_index(memory).await;
    let files = Files::new();
    conformance::artifact_index(async || files.next().await).await;
    conformance::undo_index(async || files.next().await).await;
    conformance::seen_index(async || files.next().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_who_may_come_in() {
    conformance::access(memory).await;
    let files = Files::new();
    conformance::access(async || files.next().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_agents() {
    conformance::agents(memory).await;
    let files = Files::new();
    conformance::agents(async || files.next().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_skills() {
    conformance::skills(memory).await;
    let files = Files::new();
    conformance::skills(async || files.next().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_settings() {
    conformance::settings(memory).await;
    let files = Files::new();
    conformance::settings(async || files.next().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_secrets() {
    let files = Files::new();
    conformance::secrets(memory).await;
    conformance::secrets(async || files.next().await).await;
    conformance::programs(memory).await;
    conformance::programs(async || files.next().await).await;
    conformance::custom_tools(memory).await;
    conformance::custom_tools(async || files.next().await).await;
    conformance::sealed_values(memory).await;
    conformance::sealed_values(async || files.next().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_mcp_servers() {
    let files = Files::new();
    conformance::mcp(memory).await;
    conformance::mcp(async || files.next().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_graphs() {
    let files = Files::new();
    conformance::graph(memory).await;
    conformance::graph(async || files.next().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_memories() {
    conformance::memories(memory).await;
    let files = Files::new();
    conformance::memories(async || files.next().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_documents() {
    conformance::documents(memory).await;
    let files = Files::new();
    conformance::documents(async || files.next().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_files_of_workspaces() {
    conformance::workspace_files(memory).await;
    let files = Files::new();
    conformance::workspace_files(async || files.next().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_blobs() {
    let files = Files::new();
    let make = async |blobs| files.next_with(&StoreOptions { blobs, ..StoreOptions::default() }).await;
    conformance::blobs(make).await;
    conformance::blob_room(make).await;
}

#[tokio::test]
async fn a_blob_whose_bytes_were_changed_is_damage() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("claw.db");
    let (store, blob) = (open(&path).await, NewBlob::new("image/png", PNG).unwrap());
    store.put_blob(&TenantId::main(), &blob, NOW).await.unwrap();
    let sql = "UPDATE blobs SET bytes = zeroblob(size)";
    sqlx::query(sql).execute(&mut beside(&path).await).await.unwrap();
    let error = store.blob(&TenantId::main(), &blob.digest()).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[tokio::test]
async fn everything_is_there_when_the_file_is_opened_again() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("claw.db");
    let (main, me, call) = (TenantId::main(), session("cli:me"), CallId::new());
    let store = open(&path).await;
    store.begin_call(intent(call, "ls", None)).await.unwrap();
    let asked = store.request(question(CallId::new(), "ls")).await.unwrap();
    let waiting = job_of("cli:me");
    store.accept_message(message("cli:me", "hello"), waiting.clone()).await.unwrap();
    drop(store);

    let store = open(&path).await;
    store.begin_call(intent(call, "ls", None)).await.unwrap_err();
    store.finish_call(outcome(call, Outcome::Done)).await.unwrap();
    assert_eq!(store.recent(&main, 10).await.unwrap().len(), 2);
    assert_eq!(store.pending(&main, NOW).await.unwrap(), [asked]);
    assert_eq!(store.job(&main, waiting.id).await.unwrap().unwrap().new, waiting);
    assert_eq!(store.messages(&main, &me, 0, 10).await.unwrap().len(), 1);
    assert_eq!(store.events(&main, &me, 0, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_second_end_of_a_call_changes_nothing() {
    let (store, call) = (memory().await, CallId::new());
    store.begin_call(intent(call, "ls", None)).await.unwrap();
    store.finish_call(outcome(call, Outcome::Done)).await.unwrap();
    store.finish_call(outcome(call, Outcome::Failed)).await.unwrap();
    let tally = store.tally(&TenantId::main(), &session("cli:me")).await.unwrap();
    assert_eq!((tally.done, tally.failed, tally.open), (1, 0, 0));
    assert_eq!(store.recent(&TenantId::main(), 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn that_a_key_is_used_is_no_change() {
    let (store, key) = (memory().await, ApiKey::from_random([7; 32]));
    store.add_key(key_of(&key)).await.unwrap();
    let changes = store.changes(Topic::Access);
    assert!(store.authenticate(&key.hash(), NOW).await.unwrap().is_some());
    assert_eq!(store.keys(&TenantId::main()).await.unwrap()[0].last_used, Some(NOW));
    assert!(!changes.has_changed().unwrap());
}

#[tokio::test]
async fn what_does_not_read_lets_nobody_in() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("claw.db");
    let store = open(&path).await;
    let key = ApiKey::from_random([7; 32]);
    store.add_key(key_of(&key)).await.unwrap();
    let exec = ToolName::literal("exec");
    store.put_settings(&Layer::Deployment, &exec, Settings::new(), NOW).await.unwrap();
    let mut beside = beside(&path).await;
    sqlx::query("UPDATE api_keys SET scopes = 'tools:call everything'").execute(&mut beside).await.unwrap();
    sqlx::query("UPDATE tool_settings SET settings = '3'").execute(&mut beside).await.unwrap();
    let error = store.authenticate(&key.hash(), NOW).await.unwrap_err().to_string();
    assert!(error.contains("a key's scope list is damaged: `everything` is not a scope"), "{error}");
    let error = store.tool_settings(&TenantId::main()).await.unwrap_err().to_string();
    assert!(error.contains("a tool's settings row is damaged"), "{error}");
}

#[tokio::test]
async fn another_program_on_the_file_is_seen() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("claw.db");
    let (one, other) = (open(&path).await, open(&path).await);
    let (mut changes, mut work) = (other.changes(Topic::Approvals), other.changes(Topic::Work));

    let asked = one.request(question(CallId::new(), "ls")).await.unwrap();
    rises(&mut changes).await;
    assert_eq!(other.pending(&TenantId::main(), NOW).await.unwrap(), std::slice::from_ref(&asked));
    let mut answers = one.changes(Topic::Approvals);
    let yes = Answer { approve: true, by: "ann".to_owned(), at: NOW, reason: None, values: None };
    other.answer(&TenantId::main(), asked.id, yes).await.unwrap();
    rises(&mut answers).await;

    work.mark_unchanged();
    one.enqueue(job()).await.unwrap();
    rises(&mut work).await;
}

#[tokio::test]
async fn another_program_is_heard_in_its_session_alone() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("claw.db");
    let (one, other) = (open(&path).await, open(&path).await);
    let of = |key| Owner { tenant: TenantId::main(), session: session(key) };
    let (mut me, mut you) = (other.session_changes(&of("cli:me")), other.session_changes(&of("cli:you")));
    // A new listener may be woken for nothing, once.
    one.enqueue(job()).await.unwrap();
    let mut work = other.changes(Topic::Work);
    one.accept_message(message("cli:me", "hello"), job_of("cli:me")).await.unwrap();
    rises(&mut me).await;
    rises(&mut work).await;
    for _ in 0..3 {
        one.accept_message(message("cli:me", "hello"), job_of("cli:me")).await.unwrap();
        rises(&mut me).await;
    }
    let woken = *you.borrow_and_update();
    assert!(woken <= 1, "nothing happened in that session, and it was woken {woken} times");
    one.accept_message(message("cli:you", "hello"), job_of("cli:you")).await.unwrap();
    rises(&mut you).await;
}

#[tokio::test]
async fn an_event_that_does_not_read_is_damage() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("claw.db");
    let store = open(&path).await;
    store.accept_message(message("cli:me", "hello"), job_of("cli:me")).await.unwrap();
    for change in
        ["kind = 'note'", "body = '[]'", "body = '{}'", "kind = 'run', body = '{\"state\": \"flew\"}'"]
    {
        let sql = format!("UPDATE events SET {change}");
        sqlx::query(AssertSqlSafe(sql)).execute(&mut beside(&path).await).await.unwrap();
        let read = store.events(&TenantId::main(), &session("cli:me"), 0, 10).await;
        assert!(matches!(read, Err(StoreError::Damaged { .. })), "{change}: {read:?}");
    }
}

/// Waits for the number to rise. The limit only ends a test that would hang.
async fn rises(number: &mut watch::Receiver<u64>) {
    timeout(Duration::from_secs(10), number.changed()).await.unwrap().unwrap();
}

#[tokio::test]
async fn two_programs_share_one_chain() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("claw.db");
    let (one, other) = tokio::join!(open(&path), open(&path));
    for _ in 0..20 {
        let (first, second) =
            tokio::join!(one.refuse(refused(CallId::new())), other.refuse(refused(CallId::new())));
        first.unwrap();
        second.unwrap();
    }
    let reports = one.verify().await.unwrap();
    assert_eq!(reports.len(), 1);
    assert_eq!((reports[0].entries, reports[0].fault), (40, None));
}

#[tokio::test]
async fn names_what_was_done_to_the_ledger() {
    for (sql, entries, fault) in [
        (
            "UPDATE ledger SET line = replace(line, 'tester', 'nobody') WHERE seq = 2",
            1,
            Fault::Changed { seq: 2 },
        ),
        ("UPDATE ledger SET line = 'x' WHERE seq = 2", 1, Fault::Unreadable { seq: 2 }),
        ("UPDATE ledger SET session = 'cli:you' WHERE seq = 3", 2, Fault::Changed { seq: 3 }),
        ("UPDATE ledger SET agent = 'nobody' WHERE seq = 3", 2, Fault::Changed { seq: 3 }),
        ("UPDATE ledger SET user_id = 'eve' WHERE seq = 3", 2, Fault::Changed { seq: 3 }),
        ("UPDATE ledger SET tool = NULL WHERE seq = 3", 2, Fault::Changed { seq: 3 }),
        ("DELETE FROM ledger WHERE seq = 2", 1, Fault::Missing { seq: 2, found: 3 }),
        ("DELETE FROM ledger WHERE seq = 3", 2, Fault::CutOff { counted: 3, found: 2 }),
        ("DELETE FROM ledger", 0, Fault::CutOff { counted: 3, found: 0 }),
        ("DELETE FROM ledger_head", 3, Fault::HeadMissing),
        ("UPDATE ledger_head SET head = 'x'", 3, Fault::HeadDamaged),
        ("UPDATE ledger_head SET count = 2", 1, Fault::Changed { seq: 2 }),
    ] {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("claw.db");
        let store = open(&path).await;
        for _ in 0..3 {
            store.refuse(refused(CallId::new())).await.unwrap();
        }
        assert_eq!(store.verify().await.unwrap()[0].fault, None);
        sqlx::query(sql).execute(&mut beside(&path).await).await.unwrap();
        let report = &store.verify().await.unwrap()[0];
        assert_eq!((report.entries, report.fault), (entries, Some(fault)), "{sql}: {report}");
    }
}

#[tokio::test]
async fn refuses_to_append_where_the_head_does_not_fit() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("claw.db");
    let store = open(&path).await;
    store.refuse(refused(CallId::new())).await.unwrap();
    sqlx::query("DELETE FROM ledger_head").execute(&mut beside(&path).await).await.unwrap();
    let error = store.refuse(refused(CallId::new())).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "the ledger is damaged: its head does not match its entries; run `clawsmith ledger verify`"
    );
}

#[tokio::test]
async fn only_its_owner_may_read_it() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("a/b/claw.db");
    let store = open(&path).await;
    store.enqueue(NewJob { priority: 1, ..job() }).await.unwrap();
    let mode = |path: &str| fs::metadata(directory.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("a"), mode("a/b")), (0o700, 0o700));
    for file in ["claw.db", "claw.db-wal", "claw.db-shm"] {
        assert_eq!(mode(&format!("a/b/{file}")), 0o600, "{file}");
    }
}

#[tokio::test]
async fn opens_by_url() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("claw.db");
    for url in [format!("sqlite:{}", path.display()), "sqlite::memory:".to_owned()] {
        let place = url.parse().unwrap();
        let store = claw_store::open(&place, NodeId::local(), &StoreOptions::default()).await.unwrap();
        store.enqueue(job()).await.unwrap();
        assert_eq!(store.lanes(&TenantId::main()).await.unwrap()[0].pending, 1);
    }
    assert!(path.exists());
}

#[tokio::test]
async fn a_file_that_is_removed_while_it_is_open_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("claw.db");
    let store = SqliteStore::open(&path, NodeId::local()).await.unwrap();
    store.enqueue(job()).await.unwrap();
    std::fs::remove_file(&path).unwrap();
    let error = store.enqueue(job()).await.unwrap_err();
    let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    assert!(
        format!("{error} {source}").contains("was removed or replaced while it was open"),
        "{error} {source}"
    );
}

#[tokio::test]
async fn whoever_only_reads_does_not_wait_for_a_writer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("claw.db");
    let store = SqliteStore::open(&path, NodeId::local()).await.unwrap();
    let kept = job();
    store.enqueue(kept.clone()).await.unwrap();
    let mut writer = SqliteConnection::connect(path.to_str().unwrap()).await.unwrap();
    writer.execute("BEGIN IMMEDIATE").await.unwrap();
    let reader = timeout(Duration::from_secs(4), SqliteStore::open(&path, NodeId::local()));
    let reader = reader.await.expect("it does not wait").unwrap();
    assert_eq!(reader.job(&kept.tenant, kept.id).await.unwrap().unwrap().new, kept);
    writer.execute("ROLLBACK").await.unwrap();
}

#[tokio::test]
async fn words_of_an_older_version_are_indexed_again() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("claw.db");
    let (tenant, agent) = (TenantId::main(), AgentId::new("main").unwrap());
    let key = DocumentKey {
        tenant: tenant.clone(),
        agent: Some(agent.clone()),
        user: None,
        shelf: Shelf::Memory,
        path: "MEMORY.md".to_owned(),
    };
    let owner = GraphOwner { tenant: tenant.clone(), agent: Some(agent.clone()), user: None };
    let store = open(&path).await;
    store.put_document(&key, "they agreed", None, NOW).await.unwrap();
    let said =
        EntityFacts { description: "operates cranes".to_owned(), ..EntityFacts::new("Anna", "person") };
    let facts = NewFacts { entities: vec![NewEntity { said, source: None }], relations: Vec::new() };
    store.keep_facts(&FactsFrom::Person(owner), facts, NOW).await.unwrap();
    drop(store);
    let mut older = beside(&path).await;
    older
        .execute(
            "DELETE FROM _sqlx_migrations WHERE version = 50; DROP INDEX graph_entities_unworded;
             UPDATE graph_words SET word = 'operates' WHERE word = 'oper'",
        )
        .await
        .unwrap();
    older.close().await.unwrap();
    let store = open(&path).await;
    let waiting = store.unindexed(10).await.unwrap();
    assert_eq!(waiting.iter().map(|card| &card.key).collect::<Vec<_>>(), [&key]);
    assert_eq!(store.sweep_facts(10).await.unwrap(), 0);
    let reader = MemoryReader { tenant, agent, user: None };
    let text = Some("operation".to_owned());
    let query = EntityQuery { reader, text, kind: None, as_of: None, limit: 9, after: None };
    assert_eq!(store.entities(&query).await.unwrap().len(), 1);
}
