//! Complete answers, cut into pieces in various ways.

use claw_core::message::{Args, Part};
use claw_core::port::{Answer, Choice, Question, Stop};
use claw_core::store::Tokens;
use claw_llm::ProviderKind;
use claw_testkit::models::{Manners, ModelServer};
use serde_json::json;

use crate::kit::{KINDS, ask, ask_at, asked, config, model_of, then};

const RICH: &str = r#"
    piece = 3
    [[turn]]
    tokens = { input = 100, output = 20, cache_read = 1000 }
    do = [
        { think = "Thinking \"hard\" about grün 🦀." },
        { say = "Sure: \\ \n\t日本語 and 🦀🦀." },
        { call = "read_file", args = { path = "a/ü \"b\".txt" }, id = "one" },
        { call = "exec", args = { command = "ls -l | wc\n" }, id = "two" },
    ]
"#;

/// The thoughts, the text, and calls as `tool arguments`.
fn told(answer: &Answer) -> (String, String, Vec<String>) {
    let (mut thoughts, mut words, mut calls) = (String::new(), String::new(), Vec::new());
    for part in &answer.parts {
        match part {
            Part::Thinking { text, .. } => thoughts.push_str(text),
            Part::Text { text } => words.push_str(text),
            Part::Call(wanted) => match &wanted.args {
                Args::Json(value) => calls.push(format!("{} {value}", wanted.tool)),
                Args::Broken { text, cut } => calls.push(format!("{} broken {text} {cut}", wanted.tool)),
            },
            other => panic!("{other:?}"),
        }
    }
    (thoughts, words, calls)
}

fn heard_as(heard: &[String], kind: &str) -> String {
    heard.iter().filter_map(|piece| piece.strip_prefix(kind)).collect()
}

