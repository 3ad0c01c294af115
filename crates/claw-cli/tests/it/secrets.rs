//! Setting, listing and removing secrets, and another key for them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::harness::{Home, Ran};

const VALUE: &str = "hunter2-and-more";

fn set(home: &Home, words: &[&str], value: impl Into<Vec<u8>>) -> Ran {
    let ran = home.ran(home.command(&[&["secrets", "set"], words].concat()).write_stdin(value.into()));
    assert!(!ran.shown().contains("hunter2"), "{}", ran.shown());
    ran
}

fn names(home: &Home) -> Vec<String> {
    let listed = home.run(&["secrets", "list", "--json"]).json();
    listed.as_array().unwrap().iter().map(|card| card["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn sets_lists_and_removes() {
    let home = Home::new();
    assert_eq!(home.run(&["secrets", "list"]).stdout, "no secrets of tenant `main`\n");
    assert!(!home.data().join("keys").exists(), "looking needs no keys and makes none");
    let ran = set(&home, &["TOKEN"], VALUE);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "secret `TOKEN` is stored encrypted\n"),
        "{}",
        ran.stderr
    );
    home.run(&["agent", "add", "ada"]);
    let ran = set(&home, &["TOKEN", "--agent", "ada", "--json"], VALUE);
    assert_eq!(ran.json()["set"]["agent"], "ada");
    set(&home, &["TOKEN"], "another");

    let listed = home.run(&["secrets", "list"]);
    let rows: Vec<Vec<&str>> =
        listed.stdout.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
    assert_eq!(rows, [["NAME", "AGENT"], ["TOKEN", "all"], ["TOKEN", "ada"]]);
    assert!(!listed.stdout.contains("hunter2"));
    assert_eq!(home.run(&["secrets", "remove", "TOKEN", "--agent", "ada"]).code, 0);
    assert_eq!(names(&home), ["TOKEN"]);
    let missing = home.run(&["secrets", "remove", "TOKEN", "--agent", "ada"]);
    assert_eq!(missing.code, 1);
    assert!(missing.stderr.contains("there is no secret `TOKEN` of agent `ada`"), "{}", missing.stderr);

    let mode = |name: &str| fs::metadata(home.data().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("keys"), mode("keys/ring"), mode("clawsmith.db")), (0o700, 0o600, 0o600));
    for file in fs::read_dir(home.data()).unwrap() {
        let path = file.unwrap().path();
        let bytes = if path.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        assert!(!bytes.windows(7).any(|window| window == b"hunter2"), "{}", path.display());
    }
}

#[test]
fn warns_of_a_value_too_short_to_be_recognised() {
    let home = Home::new();
    for (value, short) in [("12345", true), ("  12345  \n", true), ("123456", false)] {
        for words in [&["PIN"][..], &["PIN", "--json"]] {
            let ran = set(&home, words, value);
            let warns = ran.stderr.contains("warning: the value of `PIN` is too short to be recognised");
            assert_eq!((ran.code, warns), (0, short), "{}", ran.shown());
        }
    }
}

#[test]
fn warns_of_a_value_that_can_be_guessed() {
    let home = Home::new();
    for (value, why) in [
        ("swordfish", Some("is written like a word")),
        ("123456", Some("is a number")),
        ("ababababab", Some("has only 2 different characters")),
        (VALUE, None),
    ] {
        let ran = set(&home, &["TOKEN"], value);
        let warning = why.map(|why| format!("warning: the value of `TOKEN` {why} and can be guessed"));
        let warns = warning.is_some_and(|warning| ran.stderr.contains(&warning));
        assert_eq!((ran.code, warns), (0, why.is_some()), "{}", ran.shown());
        assert_eq!(why.is_none(), ran.stderr.is_empty(), "{}", ran.stderr);
        assert!(!ran.stderr.contains(value), "{}", ran.stderr);
    }
}

