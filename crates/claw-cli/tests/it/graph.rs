//! The knowledge graph at the command line and over HTTP: facts in, answers out, each for whom it belongs.

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::Home;

fn json(home: &Home, words: &[&str]) -> Value {
    let ran = home.run(&[words, &["--json"]].concat());
    assert_eq!(ran.code, 0, "{words:?}: {}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn names(found: &Value, list: &str) -> Vec<String> {
    found[list].as_array().unwrap().iter().map(|entity| entity["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn facts_are_added_found_merged_and_forgotten() {
    let home = Home::new();
    let anna = json(
        &home,
        &[
            "graph",
            "add",
            "entity",
            "Anna Müller",
            "--type",
            "Person",
            "--alias",
            "Annie",
            "--property",
            "city=Bern",
            "--source",
            "memory/people.md:3-4",
        ],
    );
    assert_eq!((anna["added"].as_u64(), anna["merged"].as_u64()), (Some(1), Some(0)));
    json(&home, &["graph", "add", "entity", "Acme", "--type", "organization", "--owner", "user"]);
    let worked =
        ["graph", "add", "relation", "annie", "works at", "Acme", "--since", "2020", "--until", "2022-06"];
    assert_eq!(json(&home, &worked)["relations"], 1);

    let then = json(&home, &["graph", "search", "who lives in Bern?", "--as-of", "2021"]);
    assert_eq!(
        (names(&then, "found"), names(&then, "related")),
        (vec!["Anna Müller".to_owned()], vec!["Acme".to_owned()])
    );
    assert_eq!(then["relations"][0]["valid_until"], "2022-06-01");
    let now = json(&home, &["graph", "search", "Bern"]);
    assert_eq!(names(&now, "related"), [""; 0], "it ended");
    let shown = home.run(&["graph", "show", "Anna Müller"]);
    assert!(shown.stdout.contains("memory/people.md:3-4"), "{} {}", shown.stdout, shown.stderr);
    assert!(
        shown.stdout.contains("Anna Müller works_at Acme (since 2020-01-01; until 2022-06-01)"),
        "{}",
        shown.stdout
    );
    // The same over the road, fenced.
    let args = r#"{"query": "anna", "as_of": "2021-01-01"}"#;
    let called = home.run(&["tools", "call", "knowledge_graph_search", "--args", args]);
    assert!(
        called.stdout.contains("works_at Acme") && called.stdout.contains("untrusted data"),
        "{} {}",
        called.stdout,
        called.stderr
    );

    let other = json(&home, &["graph", "add", "entity", "Anna Mueller", "--type", "person"]);
    assert_eq!(other["doubtful"], 1);
    let pairs = json(&home, &["graph", "merge"]);
    let id = |which: &str| pairs["pairs"][0][which]["id"].as_str().unwrap().to_owned();
    let (one, two) = (id("one"), id("other"));
    json(&home, &["graph", "merge", &one, &two]);
    assert_eq!(names(&json(&home, &["graph", "search", "*"]), "found"), ["Acme", "Anna Müller"]);
    assert_eq!(json(&home, &["graph", "merge"])["pairs"], json!([]));
    let gone = home.run(&["graph", "merge", &one, &two, "--apart"]);
    assert!(gone.code != 0 && gone.stderr.contains("there is no entity"), "{}", gone.stderr);
    json(&home, &["graph", "forget", &one]);
    let status = json(&home, &["graph", "status"]);
    assert_eq!((status["entities"].as_u64(), status["relations"].as_u64()), (Some(1), Some(0)));
    let shown = home.run(&["graph", "status"]);
    assert!(shown.stdout.contains("possible duplicates 0\n"), "{}", shown.shown());
    for (words, why) in [
        (&["graph", "add", "entity", "\u{200b}", "--type", "x"] as &[&str], "`name` is empty"),
        (&["graph", "add", "relation", "Acme", "x", "Nobody"], "there is no entity `Nobody`"),
        (&["graph", "search", " "], "search for a name"),
        (&["graph", "search", "x", "--as-of", "soon"], "2026-05-03"),
        (&["graph", "search", "x", "--depth", "6"], "0..=5"),
    ] {
        let ran = home.run(words);
        assert!(ran.code != 0 && ran.stderr.contains(why), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn a_graph_moves_out_and_in_and_malformed_files_change_nothing() {
    let home = Home::new();
    home.write(
        "project/people.csv",
        "record,id,type,name,source,target,confidence\nentity,a,person,Anna,,,0.9\nentity,b,person,'=Ben,,,\nrelation,,knows,,a,b,0.5\n",
    );
    let kept = json(&home, &["graph", "import", "people.csv"]);
    assert_eq!((kept["added"].as_u64(), kept["relations"].as_u64()), (Some(2), Some(1)));
    let again = json(&home, &["graph", "import", "people.csv"]);
    assert_eq!((again["added"].as_u64(), again["merged"].as_u64()), (Some(0), Some(2)));
    let lines = home.run(&["graph", "export"]).stdout;
    assert_eq!(lines.lines().count(), 3, "{lines}");
    let csv = home.run(&["graph", "export", "--format", "csv"]).stdout;
    assert!(csv.contains(",'=Ben,"), "{csv}");
    let dot = home.run(&["graph", "export", "--format", "dot"]).stdout;
    assert!(dot.starts_with("digraph knowledge {") && dot.contains("[label=\"knows\"]"), "{dot}");

    let other = Home::new();
    other.write("project/graph.jsonl", &lines);
    assert_eq!(json(&other, &["graph", "import", "graph.jsonl", "--owner", "tenant"])["added"], 2);
    let found = json(&other, &["graph", "search", "ben", "--user", "somebody"]);
    assert_eq!(
        (names(&found, "found"), names(&found, "related")),
        (vec!["=Ben".to_owned()], vec!["Anna".to_owned()])
    );
    other.write("project/bad.jsonl", format!("{lines}{{\"entity\": 7}}\n"));
    let bad = other.run(&["graph", "import", "bad.jsonl"]);
    assert!(bad.code != 0 && bad.stderr.contains("line 4"), "{}", bad.stderr);
    assert_eq!(json(&other, &["graph", "status"])["entities"], 2);
    let wrong = other.run(&["graph", "import", "bad.xml"]);
    assert!(wrong.code != 0 && wrong.stderr.contains("no known format"), "{}", wrong.stderr);
}

#[test]
fn refuses_the_graph_of_others_over_http() {
    let home = Home::new();
    let gateway = Gateway::start(&home, crate::gateway::ECHO);
    let scopes = ["--scope", "memory:read,memory:write"];
    let (ann, ben) = (gateway.key("ann", &scopes), gateway.key("ben", &scopes));
    let boss = gateway.key("boss", &["--role", "admin", "--scope", "memory:read,memory:write"]);
    let facts = json!({ "facts": [
        { "entity": { "name": "Heron", "type": "bird", "description": "seen by ann" }, "id": "h" },
        { "entity": { "name": "Reed bed", "type": "place" } },
        { "relation": { "type": "lives in" }, "source": "h", "target": "Reed bed" },
    ] });
    let kept = gateway.post("/v1/graph/facts", &ann, &facts).check(200, "\"added\":2").json();
    let id = kept["entities"][0].as_str().unwrap().to_owned();
    gateway.get("/v1/graph/search?q=heron&depth=2", &ann).check(200, "lives_in");
    gateway.get(&format!("/v1/graph/entities/{id}"), &ann).check(200, "seen by ann");
    gateway.get("/v1/graph/export?format=dot", &ann).check(200, "digraph");
    gateway.get("/v1/graph/status", &ann).check(200, "\"entities\":2");

    // Another user who guesses the id.
    gateway.get(&format!("/v1/graph/entities/{id}"), &ben).check(404, "there is no entity");
    let found =
        gateway.get(&format!("/v1/graph/search?entityId={id}&depth=5"), &ben).check(200, "found").json();
    assert_eq!(found["found"], json!([]));
    gateway.send(&format!("DELETE /v1/graph/entities/{id}"), &ben, &[], "").check(404, "there is no entity");
    let pair = json!({ "keep": id, "other": kept["entities"][1] });
    gateway.post("/v1/graph/pairs", &ben, &pair).check(404, "there is no entity");
    let mine = json!({ "facts": [
        { "entity": { "name": "Fox", "type": "animal" }, "id": "f" },
        { "relation": { "type": "eats" }, "source": "f", "target": id },
    ] });
    gateway.post("/v1/graph/facts", &ben, &mine).check(400, "there is no entity");
    assert_eq!(gateway.get("/v1/graph/export", &ben).check(200, "").body.trim(), "");

    // Shared facts are an administrator's to change.
    let shared = json!({ "owner": "tenant", "facts": [{ "entity": { "name": "Crane", "type": "bird" } }] });
    gateway.post("/v1/graph/facts", &ann, &shared).check(403, "admin");
    let kept = gateway.post("/v1/graph/facts", &boss, &shared).check(200, "added").json();
    let crane = kept["entities"][0].as_str().unwrap();
    gateway.get("/v1/graph/search?q=crane", &ben).check(200, "Crane");
    gateway.send(&format!("DELETE /v1/graph/entities/{crane}"), &ann, &[], "").check(403, "admin");
    gateway.send(&format!("DELETE /v1/graph/entities/{crane}"), &boss, &[], "").check(200, "forgotten");

    for (path, why) in [
        ("/v1/graph/search?q=", "`*` for all"),
        ("/v1/graph/search?q=x&asOf=soon", "`asOf` is `soon`"),
        ("/v1/graph/search?entityId=1", "is not the id of an entity"),
        ("/v1/graph/export?format=xml", "jsonl"),
    ] {
        gateway.get(path, &ann).check(400, why);
    }
    let hostile = json!({ "facts": [{ "entity": { "name": "x".repeat(1_000_000), "type": "y" } }] });
    gateway.post("/v1/graph/facts", &ann, &hostile).check(400, "1000000 bytes");
    gateway.post("/v1/graph/facts", &ann, &json!({ "facts": [], "userId": "ben" })).check(422, "userId");
    let reader = gateway.key("ina", &["--scope", "sessions:read"]);
    gateway.get("/v1/graph/search?q=heron", &reader).check(403, "memory:read");
    gateway.get("/v1/graph/search?q=heron", "claw_nothing").check(401, "key");
}

const EXTRACTION: &str = r##"
[[turn]]
when.said_matches = '(?s)painter'
do = [{ say = '{"entities": [{"name": "Anna", "type": "person", "description": "a painter", "confidence": 0.9, "lines": [1, 1]}], "relations": []}' }]

[[turn]]
when.said_matches = '(?s)Extract the facts.*1: Anna works at Acme.'
do = [{ say = '{"entities": [{"name": "Anna", "type": "person", "confidence": 0.9, "lines": [1, 1]}, {"name": "Acme", "type": "organization", "confidence": 0.9}, {"name": "Ghost", "type": "person", "confidence": 0.2}], "relations": [{"source": "Anna", "type": "works_at", "target": "Acme", "confidence": 0.8, "lines": [1, 1], "valid_from": "2020"}]}' }]

[[turn]]
do = [{ say = "I see no facts." }]
"##;

const GRAPH: &str = r#"
[models]
provider = "rehearsal"

[models.providers.rehearsal]
kind = "scripted"
script = "extraction.toml"

[memory.graph]
quiet_seconds = 0
"#;

#[test]
fn a_model_extracts_and_a_changed_document_replaces_what_it_said() {
    let home = Home::with_config(GRAPH);
    home.write("project/extraction.toml", EXTRACTION);
    std::fs::create_dir_all(home.path().join("project/notes")).unwrap();
    home.write("project/notes/people.md", "Anna works at Acme.\n");
    home.write("project/notes/odd.md", "nothing to see\n");
    json(&home, &["memory", "import", "notes"]);
    let done = json(&home, &["graph", "extract"]);
    assert_eq!(
        (done["documents"].as_u64(), done["entities"].as_u64(), done["failed"].as_u64()),
        (Some(1), Some(2), Some(1)),
        "{done}"
    );
    let status = json(&home, &["graph", "status"]);
    assert!(
        status["failures"][0]["error"].as_str().unwrap().contains("for line 1 cannot be used"),
        "{status}"
    );
    let found = json(&home, &["graph", "search", "anna"]);
    assert_eq!(
        (names(&found, "found"), names(&found, "related")),
        (vec!["Anna".to_owned()], vec!["Acme".to_owned()])
    );
    assert_eq!(found["relations"][0]["sources"][0]["path"], "memory/people.md");
    assert_eq!(names(&json(&home, &["graph", "search", "ghost"]), "found"), [""; 0], "not sure enough");

    home.write("project/notes/people.md", "Anna is a painter.\n");
    json(&home, &["memory", "import", "notes"]);
    json(&home, &["graph", "extract"]);
    let found = json(&home, &["graph", "search", "*"]);
    assert_eq!(
        (names(&found, "found"), found["found"][0]["description"].as_str()),
        (vec!["Anna".to_owned()], Some("a painter"))
    );
    assert_eq!(home.run(&["memory", "forget", "memory/people.md"]).code, 0);
    assert_eq!(names(&json(&home, &["graph", "search", "*"]), "found"), [""; 0], "it goes with its document");
    let unset = Home::new().run(&["graph", "extract"]);
    assert!(unset.code != 0 && unset.stderr.contains("[memory.graph]"), "{}", unset.stderr);
}
