//! The memory of an open store: a process that opens one, against a process that does not.

use std::path::Path;
use std::process::Command;

use claw_core::{NodeId, TenantId};
use claw_store::{Backend as _, PostgresStore, SqliteStore, StoreLocation, StoreOptions};
use sqlx::{ConnectOptions as _, Connection as _};

use crate::append::session;
use crate::database::{Server, sqlite_options, sqlite_store};
use crate::fill;

/// The first argument of a process that opens a store and prints its memory.
pub(crate) const CHILD: &str = "idle-child";
const MESSAGES: usize = 10_000;

/// Runs as the measured process: opens the named store, and prints its memory in KiB.
pub(crate) fn child(words: &[String]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let [backend, place, read] = words else { return println!("{}", resident()) };
        let store: Box<dyn claw_store::Backend> = match backend.as_str() {
            "sqlite" => Box::new(SqliteStore::open(Path::new(place), NodeId::local()).await.unwrap()),
            _ => Box::new(PostgresStore::connect(place, NodeId::local()).await.unwrap()),
        };
        if read == "read" {
            for after in (0..MESSAGES as u64 / 2).step_by(100) {
                store.messages(&TenantId::main(), &session("long"), after, 100).await.unwrap();
            }
        }
        println!("{}", resident());
    });
}

/// Returns the resident memory of this process, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Returns the median memory of such a process, in megabytes.
fn run(words: &[&str]) -> f64 {
    let mut sizes: Vec<u64> = (0..5)
        .map(|_| {
            let program = std::env::current_exe().unwrap();
            let output = Command::new(program).arg(CHILD).args(words).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
        })
        .collect();
    sizes.sort_unstable();
    sizes[2] as f64 / 1024.0
}

fn print(backend: &str, place: &str) {
    let nothing = run(&[]);
    let opened = run(&[backend, place, "idle"]);
    let read = run(&[backend, place, "read"]);
    println!("{backend}: a process without a store\t{nothing:.1}\tMB");
    println!("{backend}: with an open store\t{opened:.1}\tMB\t{:.1}\tMB more", opened - nothing);
    println!("{backend}: after 5,000 messages were read\t{read:.1}\tMB\t{:.1}\tMB more", read - nothing);
}

pub(crate) async fn sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    sqlite_store(&path).await.disconnect().await;
    let place = StoreLocation::File(path.clone());
    let empty = claw_store::status(&place).await.unwrap().unwrap().bytes;
    println!("sqlite: an empty store\t{:.0}\tKB", empty as f64 / 1e3);
    let mut filler = sqlite_options().filename(&path).connect().await.unwrap();
    fill::sqlite(&mut filler, MESSAGES).await;
    filler.close().await.unwrap();
    print("sqlite", path.to_str().unwrap());
    let options = StoreOptions::default();
    println!(
        "sqlite: pages kept by each of {} connections, at most\t{}\tKiB",
        options.readers + 2,
        options.cache_kib
    );
}

pub(crate) async fn postgres(server: &Server) {
    let database = server.database().await;
    let mut filler = database.connect().await;
    fill::postgres(&mut filler, MESSAGES).await;
    filler.close().await.unwrap();
    print("postgres", &database.url());
    database.drop().await;
}
