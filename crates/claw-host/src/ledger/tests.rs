use std::os::unix::fs::{PermissionsExt, symlink};

use claw_core::store::{Answer, ApprovalState, Approvals, EntryEvent};
use claw_testkit::fixture::{NOW, intent, outcome, owner, question, refused, tenant};
use tempfile::TempDir;

use super::*;

const LINES: &str = "ledger/main@local.jsonl";
const HEAD: &str = "ledger/main@local.head";

fn open(directory: &TempDir) -> FileLedger {
    FileLedger::open(directory.path(), NodeId::local()).unwrap()
}

/// A chain of six entries: three calls that were done.
async fn written() -> (TempDir, FileLedger, Vec<CallId>) {
    let directory = TempDir::new().unwrap();
    let ledger = open(&directory);
    let calls = [(); 3].map(|()| CallId::new()).to_vec();
    for call in &calls {
        ledger.begin_call(intent(*call, "ls", None)).await.unwrap();
        ledger.finish_call(outcome(*call, Outcome::Done)).await.unwrap();
    }
    (directory, ledger, calls)
}

fn read(directory: &TempDir, name: &str) -> String {
    fs::read_to_string(directory.path().join(name)).unwrap()
}

fn write(directory: &TempDir, name: &str, text: impl AsRef<[u8]>) {
    fs::write(directory.path().join(name), text).unwrap();
}

fn report(directory: &TempDir) -> ChainReport {
    let mut reports = verify(directory.path()).unwrap();
    assert_eq!(reports.len(), 1);
    reports.remove(0)
}

/// Writes six entries, lets `tamper` at their lines, and expects `verify` to find `fault`.
async fn check(tamper: impl FnOnce(&mut Vec<String>), sound: u64, fault: Fault) {
    let (directory, _, _) = written().await;
    let mut lines: Vec<String> = read(&directory, LINES).lines().map(|line| format!("{line}\n")).collect();
    tamper(&mut lines);
    write(&directory, LINES, lines.concat());
    let report = report(&directory);
    assert_eq!((report.entries, report.fault), (sound, Some(fault)));
}

#[tokio::test]
async fn a_chain_that_nobody_touched_is_sound() {
    let (directory, ledger, _) = written().await;
    let mut theirs = refused(CallId::new());
    theirs.tenant = tenant("a@b");
    ledger.refuse(theirs).await.unwrap();
    let sound = |chain: &str, entries| ChainReport {
        chain: chain.to_owned(),
        entries,
        fault: None,
        notes: Vec::new(),
    };
    assert_eq!(verify(directory.path()).unwrap(), [sound("a%40b@local", 1), sound("main@local", 6)]);
}

#[tokio::test]
async fn finds_a_changed_entry() {
    let change =
        |n: usize| move |lines: &mut Vec<String>| lines[n - 1] = lines[n - 1].replace("tester", "nobody");
    check(change(1), 0, Fault::Changed { seq: 1 }).await;
    check(change(3), 2, Fault::Changed { seq: 3 }).await;
    check(change(6), 5, Fault::Changed { seq: 6 }).await;
    check(|lines| lines[2].insert(1, ' '), 2, Fault::Changed { seq: 3 }).await;
    check(|lines| lines[2] = "nonsense\n".to_owned(), 2, Fault::Unreadable { seq: 3 }).await;
}

#[tokio::test]
async fn finds_a_removed_entry() {
    check(|lines| drop(lines.remove(0)), 0, Fault::Missing { seq: 1, found: 2 }).await;
    check(|lines| drop(lines.remove(3)), 3, Fault::Missing { seq: 4, found: 5 }).await;
    check(|lines| lines.swap(1, 2), 1, Fault::Missing { seq: 2, found: 3 }).await;
}

#[tokio::test]
async fn finds_a_removed_entry_whose_followers_were_renumbered() {
    let hide = |lines: &mut Vec<String>| {
        lines.remove(3);
        lines[3] = lines[3].replace("\"seq\":5", "\"seq\":4");
    };
    check(hide, 2, Fault::Changed { seq: 3 }).await;
}

#[tokio::test]
async fn finds_a_removed_last_entry() {
    check(|lines| lines.truncate(5), 5, Fault::CutOff { counted: 6, found: 5 }).await;
    check(Vec::clear, 0, Fault::CutOff { counted: 6, found: 0 }).await;
}

#[tokio::test]
async fn finds_a_removed_file_or_head() {
    let (directory, _, _) = written().await;
    let head = read(&directory, HEAD);
    fs::remove_file(directory.path().join(HEAD)).unwrap();
    assert_eq!(report(&directory).fault, Some(Fault::HeadMissing));
    write(&directory, HEAD, "nonsense");
    assert_eq!(report(&directory).fault, Some(Fault::HeadDamaged));
    write(&directory, HEAD, head);
    assert_eq!(report(&directory).fault, None);
    fs::remove_file(directory.path().join(LINES)).unwrap();
    assert_eq!(report(&directory).fault, Some(Fault::CutOff { counted: 6, found: 0 }));
}

