//! Runs that another process watches, stops and sets going again, on both databases.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use claw_core::port::Clock as _;
use claw_core::store::{LONGEST_LEASE, Queue as _};
use claw_core::{NodeId, TenantId};
use claw_host::SystemClock;
use claw_store::SqliteStore;
use serde_json::Value;

use crate::harness::{Home, Ran};
use claw_testkit::postgres::Database;

/// The longest a test waits for another process.
const PATIENCE: Duration = Duration::from_secs(60);

/// A home over one of the databases.
struct Place {
    home: Home,
    variables: Vec<(&'static str, String)>,
    _database: Option<Database>,
}

impl Place {
    /// Runs a test on SQLite and on PostgreSQL.
    fn each(test: impl Fn(&Place)) {
        test(&Place { home: Home::new(), variables: Vec::new(), _database: None });
        if let Some(database) = Database::new() {
            let variables = vec![("CLAWSMITH_STORE__URL", database.url().to_owned())];
            test(&Place { home: Home::new(), variables, _database: Some(database) });
        }
    }

    fn configure(&self, text: &str) {
        self.home.configure(text);
    }

    fn run(&self, words: &[&str]) -> Ran {
        let variables: Vec<(&str, &str)> = self.variables.iter().map(|(k, v)| (*k, v.as_str())).collect();
        self.home.run_with(&variables, words)
    }

