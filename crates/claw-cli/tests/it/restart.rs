//! Gateways that end and are killed while sessions run, and two gateways on one store: nothing is lost, nothing is done
//! twice, and clients go on from the number of the last event they saw.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use claw_testkit::postgres::Database;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::gateway::{ECHO, Gateway, client, log_of, request};
use crate::harness::Home;

/// The longest wait for what another process does.
const PATIENCE: Duration = Duration::from_secs(120);
const SESSIONS: usize = 50;
const USERS: usize = 5;
/// Calls of each run.
const CALLS: usize = 8;

/// A home over one of the databases.
struct Site {
    home: Home,
    database: Option<Database>,
}

impl Site {
    fn gateway(&self, script: &str) -> Gateway<'_> {
        let script = self.home.write("script.toml", script);
        let mut command = self.home.process(&["serve", "--json", "--listen", "127.0.0.1:0", "--script"]);
        command.arg(script).env("CLAWSMITH_GATEWAY__DRAIN_SECS", "1").stderr(log_of(&self.home));
        if let Some(database) = &self.database {
            command.env("CLAWSMITH_STORE__URL", database.url());
        }
        Gateway::spawn(&self.home, &mut command)
    }

    fn key(&self, user: &str, more: &[&str]) -> String {
        let words = [&["api-keys", "create", "--user", user], more].concat();
        let url = self.database.as_ref().map(|database| ("CLAWSMITH_STORE__URL", database.url()));
        let ran = self.home.run_with(url.as_slice(), &words);
        assert_eq!(ran.code, 0, "{}", ran.shown());
        ran.stdout.trim().to_owned()
    }

    fn workspace(&self, user: &str) -> PathBuf {
        self.home.data().join("workspaces/main/default").join(format!("user-{user}"))
    }

    /// The files that calls of all runs have made.
    fn made(&self) -> usize {
        let count = |user| std::fs::read_dir(self.workspace(&format!("u{user}"))).map_or(0, Iterator::count);
        (0..USERS).map(count).sum()
    }

    fn wait_until_made(&self, count: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.made() < count {
            assert!(Instant::now() < deadline, "{} of {count} files", self.made());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn signal(gateway: &Gateway<'_>, signal: Signal) {
    kill(Pid::from_raw(gateway.child.id().try_into().unwrap()), signal).unwrap();
}

/// Each run makes calls that append to a file of their own, one after the other. The second half of them is slow, so that a
/// busy machine notices that half of them are made, and kills the gateway, long before the runs have ended.
fn script() -> String {
    let mut script = String::new();
    for call in 0..CALLS {
        let wait_ms = if call < CALLS / 2 { 600 } else { 2_000 };
        script += &format!(
            "[[turn]]\nwhen.said_matches = 'go (?<id>\\d+)'\nwhen.round = {call}\ndo = [{{ wait_ms = {wait_ms} }}, \
             {{ say = \"Next.\" }}, {{ call = \"write_file\", args = {{ path = \"{{{{said.id}}}}-{call}\", \
             content = \"x\", mode = \"append\" }} }}]\n\n"
        );
    }
    let last = "do = [{ say = \"done {{said.id}}\" }]";
    script + &format!("[[turn]]\nwhen.said_matches = 'go (?<id>\\d+)'\nwhen.round = {CALLS}\n{last}\n")
}

/// One event as a client sees it.
struct Seen {
    number: u64,
    data: Value,
}

/// A client that follows the events of a session, over as many connections as it takes.
struct Client {
    key: String,
    session: String,
    seen: Vec<Seen>,
}

impl Client {
    /// Begins a run and returns the client of its session. The connection stays open until the gateway cuts it.
    fn begin(address: &str, key: &str, text: &str) -> (Self, TcpStream) {
        let body =
            json!({ "model": "default", "stream": true, "messages": [{ "role": "user", "content": text }] });
        let mut stream = connect(address).unwrap();
        let asked = request(address, "POST /v1/chat/completions", key, &[], &body.to_string());
        stream.write_all(asked.as_bytes()).unwrap();
        let mut session = None;
        for line in BufReader::new(&stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty())
        {
            assert!(!line.starts_with("HTTP/1.1") || line.contains("200"), "{line}");
            session = line.strip_prefix("x-clawsmith-session: ").map(str::to_owned).or(session);
        }
        (Self { key: key.to_owned(), session: session.unwrap(), seen: Vec::new() }, stream)
    }

    /// Reads events from the last number on, until the run has ended or the connection is cut. Returns whether it ended.
    fn follow(&mut self, address: &str) -> bool {
        let Ok(mut stream) = connect(address) else { return false };
        let last = self.seen.last().map_or(0, |seen| seen.number).to_string();
        let what = format!("GET /v1/sessions/{}/events", self.session);
        let asked = request(address, &what, &self.key, &[("last-event-id", &last)], "");
        if stream.write_all(asked.as_bytes()).is_err() {
            return false;
        }
        let (mut data, begun) = (None, Instant::now());
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            assert!(begun.elapsed() < PATIENCE, "{} does not end: {:?}", self.session, self.run_states());
            if let Some(text) = line.strip_prefix("data: ") {
                data = serde_json::from_str::<Value>(text).ok();
            }
            // The number may come after the data; the event is whole at the empty line.
            if line.is_empty()
                && let Some(data) = data.take()
                && let Some(number) = data["seq"].as_u64()
            {
                let is_end =
                    data["type"] == "run" && (data["state"] == "ended" || data["state"] == "reported");
                self.seen.push(Seen { number, data });
                if is_end {
                    return true;
                }
            }
        }
        false
    }

    fn run_states(&self) -> Vec<&str> {
        let runs = self.seen.iter().filter(|seen| seen.data["type"] == "run");
        runs.filter_map(|seen| seen.data["state"].as_str()).collect()
    }
}

fn connect(address: &str) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Follows a session from one gateway to the next until its run has ended.
fn follow_to_the_end(mut client: Client, open: TcpStream, addresses: &Receiver<String>) -> Client {
    let _open = open;
    loop {
        let address = addresses.recv_timeout(PATIENCE).unwrap();
        if client.follow(&address) {
            return client;
        }
    }
}

/// Ends one gateway, kills the next, and lets a third one finish.
fn check_restarts(site: &Site) {
    let script = script();
    let mut gateway = site.gateway(&script);
    let keys: Vec<String> = (0..USERS).map(|user| site.key(&format!("u{user}"), &[])).collect();
    let clients: Vec<Client> = std::thread::scope(|scope| {
        let (mut senders, mut followers) = (Vec::new(), Vec::new());
        for session in 0..SESSIONS {
            let (sender, addresses) = channel();
            senders.push(sender);
            let (client, open) =
                Client::begin(&gateway.address, &keys[session % USERS], &format!("go {session}"));
            followers.push(scope.spawn(move || follow_to_the_end(client, open, &addresses)));
        }
        let tell = |address: &str| {
            // Those whose run has ended listen no more.
            senders.iter().for_each(|sender| drop(sender.send(address.to_owned())));
        };
        tell(&gateway.address);
        site.wait_until_made(SESSIONS);
        signal(&gateway, Signal::SIGTERM);
        assert_eq!(gateway.child.wait().unwrap().code(), Some(0), "it ends by itself");
        assert!(site.made() < SESSIONS * CALLS, "runs were left for the next one");

        gateway = site.gateway(&script);
        tell(&gateway.address);
        site.wait_until_made(SESSIONS * CALLS / 2);
        signal(&gateway, Signal::SIGKILL);
        gateway.child.wait().unwrap();
        assert!(site.made() < SESSIONS * CALLS, "runs were left for the next one");

        gateway = site.gateway(&script);
        tell(&gateway.address);
        followers.into_iter().map(|follower| follower.join().unwrap()).collect()
    });
    let (mut unknown, mut handed, mut resumed) = (0, 0, 0);
    for (session, client) in clients.iter().enumerate() {
        let numbers: Vec<u64> = client.seen.iter().map(|seen| seen.number).collect();
        let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
        assert_eq!(numbers, expected, "events of session {session} without gap or duplicate");
        let states = client.run_states();
        assert_eq!(states.iter().filter(|state| **state == "ended").count(), 1, "{states:?}");
        assert!(!states.contains(&"failed") && !states.contains(&"reported"), "{states:?}");
        handed += states.iter().filter(|state| **state == "woken").count();
        resumed += states.iter().filter(|state| **state == "resumed").count();

        let path = format!("/v1/sessions/{}/messages?limit=100", client.session);
        let said = gateway.get(&path, &client.key).check(200, &format!("done {session}")).body;
        let told: usize = said.matches("unknown: this call had begun").count();
        unknown += told;
        let workspace = site.workspace(&format!("u{}", session % USERS));
        let mut missing = 0;
        for call in 0..CALLS {
            match std::fs::read_to_string(workspace.join(format!("{session}-{call}"))) {
                Ok(text) => assert_eq!(text, "x", "call {call} of session {session} was made once"),
                Err(_) => missing += 1,
            }
        }
        assert!(
            missing <= told,
            "session {session}: {missing} calls were not made, {told} are unknown: {said}"
        );
    }
    assert!(handed > 0, "runs were parked at SIGTERM and went on at once");
    assert!(resumed > 0, "runs were taken over after SIGKILL");
    let sessions: HashSet<&str> = clients.iter().map(|client| client.session.as_str()).collect();
    assert_eq!(sessions.len(), SESSIONS);
    println!("{SESSIONS} sessions: {handed} handed over, {resumed} taken over, {unknown} calls unknown");
}

#[test]
fn sigterm_and_sigkill_under_load_lose_nothing_and_repeat_nothing() {
    check_restarts(&Site { home: Home::new(), database: None });
}

#[test]
fn sigterm_and_sigkill_under_load_lose_nothing_and_repeat_nothing_on_postgres() {
    let Some(database) = Database::new() else { return };
    check_restarts(&Site { home: Home::new(), database: Some(database) });
}

/// The messages of a session, once they say this.
fn wait_for(gateway: &Gateway<'_>, key: &str, session: &str, says: &str) -> String {
    let path = format!("/v1/sessions/{session}/messages?limit=100");
    let deadline = Instant::now() + PATIENCE;
    loop {
        let said = gateway.get(&path, key).check(200, "messages").body;
        if said.contains(says) {
            return said;
        }
        assert!(Instant::now() < deadline, "{says}: {said}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn two_gateways_on_one_store_are_one_deployment() {
    let Some(database) = Database::new() else { return };
    let site = Site { home: Home::new(), database: Some(database) };
    let (left, right) = (site.gateway(ECHO), site.gateway(ECHO));
    let key = site.key("ann", &[]);
    // A session goes on at the other gateway, and both have its events.
    let first = left.chat(&key, "one", None).check(200, "You said: one");
    let session = first.header("x-clawsmith-session").unwrap().to_owned();
    right.chat(&key, "two", Some(&session)).check(200, "You said: two");
    let follow = |address: &str| {
        let mut client = Client { key: key.clone(), session: session.clone(), seen: Vec::new() };
        assert!(client.follow(address));
        client
    };
    let (here, there) = (follow(&left.address), follow(&right.address));
    assert_eq!(
        here.seen.iter().map(|seen| &seen.data).collect::<Vec<_>>(),
        there.seen.iter().map(|seen| &seen.data).collect::<Vec<_>>()
    );
    // What happens at one is told to a client of the other as it happens.
    std::thread::scope(|scope| {
        let mut client = follow(&right.address);
        let count = client.seen.len();
        let address = right.address.clone();
        let follower = scope.spawn(move || {
            let ends =
                |client: &Client| client.run_states().iter().filter(|state| **state == "ended").count();
            while ends(&client) < 3 {
                assert!(client.follow(&address), "the connection holds until the run has ended");
            }
            client
        });
        left.chat(&key, "three", Some(&session)).check(200, "You said: three");
        assert!(follower.join().unwrap().seen.len() > count);
    });
    // A WebSocket client goes on at the other one from the number that it saw last.
    let (ben, kept) = (site.key("ben", &[]), site.home.path().join("kept.json"));
    client(&left, "websocket_resume.py", &ben, &[kept.to_str().unwrap(), "begin"]);
    client(&right, "websocket_resume.py", &ben, &[kept.to_str().unwrap(), "resume"]);
}

#[test]
fn a_gateway_without_its_database_is_not_ready() {
    let Some(database) = Database::new() else { return };
    let home = Home::new();
    let script = home.write("script.toml", ECHO);
    let mut command = home.process(&["serve", "--json", "--listen", "127.0.0.1:0", "--script"]);
    command.arg(script).env("CLAWSMITH_STORE__URL", database.url()).stderr(log_of(&home));
    let gateway = Gateway::spawn(&home, &mut command);
    gateway.get("/ready", "").check(200, "\"ready\"");
    drop(database);
    let deadline = Instant::now() + PATIENCE;
    while gateway.get("/ready", "").status != 503 {
        assert!(Instant::now() < deadline, "it is still ready");
        std::thread::sleep(Duration::from_millis(50));
    }
    gateway.get("/ready", "").check(503, "not ready");
    gateway.get("/health", "").check(200, "ok");
}

#[test]
fn an_approval_answered_at_one_gateway_resumes_the_run_of_the_other() {
    let Some(database) = Database::new() else { return };
    let site = Site { home: Home::new(), database: Some(database) };
    let left = site.gateway(ECHO);
    let (key, yes) = (site.key("ann", &[]), site.key("ann", &["--scope", "approvals:read,approvals:answer"]));
    let asked = left.chat(&key, "write", None).check(200, "waiting for approval");
    let session = asked.header("x-clawsmith-session").unwrap().to_owned();
    let right = site.gateway(ECHO);
    let pending = right.get("/v1/approvals", &yes).check(200, "rm -r build").json();
    let path = format!("/v1/approvals/{}/answer", pending["approvals"][0]["id"].as_str().unwrap());
    right.post(&path, &yes, &json!({ "approve": true })).check(200, "approved");
    wait_for(&left, &key, &session, "It said");
    wait_for(&right, &key, &session, "It said");
    left.post(&path, &yes, &json!({ "approve": false })).check(409, "an answer is final");
}

#[test]
fn a_gateway_takes_over_the_runs_of_one_that_was_killed() {
    let Some(database) = Database::new() else { return };
    let site = Site { home: Home::new(), database: Some(database) };
    let script = script();
    let mut left = site.gateway(&script);
    let key = site.key("u0", &[]);
    let begun: Vec<(Client, TcpStream)> =
        (0..8).map(|run| Client::begin(&left.address, &key, &format!("go {run}"))).collect();
    site.wait_until_made(8);
    // It comes too late to take any of them while the first one lives.
    let right = site.gateway(&script);
    signal(&left, Signal::SIGKILL);
    left.child.wait().unwrap();
    assert!(site.made() < 8 * CALLS, "runs were left");
    for (run, (mut client, _open)) in begun.into_iter().enumerate() {
        assert!(client.follow(&right.address), "run {run} ends at the other gateway");
        assert!(client.run_states().contains(&"resumed"), "{:?}", client.run_states());
        wait_for(&right, &key, &client.session, &format!("done {run}"));
        for call in 0..CALLS {
            let file = site.workspace("u0").join(format!("{run}-{call}"));
            assert!(std::fs::read_to_string(file).map_or(true, |text| text == "x"), "made once");
        }
    }
}
