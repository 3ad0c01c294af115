//! Programs with credentials: added, listed, checked, removed, and never shown.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::gateway::{ECHO, Gateway};
use crate::harness::{Home, Ran};

const TOKEN: &str = "hunter2-and-more-than-that";

/// A home with a program called `gh`.
fn home() -> Home {
    let home = Home::new();
    fs::create_dir(home.path().join("bin")).unwrap();
    let program = home.write("bin/gh", "#!/bin/sh\nexit 0\n");
    fs::set_permissions(program, Permissions::from_mode(0o755)).unwrap();
    home
}

fn run(home: &Home, words: &[&str], input: &str) -> Ran {
    let mut command = home.command(&[&["credentials"], words].concat());
    let ran = home.ran(command.env("PATH", home.path().join("bin")).env("GH_HOST", TOKEN).write_stdin(input));
    assert!(!ran.shown().contains("hunter2"), "{}", ran.shown());
    ran
}

#[test]
fn a_known_program_is_added_checked_and_removed() {
    let home = home();
    assert_eq!(run(&home, &["list"], "").stdout, "no program of tenant `main` has credentials\n");
    let added = run(&home, &["add", "gh"], TOKEN);
    assert_eq!(added.code, 0, "{}", added.stderr);
    assert_eq!(added.stdout, "program `gh`: `~/bin/gh` runs with GH_TOKEN\n");
    let listed = run(&home, &["list", "--json"], "").json();
    assert_eq!(listed[0]["variables"][0], "GH_TOKEN");
    assert!(listed[0]["deny_args"].as_array().unwrap().len() > 3, "what is known of it came along");

    assert_eq!(run(&home, &["test", "gh", "--", "pr", "list"], "").code, 0);
    let refused = run(&home, &["test", "gh", "--", "auth", "token"], "");
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("`deny_args` matches from argument 1"), "{}", refused.stderr);

    assert_eq!(run(&home, &["remove", "gh"], "").code, 0);
    let gone = run(&home, &["test", "gh"], "");
    assert_eq!(gone.code, 2);
    assert!(gone.stderr.contains("there is no program `gh`"), "{}", gone.stderr);
}

#[test]
fn values_come_from_lines_and_from_the_environment() {
    let home = home();
    let words = ["add", "gh", "--env", "GH_TOKEN", "--env", "OTHER", "--from-env", "GH_HOST"];
    let ran = run(&home, &words, &format!("GH_TOKEN={TOKEN}\nOTHER=x=y\n"));
    assert_eq!(ran.stdout, "program `gh`: `~/bin/gh` runs with GH_HOST, GH_TOKEN, OTHER\n", "{}", ran.stderr);
    let ran = run(&home, &words, &format!("GH_TOKEN={TOKEN}\n"));
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("no line `OTHER=...`"), "{}", ran.stderr);
    assert_eq!(run(&home, &["add", "gh", "--from-env", "NOT_SET"], "").code, 2);
}

#[test]
fn rows_of_other_systems_are_loaded_as_they_are() {
    let home = home();
    let row = format!(
        r#"{{"binary_name": "gh", "encrypted_env": {{"GH_TOKEN": "{TOKEN}"}}, "deny_args": ["auth\\s+", "ssh-key"],
            "deny_verbose": ["--verbose", "-v"], "timeout_seconds": 30,
            "tips": "GitHub CLI. Available: gh api, gh repo, gh issue, etc."}}"#
    );
    home.run(&["agent", "add", "ada"]);
    home.write("project/one.json", &row);
    home.write("project/many.json", format!("[{row}]"));
    for file in ["one.json", "many.json"] {
        let ran = run(&home, &["add", "--file", file, "--agent", "ada"], "");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let listed = run(&home, &["list", "--json"], "").json();
    assert_eq!((listed[0]["agent"].as_str(), listed[0]["timeout_secs"].as_u64()), (Some("ada"), Some(30)));
    assert_eq!(run(&home, &["test", "gh", "--agent", "ada", "--", "auth", "login"], "").code, 3);
    // The row says nothing of it; what is known of the program does, unless that is left out.
    assert_eq!(run(&home, &["test", "gh", "--agent", "ada", "--", "secret", "list"], "").code, 3);
    assert_eq!(listed[0]["tips"], "GitHub CLI. Available: gh api, gh repo, gh issue, etc.");
    assert_eq!(run(&home, &["add", "--file", "one.json", "--agent", "ada", "--bare"], "").code, 0);
    assert_eq!(run(&home, &["test", "gh", "--agent", "ada", "--", "secret", "list"], "").code, 0);

    home.write("project/bad.json", row.replace("auth\\\\s+", "("));
    let bad = run(&home, &["add", "--file", "bad.json"], "");
    assert_eq!(bad.code, 2);
    assert!(bad.stderr.contains("pattern 1 of `deny_args`"), "{}", bad.stderr);
    home.write("project/torn.json", &row[..row.len() - 20]);
    let torn = run(&home, &["add", "--file", "torn.json"], "");
    assert_eq!(torn.code, 2);
    assert!(torn.stderr.contains("line 3"), "{}", torn.stderr);
}

