//! `/v1/tools/invoke`: the road, approvals, calls that are sent again, and calls for other users.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::connections::until;
use crate::gateway::{Answer, ECHO, Gateway, client, request};
use crate::harness::Home;

#[test]
fn a_tool_is_called_under_the_road() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let tools = gateway.get("/v1/tools", &key).check(200, "read_file").json();
    assert!(tools["tools"].as_array().unwrap().iter().all(|tool| tool["parameters"]["type"] == "object"));

    let written = json!({ "tool": "write_file", "args": { "path": "a.txt", "content": "hello" } });
    let session = gateway.invoke(&key, &written).check(200, "\"ok\":true").json();
    let session = session["sessionKey"].as_str().unwrap().to_owned();
    assert!(home.data().join("workspaces/main/default/user-ann/a.txt").exists());
    let read = json!({ "tool": "read_file", "args": { "path": "a.txt" }, "sessionKey": session });
    gateway.invoke(&key, &read).check(200, "hello");
    gateway.invoke(&key, &json!({ "tool": "datetime", "action": "now" })).check(200, "\"ok\":true");
    gateway
        .invoke(&key, &json!({ "tool": "read_file", "args": { "path": "none" } }))
        .check(200, "\"kind\":\"not_found\"");
    gateway.invoke(&key, &json!({ "tool": "nothing" })).check(404, "unknown_tool");
    gateway
        .invoke(&key, &json!({ "tool": "read_file", "args": { "path": 1.5 } }))
        .check(422, "invalid_arguments");
    gateway
        .invoke(&key, &json!({ "tool": "read_file", "args": { "path": "../../x" } }))
        .check(200, "outside the workspace");
    let ledger = home.run(&["ledger", "show", "--json"]).stdout;
    assert!(ledger.contains("\"channel\":\"http\"") || ledger.contains("\"channel\": \"http\""), "{ledger}");
}

#[test]
fn a_call_that_needs_approval_runs_once_after_the_yes() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let key = gateway.key("ann", &[]);
    let workspace = home.data().join("workspaces/main/default/user-ann");
    std::fs::create_dir_all(workspace.join("build")).unwrap();
    let mut call = json!({ "tool": "exec", "args": { "command": "rm -r build" } });
    let asked = gateway.invoke(&key, &call).check(202, "approvalId").json();
    assert!(workspace.join("build").exists(), "nothing runs behind the client");
    call["callId"] = asked["callId"].clone();
    gateway.invoke(&key, &call).check(202, asked["approvalId"].as_str().unwrap());

    let listed = gateway.get("/v1/approvals", &key).check(200, "rm -r build").json();
    assert_eq!(listed["approvals"][0]["id"], asked["approvalId"]);
    let ben = gateway.answering("ben");
    assert_eq!(
        gateway.get("/v1/approvals", &ben).json()["approvals"],
        json!([]),
        "somebody else's is not shown"
    );
    let path = format!("/v1/approvals/{}/answer", asked["approvalId"].as_str().unwrap());
    gateway.post(&path, &ben, &json!({ "approve": true })).check(404, "there is no approval");
    gateway
        .post(&path, &key, &json!({ "approve": true }))
        .check(403, "does not have the scope `approvals:answer`");
    let yes = gateway.answering("ann");
    gateway.post(&path, &yes, &json!({ "approve": true })).check(200, "\"state\":\"approved\"");
    gateway.post(&path, &yes, &json!({ "approve": false })).check(409, "an answer is final");

    gateway.invoke(&key, &call).check(200, "\"ok\":true");
    assert!(!workspace.join("build").exists());
    std::fs::create_dir_all(workspace.join("build")).unwrap();
    gateway.invoke(&key, &call).check(200, "\"recorded\":\"done\"");
    assert!(workspace.join("build").exists(), "it ran once");
}

