//! The end of a login at this machine: the browser is sent back to a port that only this machine reaches.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::app::Error;

/// The longest head of a request that is read, in bytes.
const LONGEST_HEAD: usize = 16 * 1024;
/// The longest a browser may take to send a request.
const LONGEST_REQUEST: Duration = Duration::from_secs(10);

/// Waits for a browser that comes back from a login.
#[derive(Debug)]
pub struct LoginCallback {
    listener: TcpListener,
    port: u16,
}

impl LoginCallback {
    /// Opens a free port of this machine.
    pub async fn open() -> Result<Self, Error> {
        let unopened = |error| Error::failed("no port could be opened").because(error);
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(unopened)?;
        let port = listener.local_addr().map_err(unopened)?.port();
        Ok(Self { listener, port })
    }

    /// The address that the server sends the browser back to.
    pub fn redirect(&self) -> String {
        format!("http://127.0.0.1:{}/callback", self.port)
    }

    /// Waits for the end of the login that began at `url`; returns the address that the browser was sent to.
    pub async fn wait(&self, url: &str) -> String {
        loop {
            let Ok((stream, _)) = self.listener.accept().await else { continue };
            if let Ok(Some(callback)) = timeout(LONGEST_REQUEST, answer(stream)).await
                && state_of(&callback) == state_of(url)
            {
                return callback;
            }
        }
    }
}

/// The state in an address, by which a login knows its own end.
fn state_of(address: &str) -> &str {
    let query = address.split_once('?').map_or("", |(_, query)| query);
    query.split('&').find_map(|pair| pair.strip_prefix("state=")).unwrap_or_default()
}

/// Answers one request of a browser; returns its address if it ends the login.
async fn answer(mut stream: TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut piece = [0; 1024];
        let read = stream.read(&mut piece).await.ok()?;
        head.extend_from_slice(&piece[..read]);
        if read == 0 || head.len() > LONGEST_HEAD {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.lines().next()?.strip_prefix("GET ")?.split(' ').next()?;
    let ends = path.starts_with("/callback?");
    let (status, words) = match ends {
        true => ("200 OK", "You can close this page and go back to the terminal."),
        false => ("404 Not Found", "There is nothing here."),
    };
    let page = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{words}",
        words.len()
    );
    let _ = stream.write_all(page.as_bytes()).await;
    let _ = stream.shutdown().await;
    ends.then(|| format!("http://127.0.0.1{path}"))
}
