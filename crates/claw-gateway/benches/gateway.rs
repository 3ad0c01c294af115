//! The gateway beside a bare handler: calls of a tool, many sessions at once, and what a start costs.
//!
//! Prints `name<TAB>value<TAB>unit` lines. Words after `--` choose what runs: `invoke`, `sessions`, `start`; `invoke` alone can
//! be narrowed by `memory`, `sqlite` or `durable`. Clients and servers share this process and its cores, so that ratios
//! compare like with like.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::post;
use axum::{Json, Router};
use claw_gateway::GatewayOptions;
use clawsmith::app::Setup;
use clawsmith::app::access::KeyRequest;
use clawsmith::config::Surroundings;
use clawsmith::store::{AccessRole, CallStore, KeyLimits};
use clawsmith::{Call, Group, MemoryStore, Meta, Output, Tool, ToolError, UserId};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Connections that call at once, and how long they do.
const CONNECTIONS: usize = 64;
const MEASURED: Duration = Duration::from_secs(4);
/// Sessions that stream at once, and the users that they belong to: one user has at most 16 open runs.
const SESSIONS: usize = 500;
const USERS: usize = 40;
/// The time after which a process that serves is idle.
const IDLE: Duration = Duration::from_secs(5);
/// Argument of the child that only serves.
const CHILD: &str = "serve-child";

const SCRIPT: &str = r#"
piece = 8

[[turn]]
do = [{ wait_ms = 20 }, { say = "An answer of some words, which comes in several pieces, as answers do." }]
"#;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if words.first().is_some_and(|word| word == CHILD) {
        return runtime().block_on(serve_child(Path::new(&words[1])));
    }
    let runs = |name: &str| words.is_empty() || words.iter().any(|word| word == name);
    if runs("start") {
        start();
    }
    if runs("invoke") {
        let narrowed: Vec<&str> =
            LEDGERS.into_iter().filter(|name| words.iter().any(|word| word == name)).collect();
        runtime().block_on(invoke(if narrowed.is_empty() { &LEDGERS } else { &narrowed }));
    }
    if runs("sessions") {
        runtime().block_on(sessions());
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap()
}

fn told(name: &str, value: f64, unit: &str) {
    println!("{name}\t{value:.2}\t{unit}");
}

/// A tool that does nothing.
struct Noop;

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoopArgs {
    /// Anything.
    note: String,
}

impl Tool for Noop {
    type Args = NoopArgs;
    const META: Meta = Meta::new("noop", Group::Automation).effects(&[]).about("Do nothing.");

    async fn run(&self, _: &Call, args: NoopArgs) -> Result<Output, ToolError> {
        std::hint::black_box(args.note);
        Ok(Output::text("done"))
    }
}

/// A gateway in this process.
struct Served {
    address: String,
    keys: Vec<String>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<()>,
}

async fn serve(home: &Path, store: &str, users: usize) -> Served {
    serve_with(home, store, users, None).await
}