#[test]
fn an_idempotency_key_makes_a_call_once() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let (ann, ben) = (gateway.key("ann", &[]), gateway.key("ben", &[]));
    let append =
        json!({ "tool": "write_file", "args": { "path": "log", "content": "x\n", "mode": "append" } });
    let send = |key: &str, id: &str| {
        gateway.send("POST /v1/tools/invoke", key, &[("idempotency-key", id)], &append.to_string())
    };
    send(&ann, "one").check(200, "\"ok\":true");
    send(&ann, "one").check(200, "\"recorded\":\"done\"");
    send(&ben, "one").check(200, "\"ok\":true");
    let log = home.data().join("workspaces/main/default/user-ann/log");
    assert_eq!(std::fs::read_to_string(log).unwrap(), "x\n");
    let other = json!({ "tool": "datetime" }).to_string();
    gateway
        .send("POST /v1/tools/invoke", &ann, &[("idempotency-key", "one")], &other)
        .check(200, "\"ok\":true");
    let asks = json!({ "tool": "exec", "args": { "command": "rm -r build" } }).to_string();
    let ask = || {
        gateway
            .send("POST /v1/tools/invoke", &ann, &[("idempotency-key", "two")], &asks)
            .check(202, "")
            .json()
    };
    assert_eq!(ask()["approvalId"], ask()["approvalId"], "the same request waits for the same approval");
}

/// A home whose commands see what the test writes to `signals` while they run; returns that directory.
fn with_signals() -> (Home, PathBuf) {
    let home = Home::with_config("[files]\nwrite = [\"~/signals\"]\n");
    let signals = home.path().canonicalize().unwrap().join("signals");
    std::fs::create_dir(&signals).unwrap();
    (home, signals)
}

/// A call that ends once the file `go` is among the signals.
fn waiting_call(signals: &Path) -> Value {
    let go = signals.join("go");
    let command = format!("until [ -e {} ]; do sleep 0.1; done; echo ran >> log", go.display());
    json!({ "tool": "exec", "args": { "command": command } })
}

/// Approves the call that is sent with the key `one`, if it needs that.
fn let_run(gateway: &Gateway<'_>, key: &str, call: &Value) {
    let mut rehearsed = call.clone();
    rehearsed["dryRun"] = json!(true);
    if gateway.invoke(key, &rehearsed).check(200, "verdict").json()["verdict"] == "ask" {
        let asked = send_one(gateway, key, call).check(202, "approvalId").json();
        let path = format!("/v1/approvals/{}/answer", asked["approvalId"].as_str().unwrap());
        gateway.post(&path, key, &json!({ "approve": true })).check(200, "approved");
    }
}

fn send_one(gateway: &Gateway<'_>, key: &str, call: &Value) -> Answer {
    gateway.send("POST /v1/tools/invoke", key, &[("idempotency-key", "one")], &call.to_string())
}

#[test]
fn a_request_that_is_sent_again_while_its_call_runs_is_told_so() {
    let (home, signals) = with_signals();
    let gateway = Gateway::start(&home, ECHO);
    let ann = gateway.answering("ann");
    let call = waiting_call(&signals);
    let_run(&gateway, &ann, &call);
    let (ran, told) = std::thread::scope(|scope| {
        let (answers, answered) = std::sync::mpsc::channel();
        for _ in 0..2 {
            let (answers, gateway, ann, call) = (answers.clone(), &gateway, &ann, &call);
            scope.spawn(move || answers.send(send_one(gateway, ann, call)));
        }
        // The command of the other waits for the file.
        let told = answered.recv().unwrap();
        home.write("signals/go", "");
        (answered.recv().unwrap(), told)
    });
    ran.check(200, "\"ok\":true");
    let told = told.check(409, "\"code\":\"call_in_progress\"");
    assert_eq!(told.header("retry-after"), Some("1"), "{}", told.head);
    assert!(told.json()["hint"].as_str().unwrap().contains("send the same request again"), "{}", told.body);
    send_one(&gateway, &ann, &call).check(200, "\"recorded\":\"done\"");
    let log = home.data().join("workspaces/main/default/user-ann/log");
    assert_eq!(std::fs::read_to_string(log).unwrap(), "ran\n");
}

