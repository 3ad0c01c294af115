//! Failures and retries.

use std::time::Duration;

use claw_core::message::Part;
use claw_core::port::{Answer, Fault, ModelError, Stop};
use claw_llm::{ModelsConfig, ProviderKind};
use claw_testkit::models::{Manners, ModelServer};

use crate::kit::{KINDS, ask, ask_at, asked, config, model_of};

/// A script that fails this often, and then answers.
fn failing(times: u32, steps: &str) -> String {
    format!("[[turn]]\nwhen.first = {times}\ndo = [{steps}]\n[[turn]]\ndo = [{{ say = 'hello' }}]")
}

fn words(answer: Answer) -> String {
    assert_eq!(answer.stop, Stop::Done);
    claw_core::message::Turn { role: claw_core::store::Role::Assistant, parts: answer.parts }.words()
}

#[track_caller]
fn fault(answer: Result<Answer, ModelError>) -> Fault {
    answer.unwrap_err().fault
}

#[tokio::test]
async fn what_passes_is_tried_again() {
    for kind in KINDS {
        for steps in [
            "{ fail = 'rate_limited' }",
            "{ fail = 'rate_limited', retry_after_ms = 0 }",
            "{ fail = 'unavailable' }",
            "{ fail = 'connection' }",
            "{ fail = 'garbled' }",
        ] {
            let server = ModelServer::start(&failing(2, steps), Manners::default()).await;
            let (answer, heard) = ask_at(kind, &server, &asked("go")).await;
            assert_eq!(words(answer.unwrap()), "hello", "{kind:?} {steps}");
            assert_eq!(heard, ["text hello"], "{kind:?} {steps}");
            assert_eq!(server.asked().len(), 3, "{kind:?} {steps}");
        }
    }
}

#[tokio::test]
async fn what_was_heard_of_a_broken_answer_is_taken_back() {
    for kind in KINDS {
        for failure in ["connection", "garbled", "unavailable", "rate_limited"] {
            let steps = format!("{{ say = 'hel' }}, {{ call = 'exec' }}, {{ fail = '{failure}' }}");
            let server = ModelServer::start(&failing(1, &steps), Manners::default()).await;
            let (answer, heard) = ask_at(kind, &server, &asked("go")).await;
            assert_eq!(words(answer.unwrap()), "hello", "{kind:?} {failure}");
            let at = heard.iter().position(|piece| piece == "again");
            // A reset may overtake the data sent before it.
            if failure != "connection" || at.is_some() {
                assert_eq!(heard[at.unwrap() + 1..], ["text hello"], "{kind:?} {failure}");
                assert_eq!(heard[0], "text hel");
            }
            assert_eq!(server.asked().len(), 2);
        }
    }
}

#[tokio::test]
async fn what_does_not_pass_is_given_up_after_a_while() {
    for kind in KINDS {
        for (failure, expected) in [
            ("unavailable", Fault::Unavailable),
            ("rate_limited", Fault::RateLimited { retry_after: None }),
            ("garbled", Fault::Garbled),
            ("connection", Fault::Connection),
        ] {
            let server =
                ModelServer::start(&failing(99, &format!("{{ fail = '{failure}' }}")), Manners::default())
                    .await;
            let (answer, _) = ask_at(kind, &server, &asked("go")).await;
            assert_eq!(fault(answer), expected, "{kind:?}");
            assert_eq!(server.asked().len(), 3, "{kind:?} {failure}");
        }
    }
}

