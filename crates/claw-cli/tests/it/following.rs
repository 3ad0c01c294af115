//! A process that serves for days: what another process writes to the store holds in it, on both databases.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use claw_testkit::postgres::Database;
use serde_json::{Value, json};

use crate::harness::Home;

/// The longest that a change may take to hold here. A second is promised; a machine that runs other tests gets more.
const PROMISED: Duration = Duration::from_secs(10);

const VALUE: &str = "hunter2-and-more";

/// `clawsmith mcp serve` and a client of it.
struct Serving {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    requests: u64,
}

impl Serving {
    fn start(home: &Home, variables: &[(&str, &str)]) -> Self {
        let mut command = home.process(&["mcp", "serve", "--agent", "ada"]);
        command.envs(variables.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let read = BufReader::new(output).lines();
            read.map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let mut serving = Self { child, input, lines, requests: 0 };
        let client = json!({ "name": "t", "version": "1" });
        let begin = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        serving.request("initialize", &begin);
        serving.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        serving
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
        self.input.flush().unwrap();
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let line = self.lines.recv_timeout(PROMISED).unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Reads the file that holds the value.
    fn read(&mut self) -> String {
        let read = json!({ "name": "read_file", "arguments": { "path": "notes.txt" } });
        self.request("tools/call", &read).to_string()
    }

    /// Reads the file until the answer is as expected.
    #[track_caller]
    fn reads_soon(&mut self, expected: &str) {
        let begun = Instant::now();
        loop {
            let read = self.read();
            if read.contains(expected) {
                return;
            }
            assert!(begun.elapsed() < PROMISED, "not `{expected}` within {PROMISED:?}: {read}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

fn check(variables: &[(&str, &str)]) {
    let home = Home::new();
    let run = |words: &[&str], input: &str| {
        let ran = home.ran(home.command(words).envs(variables.iter().copied()).write_stdin(input));
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.shown());
    };
    run(&["agent", "add", "ada"], "");
    home.write("project/notes.txt", format!("pw {VALUE}\n"));
    let mut serving = Serving::start(&home, variables);
    assert!(serving.read().contains(VALUE), "it is no secret yet");
    run(&["secrets", "set", "TOKEN"], VALUE);
    serving.reads_soon("pw [REDACTED]");
    run(&["secrets", "remove", "TOKEN"], "");
    serving.reads_soon(VALUE);
    run(&["agent", "edit", "ada", "--deny", "read_file"], "");
    serving.reads_soon("refused: `read_file`");
    assert!(!serving.read().contains(VALUE), "the tool is denied");
}

#[test]
fn mcp_serve_hides_secrets_and_obeys_rules_that_other_processes_set() {
    check(&[]);
    if let Some(database) = Database::new() {
        check(&[("CLAWSMITH_STORE__URL", database.url())]);
    }
}
