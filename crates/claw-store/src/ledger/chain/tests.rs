use claw_core::store::{Outcome, Record};
use claw_core::{CallId, NodeId};
use claw_testkit::fixture::{intent, outcome, refused};

use super::{Columns, Fault, Head, Walk};

/// A chain of three entries: their records, their lines and the head.
fn written() -> (Vec<(Record, String)>, Head) {
    let call = CallId::new();
    let mut head = Head::start();
    let mut rows = Vec::new();
    for record in [refused(CallId::new()), intent(call, "ls", None), outcome(call, Outcome::Done)] {
        let (line, next) = head.next(&NodeId::local(), &record).unwrap();
        rows.push((record, line));
        head = next;
    }
    (rows, head)
}

#[track_caller]
fn check(rows: &[(Record, String)], head: Option<Head>, entries: u64, fault: Option<Fault>) {
    let mut walk = Walk::new("main", "local", head.map(Ok));
    for (record, line) in rows {
        if !walk.step(Columns::of(record), line) {
            break;
        }
    }
    let report = walk.report();
    assert_eq!((report.entries, report.fault), (entries, fault), "{report}");
}

#[test]
fn a_whole_chain_is_sound() {
    let (rows, head) = written();
    check(&rows, Some(head), 3, None);
    check(&[], None, 0, None);
    check(&[], Some(Head::start()), 0, None);
}

#[test]
fn names_the_first_bad_entry() {
    let (rows, head) = written();
    for seq in 1..=3 {
        let mut changed = rows.clone();
        changed[seq - 1].1 = changed[seq - 1].1.replace("tester", "nobody");
        check(&changed, Some(head), seq as u64 - 1, Some(Fault::Changed { seq: seq as u64 }));
    }
    let mut columns = rows.clone();
    columns[1].0.call = CallId::new();
    check(&columns, Some(head), 1, Some(Fault::Changed { seq: 2 }));

    let mut unreadable = rows.clone();
    unreadable[1].1.pop();
    check(&unreadable, Some(head), 1, Some(Fault::Unreadable { seq: 2 }));

    let mut missing = rows;
    missing.remove(1);
    check(&missing, Some(head), 1, Some(Fault::Missing { seq: 2, found: 3 }));
}

#[test]
fn names_what_is_wrong_with_the_end() {
    let (rows, head) = written();
    check(&rows[..2], Some(head), 2, Some(Fault::CutOff { counted: 3, found: 2 }));
    check(&[], Some(head), 0, Some(Fault::CutOff { counted: 3, found: 0 }));
    check(&rows, None, 3, Some(Fault::HeadMissing));
    check(&rows, Some(Head::start()), 3, Some(Fault::HeadDamaged));
    let walk = Walk::new("main", "local", Some(Head::read(3, "not a digest")));
    assert_eq!(walk.report().fault, Some(Fault::HeadDamaged));
}

#[test]
fn refuses_a_chain_put_in_the_place_of_another() {
    let (rows, head) = written();
    let mut walk = Walk::new("other", "local", Some(Ok(head)));
    assert!(!walk.step(Columns::of(&rows[0].0), &rows[0].1));
    assert_eq!(walk.report().fault, Some(Fault::Foreign { seq: 1 }));
}

#[test]
fn a_report_reads_as_a_sentence() {
    let (rows, head) = written();
    let report = |rows: &[(Record, String)]| {
        let mut walk = Walk::new("main", "local", Some(Ok(head)));
        rows.iter().all(|(record, line)| walk.step(Columns::of(record), line));
        walk.report().to_string()
    };
    assert_eq!(report(&rows), "main@local: sound, entries: 3");
    assert_eq!(
        report(&rows[..2]),
        "main@local: the chain is cut off: its head counts 3 entries, 2 are there; sound before that: 2"
    );
}
