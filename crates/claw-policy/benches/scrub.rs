//! Throughput of the scrubber on 64 MiB of made-up logs and code in pieces of 16 KiB, one thread.
//!
//! Prints lines of `name<TAB>value<TAB>unit`; each time is the best of several.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    borrow::Cow,
    hint::black_box,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use claw_policy::scrub::{Scrubber, Value};
use regex::bytes::Regex;

const SIZE: usize = 64 << 20;
const PIECE: usize = 16 << 10;
const PART: usize = 1 << 20;
const ROUNDS: usize = 7;

/// Counts the bytes in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[expect(unsafe_code, reason = "an allocator is unsafe to implement; this one only counts")]
// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the same contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn main() {
    let start = Instant::now();
    let scrubber = Scrubber::new();
    black_box(scrubber.scrub("password=hunter2hunter2"));
    print("first_use", micros(start.elapsed()), "us");

    let planted = corpus(Secrets::Planted);
    let clean = corpus(Secrets::None);
    print("corpus", SIZE as f64 / 1e6, "MB");

    let base = best(&planted, |part| scrub_all(&scrubber, part));
    print("scrub", rate(base), "MB/s");
    print("scrub_clean", rate(best(&clean, |part| scrub_all(&scrubber, part))), "MB/s");
    print("scrub_stream", rate(best(&planted, |part| stream_all(&scrubber, part))), "MB/s");

    let before = IN_USE.load(Ordering::Relaxed);
    let start = Instant::now();
    let compiled = Scrubber::compile(values(1000));
    let took = start.elapsed();
    let Ok(thousand) = compiled else { return print("compile_failed", 1.0, "") };
    print("values_1000_compile", micros(took) / 1e3, "ms");
    print("values_1000_memory", (IN_USE.load(Ordering::Relaxed) - before) as f64 / 1e6, "MB");
    let with_values = best(&planted, |part| scrub_all(&thousand, part));
    print("values_1000", rate(with_values), "MB/s");
    print("values_1000_ratio", with_values.as_secs_f64() / base.as_secs_f64(), "x");
    let layered = best(b"one", |_| thousand.with_values(values(5)).map_or(0, |scrubber| scrubber.memory()));
    print("layer_of_5_compile", micros(layered), "us");

    let mut copy = vec![0_u8; PIECE];
    let copied = best(&planted, |part| {
        part.chunks(PIECE).for_each(|piece| black_box(&mut copy[..piece.len()]).copy_from_slice(piece));
        0
    });
    print("memory_copy", rate(copied), "MB/s");

    // All patterns one after the other, for comparison; a part of the corpus is enough.
    let patterns = patterns();
    let part = &planted[..SIZE / 8];
    let naive = best(part, |part| part.chunks(PIECE).map(|piece| replace_all(&patterns, piece)).sum());
    print("replace_all_per_pattern", rate(naive) / 8.0, "MB/s");
    print("faster_than_replace_all", naive.as_secs_f64() * 8.0 / base.as_secs_f64(), "x");
}