#[test]
fn a_kept_value_is_hidden_wherever_it_turns_up() {
    let home = Home::new();
    set(&home, &["TOKEN"], format!("{VALUE}\n"));
    home.run(&["agent", "add", "ada"]);
    set(&home, &["TOKEN", "--agent", "ada"], "5up3r-geheim-99");
    home.write("project/notes.txt", format!("pw {VALUE} or 5up3r-geheim-99\n"));
    let read = ["tools", "call", "read_file", r#"{"path": "notes.txt"}"#];
    let own = home.run(&read);
    assert!(own.stdout.contains("pw [REDACTED] or [REDACTED]"), "{}", own.shown());
    // Another tenant's values are not scrubbed here.
    let other = home.run_with(&[("CLAWSMITH_TENANT", "other")], &read);
    assert!(other.stdout.contains(VALUE), "{}", other.shown());
}

/// Returns whether a file of the data directory holds the value.
fn is_kept_openly(home: &Home) -> bool {
    let mut left = vec![home.data()];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if fs::read(&path).unwrap_or_default().windows(7).any(|window| window == b"hunter2") {
            return true;
        }
    }
    false
}

#[test]
fn refuses_a_kept_value_in_the_name_of_a_session_or_an_agent() {
    let home = Home::new();
    home.run(&["agent", "add", "ada"]);
    set(&home, &["TOKEN"], VALUE);
    let session = format!("cli:{VALUE}");
    for words in [
        &["tools", "call", "--session", &session, "datetime", "{}"][..],
        &["tools", "call", "--session", &session, "exec", r#"{"command":"echo x"}"#],
        &["tools", "call", "--session", &session, "no_such_tool", "{}"],
        &["chat", "--session", &session, "-m", "hello"],
        &["agent", "add", VALUE],
        &["agent", "add", "bob", "--name", VALUE],
        &["agent", "edit", "ada", "--name", &format!("Ada {VALUE}")],
    ] {
        let ran = home.run(words);
        assert!(ran.code != 0 && ran.stderr.contains("holds a secret"), "{words:?}: {}", ran.shown());
    }
    assert_eq!(home.run(&["chat", "-m", "hello"]).code, 0);
    let list = home.run(&["sessions", "list", "--json"]).json();
    let renamed = home.run(&["sessions", "rename", list[0]["id"].as_str().unwrap(), VALUE]);
    assert!(renamed.code != 0 && renamed.stderr.contains("holds a secret"), "{}", renamed.shown());
    assert!(!is_kept_openly(&home), "no refusal leaves the value in a file");
    // Another tenant's names may be what they like: nobody learns that it is a secret here.
    let other = home.run(&["tools", "call", "--session", "cli:hunter-and-more", "datetime", "{}"]);
    assert_eq!(other.code, 0, "{}", other.shown());
}

#[test]
fn refuses_calls_while_a_kept_value_cannot_be_told_from_others() {
    let home = Home::new();
    set(&home, &["TOKEN"], VALUE);
    fs::remove_file(home.data().join("keys/ring")).unwrap();
    let call = ["tools", "call", "workspace_dir", "{}"];
    let ran = home.run(&call);
    assert_eq!(ran.code, 3, "{}", ran.shown());
    assert!(ran.stderr.contains("a secret cannot be decrypted"), "{}", ran.stderr);
    assert_eq!(home.run(&["secrets", "remove", "TOKEN"]).code, 0);
    let ran = home.run(&call);
    assert_eq!(ran.code, 0, "{}", ran.shown());
}

#[test]
fn tenants_are_apart() {
    let home = Home::new();
    set(&home, &["TOKEN"], VALUE);
    let other = [("CLAWSMITH_TENANT", "other")];
    assert_eq!(home.run_with(&other, &["secrets", "list", "--json"]).json().as_array().unwrap().len(), 0);
    assert_eq!(home.run_with(&other, &["secrets", "remove", "TOKEN"]).code, 1);
    assert_eq!(names(&home), ["TOKEN"]);
}

#[test]
fn refuses_a_value_that_is_none() {
    let home = Home::new();
    for (value, why) in [
        (&b""[..], "the value is empty"),
        (b"\n", "the value is empty"),
        (b"hunter2\xff", "not UTF-8 from byte 7 on"),
        (&[b'x'; 70_000], "at most 65536 bytes"),
    ] {
        let ran = set(&home, &["TOKEN"], value);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.shown());
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    }
    assert_eq!(home.run(&["secrets", "set", "TOKEN", "hunter2"]).code, 2, "never as an argument");
    for name in ["", "a b", "../x", &"x".repeat(200)] {
        assert_eq!(set(&home, &["--", name], VALUE).code, 2, "{name}");
    }
    assert_eq!(names(&home), [""; 0]);
}

