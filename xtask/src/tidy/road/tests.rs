use super::{DECLARATION, ROAD, check};
use crate::tree::Tree;

#[track_caller]
fn check_files(files: &[(&str, &str)], expected: &[&str]) {
    let findings: Vec<String> = check(&Tree::of(files)).iter().map(ToString::to_string).collect();
    assert_eq!(findings.len(), expected.len(), "{findings:#?}");
    for (finding, expected) in findings.iter().zip(expected) {
        assert!(finding.starts_with(expected), "`{finding}` does not start with `{expected}`");
    }
}

const ERASE: &str =
    "pub trait AnyTool {\n    async fn run_erased(&self, call: &Call, args: Value) -> R;\n}\n";
const EXECUTE: &str = "async fn run(tool: &dyn AnyTool) {\n    tool.run_erased(call, args).await\n}\n";

#[test]
fn the_road_alone_is_fine() {
    check_files(&[(DECLARATION, ERASE), (ROAD, EXECUTE)], &[]);
}

#[test]
fn a_second_caller_is_found() {
    let call = "fn f() {\n    // run_erased\n    tool.run_erased(call, args);\n}";
    check_files(
        &[("crates/claw-agent/src/run.rs", call)],
        &["crates/claw-agent/src/run.rs:3: only the road"],
    );
    let path = "fn f() { AnyTool::run_erased(&tool, call, args); let g = <T as AnyTool>::run_erased; }";
    check_files(&[("crates/claw-cli/src/main.rs", path)], &["crates/claw-cli/src/main.rs:1: only"; 2]);
}

#[test]
fn a_wrapper_may_hand_on_but_do_no_more() {
    let wrapper = "impl AnyTool for Wrapped {\n    async fn run_erased(&self, c: &Call, a: Value) -> R {\n        self.0.run_erased(c, a).await\n    }\n}\n";
    check_files(&[("crates/claw-registry/src/custom.rs", wrapper)], &[]);
    let more = format!("{wrapper}fn sneak() {{ tool.run_erased(c, a); }}\n");
    check_files(
        &[("crates/claw-registry/src/custom.rs", &more)],
        &["crates/claw-registry/src/custom.rs:6: only the road"],
    );
}

#[test]
fn the_road_runs_a_tool_in_one_place() {
    check_files(&[(ROAD, "fn f() {}")], &["crates/claw-registry/src/execute/run.rs:1: the road never calls"]);
    let twice = format!("{EXECUTE}{EXECUTE}");
    check_files(
        &[(ROAD, &twice)],
        &["crates/claw-registry/src/execute/run.rs:5: `run_erased` is called on line 2"],
    );
}

#[test]
fn only_the_registry_makes_a_call() {
    let makes = "fn f() {\n    let call = Call::new(parts);\n}";
    check_files(
        &[("crates/claw-agent/src/run.rs", makes)],
        &["crates/claw-agent/src/run.rs:2: only the registry"],
    );
    check_files(
        &[("crates/claw-registry/src/run.rs", makes), ("crates/claw-agent/src/turn/tests.rs", makes)],
        &[],
    );
    check_files(&[("crates/claw-agent/src/run.rs", "fn f() { ToolCall::new() }")], &[]);
}

#[test]
fn a_renamed_entry_is_no_way_round() {
    let renamed = "pub trait AnyTool {\n    async fn run(&self, call: &Call);\n}\nfn run_erased() {}";
    check_files(
        &[(DECLARATION, renamed)],
        &["crates/claw-core/src/tool/tool_trait.rs:1: `AnyTool` has no method"],
    );
}