#[test]
fn a_retry_right_after_a_broken_connection_is_never_told_that_the_outcome_is_unknown() {
    let (home, signals) = with_signals();
    let gateway = Gateway::start(&home, ECHO);
    let ann =
        gateway.key("ann", &["--scope", "tools:read,tools:call,approvals:read,approvals:answer,ledger:read"]);
    let call = waiting_call(&signals);
    let_run(&gateway, &ann, &call);
    let mut first = gateway.connect();
    let sent = [("idempotency-key", "one")];
    let sent = request(&gateway.address, "POST /v1/tools/invoke", &ann, &sent, &call.to_string());
    first.write_all(sent.as_bytes()).unwrap();
    until("the call begins", || {
        gateway.get("/v1/ledger?tool=exec", &ann).check(200, "entries").body.contains("\"intent\"")
    });
    send_one(&gateway, &ann, &call).check(409, "call_in_progress");
    drop(first);
    let mut last = send_one(&gateway, &ann, &call);
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while last.status == 409 {
        assert!(std::time::Instant::now() < deadline, "the call of a client that is gone still runs");
        last = send_one(&gateway, &ann, &call);
    }
    last.check(200, "\"recorded\":\"failed\"");
    assert!(!home.data().join("workspaces/main/default/user-ann/log").exists(), "it was cancelled");
}

#[test]
fn the_outcome_of_one_tool_is_not_taken_for_that_of_another() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let ann = gateway.key("ann", &[]);
    let first = gateway.invoke(&ann, &json!({ "tool": "datetime" })).check(200, "\"ok\":true").json();
    let write = json!({
        "tool": "write_file", "args": { "path": "a.txt", "content": "x" }, "callId": first["callId"],
    });
    let other = gateway.invoke(&ann, &write).check(200, "\"ok\":true").json();
    assert!(home.data().join("workspaces/main/default/user-ann/a.txt").exists());
    assert_ne!(other["ledgerCallId"], first["ledgerCallId"]);
    gateway.invoke(&ann, &write).check(200, "\"recorded\":\"done\"");
    let again = json!({ "tool": "datetime", "callId": first["callId"] });
    gateway.invoke(&ann, &again).check(200, "\"recorded\":\"done\"");
}

/// A key that may act for others, with these scopes besides.
fn acting(gateway: &Gateway<'_>, user: &str, more: &[&str]) -> String {
    let scopes = "users:act,tools:read,tools:call,sessions:read,sessions:write,approvals:read,approvals:answer,\
                  ledger:read";
    gateway.key(user, &[&["--role", "admin", "--scope", scopes], more].concat())
}

