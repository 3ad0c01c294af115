//! A minimal HTTP server that can misbehave on purpose.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A request.
pub(super) struct Received {
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// A connection, which carries one request.
pub(super) struct Connection(TcpStream);

impl Connection {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }

    /// Receives the request; `None` if there is none.
    pub(super) async fn receive(&mut self) -> io::Result<Option<Received>> {
        let mut bytes = Vec::new();
        loop {
            let mut some = [0; 16 * 1024];
            let count = self.0.read(&mut some).await?;
            bytes.extend_from_slice(&some[..count]);
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
                let mut lines = head.split("\r\n");
                let path =
                    lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().to_owned();
                let headers = lines.filter_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    Some((name.to_lowercase(), value.trim().to_owned()))
                });
                let headers: Vec<_> = headers.collect();
                let length = headers.iter().find(|(name, _)| name == "content-length");
                let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
                let body = &bytes[end + 4..];
                if body.len() >= length {
                    return Ok(Some(Received { path, headers, body: body[..length].to_vec() }));
                }
            }
            if count == 0 {
                return Ok(None);
            }
        }
    }

    /// A whole answer.
    pub(super) async fn json(
        &mut self,
        status: u16,
        headers: &[(&str, String)],
        body: &str,
    ) -> io::Result<()> {
        self.answer(status, "application/json", headers, body).await
    }

    /// A whole answer of any type.
    pub(super) async fn answer(
        &mut self,
        status: u16,
        kind: &str,
        headers: &[(&str, String)],
        body: &str,
    ) -> io::Result<()> {
        let mut head = format!(
            "HTTP/1.1 {status} Status\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n",
            body.len()
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.0.write_all(format!("{head}\r\n{body}").as_bytes()).await?;
        self.0.shutdown().await
    }

    /// The head of a stream.
    pub(super) async fn begin(&mut self) -> io::Result<()> {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
        self.0.write_all(head.as_bytes()).await
    }

    /// A piece of a stream.
    pub(super) async fn send(&mut self, bytes: &[u8], byte_by_byte: bool) -> io::Result<()> {
        let pieces = bytes.chunks(if byte_by_byte { 1 } else { bytes.len().max(1) });
        for piece in pieces {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            self.0.write_all(&chunk).await?;
        }
        Ok(())
    }

    pub(super) async fn end(&mut self) -> io::Result<()> {
        self.0.write_all(b"0\r\n\r\n").await?;
        self.0.shutdown().await
    }

    /// Waits until the client disconnects.
    pub(super) async fn hang(&mut self) -> io::Result<()> {
        while self.0.read(&mut [0; 64]).await? > 0 {}
        Ok(())
    }

    pub(super) fn reset(&mut self) -> io::Result<()> {
        self.0.set_zero_linger()
    }

    /// A success that is no answer: the page of some proxy.
    pub(super) async fn garbage(&mut self) -> io::Result<()> {
        let page = "data: <html>\n\n<h1>It works!</h1>\0\u{1}\n";
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n", page.len());
        self.0.write_all(format!("{head}{page}").as_bytes()).await?;
        self.0.shutdown().await
    }
}
