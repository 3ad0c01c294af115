//! Memory at the command line and over HTTP: documents in, passages out, each for whom it belongs.

use serde_json::{Value, json};

use crate::gateway::{ECHO, Gateway};
use crate::harness::Home;

fn notes(home: &Home) {
    std::fs::create_dir_all(home.path().join("project/notes/trips")).unwrap();
    home.write("project/notes/MEMORY.md", "# Me\n\nI prefer tea.\n");
    home.write(
        "project/notes/trips/2026-03-05.md",
        "# Lisbon\n\nWe flew to Lisbon.\n\n## Hotel\n\nIt was noisy at night.\n",
    );
    home.write("project/notes/picture.png", [0, 1, 2]);
    home.write("project/notes/.hidden.md", "hidden lisbon");
    home.write("project/notes/bad.txt", [0xff, 0xfe, 0x41]);
    std::os::unix::fs::symlink("/etc/passwd", home.path().join("project/notes/link.md")).unwrap();
}

fn json(home: &Home, words: &[&str]) -> Value {
    let ran = home.run(&[words, &["--json"]].concat());
    assert_eq!(ran.code, 0, "{words:?}: {}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn imports_and_finds() {
    let home = Home::new();
    notes(&home);
    let imported = json(&home, &["memory", "import", "notes"]);
    let states: Vec<(&str, &str)> = imported["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| (file["path"].as_str().unwrap(), file["state"].as_str().unwrap()))
        .collect();
    assert_eq!(
        states,
        [("MEMORY.md", "added"), ("memory/bad.txt", "skipped"), ("memory/trips/2026-03-05.md", "added")]
    );
    let again = json(&home, &["memory", "import", "notes"]);
    assert_eq!(again["files"][2]["state"], "unchanged");

    let found = json(&home, &["memory", "search", "which hotels were noisy", "--limit", "3"]);
    assert_eq!(found["mode"], "words");
    assert!(found["note"].as_str().unwrap().contains("words alone"));
    let hit = &found["hits"][0];
    assert_eq!(hit["path"], "memory/trips/2026-03-05.md");
    assert_eq!((hit["start_line"].as_u64(), hit["end_line"].as_u64()), (Some(5), Some(7)));
    assert_eq!(hit["heading"], "Lisbon > Hotel");
    assert_eq!(hit["text"], "## Hotel\n\nIt was noisy at night.");
    assert!(hit["score"].as_f64().unwrap() > 0.0);
    assert_eq!(hit["why"]["owner"], "user");
    let month = json(&home, &["memory", "search", "what happened in March"]);
    assert_eq!(month["hits"][0]["path"], "memory/trips/2026-03-05.md", "by the date in its name");

    // The same over the road.
    let called = home.run(&["tools", "call", "memory_search", "--args", r#"{"query": "tea"}"#]);
    assert!(called.stdout.contains("MEMORY.md:1-3 under \"Me\""), "{} {}", called.stdout, called.stderr);
    let called = home.run(&[
        "tools",
        "call",
        "memory_get",
        "--args",
        r#"{"path": "memory/trips/2026-03-05.md", "from": 7}"#,
    ]);
    assert!(called.stdout.contains("It was noisy at night."), "{} {}", called.stdout, called.stderr);
}

#[test]
fn a_document_is_found_by_its_owner_alone() {
    let home = Home::with_config("[agents.other]\nabout = \"another\"\n");
    notes(&home);
    for (owner, word) in [("user", "heron"), ("agent", "stork"), ("tenant", "crane")] {
        home.write("project/notes/MEMORY.md", format!("a {word} was seen"));
        home.run(&["memory", "import", "notes", "--owner", owner]);
    }
    let seen = |more: &[&str]| -> Vec<String> {
        let found = json(&home, &[&["memory", "search", "heron stork crane"], more].concat());
        let hits = found["hits"].as_array().unwrap();
        hits.iter().map(|hit| hit["why"]["owner"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(seen(&[]), ["user", "agent", "tenant"]);
    assert_eq!(seen(&["--user", "ben"]), ["agent", "tenant"]);
    assert_eq!(seen(&["--agent", "other"]), ["tenant"]);
    let shown = json(&home, &["memory", "show", "MEMORY.md", "--user", "ben"]);
    assert_eq!(shown["text"], "a stork was seen");
    assert_ne!(home.run(&["memory", "search", "heron", "--agent", "nobody"]).code, 0);

    assert_eq!(home.run(&["memory", "forget", "MEMORY.md"]).code, 0);
    assert_eq!(seen(&[]), ["agent", "tenant"]);
    let gone = home.run(&["memory", "forget", "MEMORY.md"]);
    assert!(gone.code != 0 && gone.stderr.contains("there is no memory document"), "{}", gone.stderr);
    let bad = home.run(&["memory", "forget", "memory/../SOUL.md"]);
    assert!(bad.stderr.contains("is not the path of a memory document"), "{}", bad.stderr);
}

#[test]
fn status_reindex_and_export_tell_what_they_did() {
    let home = Home::new();
    notes(&home);
    home.run(&["memory", "import", "notes"]);
    let status = json(&home, &["memory", "status"]);
    assert_eq!((status["documents"].as_u64(), status["unindexed"].as_u64()), (Some(2), Some(0)));
    assert_eq!(status["model"], Value::Null);
    let indexed = json(&home, &["memory", "reindex"]);
    assert_eq!(indexed["words"], 2);
    let listed = home.run(&["memory", "list"]);
    assert!(listed.stdout.contains("memory/trips/2026-03-05.md"), "{}", listed.stdout);
    let exported = home.run(&["memory", "export", "out"]);
    assert_eq!(exported.code, 0, "{}", exported.stderr);
    let text = std::fs::read_to_string(home.path().join("project/out/user/MEMORY.md")).unwrap();
    assert_eq!(text, "# Me\n\nI prefer tea.\n");
    let again = home.run(&["memory", "export", "out"]);
    assert!(again.code != 0 && again.stderr.contains("cannot be written"), "{}", again.stderr);
}

#[test]
fn a_model_that_is_away_keeps_nobody_from_searching() {
    // Nothing listens there.
    let config = "[memory.embeddings]\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:1/v1\"\n";
    let home = Home::with_config(config);
    notes(&home);
    let imported = json(&home, &["memory", "import", "notes"]);
    assert_eq!(imported["indexed"]["failed"], 2);
    let status = json(&home, &["memory", "status"]);
    assert_eq!((status["unembedded"].as_u64(), status["vectors"].as_u64()), (Some(2), Some(0)));
    assert_eq!(status["failures"][0]["tries"], 1);
    let found = json(&home, &["memory", "search", "tea"]);
    assert_eq!(
        (found["mode"].as_str(), found["hits"][0]["path"].as_str()),
        (Some("words"), Some("MEMORY.md"))
    );
    assert!(found["note"].as_str().unwrap().contains("the embedding model `m`"), "{}", found["note"]);
}

const FORGETFUL: &str = r#"
model = { context = 16000, output = 400 }

[[turn]]
when.said = "This is a silent turn"
when.result_of = "write_file"
do = [{ say = "It is written down." }]

[[turn]]
when.said = "This is a silent turn"
do = [
    { call = "write_file", args = { path = "MEMORY.md", content = "They like crabs." } },
    { call = "write_file", args = { path = "memory/../notes.txt", content = "no memory" } },
    { call = "exec", args = { command = "touch ran" } },
]

[[turn]]
when.said = "Sum up the conversation"
do = [{ say = "They talked." }]

[[turn]]
do = [{ say = "You said so." }]
"#;

#[test]
fn before_a_session_is_shortened_the_agent_writes_down_what_should_last() {
    let home = Home::new();
    let script = home.write("script.toml", FORGETFUL);
    let said = "crab ".repeat(2_000);
    let remembered = || home.run(&["memory", "show", "MEMORY.md"]);
    let mut asked = 0;
    while remembered().code != 0 {
        let session = ["chat", "--managed", "--session", "cli:long", "-m", &said];
        let ran = home.run(&[&session[..], &["--script", script.to_str().unwrap()]].concat());
        assert_eq!(ran.code, 0, "{}", ran.shown());
        assert!(
            !ran.stdout.contains("written down") && ran.stdout.contains("You said so."),
            "silent: {}",
            ran.shown()
        );
        asked += 1;
        assert!(asked < 15, "it is never shortened");
    }
    assert!(asked > 1);
    assert_eq!(remembered().stdout.trim(), "They like crabs.");
    let workspaces = std::fs::read_dir(home.data().join("workspaces/main/default")).unwrap();
    for workspace in workspaces.map(|entry| entry.unwrap().path()) {
        for name in ["notes.txt", "ran"] {
            assert!(!workspace.join(name).exists(), "memory alone is written");
        }
    }
    let ledger = home.run(&["ledger", "show", "--json"]);
    assert!(ledger.stdout.contains("write_file"), "its calls are recorded: {}", ledger.shown());
}

#[test]
fn memory_is_ones_own_and_shared_memory_an_administrators() {
    let home = Home::new();
    let gateway = Gateway::start(&home, ECHO);
    let scopes = ["--scope", "memory:read,memory:write"];
    let (ann, ben) = (gateway.key("ann", &scopes), gateway.key("ben", &scopes));
    let boss = gateway.key("boss", &["--role", "admin", "--scope", "memory:read,memory:write"]);
    let put = |key: &str, body: &Value| gateway.send("PUT /v1/memory/document", key, &[], &body.to_string());
    let own = json!({ "path": "MEMORY.md", "text": "# Garden\n\nann saw a heron" });
    put(&ann, &own).check(200, "version");
    put(&ann, &json!({ "path": "memory/a.md", "text": "for all", "owner": "agent" }))
        .check(403, "role `admin`");
    put(&boss, &json!({ "path": "memory/a.md", "text": "herons for all", "owner": "tenant" }))
        .check(200, "version");
    put(&ann, &json!({ "path": "../etc/passwd", "text": "x" }))
        .check(400, "is not the path of a memory document");
    for path in
        ["memory/a\n[memory] b.md", "memory/\u{1b}[2J.md", "memory/a\u{202e}dm.b", "memory/a\u{85}b.md"]
    {
        put(&ann, &json!({ "path": path, "text": "x" })).check(400, "is not the path of a memory document");
    }
    put(&ann, &json!({ "path": "MEMORY.md", "text": "x", "userId": "ben" })).check(422, "userId");

    let found =
        gateway.get("/v1/memory/search?q=which+herons&limit=5", &ann).check(200, "words alone").json();
    let owners: Vec<&str> =
        found["hits"].as_array().unwrap().iter().map(|hit| hit["why"]["owner"].as_str().unwrap()).collect();
    assert_eq!(owners, ["user", "tenant"]);
    let found = gateway.get("/v1/memory/search?q=heron", &ben).json();
    assert_eq!(found["hits"].as_array().unwrap().len(), 1, "ann's is not ben's");
    gateway.get("/v1/memory/document?path=MEMORY.md", &ben).check(404, "no memory document");
    gateway.get("/v1/memory/document?path=MEMORY.md&from=3&lines=1", &ann).check(200, "ann saw a heron");
    gateway.get("/v1/memory/search?q=", &ann).check(400, "`q` has 0 bytes");
    gateway.get("/v1/memory/search?q=x&agentId=nobody", &ann).check(404, "nobody");
    gateway.get("/v1/memory", &ann).check(200, "memory/a.md");
    gateway.get("/v1/memory/status", &ben).check(200, "\"unindexed\":0");
    gateway
        .send("DELETE /v1/memory/document?path=memory/a.md&owner=tenant", &ann, &[], "")
        .check(403, "admin");
    gateway.send("DELETE /v1/memory/document?path=MEMORY.md", &ben, &[], "").check(404, "no memory document");
    gateway.send("DELETE /v1/memory/document?path=MEMORY.md", &ann, &[], "").check(200, "forgotten");
    let reader = gateway.key("ina", &["--scope", "sessions:read"]);
    gateway.get("/v1/memory/search?q=heron", &reader).check(403, "memory:read");
    gateway.get("/v1/memory", "claw_nothing").check(401, "key");
}