#[tokio::test]
async fn finds_a_chain_put_in_place_of_anothers() {
    let (directory, _, _) = written().await;
    for (from, to) in [(LINES, "ledger/other@local.jsonl"), (HEAD, "ledger/other@local.head")] {
        fs::rename(directory.path().join(from), directory.path().join(to)).unwrap();
    }
    assert_eq!(report(&directory).fault, Some(Fault::Foreign { seq: 1 }));
}

#[tokio::test]
async fn refuses_to_append_to_a_chain_that_was_cut_off_or_lost_its_head() {
    let (directory, ledger, _) = written().await;
    let lines = read(&directory, LINES);
    write(&directory, LINES, lines.split_inclusive('\n').take(5).collect::<String>());
    let error = ledger.refuse(refused(CallId::new())).await.unwrap_err();
    assert!(matches!(&error, StoreError::Damaged { why, .. } if why.contains("cut off")), "{error}");
    write(&directory, LINES, &lines);
    fs::remove_file(directory.path().join(HEAD)).unwrap();
    let error = ledger.refuse(refused(CallId::new())).await.unwrap_err();
    assert!(matches!(&error, StoreError::Damaged { why, .. } if why.contains("head is missing")), "{error}");
    assert_eq!(read(&directory, LINES), lines);
    assert_eq!(report(&directory).fault, Some(Fault::HeadMissing), "a refused append does not hide it");
}

#[tokio::test]
async fn refuses_to_take_in_a_forged_line_after_the_head() {
    let (directory, ledger, _) = written().await;
    let lines = read(&directory, LINES);
    let forged = lines.lines().last().unwrap().replace("\"seq\":6", "\"seq\":7");
    write(&directory, LINES, format!("{lines}{forged}\n"));
    let error = ledger.refuse(refused(CallId::new())).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Damaged { why, .. } if why.contains("entry 7 does not fit")),
        "{error}"
    );
}

#[tokio::test]
async fn takes_in_a_line_that_the_head_does_not_know() {
    let (directory, ledger, _) = written().await;
    let head = read(&directory, HEAD);
    let call = CallId::new();
    ledger.begin_call(intent(call, "ls", None)).await.unwrap();
    write(&directory, HEAD, head);
    assert_eq!(report(&directory).notes, [Note::Uncounted { entries: 1 }]);
    let again = open(&directory).begin_call(intent(call, "ls", None)).await.unwrap_err();
    assert!(matches!(again, StoreError::AlreadyBegun { .. }), "{again}");
    open(&directory).refuse(refused(CallId::new())).await.unwrap();
    let report = report(&directory);
    assert_eq!((report.entries, report.fault, report.notes), (8, None, Vec::new()));
}

#[tokio::test]
async fn moves_a_torn_line_aside() {
    let (directory, ledger, _) = written().await;
    for n in 1..=2 {
        let lines = read(&directory, LINES);
        write(&directory, LINES, format!("{lines}{{\"seq\":7,\"torn"));
        assert!(report(&directory).notes.contains(&Note::Torn { bytes: 14 }));
        assert_eq!(ledger.recent(&TenantId::main(), 1).await.unwrap()[0].seq, 5 + n);
        ledger.refuse(refused(CallId::new())).await.unwrap();
        assert_eq!(read(&directory, &format!("{LINES}.torn-{n}")), "{\"seq\":7,\"torn");
    }
    let report = report(&directory);
    assert_eq!((report.entries, report.fault, report.notes), (8, None, vec![Note::Aside { files: 2 }]));
}

#[tokio::test]
async fn refuses_to_begin_a_call_again_after_a_restart() {
    let (directory, ledger, calls) = written().await;
    let open_call = CallId::new();
    ledger.begin_call(intent(open_call, "ls", None)).await.unwrap();
    drop(ledger);
    let ledger = open(&directory);
    for (call, expected) in [(calls[0], Outcome::Done), (open_call, Outcome::Unknown)] {
        let again = ledger.begin_call(intent(call, "ls", None)).await.unwrap_err();
        assert!(matches!(again, StoreError::AlreadyBegun { outcome, .. } if outcome == expected), "{again}");
    }
    ledger.begin_call(intent(CallId::new(), "ls", None)).await.unwrap();
    let tally = ledger.tally(&owner().tenant, &owner().session).await.unwrap();
    assert_eq!((tally.done, tally.open), (3, 2));
}

