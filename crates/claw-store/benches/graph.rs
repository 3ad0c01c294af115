//! The cost of walking three steps through a knowledge graph of 100,000 entities, of finding entities by words, and of
//! keeping facts.
//!
//! Prints `name<TAB>value<TAB>unit` lines. PostgreSQL is measured if `CLAWSMITH_TEST_POSTGRES` names one; its
//! database is dropped at the end.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use std::fmt::Write as _;
use std::str::FromStr as _;
use std::time::Instant;

use claw_core::graph::{EntityFacts, RelationFacts};
use claw_core::port::{MemoryOwner, MemoryReader, UnixMillis};
use claw_core::store::{
    EntityQuery, FactsFrom, GraphOwner, GraphStore, GraphWalk, NewEntity, NewFacts, NewRelation, RelationEnd,
};
use claw_core::{AgentId, EntityId, NodeId, RelationId, TenantId};
use claw_store::{PostgresStore, SqliteStore};
use serde_json::json;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _};

const ENTITIES: usize = 100_000;
/// The relations out of each entity; one in a thousand entities is a hub with a thousand relations into it.
const RELATIONS: usize = 4;
const KEPT: usize = 500;
const ROWS: usize = 500;
const QUESTIONS: usize = 100;
const NOW: UnixMillis = UnixMillis(1_000_000_000_000);

fn reader() -> MemoryReader {
    MemoryReader { tenant: TenantId::main(), agent: AgentId::new("bench").unwrap(), user: None }
}

fn median(name: &str, mut times: Vec<f64>, target: &str) {
    times.sort_by(f64::total_cmp);
    let (half, most) = (times[times.len() / 2], times[times.len() - 1]);
    println!("{name}\t{half:.2}\tms median\t{most:.2}\tms at most\t{target}");
}

/// Measures adding facts by hand; the owner exists afterwards.
async fn keep(name: &str, store: &impl GraphStore) {
    let entity =
        |n: usize| NewEntity { said: EntityFacts::new(format!("Kept {n:04} thing"), "kept"), source: None };
    let relation = |n: usize| NewRelation {
        source: RelationEnd::New(n),
        target: RelationEnd::New((n * 7 + 1) % KEPT),
        said: RelationFacts::new("knows"),
        place: None,
    };
    let facts =
        NewFacts { entities: (0..KEPT).map(entity).collect(), relations: (0..KEPT).map(relation).collect() };
    let owner = GraphOwner::of(&reader(), MemoryOwner::Agent).unwrap();
    let begun = Instant::now();
    store.keep_facts(&FactsFrom::Person(owner), facts, NOW).await.unwrap();
    println!("{name}: facts kept\t{:.0}\t1/s", (2 * KEPT) as f64 / begun.elapsed().as_secs_f64());
}

/// Statements that fill the tables as `keep_facts` would, in less time.
fn statements(ids: &[EntityId]) -> Vec<String> {
    let owner = "(SELECT id FROM document_owners WHERE agent = 'bench')";
    let mut all = Vec::new();
    let mut insert = |table: &str, columns: &str, rows: Vec<String>| {
        for rows in rows.chunks(ROWS) {
            let mut sql = format!("INSERT INTO {table} ({columns}) VALUES ");
            for (n, row) in rows.iter().enumerate() {
                let _ = write!(sql, "{}('main', {owner}, {row})", if n == 0 { "" } else { ", " });
            }
            all.push(sql);
        }
    };
    let name = |n: usize| format!("person{n} subject{}", n % 977);
    let row = |(n, id): (usize, &EntityId)| {
        let said = json!({ "said": EntityFacts::new(name(n), "person"), "sources": [], "mentions": 1 });
        format!("'{id}', 'person', '{}', 2, '{said}'", name(n))
    };
    insert(
        "graph_entities",
        "tenant, owner, id, kind, name, words, body",
        ids.iter().enumerate().map(row).collect(),
    );
    let words = ids
        .iter()
        .enumerate()
        .flat_map(|(n, id)| [format!("'person{n}', '{id}', 3"), format!("'subject{}', '{id}', 3", n % 977)]);
    insert("graph_words", "tenant, owner, word, entity, times", words.collect());
    let body = json!({ "said": RelationFacts::new("knows"), "sources": [], "mentions": 1 }).to_string();
    let relations = (0..ids.len() * RELATIONS).map(|n| {
        let (from, step) = (n / RELATIONS, n % RELATIONS);
        let to = match step {
            0 => (from / 1_000) * 1_000,
            _ => (from.wrapping_mul(7_919) + step * 104_729 + 1) % ids.len(),
        };
        let (source, target) = (ids[from], ids[if to == from { (to + 1) % ids.len() } else { to }]);
        let sure = 0.5 + (n % 50) as f64 / 100.0;
        format!("'{}', '{source}', 'knows', '{target}', {sure}, '{body}'", RelationId::new())
    });
    insert(
        "graph_relations",
        "tenant, owner, id, source, kind, target, confidence, body",
        relations.collect(),
    );
    all
}

