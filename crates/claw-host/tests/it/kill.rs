//! Programs that append to one ledger and are killed at any moment: what they were told is written is there.

use std::collections::HashSet;
use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use claw_core::store::{EntryEvent, Ledger, Outcome};
use claw_core::{CallId, NodeId, TenantId};
use claw_host::FileLedger;
use claw_host::ledger::{Note, verify};
use claw_testkit::fixture::{intent, outcome, refused};
use tempfile::TempDir;

const DIRECTORY: &str = "CLAW_HOST_KILL_TEST_DIRECTORY";
const ROUNDS: usize = 20;

#[tokio::test]
async fn what_was_acknowledged_survives_kill_9() {
    let directory = TempDir::new().unwrap();
    let mut acknowledged = HashSet::new();
    for _ in 0..ROUNDS {
        let writers = [start_writer(directory.path()), start_writer(directory.path())];
        for writer in writers {
            acknowledged.extend(kill_after(writer, random_below(12)));
        }
        for report in verify(directory.path()).unwrap() {
            assert_eq!(report.fault, None, "{report:?}");
        }
    }
    assert!(acknowledged.len() > ROUNDS, "the writers got somewhere");

    let ledger = FileLedger::open(directory.path(), NodeId::local()).unwrap();
    ledger.refuse(refused(CallId::new())).await.unwrap();
    let report = &verify(directory.path()).unwrap()[0];
    assert_eq!(report.fault, None);
    assert!(report.notes.iter().all(|note| matches!(note, Note::Aside { .. })), "healed: {report:?}");

    let entries = ledger.recent(&TenantId::main(), usize::MAX).await.unwrap();
    let begun: Vec<_> = entries
        .iter()
        .filter(|entry| matches!(entry.record.event, EntryEvent::Intent { .. }))
        .map(|entry| entry.record.call)
        .collect();
    let distinct: HashSet<_> = begun.iter().copied().collect();
    assert_eq!(begun.len(), distinct.len(), "no call began twice");
    assert!(acknowledged.is_subset(&distinct), "all that was acknowledged is there");
}

/// Not a test: what the killed processes run.
#[tokio::test]
async fn writer() {
    let Ok(directory) = env::var(DIRECTORY) else { return };
    let ledger = FileLedger::open(directory, NodeId::local()).unwrap();
    loop {
        let call = CallId::new();
        ledger.begin_call(intent(call, "ls", None)).await.unwrap();
        println!("begun {call}");
        ledger.finish_call(outcome(call, Outcome::Done)).await.unwrap();
    }
}

fn start_writer(directory: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["kill::writer", "--exact", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills a writer once it has begun `count` calls, and returns all that it was told are written.
fn kill_after(mut writer: Child, count: usize) -> Vec<CallId> {
    let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    // A killed writer leaves a last line without its end; it was not told yet.
    let mut told = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("begun ")?.parse().ok());
    let mut begun: Vec<_> = told.by_ref().take(count).collect();
    writer.kill().unwrap();
    begun.extend(told);
    writer.wait().unwrap();
    begun
}

/// Any number below `bound`; ids end in random bytes.
fn random_below(bound: usize) -> usize {
    usize::from(CallId::new().as_bytes()[15]) % bound
}