/// With `calls`, calls are recorded there and not in the store.
async fn serve_with(home: &Path, store: &str, users: usize, calls: Option<Arc<dyn CallStore>>) -> Served {
    let config = home.join("clawsmith.toml");
    let text =
        format!("[store]\nurl = \"{store}\"\n\n[limits.rate]\ntotal = 0\nlight = 0\nnormal = 0\nheavy = 0\n");
    std::fs::write(&config, text).unwrap();
    let script = home.join("script.toml");
    std::fs::write(&script, SCRIPT).unwrap();
    let around = Surroundings { directory: home.to_owned(), variables: vec![("HOME".into(), home.into())] };
    let mut app = Setup::load(Some(&config), &around).unwrap().open().await.unwrap().with_tool(Noop);
    if let Some(calls) = calls {
        app = app.recording_calls_in(calls);
    }
    let mut keys = Vec::new();
    for user in 0..users {
        let request = KeyRequest {
            user: UserId::new(format!("user{user}")).unwrap(),
            role: AccessRole::Operator,
            label: String::new(),
            scopes: "tools:call sessions:read sessions:write".parse().unwrap(),
            lasts: None,
            limits: KeyLimits::default(),
        };
        keys.push(app.create_key(request).await.unwrap().0.reveal().to_string());
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let options = GatewayOptions { script: Some(script), ..GatewayOptions::default() };
    let task = tokio::spawn(async move {
        let stop = async {
            let _ = stopped.await;
        };
        claw_gateway::serve(app.clone(), listener, options, stop).await.unwrap();
        app.close().await;
    });
    Served { address, keys, stop: Some(stop), task }
}

impl Served {
    async fn end(mut self) {
        let _ = self.stop.take().unwrap().send(());
        self.task.await.unwrap();
    }
}

fn request(address: &str, path: &str, key: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Sends a request and reads the answer, on a connection that stays open; returns the status and the body's bytes.
async fn exchange(stream: &mut BufReader<TcpStream>, request: &[u8]) -> (u16, Vec<u8>) {
    stream.get_mut().write_all(request).await.unwrap();
    let (mut line, mut status, mut length, mut is_chunked) = (String::new(), 0, 0, false);
    loop {
        line.clear();
        assert!(stream.read_line(&mut line).await.unwrap() > 0, "the connection was closed");
        let text = line.trim_end().to_ascii_lowercase();
        if text.is_empty() {
            break;
        }
        if let Some(rest) = text.strip_prefix("http/1.1 ") {
            status = rest.get(..3).unwrap().parse().unwrap();
        }
        if let Some(rest) = text.strip_prefix("content-length: ") {
            length = rest.parse().unwrap();
        }
        is_chunked |= text == "transfer-encoding: chunked";
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    while is_chunked {
        line.clear();
        stream.read_line(&mut line).await.unwrap();
        let size = usize::from_str_radix(line.trim(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        stream.read_exact(&mut chunk).await.unwrap();
        body.extend_from_slice(&chunk[..size]);
        is_chunked = size > 0;
    }
    (status, body)
}

/// Requests in a second over so many connections.
async fn rate(address: &str, connections: usize, request: &[u8]) -> f64 {
    let count = Arc::new(AtomicUsize::new(0));
    let until = Instant::now() + MEASURED;
    let clients = (0..connections).map(|_| {
        let (address, request, count) = (address.to_owned(), request.to_vec(), Arc::clone(&count));
        tokio::spawn(async move {
            let stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            let mut stream = BufReader::new(stream);
            while Instant::now() < until {
                let (status, body) = exchange(&mut stream, &request).await;
                assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
                count.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    count.load(Ordering::Relaxed) as f64 / MEASURED.as_secs_f64()
}

/// A handler that checks a bearer token, reads JSON and writes JSON: the least that an API does.
async fn bare(headers: HeaderMap, Json(body): Json<Value>) -> Result<Json<Value>, StatusCode> {
    let key = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    match key.and_then(|key| key.strip_prefix("Bearer ")) {
        Some(key) if key.starts_with("claw_") => Ok(Json(json!({ "ok": true, "tool": body["tool"] }))),
        _ => Err(StatusCode::UNAUTHORIZED),
    }
}

/// The places in which calls are recorded.
const LEDGERS: [&str; 3] = ["memory", "sqlite", "durable"];

async fn invoke(ledgers: &[&str]) {
    let body = json!({ "tool": "noop", "args": { "note": "now" } });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = tokio::spawn(async move {
        axum::serve(listener, Router::new().route("/v1/tools/invoke", post(bare))).await.unwrap();
    });
    let plain = request(&address, "/v1/tools/invoke", "claw_x", &body);
    let bare = rate(&address, CONNECTIONS, &plain).await;
    serving.abort();
    told("gateway/bare axum handler, 64 connections", bare, "requests/s");
    for ledger in ledgers {
        let home = tempfile::tempdir().unwrap();
        let (name, store) = match *ledger {
            "memory" => ("in memory", "sqlite::memory:".to_owned()),
            "sqlite" => ("in SQLite in memory", "sqlite::memory:".to_owned()),
            _ => ("durable", format!("sqlite:{}", home.path().join("bench.db").display())),
        };
        let calls = (*ledger == "memory").then(|| Arc::new(MemoryStore::new()) as Arc<dyn CallStore>);
        let served = serve_with(home.path(), &store, 1, calls).await;
        let called = request(&served.address, "/v1/tools/invoke", &served.keys[0], &body);
        let many = rate(&served.address, CONNECTIONS, &called).await;
        let one = rate(&served.address, 1, &called).await;
        served.end().await;
        told(&format!("gateway/invoke, ledger {name}, 64 connections"), many, "requests/s");
        told(&format!("gateway/invoke, ledger {name}, 1 connection"), one, "requests/s");
        told(&format!("gateway/invoke, ledger {name}, 64 beside 1"), many / one, "x");
        told(&format!("gateway/invoke, ledger {name}, beside the bare handler"), many / bare, "x");
    }
}

async fn sessions() {
    let home = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", home.path().join("bench.db").display());
    let served = serve(home.path(), &store, USERS).await;
    let (began, errors) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let body = json!({
        "model": "agent:default", "stream": true, "messages": [{ "role": "user", "content": "hello" }],
    });
    let clients = (0..SESSIONS).map(|session| {
        let key = &served.keys[session % USERS];
        let asked = request(&served.address, "/v1/chat/completions", key, &body);
        let (address, errors) = (served.address.clone(), Arc::clone(&errors));
        tokio::spawn(async move {
            let began = Instant::now();
            let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
            let (status, body) = exchange(&mut stream, &asked).await;
            let body = String::from_utf8_lossy(&body);
            if status != 200 || !body.contains("\"finish_reason\":\"stop\"") {
                errors.fetch_add(1, Ordering::Relaxed);
            }
            began.elapsed()
        })
    });
    let mut times = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        times.push(client.await.unwrap());
    }
    times.sort();
    told("gateway/500 sessions at once, all", began.elapsed().as_secs_f64() * 1e3, "ms");
    told("gateway/500 sessions at once, median", times[SESSIONS / 2].as_secs_f64() * 1e3, "ms");
    told("gateway/500 sessions at once, errors", errors.load(Ordering::Relaxed) as f64, "errors");
    served.end().await;
}

/// Serves until its standard input ends.
async fn serve_child(home: &Path) {
    let served = serve(home, &format!("sqlite:{}", home.join("bench.db").display()), 0).await;
    println!("{}", served.address);
    let mut nothing = [0; 1];
    let _ = tokio::io::stdin().read(&mut nothing).await;
    served.end().await;
}

/// The program `clawsmith` of the same build; `None` if it was not built.
fn program() -> Option<PathBuf> {
    // `target/release/deps/gateway-…` is this benchmark.
    let program = std::env::current_exe().ok()?.parent()?.parent()?.join("clawsmith");
    match program.is_file() {
        true => Some(program),
        false => {
            let at = program.display();
            eprintln!(
                "gateway: `{at}` is not there; build it with `cargo build --release`. This process serves instead"
            );
            None
        }
    }
}

/// A process that serves: from its start to ready, its memory when idle, and its size.
fn start() {
    let (home, program) = (tempfile::tempdir().unwrap(), program());
    // Figures of the benchmark itself are not those of the program.
    let of = if program.is_some() { "" } else { " (not of `clawsmith serve`)" };
    let mut times = Vec::new();
    let mut served = None;
    for _ in 0..7 {
        drop(served.take());
        let began = Instant::now();
        let child = match &program {
            Some(program) => serving(program, home.path()),
            None => serving_child(home.path()),
        };
        ready(&child.address);
        times.push(began.elapsed());
        served = Some(child);
    }
    times.sort();
    told(&format!("gateway/start to ready{of}"), times[times.len() / 2].as_secs_f64() * 1e3, "ms");
    // What a start leaves behind has settled by then.
    std::thread::sleep(IDLE);
    let served = served.unwrap();
    told(&format!("gateway/idle memory, resident{of}"), served.memory("VmRSS"), "MiB");
    // The rest is the program's own code, which the kernel maps from its file.
    told(&format!("gateway/idle memory, its own{of}"), served.memory("RssAnon"), "MiB");
    if let Some(program) = &program {
        let bytes = std::fs::metadata(program).unwrap().len();
        told("gateway/size of the program", mebibytes(bytes), "MiB");
    }
    let image = Command::new("docker")
        .args(["image", "inspect", "--format", "{{.Size}}", "clawsmith:latest"])
        .stderr(Stdio::null())
        .output();
    let bytes = image.ok().and_then(|said| String::from_utf8_lossy(&said.stdout).trim().parse().ok());
    match bytes {
        Some(bytes) => told("gateway/size of the image", mebibytes(bytes), "MiB"),
        None => {
            eprintln!("gateway: there is no image `clawsmith:latest`; `scripts/build-image.sh` builds it");
        }
    }
}

fn mebibytes(bytes: u64) -> f64 {
    let kibibytes = u32::try_from(bytes / 1024).unwrap_or(u32::MAX);
    f64::from(kibibytes) / 1024.0
}

/// A process that serves, until this is dropped.
struct Child {
    process: std::process::Child,
    address: String,
}

impl Child {
    /// Takes the first line that the process prints, which says where it listens.
    fn of(command: &mut Command, address: impl Fn(&str) -> String) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let stdout = process.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
        Self { process, address: address(line.trim()) }
    }

    /// A number of the process's memory, in MiB.
    fn memory(&self, field: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let memory = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        memory.trim_matches(':').trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `clawsmith serve` in a home of its own.
fn serving(program: &Path, home: &Path) -> Child {
    let mut command = Command::new(program);
    command.args(["serve", "--json", "--listen", "127.0.0.1:0"]).current_dir(home);
    command.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin");
    Child::of(&mut command, |line| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["listening"].as_str().unwrap().trim_start_matches("http://").to_owned()
    })
}

/// This benchmark as a process that only serves.
fn serving_child(home: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    Child::of(command.args([CHILD, home.to_str().unwrap()]), str::to_owned)
}

/// Waits until `/ready` says so.
fn ready(address: &str) {
    use std::io::{Read as _, Write as _};
    loop {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let asked = format!("GET /ready HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(asked.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        if answer.starts_with("HTTP/1.1 200") {
            return;
        }
    }
}
