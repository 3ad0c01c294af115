use claw_core::CallId;
use claw_core::message::{Args, Part, ToolResult, Turn, Wanted};
use claw_core::port::{Choice, Question};
use claw_core::store::Role;
use claw_core::tool::{Block, Spec};
use serde_json::json;

use super::{NoTurn, Script, Step};

/// A question of these turns.
pub(crate) fn asked(turns: impl IntoIterator<Item = Turn>) -> Question {
    Question { turns: turns.into_iter().collect(), ..Question::default() }
}

pub(crate) fn user(words: &str) -> Turn {
    Turn::text(Role::User, words)
}

/// A tool call of the model with its result.
pub(crate) fn called(tool: &str, result: &str, failed: bool) -> [Turn; 2] {
    let (call, model_id) = (CallId::new(), "c1".into());
    let args = Args::Json(json!({}));
    let wanted = Wanted { call, model_id, tool: tool.to_owned(), args, seal: None };
    let told = ToolResult {
        call,
        model_id: wanted.model_id.clone(),
        tool: tool.to_owned(),
        content: vec![Block::Text { text: result.to_owned() }],
        failed,
    };
    [
        Turn { role: Role::Assistant, parts: vec![Part::Call(wanted)] },
        Turn { role: Role::Tool, parts: vec![Part::Result(told)] },
    ]
}

pub(crate) fn offered(names: &[&str]) -> Vec<Spec> {
    let spec = |name: &&str| Spec {
        name: claw_core::ToolName::new(*name).unwrap(),
        description: "A tool.".into(),
        parameters: json!({ "type": "object" }).into(),
    };
    names.iter().map(spec).collect()
}

/// The played steps, one line each.
fn played(script: &Script, question: &Question) -> String {
    let scene = match script.play(question) {
        Ok(scene) => scene,
        Err(NoTurn { said, .. }) => return format!("nothing fits `{said}`"),
    };
    let line = |step: &Step| match step {
        Step::Say { text, .. } => format!("say {text}"),
        Step::Think { text, .. } => format!("think {text}"),
        Step::Call { tool, args, cut, .. } => {
            format!("call {tool} {args}{}", if *cut { " (cut)" } else { "" })
        }
        Step::Wait(time) => format!("wait {time:?}"),
        Step::Fail { fault, message } => format!("fail {fault}: {message}"),
        Step::Hang => "hang".to_owned(),
    };
    scene.steps.iter().map(line).collect::<Vec<_>>().join("; ")
}

#[track_caller]
fn check(turns: &str, question: &Question, expected: &str) {
    assert_eq!(played(&Script::parse("test", turns).unwrap(), question), expected);
}

#[track_caller]
fn refuses(text: &str, line: Option<usize>, reason: &str) {
    let error = Script::parse("test", text).unwrap_err();
    assert_eq!(error.line, line, "{error}");
    assert!(error.reason.contains(reason), "{error}");
}

#[test]
fn words_are_compared_without_case() {
    let script = "[[turn]]\nwhen.said = 'HELLO'\ndo = [{ say = 'hi' }]";
    check(script, &asked([user("oh, hello there")]), "say hi");
    check(script, &asked([user("bye")]), "nothing fits `bye`");
}

#[test]
fn the_first_turn_that_fits_is_played() {
    let script = "[[turn]]\nwhen.said = 'a'\ndo = [{ say = '1' }]\n[[turn]]\ndo = [{ say = '2' }]";
    check(script, &asked([user("a")]), "say 1");
    check(script, &asked([user("b")]), "say 2");
    check(script, &asked([user("a"), Turn::text(Role::Assistant, "1"), user("b")]), "say 2");
}

#[test]
fn pieces_of_words_and_results_go_into_arguments() {
    let script = r#"
        [[turn]]
        when.said_matches = 'add (?<a>\d+) and (\d+)'
        do = [{ call = "sum", args = { a = "{{said.a}}", list = ["<{{said.2}}>", 1, 2.5, true], t = { x = "{{said}}" } } },
              { call = "sum", args_text = '{"a":{{said.a}},"{{" :1}' }]
        [[turn]]
        when.result_matches = 'is (\d+)'
        when.said_matches = 'add (?<a>\d+)'
        do = [{ say = "{{result.1}} from {{said.a}} in {{result}} {{result_of.sum}}|{{result_of.other}}|" }]
    "#;
    let question = asked([user("please add 3 and 4")]);
    let expected = r#"call sum {"a":"3","list":["<4>",1,2.5,true],"t":{"x":"please add 3 and 4"}}; call sum {"a":3,"{{" :1}"#;
    check(script, &question, expected);
    let question = asked([user("please add 3 and 4")].into_iter().chain(called("sum", "it is 7", false)));
    check(script, &question, "say 7 from 3 in it is 7 it is 7||");
}

