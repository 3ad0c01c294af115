//! Secrets survive, and stay secret.

use super::*;

const SECRET: &str = "hunter2-Xk9qLm4v";
const OTHER: &str = "another-Zp3rTs8w";

fn config() -> String {
    format!("name = \"demo\"\npassword = \"{SECRET}\"\napi_key = \"{OTHER}\"\nport = 1\n")
}

fn road(text: &str) -> Road {
    Road::new(&[("c.toml", text.as_bytes())])
}

/// The text as the tools show it.
fn shown(text: &str) -> String {
    text.replace(SECRET, "[REDACTED]").replace(OTHER, "[REDACTED]")
}

#[track_caller]
fn clean(reply: &Reply) {
    let said = format!("{} {:?} {:?}", reply.model_text(), reply.outcome, reply.notes);
    for secret in [SECRET, OTHER] {
        assert!(!said.contains(&secret[2..10]), "{said}");
    }
}

#[tokio::test]
async fn reading_hides_and_editing_keeps() {
    let road = road(&config());
    let read = road.call("read_file", json!({ "path": "c.toml" })).await;
    clean(&read);
    assert!(done(&read).contains("     2\tpassword = \"[REDACTED]\"\n"), "{}", read.model_text());
    let edit = json!({ "path": "c.toml", "edits": [
        { "old": "password = \"[REDACTED]\"\napi_key = \"[REDACTED]\"", "new": "api_key = \"[REDACTED]\"\npassword = \"[REDACTED]\"" },
        { "old": "port = 1", "new": "port = 2" },
    ]});
    let edited = road.call("edit", edit).await;
    clean(&edited);
    done(&edited);
    let expected = format!("name = \"demo\"\napi_key = \"{OTHER}\"\npassword = \"{SECRET}\"\nport = 2\n");
    assert_eq!(road.text("c.toml"), expected);
}

#[tokio::test]
async fn plain_words_in_configuration_are_hidden_and_edits_keep_them() {
    for (path, old, new) in [
        (
            "my.cnf",
            "[client]\nuser = bob\npassword = swordfish\n",
            "[client]\nuser = eve\npassword = swordfish\n",
        ),
        (".env", "DB_USER=bob\nDB_PASSWORD=swordfish\n", "DB_PASSWORD=swordfish\nDB_USER=eve\n"),
        (
            "compose.yml",
            "environment:\n  DB_USER: bob\n  POSTGRES_PASSWORD: swordfish\n",
            "environment:\n  DB_USER: eve\n  POSTGRES_PASSWORD: swordfish\n",
        ),
        (
            "app.properties",
            "db.user=bob\ndb.password = swordfish\n",
            "db.user=eve\ndb.password = swordfish\n",
        ),
        ("redis.conf", "port 1\nrequirepass swordfish\n", "port 2\nrequirepass swordfish\n"),
        (
            "a.yml",
            "user: bob\npassword: |\n  swordfish\n  fish\n",
            "user: eve\npassword: |\n  swordfish\n  fish\n",
        ),
    ] {
        let road = Road::new(&[(path, old.as_bytes())]);
        let shown =
            |text: &str| text.replace("swordfish\n  fish", "[REDACTED]").replace("swordfish", "[REDACTED]");
        let read = road.call("read_file", json!({ "path": path })).await;
        let found = road.call("search", json!({ "pattern": "(?i)pass", "context": 2, "all": true })).await;
        let edit = json!({ "path": path, "edits": [{ "old": shown(old), "new": shown(new) }] });
        let edited = road.call("edit", edit).await;
        for reply in [&read, &found, &edited] {
            assert!(done(reply).contains("[REDACTED]"), "{}", reply.model_text());
            assert!(!reply.model_text().contains("swordfish"), "{}", reply.model_text());
        }
        assert_eq!(road.text(path), new);
    }
}

#[tokio::test]
async fn writing_whole_keeps_what_lines_up() {
    let road = road(&config());
    done(&road.call("read_file", json!({ "path": "c.toml" })).await);
    let new = "api_key = \"[REDACTED]\"\nname = \"other\"\npassword = \"[REDACTED]\" # keep\n";
    let wrote = road.call("write_file", json!({ "path": "c.toml", "content": new })).await;
    clean(&wrote);
    done(&wrote);
    let expected = format!("api_key = \"{OTHER}\"\nname = \"other\"\npassword = \"{SECRET}\" # keep\n");
    assert_eq!(road.text("c.toml"), expected);
}

#[tokio::test]
async fn a_placeholder_that_lines_up_with_nothing_is_not_written() {
    let road = road(&config());
    done(&road.call("read_file", json!({ "path": "c.toml" })).await);
    for args in [
        json!({ "path": "c.toml", "content": "secret = \"[REDACTED]\"\n" }),
        json!({ "path": "c.toml", "content": format!("{}extra = [REDACTED]\n", shown(&config())) }),
        json!({ "path": "c.toml", "content": "[REDACTED]", "mode": "append" }),
    ] {
        let said = failed(&road.call("write_file", args).await, ErrorKind::Invalid);
        assert!(said.contains("it is unclear which") && said.contains("`edit`"), "{said}");
    }
    let edit = json!({ "path": "c.toml", "old_string": "port = 1", "new_string": "port = [REDACTED]" });
    failed(&road.call("edit", edit).await, ErrorKind::Invalid);
    assert_eq!(road.text("c.toml"), config());
}

