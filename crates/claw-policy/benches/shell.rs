//! Time of a verdict: a command of 100 bytes, a script of 4 KB.
//!
//! Prints `name<TAB>value<TAB>unit`, the best of many runs.

use std::hint::black_box;
use std::time::{Duration, Instant};

use claw_policy::shell::{Rules, analyse, corpus};

const COMMAND: &str = "find . -name '*.rs' -not -path './target/*' -print0 | xargs -0 grep -n \"TODO\" | sort | head -20 > todo.txt";

fn main() {
    let rules = Rules::default();
    let mut script = String::new();
    // Everyday lines that do not stop the walk.
    let lines: Vec<String> = corpus::harmless().filter(|line| !line.contains('\n')).collect();
    for line in lines.iter().cycle() {
        if script.len() + line.len() >= 4096 {
            break;
        }
        script.push_str(line);
        script.push('\n');
    }
    report("shell_verdict_100_bytes", 100, || analyse(COMMAND, &rules));
    report("shell_verdict_4_kb_script", 1, || analyse(&script, &rules));
}

/// The best time of one call, in microseconds, out of runs of `batch` calls.
fn report<T>(name: &str, batch: u32, mut call: impl FnMut() -> T) {
    let end = Instant::now() + Duration::from_secs(1);
    let mut best = Duration::MAX;
    while Instant::now() < end {
        let start = Instant::now();
        for _ in 0..batch {
            black_box(call());
        }
        best = best.min(start.elapsed() / batch);
    }
    println!("{name}\t{:.3}\tus", best.as_secs_f64() * 1e6);
}
