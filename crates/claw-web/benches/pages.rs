//! A page of 1 MB from bytes to Markdown, compared with the bare library; and 100 concurrent fetches from a
//! slow server.
//!
//! Prints `name<TAB>value<TAB>unit` lines; times of pages are the best of several rounds.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use claw_core::port::{ExtractMode, FetchRequest, Surfer, WebAddress, WebHost as _};
use claw_core::{AgentId, SessionKey, TenantId};
use claw_web::{SearchKeys, Source, WebAccess, WebConfig, WebParts, extract};
use dom_smoothie::{Config, Readability, TextMode};
use secrecy::SecretString;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const ROUNDS: usize = 15;
const FETCHES: usize = 100;
/// The server's delay for each page.
const SLOW: Duration = Duration::from_millis(500);

fn page() -> String {
    let words = "The river has carried boats since the town was founded, and people still meet at its bank, to talk, to eat \
                 together and to watch the water go by. ";
    let section = |at: usize| {
        format!(
            "<section class='part p{at}' data-at={at}><h2 id=h{at}>Part {at}</h2><p>{words}<a href='/page/{at}'>Another page</a>. {words}</p>\
             <ul class=list><li>{words}</li><li><b>one</b> and <i>two</i></li></ul><p style='margin:0'>{words}</p>\
             <table><tr><th>Name</th><th>Value</th></tr><tr><td>a</td><td>{at}</td></tr></table><pre><code>let x = {at};</code></pre></section>"
        )
    };
    let mut body = String::new();
    for at in 0.. {
        if body.len() > 1_000_000 {
            break;
        }
        body.push_str(&section(at));
    }
    format!(
        "<!doctype html><html><head><title>Boats</title><style>.ad{{display:none}} .note{{color:#333}}</style></head><body><nav><a href=/>Home</a>\
         </nav><main><article><h1>Boats</h1>{body}</article></main><footer>Footer</footer></body></html>"
    )
}

fn best(mut work: impl FnMut()) -> f64 {
    let round = |_| {
        let begun = Instant::now();
        work();
        begun.elapsed().as_secs_f64() * 1e3
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

fn pages() {
    let html = page();
    let url = "https://site.example/page";
    let source = Source {
        url: url.parse().unwrap(),
        content_type: Some("text/html; charset=utf-8".into()),
        body: html.clone().into_bytes(),
    };
    let bare = best(|| {
        let config = Config { text_mode: TextMode::Markdown, ..Config::default() };
        let text = String::from_utf8_lossy(&source.body);
        black_box(Readability::new(&*text, Some(url), Some(config)).unwrap().parse().unwrap());
    });
    let ours = best(|| {
        black_box(extract(&source, ExtractMode::Markdown).unwrap());
    });
    println!("page of {} KB to Markdown\t{ours:.1}\tms", html.len() / 1000);
    println!("the same with the bare library\t{bare:.1}\tms");
    println!("ours against the bare library\t{:.2}\tx", ours / bare);
}

struct NoKeys;

#[async_trait]
impl SearchKeys for NoKeys {
    async fn sealed(&self, _: &TenantId, _: &str) -> Result<Option<SecretString>, String> {
        Ok(None)
    }

    async fn variable(&self, _: &TenantId, _: &str) -> Result<Option<SecretString>, String> {
        Ok(None)
    }
}

async fn slow_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 4096]).await;
                tokio::time::sleep(SLOW).await;
                let body =
                    "<article><p>The river has carried boats since the town was founded.</p></article>";
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            });
        }
    });
    port
}

async fn fetches() {
    let port = slow_server().await;
    let config =
        WebConfig { private_origins: vec![format!("http://127.0.0.1:{port}")], ..WebConfig::default() };
    let web = Arc::new(WebAccess::new(&config, WebParts::new(Arc::new(NoKeys))).unwrap());
    let surfer = Surfer {
        tenant: TenantId::main(),
        agent: AgentId::new("main").unwrap(),
        session: SessionKey::new("cli:bench").unwrap(),
    };
    let begun = Instant::now();
    let fetching: Vec<_> = (0..FETCHES)
        .map(|at| {
            let (web, surfer) = (Arc::clone(&web), surfer.clone());
            tokio::spawn(async move {
                let address = WebAddress::parse(&format!("http://127.0.0.1:{port}/{at}")).unwrap();
                let request = FetchRequest { address, mode: ExtractMode::Markdown, block: Vec::new() };
                web.fetch(&surfer, &request).await.unwrap();
                begun.elapsed().as_secs_f64() * 1e3
            })
        })
        .collect();
    let mut times = Vec::new();
    for fetch in fetching {
        times.push(fetch.await.unwrap());
    }
    let slowest = times.iter().copied().fold(0.0, f64::max);
    println!(
        "{FETCHES} fetches at once, each served after {} ms: the last\t{slowest:.0}\tms",
        SLOW.as_millis()
    );
}

fn main() {
    pages();
    tokio::runtime::Runtime::new().unwrap().block_on(fetches());
}
