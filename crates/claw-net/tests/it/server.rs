//! A server on loopback that answers with given bytes and records the requests.

use std::sync::{Arc, Mutex};

use claw_net::{Client, Method, Options, Origin, Request, Url};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The server's action on a connection after it has read the request.
#[derive(Clone)]
pub(crate) enum Then {
    /// Sends these bytes and closes.
    Answer(String),
    /// Sends these bytes and keeps the connection open.
    AnswerAndHang(String),
    /// Sends the first bytes, then the others again and again, as long as somebody reads.
    Flood(String, String),
    /// Sends nothing and keeps the connection open.
    Hang,
    /// Sends these bytes and resets the connection.
    Reset(String),
}

pub(crate) struct Server {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server that answers every connection alike.
    pub(crate) async fn start(then: Then) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, then.clone(), heard.clone()));
            }
        });
        Self { port, asked }
    }

    pub(crate) async fn redirecting(status: u16, to: &str) -> Self {
        let head = format!("HTTP/1.1 {status} Moved\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
        Self::start(Then::Answer(head)).await
    }

    pub(crate) async fn saying(body: &str) -> Self {
        Self::start(Then::Answer(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())))
            .await
    }

    pub(crate) fn url(&self) -> Url {
        Url::parse(&format!("http://127.0.0.1:{}/start", self.port)).unwrap()
    }

    pub(crate) fn origin(&self) -> Origin {
        Origin::of(&self.url()).unwrap()
    }

    /// Returns the requests so far, heads and bodies, in lower case.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, then: Then, asked: Arc<Mutex<Vec<String>>>) {
    let Some(request) = read(&mut stream).await else { return };
    asked.lock().unwrap().push(request);
    match then {
        Then::Answer(bytes) => {
            let _ = stream.write_all(bytes.as_bytes()).await;
        }
        Then::AnswerAndHang(bytes) => {
            let _ = stream.write_all(bytes.as_bytes()).await;
            let _ = stream.read(&mut [0; 1]).await;
        }
        Then::Flood(head, bytes) => {
            let _ = stream.write_all(head.as_bytes()).await;
            while stream.write_all(bytes.as_bytes()).await.is_ok() {}
        }
        Then::Hang => {
            let _ = stream.read(&mut [0; 1]).await;
        }
        Then::Reset(bytes) => {
            let _ = stream.write_all(bytes.as_bytes()).await;
            let _ = stream.set_zero_linger();
        }
    }
}

/// Reads the head and the body, which is as long as the head says.
async fn read(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let mut some = [0; 4096];
        let count = stream.read(&mut some).await.ok()?;
        bytes.extend_from_slice(&some[..count]);
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        if count == 0 {
            return None;
        }
    }
}

/// Makes a client with these origins named.
pub(crate) fn client(named: &[&Server]) -> Client {
    let named = named.iter().map(|server| server.origin()).collect();
    Client::new(Options { named, ..Options::default() })
}

pub(crate) fn get(url: &str) -> Request {
    Request::new(Method::GET, Url::parse(url).unwrap())
}