#[tokio::test]
async fn thoughts_words_and_parallel_calls_arrive_however_the_stream_is_split() {
    for kind in KINDS {
        for byte_by_byte in [false, true] {
            let server = ModelServer::start(RICH, Manners { byte_by_byte, ..Manners::default() }).await;
            let (answer, heard) = ask_at(kind, &server, &asked("go")).await;
            let answer = answer.unwrap();
            let (thoughts, words, calls) = told(&answer);
            assert_eq!(thoughts, "Thinking \"hard\" about grün 🦀.", "{kind:?}");
            assert_eq!(words, "Sure: \\ \n\t日本語 and 🦀🦀.", "{kind:?}");
            let expected = [r#"read_file {"path":"a/ü \"b\".txt"}"#, r#"exec {"command":"ls -l | wc\n"}"#];
            assert_eq!(calls, expected, "{kind:?}");
            assert_eq!(heard_as(&heard, "think "), thoughts);
            assert_eq!(heard_as(&heard, "text "), words);
            assert_eq!(heard_as(&heard, "call "), "read_fileexec");
            let args = r#"{"path":"a/ü \"b\".txt"}{"command":"ls -l | wc\n"}"#;
            assert_eq!(heard_as(&heard, "args "), args, "{kind:?}");
            assert_eq!(answer.stop, Stop::Calls);
            let tokens = Tokens { input: 100, output: 20, cache_read: 1000, cache_write: 0 };
            assert_eq!(answer.tokens, tokens, "{kind:?}");
            assert_eq!(answer.cost, 100 + 200 + 100);
            assert_eq!((answer.provider.as_str(), answer.model.as_str()), ("p", "m"));
            assert_eq!(server.asked()[0].key.as_deref(), Some("key-1"));
        }
    }
}

#[tokio::test]
async fn arguments_that_come_in_turns_are_put_together() {
    for kind in [ProviderKind::OpenAi, ProviderKind::Anthropic] {
        let server = ModelServer::start(RICH, Manners { interleaved: true, ..Manners::default() }).await;
        let (answer, _) = ask_at(kind, &server, &asked("go")).await;
        let (_, _, calls) = told(&answer.unwrap());
        let expected = [r#"read_file {"path":"a/ü \"b\".txt"}"#, r#"exec {"command":"ls -l | wc\n"}"#];
        assert_eq!(calls, expected, "{kind:?}");
    }
}

#[tokio::test]
async fn results_go_back_and_the_conversation_goes_on() {
    let script = r#"
        [[turn]]
        when.said = "look"
        do = [{ think = "hm" }, { say = "ok" }, { call = "read_file", args = { path = "a" } }, { call = "exec" }]
        [[turn]]
        when.result_of = "exec"
        when.result_matches = 'exit (\d)'
        do = [{ say = "{{result.1}} and {{result_of.read_file}}" }]
        [[turn]]
        when.said = "thanks"
        do = [{ say = "you are welcome" }]
    "#;
    for kind in KINDS {
        let server = ModelServer::start(script, Manners::default()).await;
        let model = model_of(config(kind, &server), &[("KEY", "key-1")]).await;
        let question = Question { thinking: Some(2_000), ..asked("look") };
        let answer = ask(&*model, &question).await.0.unwrap();
        let mut question = then(question, answer, &[("contents", false), ("exit 7", true)]);
        let answer = ask(&*model, &question).await.0.unwrap();
        assert_eq!(told(&answer).1, "7 and contents", "{kind:?}");
        question = then(question, answer, &[]);
        question.turns.extend(asked("thanks").turns);
        let answer = ask(&*model, &question).await.0.unwrap();
        assert_eq!(told(&answer).1, "you are welcome", "{kind:?}");
        assert_eq!(server.asked().len(), 3);
    }
}

#[tokio::test]
async fn seals_go_back_to_who_made_them_and_to_nobody_else() {
    let script = "[[turn]]\nwhen.said = 'go'\ndo = [{ think = 'hm' }, { call = 'exec' }]\n[[turn]]\ndo = [{ say = 'ok' }]";
    for from in KINDS {
        for to in KINDS {
            let (first, second) = (
                ModelServer::start(script, Manners::default()).await,
                ModelServer::start(script, Manners::default()).await,
            );
            let question = Question { thinking: Some(2_000), ..asked("go") };
            let answer = ask_at(from, &first, &question).await.0.unwrap();
            let question = then(question, answer, &[("done", false)]);
            let (answer, _) = ask_at(to, &second, &question).await;
            assert_eq!(told(&answer.unwrap()).1, "ok", "{from:?} to {to:?}");
            let body = second.asked()[0].body.to_string();
            assert_eq!(body.contains("signed"), from == to && from != ProviderKind::OpenAi, "{body}");
            // A call without its thought cannot be continued with thinking on.
            if to == ProviderKind::Anthropic {
                assert_eq!(body.contains("budget_tokens"), from == to, "{body}");
            }
        }
    }
}

#[tokio::test]
async fn arguments_and_answers_that_are_cut_off_are_known_to_be() {
    let cut_call = "[[turn]]\ndo = [{ say = 'so' }, { call = 'exec', args = { command = 'ls' }, cut = 14 }]";
    let cut_text = "[[turn]]\ndo = [{ say = 'a long story', cut = 6 }]";
    for kind in KINDS {
        let server = ModelServer::start(cut_text, Manners::default()).await;
        let answer = ask_at(kind, &server, &asked("go")).await.0.unwrap();
        assert_eq!((told(&answer).1.as_str(), answer.stop), ("a long", Stop::Length), "{kind:?}");

        let server = ModelServer::start(cut_call, Manners::default()).await;
        let answer = ask_at(kind, &server, &asked("go")).await.0.unwrap();
        // Gemini sends only whole calls.
        let expected: &[&str] =
            if kind == ProviderKind::Gemini { &[] } else { &[r#"exec broken {"command":"ls true"#] };
        assert_eq!(told(&answer).2, expected, "{kind:?}");
        assert_eq!(answer.stop, Stop::Length, "{kind:?}");
    }
}

#[tokio::test]
async fn arguments_that_are_no_json_are_given_as_they_are() {
    for kind in [ProviderKind::OpenAi, ProviderKind::Anthropic] {
        for (text, cut) in [("{oops}", false), ("{\"command\": \"ls", true), ("[1", true)] {
            let script = format!("[[turn]]\ndo = [{{ call = 'exec', args_text = '{text}' }}]");
            let server = ModelServer::start(&script, Manners::default()).await;
            let answer = ask_at(kind, &server, &asked("go")).await.0.unwrap();
            assert_eq!(told(&answer).2, [format!("exec broken {text} {cut}")], "{kind:?}");
            assert_eq!(answer.stop, Stop::Calls);
            let question = then(asked("go"), answer, &[("try again", true)]);
            let again = ask_at(kind, &server, &question).await.0;
            assert!(again.is_ok(), "what was broken can be told: {again:?}");
        }
    }
}

#[tokio::test]
async fn arguments_in_odd_forms_are_read() {
    for (text, expected) in
        [("", json!({})), ("  ", json!({})), (r#""{\"command\": \"ls\"}""#, json!({ "command": "ls" }))]
    {
        let script = format!("[[turn]]\ndo = [{{ call = 'exec', args_text = '''{text}''' }}]");
        let server = ModelServer::start(&script, Manners::default()).await;
        let answer = ask_at(ProviderKind::OpenAi, &server, &asked("go")).await.0.unwrap();
        assert_eq!(told(&answer).2, [format!("exec {expected}")]);
    }
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_is_read_all_the_same() {
    let script = "[[turn]]\ndo = [{ say = 'here' }, { call = 'exec', args = { command = 'a' } }, { call = 'exec', args = { command = 'b' } }]";
    let server = ModelServer::start(script, Manners { unstreamed: true, ..Manners::default() }).await;
    let answer = ask_at(ProviderKind::OpenAi, &server, &asked("go")).await.0.unwrap();
    let (_, words, calls) = told(&answer);
    assert_eq!(words, "here");
    assert_eq!(calls, [r#"exec {"command":"a"}"#, r#"exec {"command":"b"}"#]);
    assert_eq!(answer.tokens.output, 7);
}

#[tokio::test]
async fn a_refusal_is_no_failure() {
    let script = "[[turn]]\nstop = 'refused'\ndo = [{ say = 'I cannot' }]";
    for kind in KINDS {
        let server = ModelServer::start(script, Manners::default()).await;
        let answer = ask_at(kind, &server, &asked("go")).await.0.unwrap();
        assert_eq!((told(&answer).1.as_str(), answer.stop), ("I cannot", Stop::Refused), "{kind:?}");
    }
}

#[tokio::test]
async fn tools_can_be_forbidden_and_stay_listed() {
    let script = "[[turn]]\nwhen.may_call = false\nwhen.offered = ['exec']\ndo = [{ say = 'last words' }]";
    for kind in KINDS {
        let server = ModelServer::start(script, Manners::default()).await;
        let question = Question { choice: Choice::None, ..asked("go") };
        let answer = ask_at(kind, &server, &question).await.0.unwrap();
        assert_eq!(told(&answer).1, "last words", "{kind:?}");
    }
}
