use std::time::Duration;

use claw_core::CallId;
use claw_testkit::fixture::{NOW, question};

use super::*;

/// Asks at `now`, and returns how many rows there are then.
fn ask(table: &ApprovalTable, now: UnixMillis) -> usize {
    let expires = now.plus(Duration::from_secs(300));
    table.request(NewApproval { asked: now, expires, ..question(CallId::new(), "ls") });
    table.rows().len()
}

#[test]
fn questions_whose_callers_went_away_make_room() {
    let table = ApprovalTable::new(3);
    assert_eq!([(); 5].map(|()| ask(&table, NOW)), [1, 2, 3, 4, 5], "those that wait are kept");
    assert_eq!(ask(&table, NOW.plus(Duration::from_secs(300))), 3);
}
