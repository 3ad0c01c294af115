//! Setting a model up: the questions, the test, the written file, and that the key is never in it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use claw_llm::ProviderKind;
use claw_testkit::models::{Manners, ModelServer};

use crate::harness::{Home, Ran};
use crate::terminal::Terminal;

/// A key without a recognizable form: only code that knows it can redact it.
const KEY: &str = "plain-words-that-open-a-door";
const SCRIPT: &str = "[[turn]]\ndo = [{ say = \"ready\" }]\n";

fn file(home: &Home) -> PathBuf {
    home.path().join(".config/clawsmith/clawsmith.toml")
}

fn put(home: &Home, text: &str) {
    fs::create_dir_all(file(home).parent().unwrap()).unwrap();
    fs::write(file(home), text).unwrap();
}

/// A server that has one model and refuses one key.
async fn server() -> (ModelServer, String) {
    let manners = Manners {
        refused_keys: vec![("a-key-that-opens-nothing".to_owned(), 401)],
        models: vec!["small".to_owned()],
        ..Manners::default()
    };
    let server = ModelServer::start(SCRIPT, manners).await;
    let base = server.base_url(ProviderKind::OpenAi);
    (server, base)
}

/// Runs it without a terminal, with a key on standard input.
fn piped(home: &Home, key: &str, words: &[&str]) -> Ran {
    tokio::task::block_in_place(|| {
        home.ran(home.command(&[&["onboard", "--key-stdin"], words].concat()).write_stdin(key))
    })
}