async fn ask(name: &str, store: &impl GraphStore, ids: &[EntityId]) {
    let state = store.graph_state(&TenantId::main()).await.unwrap();
    println!("{name}: entities and relations\t{}\t{}", state.entities, state.relations);
    for (what, most_entities, most_each) in [("an answer's bounds", 100, 20), ("1,000 entities", 1_000, 20)] {
        let (mut times, mut reached) = (Vec::new(), 0);
        for n in 0..QUESTIONS {
            let walk = GraphWalk {
                reader: reader(),
                // Every tenth begins at a hub.
                from: vec![ids[if n % 10 == 0 { n * 1_000 } else { n * 977 % ids.len() }]],
                depth: 3,
                as_of: Some(NOW),
                most_entities,
                most_each,
            };
            let begun = Instant::now();
            let walked = store.walk_graph(&walk).await.unwrap();
            times.push(begun.elapsed().as_secs_f64() * 1e3);
            reached += walked.entities.len();
        }
        println!("{name}: entities of a walk, {what}\t{}\ton average", reached / QUESTIONS);
        median(
            &format!("{name}: walk of depth 3, {what}"),
            times,
            if most_each == 20 { "target under 20" } else { "" },
        );
    }
    let mut times = Vec::new();
    for n in 0..QUESTIONS {
        let query = EntityQuery {
            reader: reader(),
            text: Some(format!("what about person{} and subject{}", n * 977, n * 7)),
            kind: None,
            as_of: Some(NOW),
            limit: 10,
            after: None,
        };
        let begun = Instant::now();
        assert!(!store.entities(&query).await.unwrap().is_empty());
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    median(&format!("{name}: entities by words"), times, "");
}

fn ids() -> Vec<EntityId> {
    (0..ENTITIES).map(|_| EntityId::new()).collect()
}

async fn sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bench.db");
    let store = SqliteStore::open(&path, NodeId::local()).await.unwrap();
    keep("sqlite", &store).await;
    let ids = ids();
    let mut bare: SqliteConnection =
        SqliteConnectOptions::new().filename(&path).disable_statement_logging().connect().await.unwrap();
    bare.execute("BEGIN").await.unwrap();
    for sql in statements(&ids) {
        bare.execute(AssertSqlSafe(sql)).await.unwrap();
    }
    bare.execute("COMMIT").await.unwrap();
    ask("sqlite", &store, &ids).await;
}

async fn postgres(url: &str) {
    let server = PgConnectOptions::from_str(url).unwrap().disable_statement_logging();
    let name = format!("clawbench_{}", uuid::Uuid::now_v7().simple());
    let mut admin = PgConnection::connect_with(&server).await.unwrap();
    admin.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
    let options = server.clone().database(&name);
    let store = PostgresStore::connect(options.to_url_lossy().as_ref(), NodeId::local()).await.unwrap();
    keep("postgres", &store).await;
    let ids = ids();
    let mut bare = PgConnection::connect_with(&options).await.unwrap();
    for sql in statements(&ids) {
        bare.execute(AssertSqlSafe(sql)).await.unwrap();
    }
    bare.execute("ANALYZE").await.unwrap();
    ask("postgres", &store, &ids).await;
    drop((store, bare));
    admin.execute(AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)"))).await.unwrap();
}

#[tokio::main]
async fn main() {
    sqlite().await;
    match std::env::var("CLAWSMITH_TEST_POSTGRES") {
        Ok(url) => postgres(&url).await,
        Err(_) => println!("postgres: not measured, CLAWSMITH_TEST_POSTGRES names none"),
    }
}
