//! The cost of adding or reading a few messages in a store of a million.
//!
//! Two stores, one with 10,000 messages and one with 1,000,000, are asked the same things by turns. Work that
//! touches every row is compared per row: verifying, backing up and copying here, searching in the bench
//! `search`. A backup of PostgreSQL is a copy to SQLite.

use claw_core::store::{Queue, SessionLog};
use claw_core::{JobId, SessionKey, TenantId};
use claw_store::backup::backup;
use claw_store::copy::{Options, copy};
use claw_store::{Backend, StoreLocation};
use serde::Deserialize as _;
use serde::de::value::{BytesDeserializer, Error};
use sqlx::sqlite::SqliteConnection;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, query_scalar};

use crate::append::{append, session};
use crate::claim::claim_of;
use crate::database::{Server, sqlite_options, sqlite_store};
use crate::fill;
use crate::measure::{Random, Rounds, by_turns, time};

const SIZES: [usize; 2] = [10_000, 1_000_000];
/// Entries of the ledger in each.
const ENTRIES: [usize; 2] = [10_000, 200_000];
const PAGE: usize = 50;
const TARGET: &str = "at most 1.5";

/// Asks for something of a store with so many messages, at a place that changes each time.
struct Asker<'a, S> {
    store: &'a S,
    messages: u64,
    random: Random,
}

impl<'a, S: SessionLog + Queue> Asker<'a, S> {
    fn new(store: &'a S, messages: usize) -> Self {
        Self { store, messages: messages as u64, random: Random::new() }
    }

    /// Returns a random place in the long session.
    fn place(&mut self) -> u64 {
        self.random.below(self.messages / 2 - PAGE as u64)
    }

    fn short(&mut self) -> SessionKey {
        session(self.random.below(fill::short_sessions(self.messages as usize)))
    }

    async fn append_long(&mut self) {
        append(self.store, &session("long")).await;
    }

    async fn append_short(&mut self) {
        let session = self.short();
        append(self.store, &session).await;
    }

    async fn messages_long(&mut self) {
        self.page(session("long"), true).await;
    }

    async fn messages_short(&mut self) {
        let session = self.short();
        let found = self.store.messages(&TenantId::main(), &session, fill::SHORT - PAGE as u64, PAGE).await;
        assert!(found.unwrap().len() >= PAGE);
    }

    async fn every_short(&mut self) {
        for number in 0..fill::short_sessions(self.messages as usize) {
            let found = self.store.messages(&TenantId::main(), &session(number), 0, PAGE).await.unwrap();
            assert_eq!(found.len(), PAGE);
            let after = fill::SHORT - PAGE as u64;
            assert!(self.store.messages(&TenantId::main(), &session(number), after, PAGE).await.is_ok());
        }
    }

    async fn events_long(&mut self) {
        self.page(session("long"), false).await;
    }

    async fn events_last(&mut self) {
        let found = self.store.events(&TenantId::main(), &session("long"), self.messages / 2 - 1, PAGE).await;
        assert!(!found.unwrap().is_empty());
    }

    async fn page(&mut self, session: SessionKey, messages: bool) {
        let (tenant, after) = (TenantId::main(), self.place());
        let found = match messages {
            true => self.store.messages(&tenant, &session, after, PAGE).await.unwrap().len(),
            false => self.store.events(&tenant, &session, after, PAGE).await.unwrap().len(),
        };
        assert_eq!(found, PAGE);
    }

    async fn get(&mut self) {
        let id = u128::from(self.random.below(self.messages)).to_be_bytes();
        let id = JobId::deserialize(BytesDeserializer::<Error>::new(&id)).unwrap();
        assert!(self.store.job(&TenantId::main(), id).await.unwrap().is_some());
    }

    async fn claim(&mut self) {
        assert!(self.store.claim(claim_of("bench")).await.unwrap().is_some());
    }
}

async fn grow<S: Backend>(name: &str, [small, large]: [&S; 2]) {
    let mut small = Asker::new(small, SIZES[0]);
    let mut large = Asker::new(large, SIZES[1]);
    macro_rules! ask {
        ($what:ident, $said:literal, $each:expr) => {
            let rounds = Rounds { turns: 10, each: $each };
            let times = by_turns(rounds, async || large.$what().await, async || small.$what().await).await;
            times.print(&format!("{name}, 1,000,000 messages: {}", $said), "10,000", TARGET);
        };
    }
    ask!(append_long, "append to the long conversation", 30);
    ask!(append_short, "append to a short one", 30);
    ask!(get, "get a job", 200);
    ask!(messages_long, "50 messages from anywhere in the long one", 100);
    ask!(messages_short, "the last 50 messages of a short one, as it comes", 100);
    // The small store is in the database's memory by now; so is the large one when all was asked for once.
    large.every_short().await;
    small.every_short().await;
    ask!(messages_short, "the last 50 messages of a short one", 100);
    ask!(events_long, "50 events from anywhere in the long one", 100);
    ask!(events_last, "the last events of the long one", 100);
    ask!(claim, "claim", 30);

    let (mut few, mut many) = (f64::MAX, f64::MAX);
    for _ in 0..3 {
        few = few.min(verify(small.store).await);
        many = many.min(verify(large.store).await);
    }
    let [few, many] = [few / ENTRIES[0] as f64, many / ENTRIES[1] as f64].map(|each| each * 1e3);
    println!("{name}: verify 10,000 entries\t{few:.2}\tus each");
    println!("{name}: verify 200,000 entries\t{many:.2}\tus each\t{:.2}\tx by the entry", many / few);
}

