//! An agent with a model: the application asks a server that speaks OpenAI's protocol, and the agent calls a tool.
//!
//! Needs the feature `app`. The server is a few lines that play two answers, so that the example runs anywhere; with a real
//! one, only `base_url`, `model` and a key change.

use clawsmith::app::{Followed, SessionsOptions, Setup, private_lane};
use clawsmith::config::Surroundings;
use clawsmith::message::Part;
use clawsmith::port::Owner;
use clawsmith::store::{RunEvent, SessionEventBody, Voice};
use clawsmith::{AgentId, Asking, Caller, SessionKey};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Answers one request: first with a call, then with words.
async fn answer(stream: &mut TcpStream) -> anyhow::Result<()> {
    let mut request = Vec::new();
    let body = loop {
        let mut piece = [0; 8192];
        let count = stream.read(&mut piece).await?;
        request.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if count == 0 || length.is_none_or(|length: usize| body.len() >= length) {
            break body.to_owned();
        }
    };
    let asked: Value = serde_json::from_str(&body)?;
    let has_result =
        asked["messages"].as_array().is_some_and(|all| all.iter().any(|one| one["role"] == "tool"));
    let (delta, reason) = match has_result {
        false => {
            let function = json!({ "name": "workspace_dir", "arguments": "{}" });
            let call = json!({ "index": 0, "id": "call_1", "type": "function", "function": function });
            (json!({ "role": "assistant", "tool_calls": [call] }), "tool_calls")
        }
        true => (json!({ "role": "assistant", "content": "I looked." }), "stop"),
    };
    let chunk = |delta: Value, reason: Option<&str>| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
        format!("data: {}\n\n", json!({ "id": "1", "object": "chat.completion.chunk", "choices": [choice] }))
    };
    let events = chunk(delta, None) + &chunk(json!({}), Some(reason)) + "data: [DONE]\n\n";
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(events.as_bytes()).await?;
    Ok(stream.shutdown().await?)
}

#[tokio::main]
pub(crate) async fn main() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            if let Err(error) = answer(&mut stream).await {
                eprintln!("the server: {error}");
            }
        }
    });

    // A home of its own, so that the example leaves nothing behind. Yours is `Surroundings::of_process()`.
    let home = tempfile::tempdir()?;
    let config = format!(
        "[models]\nprovider = \"local\"\nmodel = \"small\"\n\n[models.providers.local]\nkind = \"openai\"\n\
         base_url = \"http://{address}/v1\"\n"
    );
    let file = home.path().join("agent.toml");
    std::fs::write(&file, config)?;
    let variables = vec![("HOME".into(), home.path().into())];
    let around = Surroundings { directory: home.path().to_owned(), variables };
    let app = Setup::load(Some(&file), &around)?.open().await?;
    let session = SessionKey::new("example:10")?;
    let caller = Caller::new(AgentId::new("default")?, session.clone(), home.path().canonicalize()?);

    let lanes = vec![private_lane(&session)];
    let sessions = app.sessions(SessionsOptions { lanes, ..SessionsOptions::default() }).await?;
    let mut follower = sessions.follow(Owner { tenant: caller.tenant.clone(), session }, None).await?;
    let run = sessions.send(&caller, vec![Part::text("Where are you?")], Asking::Impossible).await?;
    let (mut said, mut called) = (String::new(), Vec::new());
    loop {
        match follower.next().await? {
            Followed::Piece(piece) if piece.voice == Voice::Text => said.push_str(&piece.text),
            Followed::Piece(_) | Followed::Lagged => {}
            Followed::Event(event) => match event.what {
                SessionEventBody::Tool { tool, .. } => called.push(tool),
                SessionEventBody::Run { run: of, state: RunEvent::Ended { end } } if of == run => {
                    println!("{said}\n[{}]", end.name());
                    break;
                }
                _ => {}
            },
        }
    }
    anyhow::ensure!(
        said.contains("I looked.") && called.iter().any(|tool| tool == "workspace_dir"),
        "{said}"
    );
    sessions.end(None).await?;
    app.close().await;
    Ok(())
}
