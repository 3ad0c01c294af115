use proptest::prelude::*;

use super::*;

mod corpus;
mod custom;
mod laws;
mod reading;

#[track_caller]
fn check(command: &str, decision: Decision, rule: &str) {
    let verdict = analyse(command, &Rules::default());
    let found = verdict.finding().map_or("", |finding| finding.rule.as_str());
    assert_eq!((verdict.decision, found), (decision, rule), "{command}\n{:#?}", verdict.findings);
}