#[test]
fn a_turn_for_words_does_not_answer_a_result() {
    let script = "[[turn]]\nwhen.said = 'go'\ndo = [{ call = 't' }]\n[[turn]]\nwhen.result_of = 't'\ndo = [{ say = 'done' }]";
    check(script, &asked([user("go")]), "call t {}");
    let after = || [user("go")].into_iter().chain(called("t", "", false));
    check(script, &asked(after()), "say done");
    check(script, &asked(after().chain([Turn::text(Role::Assistant, "done"), user("go")])), "call t {}");
}

#[test]
fn results_are_those_of_the_last_answer() {
    let script = "[[turn]]\nwhen.result_of = 'a'\nwhen.result_failed = true\ndo = [{ say = 'a failed' }]\n[[turn]]\nwhen.result = 'OK'\ndo = [{ say = 'fine' }]\n[[turn]]\ndo = [{ say = 'else' }]";
    let of = |calls: &[(&str, &str, bool)]| {
        let turns = calls.iter().flat_map(|(tool, text, failed)| called(tool, text, *failed));
        asked([user("go")].into_iter().chain(turns))
    };
    check(script, &of(&[("a", "no", true)]), "say a failed");
    check(script, &of(&[("b", "no", true)]), "say else");
    check(script, &of(&[("a", "no", true), ("b", "ok", false)]), "say fine");
    check(script, &of(&[("a", "ok", false), ("b", "no", false)]), "say else");
}

#[test]
fn rounds_and_offers_and_prompts_decide() {
    let script = "[[turn]]\nwhen.round = 1\ndo = [{ say = 'second' }]\n[[turn]]\nwhen.may_call = false\ndo = [{ say = 'last' }]\n[[turn]]\nwhen.offered = ['x', 'y']\ndo = [{ say = 'both' }]\n[[turn]]\nwhen.not_offered = ['x']\nwhen.system = 'SUM UP'\ndo = [{ say = 'sum' }]";
    check(script, &asked([user("go")].into_iter().chain(called("t", "", false))), "say second");
    check(script, &Question { choice: Choice::None, ..asked([user("go")]) }, "say last");
    check(script, &Question { tools: offered(&["y", "x"]), ..asked([user("go")]) }, "say both");
    let mut question = Question { tools: offered(&["y"]), ..asked([user("go")]) };
    check(script, &question, "nothing fits `go`");
    question.system.changing = "please sum up".to_owned();
    check(script, &question, "say sum");
}

#[test]
fn times_are_counted_by_turn() {
    let script = Script::parse(
        "test",
        "[[turn]]\nwhen.first = 2\ndo = [{ fail = 'unavailable' }]\n[[turn]]\nwhen.time = 2\ndo = [{ say = 'two' }]\n[[turn]]\ndo = [{ say = 'rest' }]",
    )
    .unwrap();
    let question = asked([user("go")]);
    let heard = [(); 5].map(|()| played(&script, &question));
    let failed = "fail unavailable: the script says so";
    assert_eq!(heard, [failed, failed, "say rest", "say two", "say rest"]);
}

#[test]
fn what_is_cut_ends_the_answer() {
    let script = "[[turn]]\nwhen.said = 'a'\ndo = [{ say = 'hello' }, { call = 't', args = { text = 'ünïcode' }, cut = 12 }]\n[[turn]]\ndo = [{ say = 'hello', cut = 99 }]";
    check(script, &asked([user("a")]), "say hello; call t {\"text\":\"ünï (cut)");
    let script = Script::parse("test", script).unwrap();
    assert_eq!(script.play(&asked([user("b")])).unwrap().stop, claw_core::port::Stop::Length);
}