fn print(name: &str, value: f64, unit: &str) {
    println!("{name}\t{value:.2}\t{unit}");
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn rate(time: Duration) -> f64 {
    SIZE as f64 / 1e6 / time.as_secs_f64()
}

/// The time of `work` on every part of `text`, each the best of several rounds.
///
/// Parts are small, so that a busy machine disturbs few of them.
fn best(text: &[u8], mut work: impl FnMut(&[u8]) -> usize) -> Duration {
    let mut times = vec![Duration::MAX; text.len().div_ceil(PART)];
    for _ in 0..ROUNDS {
        for (part, best) in text.chunks(PART).zip(&mut times) {
            let start = Instant::now();
            black_box(work(part));
            *best = start.elapsed().min(*best);
        }
    }
    times.iter().sum()
}

fn scrub_all(scrubber: &Scrubber, text: &[u8]) -> usize {
    let owned = |piece: &[u8]| usize::from(matches!(scrubber.scrub_bytes(piece), Cow::Owned(_)));
    text.chunks(PIECE).map(owned).sum()
}

fn stream_all(scrubber: &Scrubber, text: &[u8]) -> usize {
    let mut stream = scrubber.stream();
    let mut out = Vec::with_capacity(2 * PIECE);
    for piece in text.chunks(PIECE) {
        out.clear();
        stream.push(piece, &mut out);
    }
    stream.finish(&mut out);
    out.len()
}

fn values(count: u64) -> Vec<Value> {
    let mut random = Random(count);
    (0..count).map(|_| Value::new(format!("{:012x}-{:08x}", random.next(), random.next()), "value")).collect()
}

/// The patterns of the seed document, one regex each.
fn patterns() -> Vec<Regex> {
    [
        r"sk-[a-zA-Z0-9]{20,}",
        r"sk-ant-[a-zA-Z0-9-]{20,}",
        r"ghp_[a-zA-Z0-9]{36}",
        r"gho_[a-zA-Z0-9]{36}",
        r"ghu_[a-zA-Z0-9]{36}",
        r"ghs_[a-zA-Z0-9]{36}",
        r"ghr_[a-zA-Z0-9]{36}",
        r"AKIA[A-Z0-9]{16}",
        r#"(?i)(api[_-]?key|token|secret|password|bearer|authorization)\s*[:=]\s*["']?\S{8,}["']?"#,
        r"(?i)(postgres|postgresql|mysql|mongodb|redis|amqp)://\S+",
        r"(?i)[A-Z0-9_]*(KEY|SECRET|CREDENTIAL|PRIVATE)[A-Z0-9_]*\s*=\s*\S{8,}",
        r"(?i)(DSN|DATABASE_URL|REDIS_URL|MONGO_URI)\s*=\s*\S+",
        r"(?i)VIRTUAL_[A-Z0-9_]+\s*=\s*\S+",
        r"[a-fA-F0-9]{64,}",
    ]
    .iter()
    .filter_map(|pattern| Regex::new(&format!("(?-u){pattern}")).ok())
    .collect()
}

fn replace_all(patterns: &[Regex], piece: &[u8]) -> usize {
    let mut text = Cow::Borrowed(piece);
    for pattern in patterns {
        if let Cow::Owned(replaced) = pattern.replace_all(&text, &b"[REDACTED]"[..]) {
            text = Cow::Owned(replaced);
        }
    }
    text.len()
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 29
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next()).unwrap_or(0) % limit
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Secrets {
    None,
    /// About 0.01 % of the bytes.
    Planted,
}

/// Half logs, half code, made of templates whose `#` are numbers, `~` words and `%` hex.
fn corpus(secrets: Secrets) -> Vec<u8> {
    let mut random = Random(7);
    let mut text = Vec::with_capacity(SIZE + 4096);
    let mut planted = 0;
    let mut code = false;
    while text.len() < SIZE {
        // A file or a stretch of a log at a time.
        let until = text.len() + 4096 + random.below(12_288);
        code = !code;
        while text.len() < until {
            if secrets == Secrets::Planted && planted * 10_000 < text.len() {
                let line = SECRETS[random.below(SECRETS.len())];
                planted += line.len();
                fill(&mut text, line, &mut random);
            }
            let lines = if code { CODE } else { LOGS };
            fill(&mut text, lines[random.below(lines.len())], &mut random);
        }
    }
    text.truncate(SIZE);
    text
}

fn fill(text: &mut Vec<u8>, template: &str, random: &mut Random) {
    const WORDS: &[&str] = &[
        "request", "user", "cache", "handler", "item", "queue", "worker", "config", "session", "index",
        "value", "result", "buffer", "stream", "client", "record", "payload", "token", "key", "parser",
        "module", "message", "response", "backend", "table", "column", "filter", "metric", "thread",
        "socket",
    ];
    for byte in template.bytes() {
        match byte {
            b'#' => text.extend(random.below(10_000).to_string().bytes()),
            b'~' => text.extend(WORDS[random.below(WORDS.len())].bytes()),
            b'%' => text.extend(format!("{:08x}", random.next() & 0xffff_ffff).bytes()),
            byte => text.push(byte),
        }
    }
    text.push(b'\n');
}

const LOGS: &[&str] = &[
    "2024-05-01T12:34:56.#Z  INFO http::server: request finished method=GET path=/api/v1/~/# status=200 latency_ms=#",
    "2024-05-01T12:34:57.#Z  WARN pool: ~ took # ms, retrying (attempt # of 5) trace_id=%%%%",
    "2024-05-01T12:35:01.#Z ERROR ~::~: cannot open /var/lib/app/~/#.dat: No such file or directory (os error 2)",
    "10.0.#.# - - [01/May/2024:12:34:56 +0000] \"GET /static/~-#.js HTTP/1.1\" 200 # \"https://example.org/~\" \"Mozilla/5.0\"",
    "{\"level\":\"info\",\"ts\":#.#,\"msg\":\"~ ~\",\"id\":\"%-%\",\"count\":#,\"tags\":[\"~\",\"~\"]}",
    "May  1 12:34:56 host-# systemd[1]: Started ~ ~ service, main process pid=#",
    "   Compiling ~-~ v0.#.# (/home/build/project/crates/~)",
    "test ~::~::tests::~_# ... ok",
    "commit %%%%%",
    "~ ~ ~: the ~ of the ~ was # bytes, expected #",
];

const CODE: &[&str] = &[
    "    let ~ = self.~.get(&~).ok_or_else(|| Error::Missing(~.to_string()))?;",
    "    pub fn ~_~(&mut self, ~: &str, ~: usize) -> Result<Vec<u8>, Error> {",
    "        if ~.len() > # && ~ != ~ { return Err(Error::TooLong { ~, limit: # }); }",
    "    // The ~ is kept until the ~ is done, see https://example.org/docs/~#~.",
    "    for (~, ~) in ~.iter().enumerate().filter(|(i, _)| i + # == 0) {",
    "    }",
    "",
    "def ~_~(~, ~=None, *, ~=#):",
    "    \"\"\"Return the ~ of ~ or raise ValueError if the ~ is unknown.\"\"\"",
    "    return {\"~\": ~.~(), \"~\": [~ for ~ in ~ if ~.~ > #]}",
    "const ~ = await fetch(`/api/~/${~}`, { method: 'POST', body: JSON.stringify({ ~, ~: # }) });",
    "  if (~ === undefined || ~.length === 0) { throw new Error('~ is required'); }",
    "func (s *~Server) ~(ctx context.Context, req *pb.~Request) (*pb.~Response, error) {",
    "\t\tlog.Printf(\"~: {} after {}\", ~, len(~))",
    "| `~_~` | integer | # | how many ~ a ~ may hold before the ~ is closed |",
    "name = \"~-~\"\nversion = \"#.#.#\"\nchecksum = \"%%%%%%%%\"",
];

const SECRETS: &[&str] = &[
    "Authorization: Bearer %%%%%",
    "export API_KEY=%%%",
    "postgres://app:%%@db.internal:5432/~",
    "{\"user\": \"~\", \"password\": \"%%\"}",
    "remote: https://x:ghp_%%%%abcd@github.com/~/~",
    "AKIAABCDEFGHIJKLMNOP",
    "key material %%%%%%%%",
];