#[tokio::test]
async fn what_cannot_get_better_is_not_tried_again() {
    for kind in KINDS {
        for (steps, expected) in [
            ("{ fail = 'unauthorised' }", Fault::Unauthorised),
            ("{ fail = 'bad_request' }", Fault::BadRequest),
            ("{ fail = 'too_long' }", Fault::TooLong),
            (
                "{ fail = 'rate_limited', retry_after_ms = 3_600_000 }",
                Fault::RateLimited { retry_after: Some(Duration::from_secs(3_600)) },
            ),
        ] {
            let server = ModelServer::start(&failing(99, steps), Manners::default()).await;
            let (answer, _) = ask_at(kind, &server, &asked("go")).await;
            assert_eq!(fault(answer), expected, "{kind:?}");
            assert_eq!(server.asked().len(), 1, "{kind:?} {steps}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_ends_too_soon_is_no_answer() {
    for kind in KINDS {
        let server = ModelServer::start(
            "piece = 1\n[[turn]]\ndo = [{ say = 'hello' }]",
            Manners { unfinished: true, ..Manners::default() },
        )
        .await;
        let (answer, _) = ask_at(kind, &server, &asked("go")).await;
        let error = answer.unwrap_err();
        assert_eq!(error.fault, Fault::Connection, "{kind:?}");
        assert!(error.message.contains("ended before the answer was complete"), "{error}");
    }
}

#[tokio::test]
async fn a_whole_answer_counts_though_the_connection_stays_open() {
    for kind in KINDS {
        let server = ModelServer::start(
            "[[turn]]\ndo = [{ say = 'hello' }]",
            Manners { left_open: true, ..Manners::default() },
        )
        .await;
        let limits = ModelsConfig { idle_secs: 600, ..config(kind, &server) };
        let (answer, _) = ask(&*model_of(limits, &[("KEY", "key-1")]).await, &asked("go")).await;
        assert_eq!(answer.unwrap().parts, [Part::text("hello")], "{kind:?}");
        assert_eq!(server.asked().len(), 1, "{kind:?}");
    }
}

/// A proxy's page, or the page of a wrong path.
#[tokio::test]
async fn a_web_page_is_named_as_such() {
    for kind in KINDS {
        let server = ModelServer::start(
            "[[turn]]\ndo = [{ say = 'hi' }]",
            Manners { page: true, ..Manners::default() },
        )
        .await;
        let (answer, _) = ask_at(kind, &server, &asked("go")).await;
        let error = answer.unwrap_err();
        let says = error.to_string();
        let address = server.base_url(ProviderKind::Anthropic).replace("http://", "");
        assert!(says.contains("answers with a web page, not with a model's answer"), "{kind:?}: {says}");
        assert!(says.contains(&address), "{kind:?}: {says}");
        assert_eq!(error.fault, Fault::Garbled, "{kind:?}");
    }
}

#[tokio::test]
async fn a_model_that_does_not_begin_or_go_on_is_not_waited_for() {
    for kind in KINDS {
        for (steps, first_byte_secs, idle_secs, expected) in [
            ("{ hang = true }", 1, 600, "took longer than 1s to answer"),
            ("{ fail = 'timed_out' }", 1, 600, "took longer than 1s to answer"),
            ("{ say = 'hel' }, { hang = true }", 600, 1, "took longer than 1s to send more"),
        ] {
            let server = ModelServer::start(&failing(99, steps), Manners::default()).await;
            let limits = ModelsConfig { first_byte_secs, idle_secs, retries: 0, ..config(kind, &server) };
            let (answer, _) = ask(&*model_of(limits, &[("KEY", "key-1")]).await, &asked("go")).await;
            let error = answer.unwrap_err();
            assert_eq!(error.fault, Fault::TimedOut, "{kind:?} {steps}");
            assert!(error.message.contains(expected), "{error}");
        }
    }
}

#[tokio::test]
async fn a_slow_beginning_is_waited_for() {
    for kind in KINDS {
        let server =
            ModelServer::start("[[turn]]\ndo = [{ wait_ms = 200 }, { say = 'hello' }]", Manners::default())
                .await;
        let (answer, _) = ask_at(kind, &server, &asked("go")).await;
        assert_eq!(words(answer.unwrap()), "hello", "{kind:?}");
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn a_call_that_gemini_could_not_write_is_asked_for_again() {
    let steps = "{ call = 'exec', args_text = '{oops' }";
    let server = ModelServer::start(&failing(1, steps), Manners::default()).await;
    let (answer, _) = ask_at(ProviderKind::Gemini, &server, &asked("go")).await;
    assert_eq!(words(answer.unwrap()), "hello");
}

#[tokio::test]
async fn nobody_there_is_said_to_be() {
    for kind in KINDS {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let server = ModelServer::start("[[turn]]\ndo = [{ say = 'x' }]", Manners::default()).await;
        let mut config = config(kind, &server);
        config.providers.get_mut("p").unwrap().base_url = Some(format!("http://127.0.0.1:{port}"));
        let (answer, _) = ask(&*model_of(config, &[("KEY", "k")]).await, &asked("go")).await;
        assert_eq!(fault(answer), Fault::Connection);
    }
}

#[tokio::test]
async fn an_odd_name_of_a_model_stays_in_its_place() {
    let server = ModelServer::start("[[turn]]\ndo = [{ say = 'x' }]", Manners::default()).await;
    let mut config = config(ProviderKind::Gemini, &server);
    config.providers.get_mut("p").unwrap().model = Some("m?x=/../y".to_owned());
    let (answer, _) = ask(&*model_of(config, &[("KEY", "key-1")]).await, &asked("go")).await;
    assert!(answer.is_ok());
    let path = server.asked().remove(0).path;
    assert_eq!(path, "/v1beta/models/m%3Fx=%2F..%2Fy:streamGenerateContent?alt=sse");
}

#[tokio::test]
async fn a_wrong_base_url_is_told_with_what_to_check() {
    let server = ModelServer::start("[[turn]]\ndo = [{ say = 'x' }]", Manners::default()).await;
    let mut config = config(ProviderKind::Anthropic, &server);
    config.providers.get_mut("p").unwrap().base_url = Some(server.base_url(ProviderKind::Gemini));
    let (answer, _) = ask(&*model_of(config.clone(), &[("KEY", "key-1")]).await, &asked("go")).await;
    assert!(answer.is_ok(), "whatever comes before the path");
    config.providers.get_mut("p").unwrap().base_url =
        Some(format!("{}/x/v1", server.base_url(ProviderKind::Anthropic)));
    let (answer, _) = ask(&*model_of(config.clone(), &[("KEY", "key-1")]).await, &asked("go")).await;
    assert!(answer.is_ok(), "the version is not doubled");
    assert_eq!(server.asked()[1].path, "/x/v1/messages");
    config.providers.get_mut("p").unwrap().kind = Some(ProviderKind::OpenAi);
    config.providers.get_mut("p").unwrap().base_url =
        Some(format!("{}/x?y", server.base_url(ProviderKind::OpenAi)));
    let keys = std::sync::Arc::new(crate::kit::Table(Default::default()));
    let error = claw_llm::Providers::new(config, std::path::Path::new("."), keys).unwrap_err();
    assert!(error.to_string().starts_with("`providers.p.base_url`: the URL may have only"), "{error}");
}
