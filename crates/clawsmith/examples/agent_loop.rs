//! An agent loop by hand: send the tools, run what the model calls, send the results, until it stops.
//!
//! The model here is a few lines of Rust, so that the example runs anywhere; a real one goes in its place.

use clawsmith::{AgentId, Arguments, Caller, Dialect, Request, SessionKey, Toolbox};
use serde_json::{Value, json};

/// A model's answer: calls to make, or words for the user.
enum Answer {
    Calls(Vec<(&'static str, &'static str, &'static str)>),
    Words(String),
}

/// Stands in for a model's API: reads the messages and answers.
fn model(messages: &[Value], _tools: &[Value]) -> Answer {
    let results = messages.iter().filter(|message| message["role"] == "tool").count();
    match results {
        // Models slip: this one forgets a quote, and asks for a tool that is not there.
        0 => Answer::Calls(vec![
            ("call_1", "datetime", r#"{"action": "now", "timezone": "Europe/Paris"}"#),
            ("call_2", "clock", r#"{}"#),
            ("call_3", "workspace_dir", r#"{"context": "user"#),
        ]),
        3 => Answer::Calls(vec![("call_1", "workspace_dir", "{}")]),
        _ => {
            let last = messages.last().map_or(&Value::Null, |message| &message["content"]);
            Answer::Words(format!("You work in {}.", last.as_str().unwrap_or("an unknown place")))
        }
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let toolbox = Toolbox::builder().build()?;
    let caller = Caller::new(AgentId::new("demo")?, SessionKey::new("example:5")?, "/srv/demo");
    let offer = toolbox.offer(caller).await;
    let mut messages = vec![json!({ "role": "user", "content": "Where do I work, and what time is it?" })];

    for _turn in 0..10 {
        match model(&messages, &offer.render(Dialect::OpenAi)) {
            Answer::Words(words) => {
                println!("assistant: {words}");
                return Ok(());
            }
            Answer::Calls(calls) => {
                let requests = calls.iter().map(|(id, name, args)| {
                    let mut request = Request::new(*name, Value::Null);
                    // The model's own id goes back to it; ours is what the ledger knows the call by.
                    request.model_id = Some((*id).into());
                    request.args = Arguments::Text((*args).to_owned());
                    request
                });
                let replies = toolbox.execute_batch(&offer, requests.collect()).await;
                for ((id, name, args), reply) in calls.iter().zip(&replies) {
                    println!("{name} {args}\n  {}", reply.model_text().replace('\n', "\n  "));
                    messages
                        .push(json!({ "role": "tool", "tool_call_id": id, "content": reply.model_text() }));
                }
            }
        }
    }
    anyhow::bail!("the model did not come to an end in 10 turns")
}