#[test]
fn a_program_that_others_can_change_is_refused() {
    let home = home();
    fs::set_permissions(home.path().join("bin/gh"), Permissions::from_mode(0o777)).unwrap();
    let ran = run(&home, &["add", "gh", "--binary", "../bin/gh"], TOKEN);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("can be written by others"), "{}", ran.stderr);
    assert_eq!(run(&home, &["add", "gh"], TOKEN).code, 2, "it is not taken from `$PATH` either");
    fs::set_permissions(home.path().join("bin/gh"), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(home.path().join("bin"), Permissions::from_mode(0o777)).unwrap();
    let ran = run(&home, &["add", "gh", "--binary", "../bin/gh"], TOKEN);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("`~/bin` can be written by others"), "{}", ran.stderr);
    fs::set_permissions(home.path().join("bin"), Permissions::from_mode(0o755)).unwrap();
    let ran = run(&home, &["add", "gh"], "");
    assert!(ran.code == 2 && ran.stderr.contains("--from-env"), "{}", ran.stderr);
    assert_eq!(run(&home, &["add", "unheard-of"], TOKEN).code, 2);
}

/// Without a value on standard input, the first complaint shows what was looked at first.
#[test]
fn nobody_types_a_secret_for_a_program_that_is_refused() {
    let home = home();
    let check = |words: &[&str], code: i32, why: &str| {
        let ran = run(&home, &[&["add"], words].concat(), "");
        assert!(ran.code == code && ran.stderr.contains(why), "{words:?}: {}", ran.shown());
        assert!(!ran.stderr.contains("the value is empty"), "{words:?}: {}", ran.shown());
    };
    check(&["unheard-of", "--env", "TOKEN"], 2, "no program `unheard-of` is in `$PATH`");
    check(&["gh", "--binary", "../nowhere"], 1, "nowhere");
    check(&["gh", "--agent", "nobody"], 2, "nobody");
    check(&["../gh", "--binary", "../bin/gh", "--env", "TOKEN"], 2, "../gh");
    check(&["gh", "--deny-args", "("], 2, "(");
    check(&["gh", "--env", "A=B"], 1, "`A=B` is not a valid variable name");
    let ran = run(&home, &["add", "gh"], "");
    assert!(
        ran.code == 2 && ran.stderr.contains("the value is empty"),
        "what is asked for then: {}",
        ran.shown()
    );
}