#[test]
fn a_key_with_the_scope_acts_for_the_users_of_its_tenant() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let front = acting(&gateway, "front", &[]);
    let (ann, admin) =
        (gateway.key("ann", &[]), gateway.key("root", &["--role", "admin", "--scope", "admin"]));
    gateway.key("vera", &["--role", "viewer"]);
    let for_user = |key: &str, user: &str, what: &str, body: &Value| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        gateway.send(what, key, &[("x-clawsmith-user", user)], &body)
    };
    let call = json!({ "tool": "datetime" });
    let invoke = |key: &str, user: &str| for_user(key, user, "POST /v1/tools/invoke", &call);
    // The scope, and the role.
    invoke(&ann, "front").check(403, "scope `users:act`");
    let operator = gateway.key("ben", &["--scope", "users:act,tools:call"]);
    invoke(&operator, "ann").check(403, "role `admin`");
    // It is the user's session, and the user in the ledger.
    let done = invoke(&front, "ann").check(200, "\"ok\":true").json();
    assert_eq!(done["sessionKey"], "agent:default:http:direct:ann:tools");
    let ledger = gateway.get("/v1/ledger?tool=datetime", &admin).check(200, "entries").json();
    let entries = ledger["entries"].as_array().unwrap();
    assert!(entries.len() == 2 && entries.iter().all(|entry| entry["user"] == "ann"), "{ledger}");
    let chat = json!({ "model": "default", "messages": [{ "role": "user", "content": "one" }] });
    let asked = for_user(&front, "ann", "POST /v1/chat/completions", &chat).check(200, "You said: one");
    let session = asked.header("x-clawsmith-session").unwrap();
    gateway.get(&format!("/v1/sessions/{session}/messages"), &ann).check(200, "You said: one");
    gateway.get(&format!("/v1/sessions/{session}/messages"), &front).check(404, "there is no session");
    // The lower of both roles: a viewer calls nothing.
    for_user(&front, "vera", "GET /v1/tools", &Value::Null).check(200, "datetime");
    invoke(&front, "vera").check(403, "role `operator`");
    // What it answers names both.
    let asks = json!({ "tool": "exec", "args": { "command": "rm -r build" } });
    let asked = for_user(&front, "ann", "POST /v1/tools/invoke", &asks).check(202, "approvalId").json();
    let answer = format!("POST /v1/approvals/{}/answer", asked["approvalId"].as_str().unwrap());
    for_user(&front, "ann", &answer, &json!({ "approve": false }))
        .check(200, "\"answeredBy\":\"ann, by front\"");
    // Nobody whom the tenant does not have.
    assert_eq!(home.run(&["tenants", "add", "other"]).code, 0);
    gateway.key("eve", &["--tenant", "other"]);
    for nobody in ["eve", "nobody", "", "a b", "ann,ben"] {
        invoke(&front, nobody).check(404, "there is no user");
    }
    let two = [("x-clawsmith-user", "ann"), ("x-clawsmith-user", "vera")];
    gateway.send("GET /v1/tools", &front, &two, "").check(400, "more than one");
    gateway.send("GET /v1/ws", "", &[("x-clawsmith-user", "ann")], "").check(401, "no_key");
    assert_eq!(home.run(&["users", "edit", "ann", "--disabled", "true"]).code, 0);
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while invoke(&front, "ann").status != 403 {
        assert!(std::time::Instant::now() < deadline, "a disabled user is still acted for");
        std::thread::sleep(Duration::from_millis(20));
    }
    // A key that is limited to agents stays so.
    gateway.post("/v1/agents", &admin, &json!({ "id": "narrow" })).check(201, "narrow");
    let limited = acting(&gateway, "front", &["--agent", "narrow"]);
    invoke(&limited, "vera").check(403, "role `operator`");
    invoke(&limited, "root").check(403, "cannot be used with the agent");
    client(&gateway, "websocket_acting.py", &front, &[&ann]);
}

#[test]
fn refuses_an_administrator_who_acts_for_an_owner() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let olga = gateway.key("olga", &["--role", "owner", "--scope", "admin"]);
    let admin = gateway.key("root", &["--role", "admin", "--scope", "admin"]);
    let front = acting(&gateway, "front", &[]);
    gateway.key("ann", &["--role", "admin"]);
    let asked = gateway.chat(&olga, "one", None).check(200, "You said: one");
    let session = asked.header("x-clawsmith-session").unwrap();
    let as_user = |key: &str, user: &str, path: &str| {
        gateway.send(&format!("GET {path}"), key, &[("x-clawsmith-user", user)], "")
    };
    for key in [&admin, &front] {
        for path in ["/v1/sessions", "/v1/memory", &format!("/v1/sessions/{session}/messages")] {
            let refused = as_user(key, "olga", path).check(403, "the user `olga` has the role `owner`");
            let said = refused.json();
            assert!(
                said["detail"].as_str().unwrap().contains("the key's user has the role `admin`"),
                "{said}"
            );
            assert!(said["hint"].as_str().unwrap().contains("up to the role `admin`"), "{said}");
        }
        as_user(key, "ann", "/v1/sessions").check(200, "sessions");
    }
    as_user(&olga, "root", "/v1/sessions").check(200, "sessions");
}