#[tokio::test]
async fn refuses_to_begin_a_call_again_after_the_clock_was_set_back() {
    let (directory, _, _) = written().await;
    // Made in the year 10889, which is after any opening.
    let future: CallId = "ffffffff-ffff-7fff-bfff-ffffffffffff".parse().unwrap();
    open(&directory).begin_call(intent(future, "ls", None)).await.unwrap();
    for _ in 0..2 {
        let ledger = open(&directory);
        let again = ledger.begin_call(intent(future, "ls", None)).await.unwrap_err();
        assert!(matches!(again, StoreError::AlreadyBegun { outcome: Outcome::Unknown, .. }), "{again}");
        // What came later, and is older by its id, does not hide it.
        ledger.begin_call(intent(CallId::new(), "ls", None)).await.unwrap();
        ledger.refuse(refused(CallId::new())).await.unwrap();
    }
    assert_eq!(report(&directory).fault, None);
}

#[tokio::test]
async fn finds_a_head_that_hides_how_new_its_calls_are() {
    let (directory, _, _) = written().await;
    let head = read(&directory, HEAD);
    let changed = head.replace("\"newest\":1", "\"newest\":2");
    assert_ne!(head, changed);
    write(&directory, HEAD, changed);
    assert_eq!(report(&directory).fault, Some(Fault::HeadDamaged));
}

#[tokio::test]
async fn refuses_to_begin_what_another_process_began_meanwhile() {
    let (directory, one, _) = written().await;
    let other = open(&directory);
    let call = CallId::new();
    one.begin_call(intent(call, "ls", None)).await.unwrap();
    one.finish_call(outcome(call, Outcome::Failed)).await.unwrap();
    let again = other.begin_call(intent(call, "ls", None)).await.unwrap_err();
    assert!(matches!(again, StoreError::AlreadyBegun { outcome: Outcome::Failed, .. }), "{again}");
    other.refuse(refused(CallId::new())).await.unwrap();
    one.refuse(refused(CallId::new())).await.unwrap();
    assert_eq!(report(&directory).entries, 10);
}

#[tokio::test]
async fn a_full_disk_refuses_the_call_and_leaves_its_approval() {
    let directory = TempDir::new().unwrap();
    fs::create_dir(directory.path().join("ledger")).unwrap();
    symlink("/dev/full", directory.path().join(LINES)).unwrap();
    let (ledger, call) = (open(&directory), CallId::new());
    let id = ledger.request(question(call, "ls")).await.unwrap().id;
    let yes = Answer { approve: true, by: "ann".to_owned(), at: NOW };
    ledger.answer(&TenantId::main(), id, yes).await.unwrap();
    let error = ledger.begin_call(intent(call, "ls", Some(id))).await.unwrap_err().to_string();
    assert!(error.contains(LINES) && error.contains("No space left"), "{error}");
    let approval = ledger.approval(&TenantId::main(), id).await.unwrap().unwrap();
    assert_eq!(approval.state, ApprovalState::Approved);

    fs::remove_file(directory.path().join(LINES)).unwrap();
    ledger.begin_call(intent(call, "ls", Some(id))).await.unwrap();
    assert_eq!(report(&directory).entries, 1);
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_named() {
    let directory = TempDir::new().unwrap();
    write(&directory, "file", "");
    let below = directory.path().join("file");
    let error = FileLedger::open(&below, NodeId::local()).unwrap_err().to_string();
    assert!(error.contains(below.join("ledger").to_str().unwrap()), "{error}");
}

#[tokio::test]
async fn only_its_owner_may_read_it() {
    let directory = TempDir::new().unwrap();
    let ledger = FileLedger::open(directory.path().join("a"), NodeId::local()).unwrap();
    ledger.refuse(refused(CallId::new())).await.unwrap();
    let mode = |path: &str| fs::metadata(directory.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("a/ledger"), 0o700);
    assert_eq!(mode(&format!("a/{LINES}")), 0o600);
    assert_eq!(mode(&format!("a/{HEAD}")), 0o600);
}

#[tokio::test]
async fn reads_back_from_the_end_of_a_long_chain() {
    let directory = TempDir::new().unwrap();
    let ledger = open(&directory);
    for n in 0..20 {
        let reason = n.to_string().repeat(10_000);
        let event = EntryEvent::Refused { step: "limit".to_owned(), reason };
        ledger.refuse(Record { event, ..refused(CallId::new()) }).await.unwrap();
    }
    for limit in [1, 5, 19, 20, 100] {
        let entries = ledger.recent(&TenantId::main(), limit).await.unwrap();
        let numbers: Vec<_> = entries.iter().map(|entry| entry.seq).collect();
        assert_eq!(numbers, (1..=20).skip(20_usize.saturating_sub(limit)).collect::<Vec<_>>());
    }
}
