//! A server on loopback, name resolution chosen by the test, and web access over them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use claw_core::port::{ExtractMode, FetchRequest, Surfer, WebAddress, WebHost as _, WebPage};
use claw_core::tool::ToolError;
use claw_core::{AgentId, SessionKey, TenantId};
use claw_web::{Lookup, SearchKeys, WebAccess, WebConfig, WebParts};
use secrecy::SecretString;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A server's answer to a request.
#[derive(Clone)]
pub(crate) enum Answer {
    /// These bytes, head included.
    Bytes(Vec<u8>),
    /// These bytes, then one every second, for ever.
    Drip(Vec<u8>),
    /// These bytes, then the same piece as long as somebody reads.
    Flood(Vec<u8>, Vec<u8>),
    /// Nothing, and the connection stays open.
    Hang,
}

impl Answer {
    pub(crate) fn page(content_type: &str, body: impl AsRef<[u8]>) -> Self {
        Self::with(200, &[("content-type", content_type)], body)
    }

    pub(crate) fn html(body: &str) -> Self {
        Self::page("text/html; charset=utf-8", body)
    }

    pub(crate) fn redirect(to: &str) -> Self {
        Self::with(302, &[("location", to)], "")
    }

    pub(crate) fn with(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut head =
            format!("HTTP/1.1 {status} Status\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        Self::Bytes([head.as_bytes(), b"\r\n", body].concat())
    }
}

type Route = Arc<dyn Fn(&str) -> Answer + Send + Sync>;

pub(crate) struct Server {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers by the request: head and body.
    pub(crate) async fn start(route: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (asked, route): (Arc<Mutex<Vec<String>>>, Route) = (Arc::default(), Arc::new(route));
        let heard = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&route), Arc::clone(&heard)));
            }
        });
        Self { port, asked }
    }

    pub(crate) async fn saying(body: &str) -> Self {
        let answer = Answer::html(body);
        Self::start(move |_| answer.clone()).await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn origin(&self) -> String {
        self.url("")
    }

    /// The requests so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, route: Route, asked: Arc<Mutex<Vec<String>>>) {
    let Some(request) = read(&mut stream).await else { return };
    asked.lock().unwrap().push(request.clone());
    match route(&request) {
        Answer::Bytes(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        Answer::Drip(bytes) => {
            let _ = stream.write_all(&bytes).await;
            while stream.write_all(b"x").await.is_ok() {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
        }
        Answer::Flood(bytes, piece) => {
            let _ = stream.write_all(&bytes).await;
            while stream.write_all(&piece).await.is_ok() {}
        }
        Answer::Hang => {
            let _ = stream.read(&mut [0; 1]).await;
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let mut some = [0; 4096];
        let count = stream.read(&mut some).await.ok()?;
        bytes.extend_from_slice(some.get(..count)?);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let of_line =
                |line: &str| line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok();
            if body.len() >= head.lines().find_map(of_line).unwrap_or(0) {
                return Some(text);
            }
        }
        if count == 0 {
            return None;
        }
    }
}

/// Keys by the name of their secret or variable.
#[derive(Default)]
pub(crate) struct FixedKeys(pub(crate) HashMap<&'static str, &'static str>);

#[async_trait]
impl SearchKeys for FixedKeys {
    async fn sealed(&self, tenant: &TenantId, name: &str) -> Result<Option<SecretString>, String> {
        let key = format!("{tenant}:{name}");
        Ok(self.0.get(key.as_str()).map(|value| SecretString::from(*value)))
    }

    async fn variable(&self, _: &TenantId, name: &str) -> Result<Option<SecretString>, String> {
        Ok(self.0.get(name).map(|value| SecretString::from(*value)))
    }
}

/// Each look-up of a name gives the next of its lists; the last one repeats.
pub(crate) fn names(answers: &[(&str, &[&[&str]])]) -> Lookup {
    let parse =
        |list: &&[&str]| -> Vec<IpAddr> { list.iter().map(|address| address.parse().unwrap()).collect() };
    let answers: HashMap<String, Vec<Vec<IpAddr>>> =
        answers.iter().map(|(name, lists)| ((*name).to_owned(), lists.iter().map(parse).collect())).collect();
    let counts: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    Arc::new(move |name: String| {
        let mut counts = counts.lock().unwrap();
        let count = counts.entry(name.clone()).or_default();
        let found = answers.get(&name).and_then(|lists| lists.get((*count).min(lists.len() - 1))).cloned();
        *count += 1;
        Box::pin(async move { found.ok_or_else(|| std::io::Error::other("no such name")) })
    })
}

/// Web access with this configuration, and without name resolution.
pub(crate) fn web(config: WebConfig) -> WebAccess {
    web_with(config, names(&[]))
}

pub(crate) fn web_with(config: WebConfig, lookup: Lookup) -> WebAccess {
    let careful = (TenantId::main(), AgentId::new("careful").unwrap());
    let agents = [(careful, vec!["127.0.0.1".to_owned()])].into();
    let parts = WebParts { agents, lookup, ..WebParts::new(Arc::new(FixedKeys::default())) };
    WebAccess::new(&config, parts).unwrap()
}

/// A configuration that allows these servers.
pub(crate) fn open(servers: &[&Server]) -> WebConfig {
    WebConfig {
        private_origins: servers.iter().map(|server| server.origin()).collect(),
        seconds: 5,
        ..WebConfig::default()
    }
}

pub(crate) fn surfer(agent: &str) -> Surfer {
    Surfer {
        tenant: TenantId::main(),
        agent: AgentId::new(agent).unwrap(),
        session: SessionKey::new("cli:ana").unwrap(),
    }
}

pub(crate) async fn fetch(web: &WebAccess, url: &str) -> Result<WebPage, ToolError> {
    fetch_as(web, &surfer("main"), url, &[]).await
}

pub(crate) async fn fetch_as(
    web: &WebAccess,
    surfer: &Surfer,
    url: &str,
    block: &[&str],
) -> Result<WebPage, ToolError> {
    let address = WebAddress::parse(url).map_err(|error| ToolError::invalid(error.reason))?;
    let block = block.iter().map(|host| (*host).to_owned()).collect();
    web.fetch(surfer, &FetchRequest { address, mode: ExtractMode::Markdown, block }).await
}