#[test]
fn a_run_whose_client_is_gone_is_cancelled_in_the_names_of_both() {
    let home = Home::new();
    let gateway = Gateway::start(&home, "[[turn]]\ndo = [{ hang = true }]\n");
    let (front, ann) = (acting(&gateway, "front", &[]), gateway.key("ann", &[]));
    let chat =
        json!({ "model": "default", "stream": true, "messages": [{ "role": "user", "content": "hang" }] });
    let mut stream = gateway.connect();
    let acts = [("x-clawsmith-user", "ann")];
    let what = request(&gateway.address, "POST /v1/chat/completions", &front, &acts, &chat.to_string());
    stream.write_all(what.as_bytes()).unwrap();
    let head = BufReader::new(&stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
    let head: Vec<String> = head.collect();
    let session = head.iter().find_map(|line| line.strip_prefix("x-clawsmith-session: ")).unwrap();
    let events = gateway.connect();
    let what = format!("GET /v1/sessions/{session}/events?after=0");
    (&events).write_all(request(&gateway.address, &what, &ann, &[], "").as_bytes()).unwrap();
    drop(stream);
    let mut lines = BufReader::new(events).lines().map_while(Result::ok);
    let ended = lines
        .find(|line| line.contains("\"end\":\"stopped\""))
        .unwrap_or_else(|| panic!("nobody cancelled the run"));
    let event: Value = serde_json::from_str(ended.strip_prefix("data: ").unwrap()).unwrap();
    let run = event["run"].as_str().unwrap();
    gateway.get(&format!("/v1/runs/{run}"), &ann).check(200, "\"by\":\"ann, by front\"");
}

#[test]
fn refuses_a_user_of_a_group_who_remembers_a_rule_for_all_of_it() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let (front, ann) = (acting(&gateway, "front", &[]), gateway.answering("ann"));
    gateway.key("ben", &[]);
    let send = |user: &str, what: &str, body: &Value| {
        gateway.send(what, &front, &[("x-clawsmith-user", user)], &body.to_string())
    };
    let call = json!({
        "tool": "exec", "args": { "command": "rm -r build" },
        "channel": "telegram", "chatId": "-100", "peerKind": "group",
    });
    let asked = send("ann", "POST /v1/tools/invoke", &call).check(202, "approvalId").json();
    assert_eq!(asked["sessionKey"], "agent:default:telegram:group:-100");
    let path = format!("/v1/approvals/{}/answer", asked["approvalId"].as_str().unwrap());
    let always = json!({ "approve": true, "always": {} });
    send("ann", &format!("POST {path}"), &always).check(403, "the session of a group");
    gateway.post(&path, &ann, &always).check(403, "the session of a group");
    // An approval of the one call lets no call of another user through.
    gateway.post(&path, &ann, &json!({ "approve": true })).check(200, "approved");
    let other = send("ben", "POST /v1/tools/invoke", &call).check(202, "approvalId").json();
    let path = format!("/v1/approvals/{}/answer", other["approvalId"].as_str().unwrap());
    let admin = gateway.key("root", &["--role", "admin", "--scope", "admin"]);
    gateway.post(&path, &admin, &always).check(200, "approved");
}