#[test]
fn a_broken_script_is_refused_with_line_and_reason() {
    refuses("", None, "no `[[turn]]`");
    refuses("[[turn]]\ndo = [", Some(2), "");
    refuses("[[turn]]\ndo = []", Some(1), "`do` is empty");
    refuses("[[turn]]\nwhen.sayd = 'x'\ndo = [{ say = 'x' }]", Some(2), "unknown field `sayd`");
    refuses("[[turn]]\nwhen.said_matches = '('\ndo = [{ say = 'x' }]", Some(2), "not a regular expression");
    refuses(
        "[[turn]]\ndo = [\n  { say = 'x' },\n  { say = 'x', think = 'y' },\n]",
        Some(4),
        "exactly one of `say`",
    );
    refuses("[[turn]]\ndo = [{ cut = 3 }]", Some(2), "exactly one of");
    refuses("[[turn]]\ndo = [{ say = 'x', id = 'y' }]", Some(2), "`id` cannot be combined with `say`");
    refuses("[[turn]]\ndo = [{ say = '{{said.x}}' }]", Some(2), "needs `when.said_matches`");
    refuses("[[turn]]\nwhen.said_matches = '(?<y>.)'\ndo = [{ say = '{{said.x}}' }]", Some(3), "it has `y`");
    refuses("[[turn]]\nwhen.said_matches = '(.)'\ndo = [{ say = '{{said.2}}' }]", Some(3), "no group `2`");
    refuses(
        "[[turn]]\ndo = [{ call = 't', args = { a = ['{{sad}}'] } }]",
        Some(2),
        "`{{sad}}` is not a placeholder",
    );
    refuses("[[turn]]\ndo = [{ call = 't', args = { a = nan } }]", Some(2), "is not a JSON number");
    refuses("[[turn]]\ndo = [{ fail = 'tired' }]", Some(2), "unknown variant `tired`");
    refuses("[[turn]]\ndo = [{ fail = 'garbled', retry_after_ms = 1 }]", Some(2), "needs `fail");
    refuses("[[turn]]\ndo = [{ hang = true }, { say = 'x' }]", Some(2), "nothing can follow `hang`");
    refuses("[[turn]]\ndo = [{ say = 'x', cut = 1 }, { say = 'x' }]", Some(2), "nothing can follow `cut`");
    refuses("piece = 0\n[[turn]]\ndo = [{ say = 'x' }]", Some(1), "at least 1");
    refuses("[[turn]]\nwhen.time = 0\ndo = [{ say = 'x' }]", Some(2), "counts from 1");
    let error = Script::parse("a.toml", "[[turn]]\ndo = []").unwrap_err();
    assert_eq!(
        error.to_string(),
        "script `a.toml`, line 1: `do` is empty; give at least one step, such as `{ say = \"...\" }`"
    );
}

#[test]
fn the_demo_says_that_it_is_one_and_uses_the_tools() {
    let demo = Script::demo().unwrap();
    let tools = offered(&["edit", "exec", "list_files", "read_file", "write_file"]);
    let says = |question: Question| played(&demo, &Question { tools: tools.clone(), ..question });
    for words in ["hello", "what is the capital of France?", ""] {
        assert!(says(asked([user(words)])).contains("demo: no model is set up"), "{words}");
    }
    assert_eq!(
        says(asked([user("read src/main.rs.")])),
        r#"say Let me look.; call read_file {"path":"src/main.rs"}"#
    );
    assert_eq!(says(asked([user("run ls -l | wc")])), r#"call exec {"command":"ls -l | wc"}"#);
    assert_eq!(says(asked([user("run `ls`")])), r#"call exec {"command":"ls"}"#);
    let change = || user("replace \"old one\" with 'new' in a/b.txt");
    assert!(says(asked([change()])).ends_with(r#"call read_file {"path":"a/b.txt"}"#));
    let read = || [change()].into_iter().chain(called("read_file", "old one", false));
    let expected = r#"call edit {"new_string":"new","old_string":"old one","path":"a/b.txt"}"#;
    assert!(says(asked(read())).ends_with(expected), "{}", says(asked(read())));
    let edited = read().chain(called("edit", "-old one\n+new", false));
    assert!(says(asked(edited)).contains("```diff\n-old one\n+new\n```"));
    assert!(says(asked([change()].into_iter().chain(called("edit", "denied", true)))).contains("denied"));
}

#[test]
fn the_demo_shows_all_it_can_do_in_one_go() {
    let demo = Script::demo().unwrap();
    for (tools, expected) in [
        (vec!["edit", "exec", "read_file", "write_file"], vec!["write_file", "read_file", "edit", "exec"]),
        (vec!["edit", "read_file", "write_file"], vec!["write_file", "read_file", "edit"]),
    ] {
        let mut turns = vec![user("Show me what you can do")];
        let mut calls = Vec::new();
        let last = loop {
            let question = Question { tools: offered(&tools), ..asked(turns.clone()) };
            let scene = demo.play(&question).unwrap();
            let call = scene.steps.iter().find_map(|step| match step {
                Step::Call { tool, .. } => Some(tool.clone()),
                _ => None,
            });
            let Some(tool) = call else { break played(&demo, &question) };
            let result =
                if tool == "read_file" { "3. They are birds." } else { &format!("result of {tool}") };
            turns.extend(called(&tool, result, false));
            calls.push(tool);
        };
        assert_eq!(calls, expected);
        assert!(last.contains("```diff\nresult of edit\n```"), "{last}");
    }
}
