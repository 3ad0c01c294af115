//! Speed of searching, listing and reading files, against `rg` and against plain opens in the same run.
//!
//! Prints lines of `name<TAB>value<TAB>unit`; each time is the best of several, taken in turns. The tree is
//! made in a temporary directory and removed.

use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use claw_core::port::{Expect, FilePlace, From, FsBridge as _, Order, Reading, Scope, Search, Walk, Window};
use claw_core::redact::Redactor;
use claw_core::tool::Caller;
use claw_core::{AgentId, SessionKey};
use claw_host::files::LocalFiles;
use claw_policy::scrub::Scrubber;
use claw_testkit::fixture;
use tokio::runtime::Runtime;

const SIZE: u64 = 300_000_000;
const FILES: u64 = 12_000;
const DIRECTORIES: u64 = 400;
const ROUNDS: usize = 7;
/// The rare word is in one of so many files.
const RARE: u64 = 200;
const SMALL_READS: usize = 2_000;
/// Reads of the end of a file per measurement.
const TAILS: u32 = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let root = directory.path().canonicalize()?;
    let tree = root.join("tree");
    grow(&tree)?;
    let bench = Bench::new(&root)?;
    let threads = thread::available_parallelism().map_or(2, |count| count.get().clamp(2, 8));
    print("threads", threads as f64, "");

    // Before what `rg` prints is in memory too.
    let hits = bench.search("handler");
    print("search_memory", peak_mb(), &format!("MB at most, with {hits} hits"));
    for (name, pattern) in [("rare", "needlework"), ("all", "handler"), ("rare_regex", r"needle\w+\s+\d+")] {
        let mut hits = (0, 0);
        let [ours, theirs] = turns([&mut || hits.0 = bench.search(pattern), &mut || {
            hits.1 = rg(&tree, &["--line-number", pattern], threads);
        }]);
        print(&format!("search_{name}_hits"), hits.0 as f64, "");
        compare(&format!("search_{name}"), ours, theirs, "rg");
        // Without `rg` there is nothing to compare with.
        if theirs.is_some() && hits.0 != hits.1 {
            return Err(format!("{name}: {} hits, but rg has {}", hits.0, hits.1).into());
        }
    }
    let mut found = (0, 0);
    let [ours, theirs] = turns([&mut || found.0 = bench.glob("*.rs"), &mut || {
        found.1 = rg(&tree, &["--files", "--glob", "*.rs"], threads);
    }]);
    print("glob_files", found.0 as f64, "");
    compare("glob", ours, theirs, "rg --files");

    sparse(&root.join("large"), 5 << 30)?;
    sparse(&root.join("short"), 0)?;
    let [large, short] = turns([&mut || bench.last_lines("large"), &mut || bench.last_lines("short")]);
    let tail = |all: Duration| all / TAILS;
    compare("last_100_lines_of_5_gb", large.map(tail), short.map(tail), "of 5 MB");

    let small = root.join("small");
    fs::write(&small, "a line of text\n".repeat(100))?;
    let [confined, plain, bare] =
        turns([&mut || bench.small_reads(), &mut || bench.plain_reads(&small), &mut || bare_reads(&small)]);
    compare("small_read", confined.map(each), plain.map(each), "plain open on the same threads");
    print("small_read_plain_here", bare.map(each).unwrap_or_default().as_secs_f64() * 1e6, "us");
    Ok(())
}

fn each(all: Duration) -> Duration {
    all / SMALL_READS as u32
}

fn print(name: &str, value: f64, unit: &str) {
    println!("{name}\t{value:.2}\t{unit}");
}

fn compare(name: &str, ours: Option<Duration>, theirs: Option<Duration>, what: &str) {
    let (Some(ours), Some(theirs)) = (ours, theirs) else { return };
    let unit = |time: Duration| {
        if time > Duration::from_millis(1) { (1e3, "ms") } else { (1e6, "us") }
    };
    let (scale, unit) = unit(ours.max(theirs));
    print(name, ours.as_secs_f64() * scale, unit);
    print(&format!("{name}_against"), theirs.as_secs_f64() * scale, unit);
    print(&format!("{name}_ratio"), ours.as_secs_f64() / theirs.as_secs_f64(), &format!("x {what}"));
}

/// Returns the best time of each, taken in turns so that a busy machine disturbs all alike. `None` if it
/// cannot run.
fn turns<const N: usize>(mut work: [&mut dyn FnMut(); N]) -> [Option<Duration>; N] {
    let mut best = [None::<Duration>; N];
    for _ in 0..ROUNDS {
        for (work, best) in work.iter_mut().zip(&mut best) {
            let start = Instant::now();
            work();
            let took = start.elapsed();
            *best = Some(best.map_or(took, |best| best.min(took)));
        }
    }
    best
}

struct Bench {
    runtime: Runtime,
    files: LocalFiles,
    caller: Caller,
    scope: Scope,
    redactor: Arc<dyn Redactor>,
}