#[test]
fn a_call_names_its_channel_with_the_scope_and_never_the_terminal() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let (front, ann) = (acting(&gateway, "front", &[]), gateway.key("ann", &[]));
    let invoke = |key: &str, user: &str, more: Value| {
        let mut body = json!({ "tool": "datetime" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let headers: Vec<_> =
            Some(("x-clawsmith-user", user)).into_iter().filter(|_| !user.is_empty()).collect();
        gateway.send("POST /v1/tools/invoke", key, &headers, &body.to_string())
    };
    let group = json!({ "channel": "telegram", "chatId": "-100", "peerKind": "group" });
    for more in [
        json!({ "channel": "telegram" }),
        json!({ "chatId": "1" }),
        json!({ "peerKind": "direct" }),
        group.clone(),
    ] {
        invoke(&ann, "", more).check(403, "scope `users:act`");
    }
    // The permission comes before the names.
    for odd in [json!({ "chatId": "x".repeat(600), "peerKind": "group" }), json!({ "channel": "a:b" })] {
        invoke(&ann, "", odd).check(403, "scope `users:act`");
    }
    let done = invoke(&front, "ann", group).check(200, "\"ok\":true").json();
    assert_eq!(done["sessionKey"], "agent:default:telegram:group:-100");
    let ledger = home.run(&["ledger", "show", "--json"]).json();
    let intent = ledger.as_array().unwrap().iter().find(|entry| entry["event"] == "intent").unwrap();
    assert_eq!(
        (
            &intent["user"],
            &intent["context"]["channel"],
            &intent["context"]["chat"],
            &intent["context"]["peer"]
        ),
        (&json!("ann"), &json!("telegram"), &json!("-100"), &json!("group")),
        "{intent}"
    );
    let direct =
        invoke(&front, "ann", json!({ "channel": "telegram", "chatId": "7" })).check(200, "\"ok\":true");
    let session = direct.json()["sessionKey"].as_str().unwrap().to_owned();
    assert_eq!(session, "agent:default:telegram:direct:ann:tools");
    for foreign in
        ["agent:default:telegram:direct:ben", "agent:default:http:direct:ann", "agent:default:cli:direct:ann"]
    {
        let more = json!({ "channel": "telegram", "sessionKey": foreign });
        invoke(&front, "ann", more).check(400, "there is no session");
    }
    // The terminal's channel, and with it the sandbox `main`, is nobody's over the network.
    let admin = gateway.key("root", &["--role", "owner", "--scope", "admin"]);
    for name in ["cli", "CLI", " cli "] {
        for key in [&front, &admin] {
            for user in ["", "ann"] {
                invoke(key, user, json!({ "channel": name })).check(403, "cannot be claimed");
                let terminal = json!({ "channel": name, "sessionKey": "agent:default:cli:direct:ann" });
                invoke(key, user, terminal).check(403, "cannot be claimed");
            }
        }
    }
    for (more, says) in [
        (json!({ "channel": "a:b" }), "`channel` is not a valid name"),
        (json!({ "channel": "" }), "`channel` is not a valid name"),
        (json!({ "chatId": "a\nb" }), "`chatId` is not a valid name"),
        (json!({ "chatId": "x".repeat(65) }), "`chatId` has 65 bytes; at most 64"),
        (json!({ "peerKind": "group" }), "`chatId` is missing"),
    ] {
        invoke(&front, "", more).check(400, says);
    }
    let longest = json!({ "chatId": ":".repeat(64), "peerKind": "group" });
    invoke(&front, "ann", longest).check(200, "\"ok\":true");
    invoke(&front, "", json!({ "peerKind": "crowd" })).check(422, "unknown variant");
}

#[test]
fn refuses_to_let_one_user_name_a_call_of_another() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let (ann, ben) = (gateway.key("ann", &[]), gateway.key("ben", &[]));
    let first = gateway.invoke(&ann, &json!({ "tool": "datetime" })).check(200, "\"ok\":true").json();
    let again = json!({ "tool": "datetime", "callId": first["callId"] });
    gateway.invoke(&ann, &again).check(200, "\"recorded\":\"done\"");
    gateway.invoke(&ben, &again).check(200, "\"ok\":true");
    // The call is found in the ledger by the id that it has there.
    let recorded = gateway.invoke(&ann, &again).json();
    assert_eq!(recorded["ledgerCallId"], first["ledgerCallId"]);
    let ledger = home.run(&["ledger", "show", "--json"]).json();
    let of_call = |entry: &Value| entry["call"] == first["ledgerCallId"] && entry["tool"] == "datetime";
    assert!(ledger.as_array().unwrap().iter().any(of_call), "{first}: {ledger}");
    // Ben cannot make Ann's next call look as if it were done.
    let id = "01a1e44c-dc6c-76b6-9eba-d7d43c71a7d0";
    gateway.invoke(&ben, &json!({ "tool": "datetime", "callId": id })).check(200, "\"ok\":true");
    gateway.invoke(&ann, &json!({ "tool": "datetime", "callId": id })).check(200, "\"ok\":true");
}
