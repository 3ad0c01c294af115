//! Custom tools: defined at run time, run like `exec`, and never shown with their secrets.

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::{Home, Ran};

const TOKEN: &str = "hunter2-and-more-than-that";

/// The example of the product's documents.
const EXAMPLE: &str = r#"{
"name": "dns_lookup",
"description": "Look up DNS records for a domain",
"parameters": {
"type": "object",
"properties": {
"domain": { "type": "string", "description": "Domain name" },
"record_type": { "type": "string", "enum": ["A", "AAAA", "MX", "CNAME", "TXT"] }
},
"required": ["domain"]
},
"command": "dig +short {{.record_type}} {{.domain}}",
"timeout_seconds": 10,
"enabled": true
}"#;

fn tools(home: &Home, words: &[&str]) -> Ran {
    let mut command = home.command(&[&["tools"], words].concat());
    let ran = home.ran(command.env("PATH", "/usr/bin:/bin").env("DEPLOY_TOKEN", TOKEN));
    assert!(!ran.shown().contains("hunter2"), "{}", ran.shown());
    ran
}

/// A tool that takes one required text `a` and an optional text `b`.
fn definition(name: &str, command: &str) -> Value {
    json!({
        "name": name, "description": "Does it.", "command": command,
        "parameters": {
            "type": "object",
            "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
            "required": ["a"],
        },
    })
}

#[track_caller]
fn add(home: &Home, definition: &Value, more: &[&str]) -> Ran {
    home.write("project/tool.json", definition.to_string());
    let ran = tools(home, &[&["add", "tool.json"], more].concat());
    assert_eq!(ran.code, 0, "{}", ran.shown());
    ran
}

