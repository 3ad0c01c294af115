use claw_core::CallId;
use claw_core::message::{Args, ToolResult, Wanted};
use claw_core::tool::Block;
use serde_json::json;

use super::{Finding, Loops};
use crate::LoopLimits;

/// A call: its tool, its argument, its result, and its kind: reads (`r`), writes (`w`) or fails (`f`).
type Made = (&'static str, &'static str, &'static str, char);

fn observe(loops: &mut Loops, (tool, arg, result, kind): Made) -> Option<Finding> {
    let call = CallId::new();
    let args = Args::Json(json!({ "x": arg }));
    let wanted = Wanted { call, model_id: "m".into(), tool: tool.to_owned(), args, seal: None };
    let content = vec![Block::Text { text: result.to_owned() }];
    let failed = kind == 'f';
    let told = ToolResult { call, model_id: "m".into(), tool: tool.to_owned(), content, failed };
    loops.observe(&wanted, &told, kind == 'r')
}

/// Checks the finding after each of these calls: `.` nothing, `w` a warning, `s` a stop.
#[track_caller]
fn check(calls: impl IntoIterator<Item = Made>, expected: &str) {
    let mut loops = Loops::new(LoopLimits::default());
    let found: String = calls
        .into_iter()
        .map(|made| match observe(&mut loops, made) {
            None => '.',
            Some(Finding::Warn(_)) => 'w',
            Some(Finding::Stop(_)) => 's',
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn the_same_call_with_the_same_result_is_a_loop() {
    check([("exec", "ls", "a", 'w'); 5], "..w.s");
    check([("read", "a", "b", 'r'); 6], "..w.ss");
}

#[test]
fn the_same_call_with_another_result_is_none() {
    let results = ["1", "2", "3", "4", "5", "6"];
    check(results.map(|result| ("poll", "job", result, 'w')), "......");
}

#[test]
fn what_changed_makes_earlier_results_old() {
    let test = ("exec", "test", "1 failed", 'f');
    check(
        [
            test,
            ("edit", "a", "ok", 'w'),
            test,
            ("edit", "b", "ok", 'w'),
            test,
            ("edit", "c", "ok", 'w'),
            test,
            ("edit", "d", "ok", 'w'),
            test,
        ],
        ".........",
    );
}

#[test]
fn the_same_result_whatever_is_asked_is_a_loop_where_nothing_is_changed() {
    let args = ["a", "b", "c", "d", "e", "f"];
    check(args.map(|arg| ("search", arg, "nothing", 'r')), "...w.s");
    check(args.map(|arg| ("get", arg, "refused", 'f')), "...w.s");
    check(args.map(|arg| ("write", arg, "written", 'w')), "......");
}

#[test]
fn reading_and_nothing_else_is_a_loop_sooner_where_it_is_old() {
    const NAMES: [&str; 20] =
        ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t"];
    check((0..18).map(|n| ("read", NAMES[n % 4], NAMES[n], 'r')), "...........w.....s");
    check((0..20).map(|n| ("read", NAMES[n], NAMES[n], 'r')), "....................");
}

#[test]
fn two_calls_that_undo_each_other_are_a_loop() {
    let turns = (0..10).map(|n| match n % 2 {
        0 => ("edit", "a to b", "ok", 'w'),
        _ => ("edit", "b to a", "done", 'w'),
    });
    check(turns, ".....w...s");
}

#[test]
fn our_own_words_in_a_result_do_not_make_it_new() {
    let mut loops = Loops::new(LoopLimits::default());
    let results = [
        "[untrusted data 1 from `x`: read it]\nsame\n[end of untrusted data 1]",
        "[untrusted data 2 from `x`: read it]\nsame\n[end of untrusted data 2]",
        "[untrusted data 3 from `x`: read it]\nsame\n[end of untrusted data 3]",
    ];
    let found = results.map(|result| observe(&mut loops, ("fetch", "x", result, 'w')));
    assert!(matches!(&found[2], Some(Finding::Warn(text)) if text.contains("3 times")), "{found:?}");
}
