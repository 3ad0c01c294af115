//! Pages of a ledger that was written before its entries could be found by agent, user and tool.

use claw_core::store::{EntryPage, EntryUser, Ledger, Record};
use claw_core::{AgentId, CallId, NodeId, TenantId, UserId};
use claw_store::SqliteStore;
use claw_store::chain::ChainReport;
use claw_testkit::fixture::{intent, refused};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tempfile::TempDir;

use crate::postgres::database::Database;

/// Takes the schema back to the one before.
const TAKE_BACK: [&str; 7] = [
    "DROP INDEX ledger_agent",
    "DROP INDEX ledger_user",
    "DROP INDEX ledger_tool",
    "ALTER TABLE ledger DROP COLUMN agent",
    "ALTER TABLE ledger DROP COLUMN user_id",
    "ALTER TABLE ledger DROP COLUMN tool",
    "DELETE FROM _sqlx_migrations WHERE version = 47",
];

fn records() -> Vec<Record> {
    let (other, ann) = (AgentId::new("other").unwrap(), UserId::new("ann").unwrap());
    let told = "a text with \u{0}, \"quotes\", \\ and {\"tool\":\"inner\"}";
    vec![
        refused(CallId::new()),
        Record { agent: other.clone(), user: Some(ann.clone()), ..intent(CallId::new(), told, None) },
        Record { user: Some(ann), tool: "Read-It_2".to_owned(), ..refused(CallId::new()) },
        Record { tool: "no plain \u{0} \"name\"".to_owned(), ..refused(CallId::new()) },
        Record { agent: other, tool: String::new(), ..refused(CallId::new()) },
    ]
}

async fn write(store: &impl Ledger) -> Vec<Record> {
    let mut written = records();
    for record in &written {
        store.refuse(record.clone()).await.unwrap();
    }
    written.reverse();
    written
}

async fn check(store: &impl Ledger, written: &[Record], chains: &[ChainReport]) {
    assert!(chains.len() == 1 && chains[0].fault.is_none() && chains[0].entries == 5, "{chains:?}");
    let all = EntryPage::all(None, 100);
    for page in [
        all.clone(),
        EntryPage { agents: Some(vec![AgentId::new("other").unwrap()]), ..all.clone() },
        EntryPage { user: EntryUser::User(UserId::new("ann").unwrap()), ..all.clone() },
        EntryPage { user: EntryUser::Nobody, ..all.clone() },
        EntryPage { tool: Some("Read-It_2".to_owned()), ..all.clone() },
        EntryPage { tool: Some("exec".to_owned()), ..all.clone() },
        EntryPage { tool: Some("inner".to_owned()), ..all.clone() },
    ] {
        let found = store.entries(&TenantId::main(), &page).await.unwrap();
        let found: Vec<Record> = found.into_iter().map(|(_, entry)| entry.record).collect();
        let expected: Vec<Record> = written.iter().filter(|record| page.matches(record)).cloned().collect();
        assert_eq!(found, expected, "{page:?}");
    }
}

#[tokio::test]
async fn entries_of_before_are_found_in_sqlite() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("claw.db");
    let store = SqliteStore::open(&path, NodeId::local()).await.unwrap();
    let written = write(&store).await;
    drop(store);
    let mut connection = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    for sql in TAKE_BACK {
        sqlx::query(sql).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
    let store = SqliteStore::open(&path, NodeId::local()).await.unwrap();
    check(&store, &written, &store.verify().await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_before_are_found_in_postgres() {
    let database = Database::create().await;
    let store = database.store("a").await;
    let written = write(&store).await;
    drop(store);
    for sql in TAKE_BACK {
        database.run(sql).await;
    }
    let store = database.store("a").await;
    check(&store, &written, &store.verify().await.unwrap()).await;
}

#[tokio::test]
async fn a_page_is_read_by_its_index() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("claw.db");
    drop(SqliteStore::open(&path, NodeId::local()).await.unwrap());
    let mut connection = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    for (condition, index) in [
        ("", "ledger_recent (tenant=? AND position<?)"),
        ("AND agent IN ('a')", "ledger_agent (tenant=? AND agent=? AND position<?)"),
        ("AND user_id = 'a'", "ledger_user (tenant=? AND user_id=? AND position<?)"),
        ("AND user_id IS NULL", "ledger_user (tenant=? AND user_id=? AND position<?)"),
        ("AND tool = 'a'", "ledger_tool (tenant=? AND tool=? AND position<?)"),
    ] {
        let sql = format!(
            "EXPLAIN QUERY PLAN SELECT position, line FROM ledger WHERE tenant = 'main' AND position < 9 {condition}
             ORDER BY position DESC LIMIT 10"
        );
        let plan: Vec<(i64, i64, i64, String)> =
            sqlx::query_as(sqlx::AssertSqlSafe(sql)).fetch_all(&mut connection).await.unwrap();
        let plan: Vec<&str> = plan.iter().map(|(.., step)| step.as_str()).collect();
        assert!(matches!(plan[..], [one] if one.ends_with(index)), "{condition}: {plan:?}");
    }
}