#[test]
fn rotates_and_retires() {
    let home = Home::new();
    for n in 0..3 {
        set(&home, &[&format!("T{n}")], VALUE);
    }
    let keys = || fs::read_to_string(home.data().join("keys/ring")).unwrap();
    let rotated = home.run(&["secrets", "rotate", "--json"]).json();
    assert_eq!((&rotated["is_new"], &rotated["resealed"]), (&true.into(), &3.into()), "{rotated}");
    assert_eq!(keys().lines().filter(|line| !line.starts_with('#')).count(), 2);
    let again = home.run(&["secrets", "rotate"]);
    assert_eq!(again.code, 0);
    assert!(
        again.stdout.starts_with("new key `") && again.stdout.ends_with("`; values encrypted with it: 3\n")
    );
    let retired = home.run(&["secrets", "rotate", "--retire"]);
    assert_eq!((retired.code, retired.stdout.lines().count()), (0, 2), "{}", retired.shown());
    assert!(retired.stdout.contains(&format!("key `{}` is retired", rotated["key"].as_str().unwrap())));
    assert_eq!(keys().lines().filter(|line| !line.starts_with('#')).count(), 1);
    let only = home.run(&["secrets", "rotate", "--retire"]);
    assert!(only.stdout.ends_with("is the only one\n"), "{}", only.shown());
}

#[test]
fn keys_that_cannot_be_used_are_named() {
    let home = Home::new();
    set(&home, &["TOKEN"], VALUE);
    let ring = home.data().join("keys/ring");
    fs::set_permissions(&ring, fs::Permissions::from_mode(0o644)).unwrap();
    let ran = set(&home, &["TOKEN"], VALUE);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("chmod 600 ~/.local/share/clawsmith/keys/ring"), "{}", ran.stderr);
    fs::remove_file(&ring).unwrap();
    let ran = home.run(&["secrets", "rotate"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("it is missing, and values are encrypted with `"), "{}", ran.stderr);
    assert!(!ring.exists());
    assert_eq!(names(&home), ["TOKEN"], "listing needs no keys");
}

#[test]
fn keys_of_a_variable_leave_no_file_and_are_not_shown() {
    let (home, key) = (Home::new(), "5a".repeat(32));
    let set =
        home.ran(home.command(&["secrets", "set", "TOKEN"]).env("CLAWSMITH_KEYS", &key).write_stdin(VALUE));
    assert_eq!(set.code, 0, "{}", set.shown());
    assert!(!home.data().join("keys").exists());
    let keys = [("CLAWSMITH_KEYS", key.as_str())];
    let shown = home.run_with(&keys, &["config", "show"]);
    assert!(shown.code == 0 && !shown.shown().contains(&key), "{}", shown.shown());
    let rotated = home.run_with(&keys, &["secrets", "rotate"]);
    assert!(rotated.stdout.contains("the first of `CLAWSMITH_KEYS`"), "{}", rotated.shown());
    let wrong = home.run_with(&[("CLAWSMITH_KEYS", "hunter2")], &["secrets", "rotate"]);
    assert!(wrong.code == 1 && !wrong.shown().contains("hunter2"), "{}", wrong.shown());
}

#[test]
fn a_damaged_value_is_named_and_the_rest_goes_on() {
    let home = Home::new();
    let keys = ["11", "22"].map(|pair| pair.repeat(32));
    for (name, key) in ["A", "B"].into_iter().zip(&keys) {
        home.ran(home.command(&["secrets", "set", name]).env("CLAWSMITH_KEYS", key).write_stdin(VALUE));
    }
    let ran = home.run_with(&[("CLAWSMITH_KEYS", &keys[0])], &["secrets", "rotate"]);
    assert_eq!(ran.code, 1, "{}", ran.shown());
    assert!(
        ran.stderr
            .starts_with("not encrypted again: the secret `B` (tenant `main`): it is encrypted with key `"),
        "{}",
        ran.stderr
    );
    let both = format!("{},{}", keys[0], keys[1]);
    let ran = home.run_with(&[("CLAWSMITH_KEYS", &both)], &["secrets", "rotate"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let ran = home.run_with(&[("CLAWSMITH_KEYS", &both)], &["secrets", "rotate", "--retire", "--json"]);
    assert_eq!(ran.json()["taken"], false);
    assert_eq!(ran.json()["unused"].as_array().unwrap().len(), 1);
}
