//! Sessions of MCP clients over HTTP, ended by the server.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};

use crate::fixture::Fixture;

/// Sends a message; returns the whole answer.
fn post(address: SocketAddr, session: Option<&str>, message: &Value) -> String {
    let body = message.to_string();
    let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{session}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_ended_is_open_no_longer() {
    let fixture = Fixture::start().await;
    let address = fixture.address;
    let begin = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
        },
    });
    let begun = post(address, None, &begin);
    let named = begun.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    let id = named.unwrap_or_else(|| panic!("{begun}")).trim().to_owned();
    let told = post(address, Some(&id), &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    assert!(told.starts_with("HTTP/1.1 202"), "{told}");
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    let answered = post(address, Some(&id), &ping);
    assert!(answered.starts_with("HTTP/1.1 200"), "{answered}");
    fixture.sessions.end(&id).await;
    let late = post(address, Some(&id), &ping);
    assert!(late.starts_with("HTTP/1.1 404"), "{late}");
    // A session that is over already is no error.
    fixture.sessions.end(&id).await;
}