/// Backs both up, and compares per row; if there is a server, the backups are copied to it likewise.
async fn back_up(name: &str, places: [StoreLocation; 2], server: Option<&Server>) {
    let directory = tempfile::tempdir().unwrap();
    let files = [0, 1].map(|n| directory.path().join(format!("{n}.db")));
    let (mut backups, mut copies) = ([0.0; 2], [0.0; 2]);
    for (n, (place, file)) in places.iter().zip(&files).enumerate() {
        backups[n] = time(async { backup(place, file, false, &mut |_| {}).await.unwrap() }).await;
        if let Some(server) = server {
            let database = server.database().await;
            let (from, to) = (StoreLocation::File(file.clone()), database.url().parse().unwrap());
            copies[n] =
                time(async { copy(&from, &to, Options::default(), &mut |_| {}).await.unwrap() }).await;
            database.drop().await;
        }
    }
    print_rows(&format!("{name}: back up"), backups);
    if server.is_some() {
        print_rows("from sqlite to postgres: copy", copies);
    }
}

/// Prints times in milliseconds per row; messages, events, jobs and entries are rows.
fn print_rows(name: &str, took: [f64; 2]) {
    let mut each = [0.0; 2];
    for (n, took) in took.into_iter().enumerate() {
        let rows = (3 * SIZES[n] + ENTRIES[n]) as f64;
        each[n] = took * 1e3 / rows;
        println!("{name} {rows} rows\t{:.1}\ts\t{:.2}\tus each", took / 1e3, each[n]);
    }
    println!("{name}, large / small\t{:.2}\tx by the row\ttarget at most 1", each[1] / each[0]);
}

async fn verify(store: &impl Backend) -> f64 {
    time(async {
        let reports = store.verify().await.unwrap();
        assert!(reports.iter().all(|report| report.fault.is_none()), "{reports:?}");
    })
    .await
}

pub(crate) async fn sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let paths = SIZES.map(|size| directory.path().join(format!("{size}.db")));
    let mut stores = Vec::new();
    for (path, (size, entries)) in paths.iter().zip(SIZES.into_iter().zip(ENTRIES)) {
        stores.push(sqlite_store(path).await);
        let mut filler = sqlite_options().filename(path).connect().await.unwrap();
        let took = time(fill::sqlite(&mut filler, size)).await / 1e3;
        let bytes = pages(&mut filler).await;
        println!("sqlite: filling with {size} messages\t{took:.1}\ts");
        println!("sqlite: {size} messages, events and jobs\t{:.0}\tbytes each", bytes / size as f64);
        fill::sqlite_ledger(&mut filler, entries).await;
        let ledger = (pages(&mut filler).await - bytes) / entries as f64;
        println!("sqlite: {entries} entries of the ledger\t{ledger:.0}\tbytes each");
        filler.close().await.unwrap();
    }
    grow("sqlite", [&*stores[0], &*stores[1]]).await;
    back_up("sqlite", paths.map(StoreLocation::File), None).await;
    for store in stores {
        store.disconnect().await;
    }
}

/// Returns the size of the file, in bytes, once everything is in it.
async fn pages(connection: &mut SqliteConnection) -> f64 {
    let pages: i64 = query_scalar("PRAGMA page_count").fetch_one(&mut *connection).await.unwrap();
    let size: i64 = query_scalar("PRAGMA page_size").fetch_one(connection).await.unwrap();
    (pages * size) as f64
}

pub(crate) async fn postgres(server: &Server) {
    let databases = [server.database().await, server.database().await];
    let mut stores = Vec::new();
    for (database, (size, entries)) in databases.iter().zip(SIZES.into_iter().zip(ENTRIES)) {
        let mut filler = database.connect().await;
        let bytes = "SELECT pg_database_size(current_database())";
        let empty: i64 = query_scalar(bytes).fetch_one(&mut filler).await.unwrap();
        let took = time(fill::postgres(&mut filler, size)).await / 1e3;
        let filled: i64 = query_scalar(bytes).fetch_one(&mut filler).await.unwrap();
        println!("postgres: filling with {size} messages\t{took:.1}\ts");
        let each = (filled - empty) as f64 / size as f64;
        println!("postgres: {size} messages, events and jobs\t{each:.0}\tbytes each");
        fill::postgres_ledger(&mut filler, entries).await;
        let ledger: i64 = query_scalar(bytes).fetch_one(&mut filler).await.unwrap();
        let ledger = (ledger - filled) as f64 / entries as f64;
        println!("postgres: {entries} entries of the ledger\t{ledger:.0}\tbytes each");
        filler.execute("CHECKPOINT").await.unwrap();
        filler.close().await.unwrap();
        stores.push(database.store("local").await);
    }
    grow("postgres", [&*stores[0], &*stores[1]]).await;
    back_up("postgres", [0, 1].map(|n: usize| databases[n].url().parse().unwrap()), Some(server)).await;
    for store in stores {
        store.disconnect().await;
    }
    for database in databases {
        database.drop().await;
    }
}