/// Returns a file below a directory that holds these bytes.
fn holds(directory: &Path, bytes: &[u8]) -> Option<PathBuf> {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let found = match path.is_dir() {
            true => holds(&path, bytes),
            false => {
                let inside = fs::read(&path).unwrap_or_default();
                inside.windows(bytes.len()).any(|window| window == bytes).then_some(path)
            }
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

#[track_caller]
fn assert_unseen(home: &Home, key: &str, shown: &str) {
    assert!(!shown.contains(key), "{shown}");
    assert_eq!(holds(home.path(), key.as_bytes()), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_works_is_sealed_and_the_file_says_where_it_is() {
    let (server, base) = server().await;
    let home = Home::new();
    let ran = piped(&home, &format!("{KEY}\n"), &["--base-url", &base, "--model", "small"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stderr.contains("Tested: `own/small` answered in"), "{}", ran.stderr);
    assert!(ran.stderr.contains("sandbox: `all`"), "{}", ran.stderr);
    assert!(ran.stdout.contains("wrote `~/.config/clawsmith/clawsmith.toml`"), "{}", ran.stdout);
    assert!(ran.stdout.ends_with("next: clawsmith chat\n"), "{}", ran.stdout);
    let text = fs::read_to_string(file(&home)).unwrap();
    assert_eq!(
        text,
        format!(
            "[models]\nprovider = \"own\"\nmodel = \"small\"\n\n[models.providers.own]\nkind = \"openai\"\n\
             base_url = \"{base}\"\nkey_secret = [\"own\"]\n"
        )
    );
    assert_eq!(fs::metadata(file(&home)).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(file(&home).parent().unwrap()).unwrap().count(), 1, "nothing lies beside it");
    assert_unseen(&home, KEY, &ran.shown());
    assert_eq!(server.asked().len(), 1, "one request is enough");
    assert_eq!(server.asked()[0].key.as_deref(), Some(KEY));

    // And a conversation uses it.
    let chat = tokio::task::block_in_place(|| home.run(&["chat", "-m", "hello"]));
    assert_eq!(chat.code, 0, "{}", chat.shown());
    assert!(chat.stdout.contains("ready"), "{}", chat.shown());
    assert_eq!(server.asked().last().unwrap().key.as_deref(), Some(KEY));
    let ledger = tokio::task::block_in_place(|| home.run(&["ledger", "show", "--json"]));
    assert_unseen(&home, KEY, &ledger.shown());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_work_is_told_in_words_and_not_written() {
    let (server, base) = server().await;
    let home = Home::new();
    let bad = "a-key-that-opens-nothing";
    let cases = [
        (bad, "small", base.as_str(), "key_refused", "`own` refused the key"),
        (KEY, "large", base.as_str(), "no_such_model", "`own` has no model `large`"),
        (KEY, "small", "http://127.0.0.1:1/v1", "unreachable", "`own` cannot be reached"),
    ];
    for (key, model, base, state, words) in cases {
        let flags = ["--base-url", base, "--model", model];
        let ran = piped(&home, key, &flags);
        assert_eq!(ran.code, 1, "{}", ran.shown());
        assert!(ran.stderr.contains(&format!("the test failed: {words}")), "{}", ran.stderr);
        assert!(ran.stdout.contains("nothing was written"), "{}", ran.stdout);
        let json = piped(&home, key, &[&flags[..], &["--json"]].concat());
        assert_eq!((json.code, &json.json()["test"]["state"]), (1, &state.into()), "{}", json.shown());
        assert_eq!(json.json()["written"], false);
        assert!(!file(&home).exists() && !home.data().exists(), "neither the file nor the key is kept");
        assert_unseen(&home, key, &(ran.shown() + &json.shown()));
    }
    // With `--yes` it is written all the same; without a test, nobody is asked.
    let ran = piped(&home, bad, &["--base-url", &base, "--model", "small", "--yes"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stderr.contains("refused the key") && file(&home).exists(), "{}", ran.shown());
    assert_unseen(&home, bad, &ran.shown());
    let (home, before) = (Home::new(), server.asked().len());
    let ran = piped(&home, KEY, &["--base-url", &base, "--model", "large", "--no-test"]);
    assert_eq!((ran.code, server.asked().len()), (0, before), "{}", ran.shown());
    assert!(file(&home).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_file_says_stays_to_the_last_comment() {
    let (_server, base) = server().await;
    let home = Home::new();
    let mine = "# mine\n[limits]   # few\ntimeout_secs = 7\n\n[agents.ada]\nabout = \"A.\" # no line break";
    put(&home, mine);
    let flags = ["--base-url", base.as_str(), "--model", "small"];
    let ran = piped(&home, KEY, &flags);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let text = fs::read_to_string(file(&home)).unwrap();
    assert!(text.starts_with(&format!("{mine}\n\n[models]\n")), "{text}");
    assert_eq!(fs::metadata(file(&home)).unwrap().permissions().mode() & 0o777, 0o600);

    // Once more: the key is taken, and the file already has the settings.
    let again = piped(&home, "another-key-that-opens-it", &flags);
    assert_eq!(again.code, 0, "{}", again.shown());
    assert!(again.stdout.contains("already has these settings"), "{}", again.stdout);
    // Another provider: it is replaced, and everything else stays.
    let other = piped(&home, KEY, &[&flags[..], &["--provider", "near", "--ask-deletes"]].concat());
    assert_eq!(other.code, 0, "{}", other.shown());
    assert!(other.stdout.contains("changed provider, model and key in"), "{}", other.stdout);
    let text = fs::read_to_string(file(&home)).unwrap();
    assert!(
        text.starts_with(mine) && text.contains("[models]\nmodel = \"small\"\nprovider = \"near\"\n"),
        "{text}"
    );
    assert!(text.contains("[models.providers.own]") && text.contains("[models.providers.near]"), "{text}");
    assert!(
        text.ends_with("[shell.ask]\n\"destructive.rm-recursive\" = \"a machine of my own\"\n"),
        "{text}"
    );
    let secrets = tokio::task::block_in_place(|| home.run(&["secrets", "list"])).stdout;
    assert!(secrets.contains("own") && secrets.contains("near"), "{secrets}");
    let chat = tokio::task::block_in_place(|| home.run(&["chat", "-m", "hello"]));
    assert!(chat.stdout.contains("ready"), "{}", chat.shown());

    // One that cannot be changed line by line is left alone, and no key is replaced.
    let inline = "models = { provider = \"ollama\", model = \"small\" }\n";
    put(&home, inline);
    let other = piped(&home, KEY, &[&flags[..], &["--provider", "far", "--yes"]].concat());
    assert_eq!(other.code, 1, "{}", other.shown());
    assert!(other.stdout.contains("[models.providers.far]\n"), "{}", other.stdout);
    assert!(other.stdout.contains("clawsmith secrets set far"), "{}", other.stdout);
    assert_eq!(fs::read_to_string(file(&home)).unwrap(), inline);
    let secrets = tokio::task::block_in_place(|| home.run(&["secrets", "list"])).stdout;
    assert!(!secrets.contains("far"), "{secrets}");

    // One that cannot be used is told before anything is sent, and stays too.
    put(&home, "nonsense = 1\n");
    let ran = piped(&home, KEY, &flags);
    assert_eq!(ran.code, 2, "{}", ran.shown());
    assert_eq!(fs::read_to_string(file(&home)).unwrap(), "nonsense = 1\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_stays_one_and_the_file_of_a_project_is_told_of() {
    let (_server, base) = server().await;
    let home = Home::with_config("[limits]\ntimeout_secs = 9\n");
    let real = home.write("dotfile", "# mine\n");
    fs::create_dir_all(file(&home).parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&real, file(&home)).unwrap();
    let flags = ["--base-url", base.as_str(), "--model", "small"];
    let ran = piped(&home, KEY, &flags);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stderr.contains("note: `~/project/clawsmith.toml`"), "{}", ran.stderr);
    assert!(file(&home).is_symlink());
    assert!(fs::read_to_string(real).unwrap().starts_with("# mine\n\n[models]\n"));

    let ran = piped(&home, KEY, &[&flags[..], &["--file", "clawsmith.toml"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(!ran.stderr.contains("note:"), "{}", ran.stderr);
    assert!(ran.stdout.contains("next: clawsmith config trust"), "{}", ran.stdout);
    assert!(fs::read_to_string(home.path().join("project/clawsmith.toml")).unwrap().contains("[models]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_nobody_accepted_does_not_say_where_the_key_is_kept() {
    let (server, base) = server().await;
    let home = Home::new();
    let hostile = "data_dir = \"loot\"\n";
    home.write("project/clawsmith.toml", hostile);
    let flags = ["--base-url", base.as_str(), "--model", "small"];
    let ran = piped(&home, KEY, &[&flags[..], &["--file", "clawsmith.toml"]].concat());
    assert_eq!(ran.code, 2, "{}", ran.shown());
    assert!(ran.stderr.contains("has not been accepted"), "{}", ran.stderr);
    assert!(server.asked().is_empty() && !home.path().join("project/loot").exists());
    // Beside the user's own it is told of, and says nothing.
    let ran = piped(&home, KEY, &flags);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stderr.contains("note: `~/project/clawsmith.toml`"), "{}", ran.stderr);
    assert!(!home.path().join("project/loot").exists() && home.data().exists());
    assert_eq!(fs::read_to_string(home.path().join("project/clawsmith.toml")).unwrap(), hostile);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_provider_elsewhere_is_spoken_to_as_it_is() {
    let server = ModelServer::start(SCRIPT, Manners::default()).await;
    let base = server.base_url(ProviderKind::Anthropic);
    let home = Home::new();
    let ran = tokio::task::block_in_place(|| {
        let words =
            ["onboard", "--provider", "anthropic", "--base-url", &base, "--key-env", "MINE", "--json"];
        home.run_with(&[("MINE", KEY), ("ANTHROPIC_API_KEY", "not-for-this-address")], &words)
    });
    assert_eq!((ran.code, &ran.json()["test"]["state"]), (0, &"works".into()), "{}", ran.shown());
    assert_eq!(ran.json()["model"], "claude-sonnet-4-5");
    let asked = server.asked();
    assert_eq!(
        (asked.len(), asked[0].path.as_str(), asked[0].key.as_deref()),
        (1, "/v1/messages", Some(KEY))
    );
    assert_unseen(&home, KEY, &ran.shown());
}

#[test]
fn without_a_terminal_what_is_missing_is_named() {
    let home = Home::new();
    let cases: [(&[&str], &str); 5] = [
        (&[], "--provider NAME"),
        (&["--provider", "anthropic"], "--key-env NAME` or `--key-stdin"),
        (&["--provider", "own"], "--base-url URL"),
        (&["--provider", "ollama"], "--model NAME"),
        (&["--base-url", "http://localhost:9/v1"], "--model NAME"),
    ];
    for (words, flag) in cases {
        let ran = home.run(&[&["onboard"], words].concat());
        assert_eq!(ran.code, 2, "{}", ran.shown());
        assert!(ran.stderr.contains(&format!("`{flag}` is missing")), "{}", ran.stderr);
    }
    let ran = home.run(&["onboard", "--provider", "antropic"]);
    assert!(ran.code == 2 && ran.stderr.contains("did you mean `anthropic`?"), "{}", ran.shown());
    // Text that looks like a key, or may be one, is neither accepted nor repeated.
    let key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ";
    for flag in ["--provider", "--model", "--key-env", "--base-url"] {
        let mut words = vec!["onboard", "--no-test", flag, key];
        if flag != "--provider" {
            words.extend(["--provider", "ollama"]);
        }
        let ran = home.run(&words);
        assert_eq!(ran.code, 2, "{flag}: {}", ran.shown());
        assert_unseen(&home, key, &ran.shown());
    }
    let open =
        ["onboard", "--base-url", "http://example.com/v1", "--key-env", "MINE", "--model", "m", "--no-test"];
    let ran = home.run(&open);
    assert!(ran.code == 2 && ran.stderr.contains("without encryption"), "{}", ran.shown());
    let ran = home.run(&["onboard", "--provider", "anthropic", "--key-env", KEY]);
    assert!(ran.code == 2 && !ran.shown().contains(KEY), "{}", ran.shown());
    assert!(!file(&home).exists() && !home.data().exists());
}

#[test]
fn a_variable_that_is_set_is_used_and_the_demo_needs_nothing() {
    let home = Home::new();
    let words = ["onboard", "--provider", "openai", "--no-test"];
    let ran = home.run_with(&[("OPENAI_API_KEY", KEY)], &words);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let text = fs::read_to_string(file(&home)).unwrap();
    assert!(text.contains("model = \"gpt-5\"") && text.contains("key_env = [\"OPENAI_API_KEY\"]"), "{text}");
    assert_unseen(&home, KEY, &ran.shown());
    assert!(!home.data().exists(), "nothing is sealed");

    // A variable that is named and not set cannot work.
    let home = Home::new();
    let ran = home.run(&["onboard", "--provider", "openai", "--key-env", "NOT_SET"]);
    assert!(ran.code == 1 && ran.stderr.contains("set the variable `NOT_SET`"), "{}", ran.shown());
    let ran = home.run(&["onboard", "--provider", "demo"]);
    assert!(ran.code == 0 && ran.stdout.contains("an offline demo answers"), "{}", ran.shown());
    assert!(!file(&home).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_asked_at_a_terminal() {
    let (server, base) = server().await;
    let home = Home::new();
    let (code, seen) = tokio::task::block_in_place(|| {
        let mut terminal = Terminal::run(&home, &["onboard"]);
        let list = terminal.wait_for("Number or name [anthropic]: ");
        assert!(list.contains("ollama") && list.contains("needs no key"), "{list}");
        terminal.type_in("99\r");
        terminal.wait_for("there is no 99");
        terminal.wait_for("Number or name [anthropic]: ");
        terminal.type_in("own\r");
        terminal.wait_for("Base URL");
        terminal.type_in("nowhere\r");
        terminal.wait_for("is not a URL");
        terminal.wait_for("Base URL");
        terminal.type_in(&format!("{base}\r"));
        terminal.wait_for("Enter for none): ");
        terminal.type_in("short\r");
        terminal.wait_for("this is not an API key");
        terminal.wait_for("Enter for none): ");
        terminal.type_in(&format!("{KEY}\r"));
        terminal.wait_for("Model: ");
        terminal.type_in("small\r");
        terminal.wait_for("key_secret = [\"own\"]");
        terminal.wait_for("answered in");
        terminal.wait_for("Ask before whole directories are deleted? [y/N] ");
        terminal.type_in("y\r");
        terminal.wait_for("Write it? [Y/n] ");
        assert!(!file(&home).exists(), "nothing is written before the person agreed");
        terminal.type_in("\r");
        terminal.wait_for("next: clawsmith chat");
        terminal.ended()
    });
    assert_eq!(code, Some(0), "{seen}");
    assert_unseen(&home, KEY, &seen);
    assert_eq!(server.asked()[0].key.as_deref(), Some(KEY));
    assert!(file(&home).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn once_more_the_configured_values_are_offered() {
    let (server, base) = server().await;
    let home = Home::new();
    let ran = piped(&home, &format!("{KEY}\n"), &["--base-url", &base, "--model", "small"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let before = fs::read_to_string(file(&home)).unwrap();
    let (code, seen) = tokio::task::block_in_place(|| {
        let mut terminal = Terminal::run(&home, &["onboard"]);
        for question in ["Number or name [own]: ", &format!("Base URL [{base}]: ")] {
            terminal.wait_for(question);
            terminal.type_in("\r");
        }
        terminal.wait_for("Enter keeps the stored one): ");
        terminal.type_in("\r");
        terminal.wait_for("Model [small]: ");
        terminal.type_in("\r");
        terminal.wait_for("answered in");
        terminal.wait_for("deleted? [y/N] ");
        terminal.type_in("\r");
        terminal.wait_for("Write it? [Y/n] ");
        terminal.type_in("\r");
        terminal.wait_for("already has these settings");
        // A key is for one address: it is not offered for another.
        let mut other = Terminal::run(&home, &["onboard", "--base-url", "http://127.0.0.1:1/v1"]);
        other.wait_for("Enter for none): ");
        other.type_in("\u{3}");
        assert_eq!(other.ended().0, Some(130));
        terminal.ended()
    });
    assert_eq!(code, Some(0), "{seen}");
    assert_unseen(&home, KEY, &seen);
    assert_eq!(server.asked().last().unwrap().key.as_deref(), Some(KEY));
    assert_eq!(fs::read_to_string(file(&home)).unwrap(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_can_say_no_and_give_up() {
    let (_server, base) = server().await;
    let home = Home::new();
    let words = ["onboard", "--base-url", &base, "--model", "large"];
    tokio::task::block_in_place(|| {
        // The test failed: nothing typed means no.
        let mut terminal = Terminal::run(&home, &words);
        terminal.wait_for("Enter for none): ");
        terminal.type_in("\r");
        terminal.wait_for("has no model `large`");
        terminal.wait_for("deleted? [y/N] ");
        terminal.type_in("\r");
        terminal.wait_for("Write it anyway? [y/N] ");
        terminal.type_in("\r");
        let (code, seen) = terminal.ended();
        assert_eq!(code, Some(1), "{seen}");
        // Somebody else writes the file meanwhile: theirs stays.
        let mut terminal = Terminal::run(&home, &words);
        terminal.wait_for("Enter for none): ");
        terminal.type_in("\r");
        terminal.wait_for("deleted? [y/N] ");
        terminal.type_in("\r");
        terminal.wait_for("Write it anyway? [y/N] ");
        put(&home, "# theirs\n");
        terminal.type_in("y\r");
        terminal.wait_for("was changed meanwhile");
        assert_eq!(terminal.ended().0, Some(1));
        assert_eq!(fs::read_to_string(file(&home)).unwrap(), "# theirs\n");
        let mut terminal = Terminal::run(&home, &words);
        terminal.wait_for("Enter for none): ");
        terminal.type_in("\r");
        terminal.wait_for("deleted? [y/N] ");
        terminal.type_in("\r");
        terminal.wait_for("Write it anyway? [y/N] ");
        put(&home, "# theirs, once more\n");
        terminal.type_in("y\r");
        terminal.wait_for("was changed meanwhile");
        assert_eq!(terminal.ended().0, Some(1));
        assert_eq!(fs::read_to_string(file(&home)).unwrap(), "# theirs, once more\n");
        fs::remove_file(file(&home)).unwrap();
        // Ctrl-C.
        let mut terminal = Terminal::run(&home, &words);
        terminal.wait_for("Enter for none): ");
        terminal.type_in("\u{3}");
        let (code, seen) = terminal.ended();
        assert_eq!(code, Some(130), "{seen}");
        // No key yet.
        let mut terminal = Terminal::run(&home, &["onboard", "--provider", "anthropic"]);
        terminal.wait_for("Enter for none): ");
        terminal.type_in("\r");
        terminal.wait_for("an offline demo answers");
        let (code, seen) = terminal.ended();
        assert_eq!(code, Some(0), "{seen}");
    });
    assert!(!file(&home).exists() && !home.data().exists());
}
