//! A gateway under load for long: what it holds at the end is what it held a quarter of the way. Part of `make soak`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::gateway::{ECHO, Gateway, request};
use crate::harness::Home;

const CLIENTS: usize = 8;
/// The growth that is no leak, in hundredths.
const SLACK: u64 = 5;

const UNLIMITED: &str = "[limits.rate]\ntotal = 0\nlight = 0\nnormal = 0\nheavy = 0\n";

/// Resources that the gateway holds.
#[derive(Debug)]
struct Held {
    memory: u64,
    files: u64,
    tasks: u64,
}

impl Held {
    /// Looks for half a minute after the last request: the least of all looks, since connections take their time to close.
    fn look(gateway: &Gateway<'_>, key: &str) -> Self {
        let read = |text: &str, name: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("clawsmith_{name} ")));
            line.unwrap_or_else(|| panic!("{name}: {text}")).trim().parse().unwrap()
        };
        let mut least = Self { memory: u64::MAX, files: u64::MAX, tasks: u64::MAX };
        for _ in 0..120 {
            let text = gateway.get("/metrics", key).check(200, "clawsmith_tasks").body;
            least.memory = least.memory.min(read(&text, "resident_memory_bytes"));
            least.files = least.files.min(read(&text, "open_files"));
            least.tasks = least.tasks.min(read(&text, "tasks"));
            std::thread::sleep(Duration::from_millis(250));
        }
        least
    }
}

/// One round of a client: a question, a second one in the same session, its events, a call.
fn round(gateway: &Gateway<'_>, key: &str) {
    let first = gateway.chat(key, "list the files", None).check(200, "So there are some");
    let session = first.header("x-clawsmith-session").unwrap().to_owned();
    gateway.chat(key, "two", Some(&session)).check(200, "You said: two");
    let mut stream = gateway.connect();
    let what = format!("GET /v1/sessions/{session}/events?after=0");
    stream.write_all(request(&gateway.address, &what, key, &[], "").as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("id: 4")));
    gateway.invoke(key, &json!({ "tool": "datetime" })).check(200, "\"ok\":true");
    gateway.get("/v1/tools", key).check(200, "read_file");
}

/// Puts the gateway under load for so long; returns how many rounds there were. Every tenth second it reloads.
fn load(home: &Home, gateway: &Gateway<'_>, keys: &[String], time: Duration) -> u64 {
    let (end, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    let deadline = Instant::now() + time;
    std::thread::scope(|scope| {
        for key in keys {
            scope.spawn(|| {
                while !end.load(Ordering::Relaxed) {
                    round(gateway, key);
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut number = 0;
        while Instant::now() < deadline {
            std::thread::sleep(Duration::from_secs(10).min(deadline - Instant::now()));
            number += 1;
            home.configure(&format!("{UNLIMITED}[agents.scribe]\nabout = \"Number {number}.\"\n"));
        }
        end.store(true, Ordering::Relaxed);
    });
    rounds.load(Ordering::Relaxed)
}

#[test]
fn nothing_grows_under_load() {
    let seconds = std::env::var("CLAWSMITH_SOAK_SECONDS").ok().and_then(|text| text.parse::<u64>().ok());
    let Some(seconds) = seconds else {
        eprintln!("skipped: CLAWSMITH_SOAK_SECONDS says how long; `make soak` sets it");
        return;
    };
    let home = Home::with_config(UNLIMITED);
    let gateway = Gateway::start(&home, ECHO);
    let keys: Vec<String> = (0..CLIENTS).map(|client| gateway.key(&format!("u{client}"), &[])).collect();
    let reader = gateway.key("root", &["--scope", "metrics:read"]);
    let quarter = Duration::from_secs(seconds) / 4;
    let mut rounds = load(&home, &gateway, &keys, quarter);
    let early = Held::look(&gateway, &reader);
    rounds += load(&home, &gateway, &keys, quarter * 3);
    let late = Held::look(&gateway, &reader);
    println!("{seconds} s, {rounds} rounds: {early:?}, then {late:?}");
    for (name, early, late) in [
        ("memory", early.memory, late.memory),
        ("files", early.files, late.files),
        ("tasks", early.tasks, late.tasks),
    ] {
        assert!(late * 100 <= early * (100 + SLACK), "{name} grew from {early} to {late}");
    }
}
