//! Programs that share a store and are killed at any moment: the store's promises hold.
//!
//! `CLAWSMITH_KILL_ROUNDS` sets the number of rounds, `CLAWSMITH_KILL_SEED` the seed, to repeat a failure.

use std::env;
use std::process::Command;

use claw_core::NodeId;
use claw_store::chain::ChainReport;
use claw_store::{PostgresStore, SqliteStore};
use claw_testkit::killing::{Played, Report, Round, play_if_briefed};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::postgres::database::Database;

/// The variable that tells a player its store.
const PLACE: &str = "CLAWSMITH_KILL_PLACE";

#[test]
fn sqlite_keeps_its_promise_through_kill_9() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("store.db");
    let command = || player("kill::sqlite_player", path.to_str().unwrap());
    let open = async || SqliteStore::open(&path, drain()).await.unwrap();
    rounds(50, command, open, async |store| store.verify().await.unwrap());
}

/// Not a test: the code of the killed processes.
#[tokio::test]
async fn sqlite_player() {
    play_if_briefed(async |brief| {
        SqliteStore::open(env::var(PLACE).unwrap().as_ref(), brief.node.clone()).await.unwrap()
    })
    .await;
}

#[test]
fn postgres_keeps_its_promise_through_kill_9() {
    let database = Runtime::new().unwrap().block_on(Database::create());
    let url = database.url();
    let open = async || {
        // A server ends what a killed client began; until then what is there may still change.
        database.wait_until_alone().await;
        PostgresStore::connect(&url, drain()).await.unwrap()
    };
    let command = || player("kill::postgres_player", &url);
    rounds(20, command, open, async |store| store.verify().await.unwrap());
}

/// Not a test: the code of the killed processes.
#[tokio::test]
async fn postgres_player() {
    play_if_briefed(async |brief| {
        PostgresStore::connect(&env::var(PLACE).unwrap(), brief.node.clone()).await.unwrap()
    })
    .await;
}

/// Runs this program again, as a player on the store at `place`.
fn player(test: &str, place: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]).env(PLACE, place);
    command
}

/// Plays rounds on one store, each as a tenant of its own.
fn rounds<S: Played>(
    rounds: usize,
    command: impl Fn() -> Command + Sync,
    open: impl AsyncFn() -> S,
    verify: impl AsyncFn(&S) -> Vec<ChainReport>,
) {
    let rounds = number("CLAWSMITH_KILL_ROUNDS").map_or(rounds, |rounds| rounds as usize);
    let first = number("CLAWSMITH_KILL_SEED").unwrap_or(1);
    let runtime = Runtime::new().unwrap();
    let mut report = Report::default();
    for seed in (first..).take(rounds) {
        let round = Round::new(seed);
        let mut model = round.run(&command, &mut report);
        let findings = runtime.block_on(async {
            let store = open().await;
            let mut findings = round.check(&store, &mut model).await;
            let chains = verify(&store).await;
            let broken = chains.iter().filter(|chain| chain.fault.is_some());
            findings.extend(broken.map(|chain| format!("{chain:?}")));
            findings
        });
        assert!(findings.is_empty(), "round with seed {seed}: {findings:#?}\nafter {:#?}", model.steps());
        if report.rounds.is_multiple_of(100) {
            println!("{report}");
        }
    }
    println!("{report}");
    assert!(report.kills >= rounds, "players were killed: {report}");
    assert!(report.acknowledged >= 10 * rounds, "players got somewhere: {report}");
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|number| number.parse().unwrap())
}

fn drain() -> NodeId {
    NodeId::new("drain").unwrap()
}