#[test]
fn a_program_is_registered_tested_and_removed_over_http_and_never_tells_its_values() {
    let home = home();
    let binary = home.path().join("bin/gh").canonicalize().unwrap();
    fs::write(&binary, "#!/bin/sh\necho \"args: $* token: $GH_TOKEN\"\nexit 3\n").unwrap();
    let gateway = Gateway::start(&home, ECHO);
    let owner = gateway.key("root", &["--role", "owner", "--scope", "admin"]);
    let admin = gateway.key("ann", &["--role", "admin", "--scope", "admin"]);
    let put = |key: &str, path: &str, body: Value| {
        let answer = gateway.send(&format!("PUT {path}"), key, &[], &body.to_string());
        assert!(!answer.body.contains("hunter2"), "{}", answer.body);
        answer
    };
    let wish = json!({ "binary": binary, "variables": { "GH_TOKEN": TOKEN }, "denyArgs": ["repo delete"], "tips": "be brief" });
    // Programs run on the host: an administrator of a tenant defines none.
    put(&admin, "/v1/programs/gh", wish.clone()).check(403, "role `owner`");
    put(&owner, "/v1/programs/gh", json!({ "binary": "bin/gh", "variables": {} }))
        .check(400, "absolute path");
    put(&owner, "/v1/programs/gh", json!({ "binary": "/no/such/file", "variables": {} }))
        .check(400, "/no/such/file");
    put(&owner, "/v1/programs/gh?agentId=nobody", wish.clone()).check(404, "nobody");
    let added = put(&owner, "/v1/programs/gh", wish.clone()).check(200, "GH_TOKEN").json();
    assert_eq!(added["program"]["tips"], "be brief");
    assert!(
        added["program"]["denyArgs"].as_array().unwrap().len() > 3,
        "what is known of it came along: {added}"
    );
    let short = json!({ "binary": binary, "variables": { "PIN": "1234" }, "bare": true });
    put(&owner, "/v1/programs/pin", short).check(200, "too short to be recognised");

    let listed = gateway.get("/v1/programs", &admin).check(200, "\"gh\"");
    assert!(!listed.body.contains("hunter2"), "{}", listed.body);
    assert_eq!(gateway.get("/v1/programs?limit=1", &admin).json()["next"], "gh ");
    gateway.get("/v1/programs/gh", &admin).check(200, "GH_TOKEN");
    gateway.get("/v1/programs/none", &admin).check(404, "there is no program");

    let test = |key: &str, body: Value| {
        let answer = gateway.post("/v1/programs/gh/test", key, &body);
        assert!(!answer.body.contains("hunter2"), "{}", answer.body);
        answer
    };
    test(&admin, json!({})).check(403, "role `owner`");
    let checked = test(&owner, json!({ "arguments": ["pr", "list"] })).check(200, "").json();
    assert!(checked["refused"].is_null() && checked["ran"].is_null(), "{checked}");
    let refused = test(&owner, json!({ "arguments": ["repo", "delete"], "run": true })).check(200, "").json();
    assert!(
        refused["refused"].as_str().unwrap().contains("deny_args") && refused["ran"].is_null(),
        "{refused}"
    );
    let ran = test(&owner, json!({ "arguments": ["pr", "list"], "run": true })).check(200, "").json();
    assert_eq!(ran["ran"]["exit"], 3, "{ran}");
    assert!(ran["ran"]["output"].as_str().unwrap().contains("args: pr list token: "), "{ran}");

    // A file that has changed is not run until it is accepted.
    fs::write(&binary, "#!/bin/sh\nexit 0\n").unwrap();
    let changed = test(&owner, json!({ "arguments": ["pr"], "run": true }));
    assert!(
        changed.status >= 400 && changed.body.contains("has changed since `gh` was registered"),
        "{}",
        changed.body
    );
    gateway.post("/v1/programs/gh/accept", &admin, &json!({})).check(403, "role `owner`");
    gateway.post("/v1/programs/gh/accept", &owner, &json!({})).check(200, "GH_TOKEN");
    assert_eq!(test(&owner, json!({ "arguments": ["pr"], "run": true })).json()["ran"]["exit"], 0);

    gateway.send("DELETE /v1/programs/gh", &admin, &[], "").check(204, "");
    gateway.send("DELETE /v1/programs/gh", &admin, &[], "").check(404, "there is no program");
    gateway.post("/v1/programs/gh/accept", &owner, &json!({})).check(404, "there is no program");
    // Another tenant's owner has no programs on this host.
    assert_eq!(home.run(&["tenants", "add", "acme"]).code, 0);
    let acme = gateway.key("eve", &["--tenant", "acme", "--role", "owner", "--scope", "admin"]);
    put(&acme, "/v1/programs/gh", wish).check(403, "owner of the deployment");
}