#[test]
fn the_example_is_added_listed_shown_changed_and_removed() {
    let home = Home::new();
    home.write("project/dns.json", EXAMPLE);
    let added = tools(&home, &["add", "dns.json"]);
    assert_eq!(added.stdout, "added dns_lookup, version 1: dig +short {{.record_type}} {{.domain}}\n");
    let again = tools(&home, &["add", "dns.json"]);
    assert_eq!((again.code, again.stderr.contains("the custom tool `dns_lookup` already exists")), (1, true));
    let listed = tools(&home, &["list", "--section", "custom", "--json"]).json();
    assert_eq!((&listed[0]["name"], &listed[0]["allowed"]), (&json!("dns_lookup"), &json!(true)));
    let edited = tools(&home, &["edit", "dns_lookup", "--timeout", "30", "--network", "--json"]).json();
    assert_eq!(edited["changed"]["version"], 2);
    let shown = tools(&home, &["show", "dns_lookup", "--json"]).json();
    assert_eq!((&shown["timeout_seconds"], &shown["grants"]["network"]), (&json!(30), &json!(true)));
    assert_eq!(tools(&home, &["disable", "dns_lookup"]).code, 0);
    assert!(tools(&home, &["list"]).stdout.contains("custom tools that are disabled: dns_lookup"));
    let refused = tools(&home, &["test", "dns_lookup", r#"{"domain": "example.com"}"#]);
    assert_eq!(refused.code, 3, "{}", refused.shown());
    assert_eq!(tools(&home, &["enable", "dns_lookup"]).code, 0);
    assert_eq!(tools(&home, &["remove", "dns_lookup"]).code, 0);
    assert_eq!(tools(&home, &["remove", "dns_lookup"]).code, 2);
}

#[test]
fn refuses_a_value_that_opens_a_quote_or_a_placeholder() {
    let home = Home::new();
    add(&home, &definition("say", "printf '%s\\n' {{.a}} {{.b}}"), &[]);
    let said = |args: Value| tools(&home, &["test", "say", &args.to_string()]).stdout;
    assert_eq!(said(json!({ "a": "{{.b}}", "b": "; id #" })), "{{.b}}\n; id #\n[exit code 0]\n");
    assert_eq!(said(json!({ "a": "'; id; '" })), "'; id; '\n[exit code 0]\n");
    assert_eq!(said(json!({ "a": "$(id) `id` ${HOME}" })), "$(id) `id` ${HOME}\n[exit code 0]\n");
    let dash = tools(&home, &["test", "say", r#"{"a": "-n"}"#]);
    assert_eq!((dash.code, dash.stderr.contains("begins with `-`")), (3, true), "{}", dash.shown());
    let unknown = tools(&home, &["test", "say", r#"{"a": "x", "c": 1}"#]);
    assert_eq!(unknown.code, 3, "{}", unknown.shown());
}

#[test]
fn refuses_names_and_templates_that_mislead() {
    let home = Home::new();
    for (name, command, said) in [
        ("exec", "ls {{.a}}", "the name of a built-in tool"),
        ("bash", "ls {{.a}}", "another name of the built-in tool `exec`"),
        ("fs", "ls {{.a}}", "the name of a group"),
        ("mcp_x", "ls {{.a}}", "belong to the tools of MCP servers"),
        ("t", "ls '{{.a}}'", "at character 5: no placeholder can be filled safely because of quotes"),
        ("t", "ls {{.nope}}", "at character 4: `nope` is not among the parameters"),
        ("t", "rm /data/{{.b}}", "at character 10: the optional parameter `b`"),
    ] {
        home.write("project/tool.json", definition(name, command).to_string());
        let ran = tools(&home, &["add", "tool.json"]);
        assert_eq!((ran.code, ran.stderr.contains(said)), (2, true), "{}", ran.shown());
    }
    let preloaded =
        tools(&home, &["add", "--name", "t", "--description", "d", "--command", "ls", "--from-env", "PATH"]);
    assert_eq!((preloaded.code, preloaded.stderr.contains("`PATH`")), (2, true), "{}", preloaded.shown());
    let data = home.data().display().to_string();
    let data =
        tools(&home, &["add", "--name", "t", "--description", "d", "--command", "ls", "--path", &data]);
    assert_eq!((data.code, data.stderr.contains("data directory")), (2, true), "{}", data.shown());
}

#[test]
fn sealed_variables_reach_the_command_and_nobody_else() {
    let home = Home::new();
    let command = "printf %s \"$DEPLOY_TOKEN\" | wc -c; echo \"[$DEPLOY_TOKEN]\" {{.a}}";
    add(&home, &definition("deploy", command), &["--from-env", "DEPLOY_TOKEN"]);
    let ran = tools(&home, &["test", "deploy", r#"{"a": "x"}"#, "--json"]);
    assert!(
        ran.stdout.contains(&TOKEN.len().to_string()) && ran.stdout.contains("[REDACTED]"),
        "{}",
        ran.shown()
    );
    for words in
        [&["show", "deploy", "--json"][..], &["list", "--json"], &["edit", "deploy", "--timeout", "5"]]
    {
        assert_eq!(tools(&home, words).code, 0);
    }
    let ledger = home.run(&["ledger", "show", "--json"]);
    assert!(!ledger.shown().contains("hunter2"), "{}", ledger.shown());
    for entry in std::fs::read_dir(home.data()).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        let bytes = std::fs::read(entry.path()).unwrap();
        assert!(!bytes.windows(7).any(|part| part == b"hunter2"), "{:?}", entry.path());
    }
    // The variable is kept by an edit that does not name it.
    let kept = tools(&home, &["test", "deploy", r#"{"a": "x"}"#]).stdout;
    assert!(kept.starts_with(&TOKEN.len().to_string()), "{kept}");
}

#[test]
fn an_edited_command_gets_a_sealed_variable_only_if_it_is_given_again() {
    let home = Home::new();
    add(&home, &definition("deploy", "echo $DEPLOY_TOKEN {{.a}}"), &["--from-env", "DEPLOY_TOKEN"]);
    let other = ["--command", "printenv {{.a}}"];
    for more in [&other[..], &["--network"], &["--path", "/srv"], &["--working-dir", "other"]] {
        let words = [&["edit", "deploy"], more].concat();
        let refused = tools(&home, &words);
        assert_eq!(refused.code, 2, "{}", refused.shown());
        assert!(refused.stderr.contains("the secret variable `DEPLOY_TOKEN`"), "{}", refused.shown());
        assert!(refused.stderr.contains("--from-env"), "{}", refused.shown());
    }
    let shown = tools(&home, &["show", "deploy", "--json"]).json();
    assert_eq!((&shown["version"], &shown["grants"]["network"]), (&json!(1), &json!(false)));
    let given = tools(&home, &["edit", "deploy", "--network", "--from-env", "DEPLOY_TOKEN"]);
    assert_eq!(given.code, 0, "{}", given.shown());
}

#[test]
fn a_missing_grant_is_named_and_once_granted_it_works() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("outside")).unwrap();
    let file = home.write("outside/f", "data\n").display().to_string();
    let cat = json!({ "name": "peek", "description": "Reads it.", "argv": ["cat", file] });
    add(&home, &cat, &[]);
    let ran = tools(&home, &["test", "peek"]);
    assert!(ran.stderr.contains("missing grant: ~/outside/f"), "{}", ran.shown());
    let outside = home.path().join("outside").display().to_string();
    assert_eq!(tools(&home, &["edit", "peek", "--path", &outside]).code, 0);
    assert_eq!(tools(&home, &["test", "peek"]).stdout, "data\n[exit code 0]\n");
    let ran = tools(&home, &["test", "exec", &json!({ "command": format!("cat {file}") }).to_string()]);
    assert!(ran.stdout.contains("No such file"), "the grant is the tool's alone: {}", ran.shown());
}

#[test]
fn tools_of_files_come_from_the_named_directory_alone() {
    let home = Home::with_config("[custom_tools]\ndirectory = \"tools\"\n");
    std::fs::create_dir(home.path().join("project/tools")).unwrap();
    home.write("project/tools/say.json", definition("say", "echo {{.a}}").to_string());
    home.write("project/tools/other.txt", "not a tool");
    assert_eq!(tools(&home, &["test", "say", r#"{"a": "x"}"#]).stdout, "x\n[exit code 0]\n");
    home.write("project/tools/bad.json", definition("bad", "echo '{{.a}}'").to_string());
    let ran = tools(&home, &["test", "say", r#"{"a": "x"}"#]);
    assert!(ran.code != 0 && ran.stderr.contains("bad.json"), "{}", ran.shown());
    // Without the setting nothing is picked up.
    let other = Home::new();
    std::fs::create_dir(other.path().join("project/tools")).unwrap();
    other.write("project/tools/say.json", definition("say", "echo {{.a}}").to_string());
    assert_eq!(tools(&other, &["test", "say", r#"{"a": "x"}"#]).code, 3);
}

#[test]
fn a_tool_runs_in_its_directory_and_within_its_time() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("project/deep/down")).unwrap();
    let tool = |name: &str, command: &str, more: Value| {
        let mut tool = json!({ "name": name, "description": "Does it.", "command": command });
        tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        add(&home, &tool, &[]);
    };
    tool("where_am_i", "basename \"$PWD\"", json!({ "working_dir": "deep/down" }));
    assert_eq!(tools(&home, &["test", "where_am_i"]).stdout, "down\n[exit code 0]\n");
    tool("slow", "sleep 600", json!({ "timeout_seconds": 1 }));
    let slow = tools(&home, &["test", "slow"]);
    assert!(slow.stdout.contains("the tool's time limit of 1 s was reached"), "{}", slow.shown());
}

#[test]
fn refuses_parameters_that_are_no_usable_schema() {
    let home = Home::new();
    let mut tool = definition("t", "ls {{.a}}");
    for bad in [json!({ "type": "nonsense" }), json!({ "$ref": "#/$defs/none" }), json!({ "pattern": "(" })] {
        tool["parameters"]["properties"]["a"] = bad;
        home.write("project/tool.json", tool.to_string());
        let ran = tools(&home, &["add", "tool.json"]);
        assert_eq!((ran.code, ran.stderr.contains("JSON Schema")), (2, true), "{}", ran.shown());
    }
}

const SCRIPT: &str = r#"
[[turn]]
when.said = "go"
when.result_of = "say"
do = [{ say = "It said {{result}}" }]

[[turn]]
when.said = "go"
do = [{ call = "say", args = { a = "x y" } }]

[[turn]]
do = [{ say = "You said: {{said}}" }]
"#;

#[test]
fn a_running_session_sees_a_tool_that_another_process_defines_and_changes() {
    let home = Home::new();
    let gateway = Gateway::start(&home, SCRIPT);
    let key = gateway.key("ann", &[]);
    let first = gateway.chat(&key, "hello", None).check(200, "You said: hello");
    let session = first.head.lines().find_map(|line| line.strip_prefix("x-clawsmith-session: ")).unwrap();
    add(&home, &definition("say", "echo old {{.a}}"), &[]);
    until(&gateway, &key, |tools| tools.contains("\"say\""));
    gateway.chat(&key, "go", Some(session)).check(200, "old x y");
    let changed = json!({ "command": "echo new {{.a}}", "description": "Does it anew." });
    home.write("project/change.json", changed.to_string());
    assert_eq!(tools(&home, &["edit", "say", "change.json"]).code, 0);
    until(&gateway, &key, |tools| tools.contains("Does it anew."));
    gateway.chat(&key, "go", Some(session)).check(200, "new x y");
    assert_eq!(tools(&home, &["disable", "say"]).code, 0);
    until(&gateway, &key, |tools| !tools.contains("\"say\""));
    gateway.invoke(&key, &json!({ "tool": "say", "args": { "a": "x" } })).check(404, "unknown_tool");
}

#[test]
fn files_that_come_change_break_and_go_reach_a_gateway_that_runs() {
    let home = Home::with_config("[custom_tools]\ndirectory = \"tools\"\n");
    std::fs::create_dir(home.path().join("project/tools")).unwrap();
    let (script, log) = (home.write("script.toml", SCRIPT), home.path().join("log"));
    let mut command = home.process(&["serve", "--json", "--listen", "127.0.0.1:0", "--script"]);
    let gateway = Gateway::spawn(&home, command.arg(script).stderr(std::fs::File::create(&log).unwrap()));
    let key = gateway.key("ann", &[]);
    let first = gateway.chat(&key, "hello", None).check(200, "You said: hello");
    let session = first.head.lines().find_map(|line| line.strip_prefix("x-clawsmith-session: ")).unwrap();
    let file = |text: &str| {
        // In one step, as editors and deployments write.
        home.write("project/tools/say.new", text);
        let directory = home.path().join("project/tools");
        std::fs::rename(directory.join("say.new"), directory.join("say.json")).unwrap();
    };
    let told = |about: &str, command: &str| {
        let mut definition = definition("say", command);
        definition["description"] = json!(about);
        definition.to_string()
    };
    file(&told("Does it at first.", "echo old {{.a}}"));
    until(&gateway, &key, |tools| tools.contains("Does it at first."));
    gateway.chat(&key, "go", Some(session)).check(200, "old x y");
    file(&told("Does it anew.", "echo new {{.a}}"));
    until(&gateway, &key, |tools| tools.contains("Does it anew."));
    gateway.chat(&key, "go", Some(session)).check(200, "new x y");
    // A broken file leaves the tools as they were, at every look.
    file("{ this is no JSON");
    home.write("project/tools/other.json", definition("other", "echo {{.a}}").to_string());
    let begun = std::time::Instant::now();
    while !std::fs::read_to_string(&log).unwrap().contains("the custom tools stay as they were") {
        gateway.invoke(&key, &json!({ "tool": "say", "args": { "a": "x" } })).check(200, "new x");
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "nobody noticed the broken file");
    }
    gateway.invoke(&key, &json!({ "tool": "say", "args": { "a": "x" } })).check(200, "new x");
    file(&told("Does it once more.", "echo mended {{.a}}"));
    until(&gateway, &key, |tools| tools.contains("Does it once more.") && tools.contains("\"other\""));
    gateway.chat(&key, "go", Some(session)).check(200, "mended x y");
    std::fs::remove_file(home.path().join("project/tools/say.json")).unwrap();
    until(&gateway, &key, |tools| !tools.contains("\"say\"") && tools.contains("\"other\""));
    gateway.invoke(&key, &json!({ "tool": "say", "args": { "a": "x" } })).check(404, "unknown_tool");
}

#[test]
fn a_disabled_tool_is_not_tested_and_says_so() {
    let home = Home::new();
    add(&home, &definition("say", "echo {{.a}} > made"), &[]);
    assert_eq!(tools(&home, &["disable", "say"]).code, 0);
    let ran = tools(&home, &["test", "say", r#"{"a": "x"}"#]);
    assert_eq!(ran.code, 3, "{}", ran.shown());
    assert!(ran.stderr.contains("is disabled, and was not called"), "{}", ran.shown());
    assert!(ran.stderr.contains("clawsmith tools enable say"), "{}", ran.shown());
    assert!(!home.path().join("project/made").exists());
    assert_eq!(tools(&home, &["enable", "say"]).code, 0);
    assert_eq!(tools(&home, &["test", "say", r#"{"a": "x"}"#]).code, 0);
    assert!(home.path().join("project/made").exists());
}

/// Waits until the gateway, another process, has noticed a change; fails if it never does.
#[track_caller]
fn until(gateway: &Gateway<'_>, key: &str, is_so: impl Fn(&str) -> bool) {
    let begun = std::time::Instant::now();
    while !is_so(&gateway.get("/v1/tools", key).check(200, "tools").body) {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "the change did not come");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_dangerous_filled_command_waits_for_a_person() {
    let home = Home::new();
    add(&home, &definition("tidy", "rm -r {{.a}}"), &[]);
    let gateway = Gateway::start(&home, SCRIPT);
    let key = gateway.key("ann", &[]);
    let call = json!({ "tool": "tidy", "args": { "a": "build" } });
    gateway.invoke(&key, &call).check(202, "approvalId");
    gateway.get("/v1/approvals", &key).check(200, "rm -r 'build'");
}

#[test]
fn the_owner_defines_tools_over_http_and_nobody_else() {
    let home = Home::new();
    let gateway = Gateway::start(&home, SCRIPT);
    let owner = gateway.key("olga", &["--scope", "admin", "--role", "owner"]);
    let admin = gateway.key("adam", &["--scope", "admin", "--role", "admin"]);
    let (user, path) = (gateway.key("ann", &[]), "/v1/tools/custom");
    let mut new = definition("say", "echo {{.a}} $TOKEN");
    new["env"] = json!({ "TOKEN": TOKEN });
    gateway.post(path, &user, &new).check(403, "scope `admin`");
    gateway.post(path, &admin, &new).check(403, "the deployment's owner");
    gateway.get(path, &admin).check(403, "the deployment's owner");
    let made = gateway.post(path, &owner, &new).check(201, "\"variables\":[\"TOKEN\"]");
    assert!(!made.body.contains("hunter2"), "{}", made.body);
    gateway.post(path, &owner, &new).check(409, "already");
    gateway.post(path, &owner, &definition("exec", "ls")).check(400, "built-in");
    let all = gateway.get(path, &owner).check(200, "\"say\"");
    assert!(!all.body.contains("hunter2"), "{}", all.body);
    gateway.invoke(&user, &json!({ "tool": "say", "args": { "a": "x" } })).check(200, "x [REDACTED]");
    let change = |body: Value| gateway.send("PATCH /v1/tools/custom/say", &owner, &[], &body.to_string());
    change(json!({ "timeout_seconds": 5 })).check(400, "version");
    change(json!({ "version": 1, "timeout_seconds": 5 })).check(200, "\"version\":2");
    change(json!({ "version": 1, "timeout_seconds": 6 })).check(409, "version 2");
    gateway.get("/v1/tools/custom/none", &owner).check(404, "there is no custom tool");
    gateway.send("DELETE /v1/tools/custom/say?version=1", &owner, &[], "").check(409, "");
    gateway.send("DELETE /v1/tools/custom/say", &owner, &[], "").check(204, "");
    gateway.invoke(&user, &json!({ "tool": "say", "args": { "a": "x" } })).check(404, "unknown_tool");
}

#[test]
fn an_administrator_defines_tools_where_configuration_says_so() {
    let home = Home::with_config("[custom_tools]\ntenant_admins = true\n");
    let gateway = Gateway::start(&home, SCRIPT);
    let admin = gateway.key("adam", &["--scope", "admin", "--role", "admin"]);
    gateway.post("/v1/tools/custom", &admin, &definition("say", "echo {{.a}}")).check(201, "say");
}

#[test]
fn a_request_goes_to_the_named_server_with_its_sealed_header() {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = vec![0; 4096];
        let read = stream.read(&mut bytes).unwrap();
        let answer = "{\"ok\":true}";
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", answer.len());
        stream.write_all(format!("{head}{answer}").as_bytes()).unwrap();
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    });
    let tool = json!({
        "name": "order", "description": "Orders it.",
        "parameters": definition("x", "")["parameters"],
        "http": {
            "method": "POST", "url": format!("http://{address}/v1/{{{{.a}}}}"),
            "headers": { "Authorization": format!("Bearer {TOKEN}") }, "body": { "what": "{{.a}}", "b": "{{.b}}" },
        },
    });
    let home = Home::new();
    add(&home, &tool, &[]);
    let refused = tools(&home, &["test", "order", r#"{"a": "x"}"#]);
    assert_eq!(refused.code, 1, "an address that is not public: {}", refused.shown());
    home.configure(&format!("[custom_tools]\nprivate_origins = [\"http://{address}\"]\n"));
    // A value that the store keeps encrypted is not sent in an address, however it is written there.
    let sealed = home.ran(home.command(&["secrets", "set", "KEY"]).write_stdin("swordfish/2026"));
    assert_eq!(sealed.code, 0, "{}", sealed.shown());
    for value in ["swordfish/2026", "c3dvcmRmaXNoLzIwMjY"] {
        let refused = tools(&home, &["test", "order", &json!({ "a": value }).to_string()]);
        assert!(refused.code == 1 && refused.stderr.contains("holds a secret"), "{}", refused.shown());
    }
    let ran = tools(&home, &["test", "order", r#"{"a": "a/../b"}"#]);
    assert_eq!(ran.stdout, "{\"ok\":true}\n[status 200]\n", "{}", ran.shown());
    let sent = server.join().unwrap();
    assert!(sent.starts_with("POST /v1/a%2F..%2Fb HTTP/1.1"), "{sent}");
    assert!(sent.contains(TOKEN) && sent.ends_with("{\"what\":\"a/../b\"}"), "{sent}");
}
