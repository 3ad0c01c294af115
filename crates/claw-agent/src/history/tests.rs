use claw_core::message::{Args, Part, ToolResult, Turn, Wanted};
use claw_core::port::UnixMillis;
use claw_core::store::{Message, NewMessage, Role};
use claw_core::tool::Block;
use claw_core::{CallId, JobId, MessageId, SessionKey, TenantId};
use serde_json::{Value, json};

use super::History;

fn message(seq: u64, run: JobId, role: Role, content: Value) -> Message {
    let (tenant, session) = (TenantId::main(), SessionKey::new("cli:me").unwrap());
    let new = NewMessage { id: MessageId::new(), tenant, session, role, content, at: UnixMillis(0) };
    Message { new, seq, run }
}

fn text(text: &str) -> Value {
    serde_json::to_value([Part::text(text)]).unwrap()
}

fn call() -> Wanted {
    let (call, args) = (CallId::new(), Args::Json(json!({})));
    Wanted { call, model_id: "m".into(), tool: "peek".to_owned(), args, seal: None }
}

fn result(wanted: &Wanted) -> Part {
    let content = vec![Block::Text { text: "seen".to_owned() }];
    let Wanted { call, model_id, tool, .. } = wanted.clone();
    Part::Result(ToolResult { call, model_id, tool, content, failed: false })
}

fn json_of(parts: &[Part]) -> Value {
    serde_json::to_value(parts).unwrap()
}

fn roles(turns: &[Turn]) -> Vec<Role> {
    turns.iter().map(|turn| turn.role).collect()
}

#[test]
fn each_run_stands_by_itself_and_later_questions_wait() {
    let (first, second, third) = (JobId::new(), JobId::new(), JobId::new());
    let messages = vec![
        message(1, first, Role::User, text("one")),
        message(2, second, Role::User, text("two")),
        message(3, first, Role::Assistant, text("answer to one")),
        message(4, third, Role::User, text("three")),
        message(5, second, Role::Assistant, text("so far")),
    ];
    let history = History::of(messages, second);
    let words: Vec<String> = history.turns().iter().map(Turn::words).collect();
    assert_eq!(words, ["one", "answer to one", "two", "so far"]);
    assert_eq!(history.of_run().len(), 2);
}

#[test]
fn results_that_came_one_by_one_are_read_together() {
    let (run, a, b) = (JobId::new(), call(), call());
    let messages = vec![
        message(1, run, Role::User, text("go")),
        message(2, run, Role::Assistant, json_of(&[Part::Call(a.clone()), Part::Call(b.clone())])),
        message(3, run, Role::Tool, json_of(&[result(&a)])),
        message(4, run, Role::Tool, json_of(&[result(&b)])),
    ];
    let history = History::of(messages, run);
    assert_eq!(roles(&history.turns()), [Role::User, Role::Assistant, Role::Tool]);
    assert_eq!(history.open_calls(), []);
}

#[test]
fn calls_without_results_are_open_in_a_run_and_settled_when_it_is_over() {
    let (run, next, a, b) = (JobId::new(), JobId::new(), call(), call());
    let messages = vec![
        message(1, run, Role::User, text("go")),
        message(2, run, Role::Assistant, json_of(&[Part::Call(a.clone()), Part::Call(b.clone())])),
        message(3, run, Role::Tool, json_of(&[result(&a)])),
        message(4, next, Role::User, text("and?")),
    ];
    assert_eq!(History::of(messages.clone(), run).open_calls(), std::slice::from_ref(&b));
    let turns = History::of(messages, next).turns();
    let results: Vec<CallId> = super::results(&turns[2]).map(|told| told.call).collect();
    assert_eq!(results, [a.call, b.call]);
}

#[test]
fn words_of_the_system_are_the_agents_own_so_that_speakers_take_turns() {
    let (run, next) = (JobId::new(), JobId::new());
    let messages = vec![
        message(1, run, Role::User, text("go")),
        message(2, run, Role::Assistant, text("half an ans")),
        message(3, run, Role::System, text("the run was stopped here")),
        message(4, next, Role::User, text("go on")),
    ];
    let turns = History::of(messages, next).turns();
    assert_eq!(roles(&turns), [Role::User, Role::Assistant, Role::User]);
    assert_eq!(turns[1].words(), "half an ans\n[the run was stopped here]");
}

#[test]
fn a_person_speaks_first_and_what_does_not_read_is_shown_as_it_is() {
    let run = JobId::new();
    let turns = History::of(vec![message(1, run, Role::Assistant, json!({ "odd": 1 }))], run).turns();
    assert_eq!(roles(&turns), [Role::User, Role::Assistant]);
    assert_eq!(turns[1].words(), "{\"odd\":1}");
}
