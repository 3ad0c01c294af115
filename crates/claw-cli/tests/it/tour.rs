//! The tour shows real output.

use crate::harness::Home;

#[test]
fn the_tour_runs_and_leaves_nothing() {
    let home = Home::new();
    let ran = home.run(&["tour"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    for expected in [
        "2026-03-29T21:00:00+09:00",
        "was taken as `to_timezone`",
        "did you mean `datetime`?",
        "`agents.researcher.deny` entry `agents_list` denies it",
        "token [REDACTED] in",
        "max_tokens: 4096",
        "ok: main@local: 9 entries",
        "+3. They are crustaceans.",
        "make install ",
        "clawsmith onboard ",
    ] {
        assert!(ran.stdout.contains(expected), "{expected}: {}", ran.stdout);
    }
    assert!(!home.data().exists());
}