#[tokio::test]
async fn refuses_an_edit_that_takes_away_what_hides_a_secret() {
    let road = road(&config());
    done(&road.call("read_file", json!({ "path": "c.toml" })).await);
    for (old, new) in [("password = ", "note = "), ("password = \"[REDACTED]\"", "note = [REDACTED]")] {
        let reply =
            road.call("edit", json!({ "path": "c.toml", "old_string": old, "new_string": new })).await;
        clean(&reply);
        failed(&reply, ErrorKind::Forbidden);
    }
    let whole = shown(&config()).replace("password = ", "");
    let reply = road.call("write_file", json!({ "path": "c.toml", "content": whole })).await;
    clean(&reply);
    assert!(!reply.is_done());
    assert_eq!(road.text("c.toml"), config());
}

#[tokio::test]
async fn a_secret_can_be_replaced_and_removed() {
    let road = road(&config());
    let edit = json!({ "path": "c.toml", "edits": [
        { "old": "password = \"[REDACTED]\"\n", "new": "" },
        { "old": "api_key = \"[REDACTED]\"", "new": "api_key = \"${API_KEY}\"" },
    ]});
    let reply = road.call("edit", edit).await;
    clean(&reply);
    done(&reply);
    assert_eq!(road.text("c.toml"), "name = \"demo\"\napi_key = \"${API_KEY}\"\nport = 1\n");
}

#[tokio::test]
async fn a_new_file_may_say_the_placeholder() {
    let road = road(&config());
    for content in ["logs show [REDACTED]\n", "now [REDACTED] twice [REDACTED]\n"] {
        done(&road.call("write_file", json!({ "path": "doc.md", "content": content })).await);
        assert_eq!(road.text("doc.md"), content);
    }
}

#[tokio::test]
async fn a_value_that_is_secret_no_more_is_not_overwritten_by_its_placeholder() {
    let value = "plain-looking-word";
    let road = road(&format!("greeting {value}\n"));
    road.executor.scrubbers().add(value).unwrap();
    done(&road.call("read_file", json!({ "path": "c.toml" })).await);
    road.executor.scrubbers().remove(value).unwrap();
    let write = json!({ "path": "c.toml", "content": "greeting [REDACTED]\nmore\n" });
    failed(&road.call("write_file", write).await, ErrorKind::Conflict);
    assert_eq!(road.text("c.toml"), format!("greeting {value}\n"));
}

#[tokio::test]
async fn a_deployment_that_hides_nothing_shows_files_as_they_are() {
    let seen = Arc::new(MemorySeen::default());
    let road = Road::with(&[("c.toml", config().as_bytes())], seen, Scrubbers::with_open_output());
    let said = done(&road.call("read_file", json!({ "path": "c.toml" })).await);
    assert!(said.contains(SECRET));
    done(&road.call("edit", json!({ "path": "c.toml", "old_string": SECRET, "new_string": "x" })).await);
    assert_eq!(road.text("c.toml"), config().replace(SECRET, "x"));
}

#[tokio::test]
async fn a_plain_password_in_a_configuration_file_is_hidden_in_every_tool_and_survives_edits() {
    let text = "user = bob\n    password = hash\ntoken = abc\n";
    let road = Road::new(&[("conf/my.cnf", text.as_bytes()), ("main.py", text.as_bytes())]);
    let shown = done(&road.call("read_file", json!({ "path": "conf/my.cnf" })).await);
    assert!(shown.contains("password = [REDACTED]") && shown.contains("token = [REDACTED]"), "{shown}");
    let found = done(&road.call("search", json!({ "pattern": "password|token", "path": "conf" })).await);
    assert!(found.contains("password = [REDACTED]") && !found.contains("abc"), "{found}");
    let alone = done(&road.call("search", json!({ "pattern": "token", "path": "conf/my.cnf" })).await);
    assert!(alone.contains("token = [REDACTED]"), "{alone}");
    // By elimination nothing is found either.
    let guessed = done(&road.call("search", json!({ "pattern": "token = abc", "path": "conf" })).await);
    assert!(!guessed.contains("my.cnf"), "{guessed}");
    let edit = json!({ "path": "conf/my.cnf", "old_string": "user = bob\n    password = [REDACTED]", "new_string": "user = eve\n    password = [REDACTED]" });
    let said = done(&road.call("edit", edit).await);
    assert!(!said.contains("hash") && !said.contains("abc"), "{said}");
    assert_eq!(road.text("conf/my.cnf"), text.replace("bob", "eve"));
    // The same lines are code elsewhere.
    let shown = done(&road.call("read_file", json!({ "path": "main.py" })).await);
    assert!(shown.contains("password = hash") && shown.contains("token = abc"), "{shown}");
}
