use claw_core::CallId;
use claw_core::message::{Part, ToolResult, Turn};
use claw_core::store::Role;
use claw_core::tool::Block;

use super::{shorten, tokens, trim};

fn result(bytes: usize) -> Turn {
    let content = vec![Block::Text { text: "x".repeat(bytes) }];
    let told = ToolResult {
        call: CallId::new(),
        model_id: "m".into(),
        tool: "peek".to_owned(),
        content,
        failed: false,
    };
    Turn { role: Role::Tool, parts: vec![Part::Result(told)] }
}

/// Shows which results were trimmed.
fn trimmed(sizes: &[usize], budget: usize) -> String {
    let mut turns: Vec<Turn> = sizes.iter().map(|size| result(*size)).collect();
    let before = turns.clone();
    trim(&mut turns, budget);
    turns.iter().zip(before).map(|(now, before)| if *now == before { '.' } else { 't' }).collect()
}

#[test]
fn the_oldest_results_go_first_and_the_latest_stay() {
    assert_eq!(trimmed(&[4_000; 5], 5_000), ".....");
    assert_eq!(trimmed(&[4_000; 6], 5_000), "tt....");
    assert_eq!(trimmed(&[4_000, 100, 4_000, 4_000], 10), "t.t.");
}

#[test]
fn what_is_trimmed_grows_in_steps() {
    let sizes = |count: usize| vec![400; count];
    let marks: Vec<usize> =
        (90..120).map(|count| trimmed(&sizes(count), 10_000).matches('t').count()).collect();
    let mut steps = marks.clone();
    steps.dedup();
    assert!(steps.len() <= 3, "{marks:?}");
}

#[test]
fn long_texts_are_cut_in_the_middle_until_they_fit() {
    let mut turns = vec![Turn::text(Role::User, format!("begin{}end", "é".repeat(50_000))), result(50_000)];
    shorten(&mut turns, 2_000);
    assert!(tokens(&turns) <= 2_000, "{}", tokens(&turns));
    let words = turns[0].words();
    assert!(words.starts_with("begin") && words.ends_with("end") && words.contains("[...]"));
}