impl Bench {
    fn new(root: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let caller = Caller::new(AgentId::new("main")?, SessionKey::new("cli:bench")?, root);
        Ok(Self {
            runtime: Runtime::new()?,
            files: LocalFiles::new(),
            caller,
            scope: Scope::workspace(root),
            redactor: Arc::new(Scrubber::new()),
        })
    }

    fn place(&self) -> FilePlace<'_> {
        let directory = &self.scope.roots[0].path;
        FilePlace { caller: &self.caller, directory, scope: &self.scope, expect: Expect::Anything }
    }

    fn search(&self, pattern: &str) -> u64 {
        let search = Search { case: Some(true), ..fixture::search("tree", pattern, 1000) };
        let found = self.runtime.block_on(self.files.search(&self.place(), &search, &self.redactor));
        found.map_or(0, |found| found.hits)
    }

    fn glob(&self, glob: &str) -> u64 {
        let walk = Walk {
            globs: vec![glob.to_owned()],
            order: Order::Newest,
            limit: 200,
            ..fixture::walk("tree", 0)
        };
        let walked = self.runtime.block_on(self.files.walk(&self.place(), &walk));
        walked.map_or(0, |walked| walked.files)
    }

    fn last_lines(&self, path: &str) {
        let window = Window { from: From::End(100), lines: 100, bytes: 50_000 };
        for _ in 0..TAILS {
            let read = self.runtime.block_on(self.files.window(&self.place(), path, &window, &self.redactor));
            assert!(matches!(read, Ok(Reading::Text(view)) if view.lines == 100));
        }
    }

    fn small_reads(&self) {
        self.runtime.block_on(async {
            for _ in 0..SMALL_READS {
                assert!(self.files.read(&self.place(), "small").await.is_ok());
            }
        });
    }

    fn plain_reads(&self, path: &Path) {
        self.runtime.block_on(async {
            for _ in 0..SMALL_READS {
                let path = path.to_owned();
                let read = tokio::task::spawn_blocking(move || fs::read(path)).await;
                assert!(read.is_ok_and(|read| read.is_ok()));
            }
        });
    }
}

fn bare_reads(path: &Path) {
    for _ in 0..SMALL_READS {
        assert!(fs::read(path).is_ok());
    }
}

/// The lines that `rg` prints.
fn rg(tree: &Path, args: &[&str], threads: usize) -> u64 {
    let mut command = Command::new("rg");
    command
        .args(["--no-config", "--no-require-git", "--color", "never", "--threads", &threads.to_string()])
        .args(args)
        .arg(tree);
    match command.output() {
        Ok(output) => output.stdout.iter().filter(|byte| **byte == b'\n').count() as u64,
        Err(error) => {
            eprintln!("`rg` cannot be run ({error}); scripts/install-bench-deps.sh installs it");
            std::process::exit(1);
        }
    }
}

/// The most memory that this process has held.
fn peak_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kb: f64 = line.trim().trim_end_matches(" kB").trim().parse().unwrap_or(0.0);
    kb / 1000.0
}

/// A file of 5 MB of text after a hole.
fn sparse(path: &Path, hole: u64) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.seek(SeekFrom::Start(hole))?;
    let lines: String =
        (0..100_000).map(|line| format!("2024-05-01T12:34:56Z INFO request {line:07} finished\n")).collect();
    file.write_all(lines.as_bytes())
}

/// A tree of code-like text, with something to ignore.
fn grow(tree: &Path) -> std::io::Result<()> {
    let mut random = Random(7);
    fs::create_dir_all(tree)?;
    fs::write(tree.join(".gitignore"), "*.log\n/target/\n")?;
    for index in 0..DIRECTORIES {
        fs::create_dir_all(tree.join(format!("{}/{index}", index % 20)))?;
    }
    for index in 0..FILES {
        let kind = ["rs", "py", "ts", "md", "log"][random.below(5)];
        let directory = index % DIRECTORIES;
        let path = tree.join(format!("{}/{directory}/file{index}.{kind}", directory % 20));
        // The ignored ones come on top.
        let wanted = SIZE / FILES * 5 / 4;
        let mut text = String::with_capacity(2 * wanted as usize);
        let length = (wanted / 2 + random.below(wanted as usize) as u64) as usize;
        while text.len() < length {
            line(&mut text, &mut random);
        }
        if index % RARE == 0 {
            text.push_str("the needlework 42 is here\n");
        }
        fs::write(path, text)?;
    }
    Ok(())
}

fn line(text: &mut String, random: &mut Random) {
    const WORDS: [&str; 24] = [
        "request", "user", "cache", "handler", "item", "queue", "worker", "config", "session", "index",
        "value", "result", "buffer", "stream", "client", "record", "payload", "parser", "module", "message",
        "response", "backend", "needle", "column",
    ];
    text.push_str(["    let ", "  // ", "fn ", "", "| ", "  return "][random.below(6)]);
    for _ in 0..3 + random.below(8) {
        text.push_str(WORDS[random.below(WORDS.len())]);
        text.push_str([" ", "_", "::", ", ", "(", ") ", " = "][random.below(7)]);
    }
    text.push('\n');
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}
