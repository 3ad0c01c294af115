//! The request bodies of each provider, as snapshots.

use claw_core::image::Image;
use claw_core::message::{Args, Part, Seal, ToolResult, Turn, Wanted};
use claw_core::port::{Choice, Prompt, Question};
use claw_core::store::Role;
use claw_core::tool::Block;
use claw_testkit::models::{Manners, ModelServer};
use serde_json::json;

use crate::kit::{KINDS, ask_at, call, tools};

fn wanted(n: u8, tool: &str, args: Args, seal: Option<&str>) -> Part {
    let seal = seal.map(|provider| Seal { provider: provider.into(), value: "signed 2 bytes".to_owned() });
    Part::Call(Wanted { call: call(n), model_id: "not-unique".into(), tool: tool.to_owned(), args, seal })
}

fn told(n: u8, tool: &str, content: Vec<Block>, failed: bool) -> Part {
    Part::Result(ToolResult {
        call: call(n),
        model_id: "not-unique".into(),
        tool: tool.to_owned(),
        content,
        failed,
    })
}

/// A conversation with every kind of content, as untidy as after a crash.
fn question() -> Question {
    let picture = || Block::Image(Image::new("image/png", &b"\x89PNG\r\n\x1a\n"[..]));
    let text = |text: &str| Block::Text { text: text.to_owned() };
    let seal = Some(Seal { provider: "anthropic".into(), value: "signed 2 bytes".to_owned() });
    let turns = vec![
        Turn { role: Role::Tool, parts: vec![told(99, "gone", vec![text("its call was trimmed")], false)] },
        Turn {
            role: Role::User,
            parts: vec![
                Part::text("What is in this picture?"),
                Part::Image(Image::new("image/jpeg", &b"\xff\xd8\xff\xe0\0\x10"[..])),
            ],
        },
        Turn::text(Role::User, "And in `a.png`?"),
        Turn {
            role: Role::Assistant,
            parts: vec![
                Part::Thinking { text: "hm".to_owned(), seal },
                Part::text("I look at both."),
                wanted(1, "read_file", Args::Json(json!({ "path": "a.png" })), Some("gemini")),
                wanted(2, "exec", Args::Broken { text: "{\"comm".to_owned(), cut: true }, None),
            ],
        },
        Turn { role: Role::Tool, parts: vec![told(2, "exec", vec![text("arguments cut off")], true)] },
        Turn {
            role: Role::Tool,
            parts: vec![told(1, "read_file", vec![text("a picture"), picture()], false)],
        },
        Turn { role: Role::Assistant, parts: vec![Part::text("A crab."), Part::text("")] },
        Turn::text(Role::System, "The user is away."),
        Turn { role: Role::Assistant, parts: vec![wanted(3, "exec", Args::Json(json!([1])), None)] },
        Turn::text(Role::User, "Are you still there?"),
    ];
    Question {
        system: Prompt { stable: "You are a smith.".to_owned(), changing: "It is Sunday.".to_owned() },
        turns,
        tools: tools(),
        output: Some(4_000),
        thinking: Some(2_000),
        temperature: Some(0.7),
        ..Question::default()
    }
}

#[tokio::test]
async fn a_request_of_each_provider() {
    for kind in KINDS {
        let server = ModelServer::start("[[turn]]\ndo = [{ say = 'yes' }]", Manners::default()).await;
        let (answer, _) = ask_at(kind, &server, &question()).await;
        answer.unwrap();
        let asked = server.asked().remove(0);
        let headers =
            asked.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>();
        let body = serde_json::to_string_pretty(&asked.body).unwrap();
        let page = format!("POST {}\n{}\n\n{body}", asked.path, headers.join("\n"));
        insta::assert_snapshot!(format!("{kind:?}").to_lowercase(), page);
    }
}

#[tokio::test]
async fn a_call_can_be_required() {
    let name = tools()[0].name.clone();
    for kind in KINDS {
        for choice in [Choice::Any, Choice::Tool(name.clone())] {
            let server = ModelServer::start("[[turn]]\ndo = [{ say = 'yes' }]", Manners::default()).await;
            let asked = Question { choice: choice.clone(), ..question() };
            ask_at(kind, &server, &asked).await.0.unwrap();
            let body = server.asked().remove(0).body;
            let is_any = choice == Choice::Any;
            let (sent, expected) = match format!("{kind:?}").as_str() {
                "Gemini" if is_any => {
                    (&body["toolConfig"]["functionCallingConfig"], json!({ "mode": "ANY" }))
                }
                "Gemini" => {
                    let named = json!({ "mode": "ANY", "allowedFunctionNames": [name] });
                    (&body["toolConfig"]["functionCallingConfig"], named)
                }
                "Anthropic" => {
                    assert!(body["thinking"].is_null(), "a required call excludes thinking: {body}");
                    let named = json!({ "type": "tool", "name": name });
                    (&body["tool_choice"], if is_any { json!({ "type": "any" }) } else { named })
                }
                _ if is_any => (&body["tool_choice"], json!("required")),
                _ => (&body["tool_choice"], json!({ "type": "function", "function": { "name": name } })),
            };
            assert_eq!(*sent, expected, "{kind:?}");
        }
    }
}