    fn chat(&self, script: &str, words: &[&str]) -> Child {
        let script = self.home.write("script.toml", script);
        Command::new(assert_cmd::cargo::cargo_bin!("clawsmith"))
            .env_clear()
            .env("HOME", self.home.path())
            .env("USER", "tester")
            .envs(self.variables.iter().map(|(name, value)| (*name, value.as_str())))
            .current_dir(self.home.path().join("project"))
            .args(["chat", "--session", "cli:x", "--script", script.to_str().unwrap()])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Waits for a row of a list that fits.
    fn wait_for(&self, words: &[&str], fits: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let rows = self.run(words);
            let found = rows.json().as_array().unwrap().iter().find(|row| fits(row)).cloned();
            match found {
                Some(row) => return row,
                None => assert!(begun.elapsed() < PATIENCE, "{words:?}: {}", rows.shown()),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn run_in_state(&self, state: &str) -> Value {
        self.wait_for(&["runs", "list", "--all", "--json"], |run| run["state"] == state)
    }
}

const HANGS: &str = "[[turn]]\ndo = [{ say = \"Once\\nupon\" }, { hang = true }]";
const WRITES: &str = r#"
    [[turn]]
    when.result_of = "write_file"
    do = [{ say = "Written." }]

    [[turn]]
    do = [{ call = "write_file", args = { path = "a.txt", content = "x" } }]
"#;
const ASKS: &str = "[approvals.effects]\nwrite = \"ask\"\n";

fn text(child: &mut Child) -> String {
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    text
}

#[test]
fn first_chats_that_are_started_together_are_all_answered() {
    for _ in 0..3 {
        Place::each(|place| {
            let hello = "[[turn]]\ndo = [{ say = \"Hello.\" }]";
            let chats: Vec<Child> = (0..6).map(|_| place.chat(hello, &["-m", "hi"])).collect();
            for chat in chats {
                let ended = chat.wait_with_output().unwrap();
                let said = String::from_utf8_lossy(&ended.stdout);
                let wrong = String::from_utf8_lossy(&ended.stderr);
                assert!(ended.status.success() && said.contains("Hello.\n"), "{said}{wrong}");
            }
        });
    }
}

#[test]
fn a_run_is_cancelled_from_another_process_and_keeps_what_it_had() {
    Place::each(|place| {
        let mut chat = place.chat(HANGS, &["-m", "go"]);
        let mut stdout = BufReader::new(chat.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let run = place.run_in_state("leased")["id"].as_str().unwrap().to_owned();
        let shown = place.run(&["runs", "show", &run]);
        assert!(shown.stdout.contains("leased") && shown.stdout.contains("cli:x"), "{}", shown.shown());
        let cancelled = place.run(&["runs", "cancel", &run]);
        assert_eq!(cancelled.code, 0, "{}", cancelled.shown());
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        assert_eq!((line + &rest, chat.wait().unwrap().code()), ("Once\nupon\n".to_owned(), Some(130)));
        assert_eq!(place.run_in_state("cancelled")["id"], run.as_str());
        let again = place.run(&["runs", "cancel", &run]);
        assert!(again.code == 1 && again.stderr.contains("had already ended"), "{}", again.shown());
        // The session goes on.
        let next =
            place.chat("[[turn]]\ndo = [{ say = \"Hello.\" }]", &["-m", "hi"]).wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&next.stdout), "Hello.\n");
    });
}

#[test]
fn a_parked_approval_is_answered_from_another_process() {
    Place::each(|place| {
        place.configure(ASKS);
        let mut chat = place.chat(WRITES, &["-m", "go", "--wait"]);
        let parked = place.run_in_state("parked");
        assert!(parked["worker"].is_null(), "it holds no worker: {parked}");
        let asked = place.wait_for(&["approvals", "list", "--json"], |_| true);
        assert_eq!((&asked["tool"], &asked["run"]), (&"write_file".into(), &parked["id"]));
        let listed = place.run(&["runs", "list"]);
        assert!(listed.stdout.contains("waits for approval"), "{}", listed.shown());
        let approved = place.run(&["approvals", "approve", asked["id"].as_str().unwrap()]);
        assert_eq!(approved.code, 0, "{}", approved.shown());
        assert_eq!((text(&mut chat).as_str(), chat.wait().unwrap().code()), ("Written.\n", Some(0)));
        assert!(place.home.path().join("project/a.txt").exists());
    });
}

#[test]
fn an_approval_that_is_denied_elsewhere_wakes_its_run() {
    Place::each(|place| {
        place.configure(ASKS);
        let mut chat = place.chat(WRITES, &["-m", "go", "--wait"]);
        place.run_in_state("parked");
        let asked = place.wait_for(&["approvals", "list", "--json"], |_| true);
        place.run(&["approvals", "deny", asked["id"].as_str().unwrap()]);
        assert_eq!((text(&mut chat).as_str(), chat.wait().unwrap().code()), ("Written.\n", Some(0)));
        assert!(!place.home.path().join("project/a.txt").exists(), "it was refused");
    });
}

/// The asking program is killed; the answer comes while nobody runs; the next program does the approved
/// action, once.
#[test]
fn a_parked_run_is_resumed_by_another_worker_after_a_kill() {
    Place::each(|place| {
        place.configure(ASKS);
        let mut chat = place.chat(WRITES, &["-m", "go", "--wait"]);
        place.run_in_state("parked");
        chat.kill().unwrap();
        chat.wait().unwrap();
        let asked = place.wait_for(&["approvals", "list", "--json"], |_| true);
        let approved = place.run(&["approvals", "approve", asked["id"].as_str().unwrap()]);
        assert_eq!(approved.code, 0, "{}", approved.shown());
        assert!(!place.home.path().join("project/a.txt").exists(), "nobody is there to do it");
        let mut next = place.chat(WRITES, &["-m", "again", "--wait"]);
        let first = BufReader::new(next.stdout.take().unwrap()).lines().next().unwrap().unwrap();
        assert_eq!(first, "Written.", "of the run before");
        assert!(place.home.path().join("project/a.txt").exists());
        let run = place.run_in_state("parked")["id"].as_str().unwrap().to_owned();
        assert_eq!(place.run(&["runs", "cancel", &run]).code, 0);
        assert_eq!(next.wait().unwrap().code(), Some(130));
        let calls = place.run(&["ledger", "show", "--json"]);
        let intents =
            calls.json().as_array().unwrap().iter().filter(|entry| entry["event"] == "intent").count();
        assert_eq!(intents, 1, "done once: {}", calls.shown());
    });
}

/// A run resumed after a kill is stopped by Ctrl-C like any other.
#[test]
fn ctrl_c_stops_a_run_that_was_taken_up_after_a_kill() {
    let place = Place { home: Home::new(), variables: Vec::new(), _database: None };
    let mut chat = place.chat(HANGS, &["-m", "go"]);
    let mut line = String::new();
    BufReader::new(chat.stdout.take().unwrap()).read_line(&mut line).unwrap();
    chat.kill().unwrap();
    chat.wait().unwrap();
    let mut next = place.chat(HANGS, &["-m", "again"]);
    let mut line = String::new();
    let mut stdout = BufReader::new(next.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "Once\n", "the run of before goes on");
    let process = rustix::process::Pid::from_child(&next);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    assert_eq!(next.wait().unwrap().code(), Some(130));
    let open = place.run(&["runs", "list", "--json"]).json();
    assert_eq!(open.as_array().unwrap().len(), 0, "nothing is left to be done: {open}");
}

/// Kills a chat in the middle of its answer. The lease of its run lasts for half an hour more; returns the run.
fn killed_with_a_long_lease(place: &Place) -> String {
    let mut chat = place.chat(HANGS, &["-m", "go"]);
    let mut line = String::new();
    BufReader::new(chat.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let run = place.run_in_state("leased")["id"].as_str().unwrap().to_owned();
    chat.kill().unwrap();
    chat.wait().unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let file = place.home.data().join("clawsmith.db");
        let store = SqliteStore::open(&file, NodeId::local()).await.unwrap();
        let job = store.job(&TenantId::main(), run.parse().unwrap()).await.unwrap().unwrap();
        let until = SystemClock.now().plus(LONGEST_LEASE / 2);
        store.extend(&job.lease.unwrap(), until).await.unwrap();
    });
    run
}

#[test]
fn a_killed_run_is_resumed_though_its_lease_has_not_ended() {
    let place = Place { home: Home::new(), variables: Vec::new(), _database: None };
    let run = killed_with_a_long_lease(&place);
    let mut next = place.chat(HANGS, &["-m", "again"]);
    place.wait_for(&["runs", "list", "--json"], |row| row["id"] == run.as_str() && row["tries"] == 2);
    next.kill().unwrap();
    next.wait().unwrap();
}

#[test]
fn a_chat_names_the_run_that_it_waits_for_and_releasing_that_lets_it_go_on() {
    let place = Place { home: Home::new(), variables: Vec::new(), _database: None };
    let run = killed_with_a_long_lease(&place);
    // Nobody can see that its worker is gone, as on another machine.
    std::fs::remove_dir_all(place.home.data().join("owners")).unwrap();
    let mut next = place.chat(HANGS, &["-m", "again"]);
    let (mut stderr, mut told) = (BufReader::new(next.stderr.take().unwrap()), String::new());
    while !told.contains("waiting for") {
        assert_ne!(stderr.read_line(&mut told).unwrap(), 0, "{told}");
    }
    let expected = [
        format!("waiting for run {run} of this session"),
        format!("`clawsmith runs cancel {run}`"),
        format!("`clawsmith runs release {run}`"),
    ];
    assert!(expected.iter().all(|part| told.contains(part)), "{told}");
    let released = place.run(&["runs", "release", &run]);
    assert!(released.code == 0 && released.stdout.contains(&run), "{}", released.shown());
    place.wait_for(&["runs", "list", "--json"], |row| row["id"] == run.as_str() && row["tries"] == 2);
    next.kill().unwrap();
    next.wait().unwrap();
}

#[test]
fn a_run_that_is_over_cannot_be_released() {
    let place = Place { home: Home::new(), variables: Vec::new(), _database: None };
    let hello = "[[turn]]\ndo = [{ say = \"Hello.\" }]";
    assert!(place.chat(hello, &["-m", "hi"]).wait_with_output().unwrap().status.success());
    let run = place.run_in_state("done")["id"].as_str().unwrap().to_owned();
    let released = place.run(&["runs", "release", &run]);
    assert!(released.code == 1 && released.stderr.contains("it has ended"), "{}", released.shown());
    let none = place.run(&["runs", "release", "019b"]);
    assert!(none.code == 2 && none.stderr.contains("there is no run `019b`"), "{}", none.shown());
}

#[test]
fn says_what_is_wrong_with_a_run_that_is_named() {
    let home = Home::new();
    let none = home.run(&["runs", "cancel", "019b"]);
    assert!(none.code == 2 && none.stderr.contains("there is no run `019b`"), "{}", none.shown());
    assert_eq!(home.run(&["runs", "list"]).stdout, "no runs are waiting or running\n");
}

/// A run keeps the mode of its message, whichever program carries it.
#[test]
fn a_killed_plan_is_not_carried_out_by_the_next_program() {
    const PLANS: &str = r#"
        [[turn]]
        when.said = "again"
        do = [{ say = "Second." }]

        [[turn]]
        when.result_of = "write_file"
        do = [{ say = "Planned: {{result}}" }]

        [[turn]]
        when.result_of = "exec"
        do = [{ call = "write_file", args = { path = "a.txt", content = "x" } }]

        [[turn]]
        do = [{ say = "Begun\n" }, { call = "exec", args = { command = "sleep 60" } }]
    "#;
    let place = Place { home: Home::new(), variables: Vec::new(), _database: None };
    let mut chat = place.chat(PLANS, &["-m", "go", "--mode", "plan"]);
    let mut line = String::new();
    BufReader::new(chat.stdout.take().unwrap()).read_line(&mut line).unwrap();
    place.wait_for(&["ledger", "show", "--json"], |entry| entry["event"] == "intent");
    chat.kill().unwrap();
    chat.wait().unwrap();
    // The next program is in no mode.
    let mut next = place.chat(PLANS, &["-m", "again"]);
    let said = text(&mut next);
    assert_eq!(next.wait().unwrap().code(), Some(0), "{said}");
    assert!(said.contains("the mode `plan` says deny") && said.contains("Second."), "{said}");
    assert!(!place.home.path().join("project/a.txt").exists(), "{said}");
}
