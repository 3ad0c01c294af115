//! A running gateway takes a changed configuration, keeps the old one where the new one is broken, and says so.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::gateway::{ECHO, Gateway};
use crate::harness::Home;

const PATIENCE: Duration = Duration::from_secs(60);

/// The configuration that holds, once it fits.
#[track_caller]
fn status(gateway: &Gateway<'_>, key: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = gateway.get("/v1/configuration", key).check(200, "loadedAt").json();
        if fits(&status) {
            return status;
        }
        assert!(Instant::now() < deadline, "{status}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn tools(gateway: &Gateway<'_>, key: &str) -> String {
    gateway.get("/v1/tools", key).check(200, "read_file").body
}

#[test]
fn a_changed_file_holds_and_a_broken_one_keeps_the_old() {
    let home = Home::with_config("");
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let admin = gateway.key("root", &["--role", "admin", "--scope", "settings:read,metrics:read"]);
    let before = status(&gateway, &admin, |status| status["reloads"] == 0);
    assert!(before["file"].as_str().unwrap().ends_with("clawsmith.toml"), "{before}");
    assert!(tools(&gateway, &key).contains("\"datetime\""));
    gateway.get("/v1/configuration", &key).check(403, "settings:read");

    // A file that nobody has accepted changes nothing, and accepting it is noticed.
    home.write("project/clawsmith.toml", "[tools]\ndeny = [\"datetime\"]\n");
    let refused = status(&gateway, &admin, |status| !status["failure"].is_null());
    assert!(refused["failure"]["error"].as_str().unwrap().contains("changed since"), "{refused}");
    assert!(tools(&gateway, &key).contains("\"datetime\""));
    assert_eq!(home.run(&["config", "trust"]).code, 0);
    status(&gateway, &admin, |status| status["reloads"] == 1 && status["failure"].is_null());
    assert!(!tools(&gateway, &key).contains("\"datetime\""));
    gateway.invoke(&key, &json!({ "tool": "datetime" })).check(403, "datetime");

    // A broken file keeps the old one.
    home.write("project/clawsmith.toml", "[tools]\ndeny = [\n");
    let broken = status(&gateway, &admin, |status| !status["failure"].is_null());
    assert!(broken["failure"]["error"].as_str().unwrap().contains("clawsmith.toml"), "{broken}");
    gateway.get("/ready", "").check(200, "\"configuration\":\"outdated\"");
    gateway.get("/metrics", &admin).check(200, "clawsmith_configuration_outdated 1");
    assert!(!tools(&gateway, &key).contains("\"datetime\""));

    // What cannot change while it runs is named, and the rest holds.
    home.configure("[gateway]\nhosts = [\"agents.example.org\"]\n[agents.scribe]\nabout = \"Writes.\"\n");
    let mended = status(&gateway, &admin, |status| status["reloads"] == 2);
    assert_eq!(mended["needsRestart"], json!(["gateway"]), "{mended}");
    gateway.get("/ready", "").check(200, "\"configuration\":\"current\"");
    assert!(tools(&gateway, &key).contains("\"datetime\""));
    gateway.get("/v1/models", &key).check(200, "agent:scribe");
    let host = crate::gateway::request("agents.example.org", "GET /v1/tools", &key, &[], "");
    gateway.raw(host.as_bytes()).check(403, "foreign_host");

    // A file that is gone takes no rules with it.
    std::fs::remove_file(home.path().join("project/clawsmith.toml")).unwrap();
    let gone = status(&gateway, &admin, |status| !status["failure"].is_null());
    assert!(gone["failure"]["error"].as_str().unwrap().contains("gone"), "{gone}");
    gateway.get("/v1/models", &key).check(200, "agent:scribe");
}

#[test]
fn sighup_reloads_without_a_change() {
    let home = Home::with_config("");
    let gateway = Gateway::start(&home, ECHO);
    let admin = gateway.key("root", &["--role", "admin", "--scope", "settings:read"]);
    kill(Pid::from_raw(gateway.child.id().try_into().unwrap()), Signal::SIGHUP).unwrap();
    status(&gateway, &admin, |status| status["reloads"] == 1);
    gateway.chat(&admin, "x", None).check(403, "scope");
    let key = gateway.key("ann", &[]);
    gateway.chat(&key, "hello", None).check(200, "You said: hello");
}

/// Six calls one after the other, as far as calls are allowed.
fn calling() -> String {
    let turn = |round: usize| {
        format!(
            "[[turn]]\nwhen.said = \"six\"\nwhen.round = {round}\nwhen.may_call = true\ndo = [{{ wait_ms = 700 }}, \
             {{ call = \"write_file\", args = {{ path = \"log-{{{{said}}}}-{round}\", content = \"x\" }} }}]\n\n"
        )
    };
    let turns: String = (0..6).map(turn).collect();
    turns
        + "[[turn]]\nwhen.said = \"six\"\nwhen.round = 6\ndo = [{ say = \"six calls\" }]\n\n\
           [[turn]]\ndo = [{ say = \"no more calls\" }]\n"
}

#[test]
fn runs_in_progress_keep_what_they_began_with_and_the_policy_holds_at_once() {
    let home = Home::with_config("");
    let gateway = Gateway::start(&home, &calling());
    let key = gateway.key("ann", &[]);
    let admin = gateway.key("root", &["--role", "admin", "--scope", "settings:read"]);
    let log = |user: &str| {
        let workspace = home.data().join(format!("workspaces/main/default/user-{user}"));
        std::fs::read_dir(workspace).map_or(0, Iterator::count)
    };
    let wait_for = |user: &str, count: usize| {
        let deadline = Instant::now() + PATIENCE;
        while log(user) < count {
            assert!(Instant::now() < deadline, "{user} has {} of {count}", log(user));
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let ben = gateway.key("ben", &[]);
    std::thread::scope(|scope| {
        let began = scope.spawn(|| gateway.chat(&key, "six", None));
        wait_for("ann", 1);
        home.configure("[runs]\ncalls = 2\n");
        status(&gateway, &admin, |status| status["reloads"] == 1);
        assert!(log("ann") < 6, "the run was in progress");
        began.join().unwrap().check(200, "six calls");
        assert_eq!(log("ann"), 6);
        gateway.chat(&key, "six more", None).check(200, "no more calls");
        assert_eq!(log("ann"), 8, "the limit holds for the next run");

        home.configure("");
        status(&gateway, &admin, |status| status["reloads"] == 2);
        let (gateway, ben) = (&gateway, &ben);
        let began = scope.spawn(move || gateway.chat(ben, "six", None));
        wait_for("ben", 1);
        home.configure("[tools]\ndeny = [\"write_file\"]\n");
        drop(began.join().unwrap());
        assert!(log("ben") < 6, "a tool that is denied is denied to runs in progress");
    });
}
