//! The findings of the doctor, and that it changes nothing.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::harness::{Home, Ran};

fn finding(ran: &Ran, topic: &str, state: &str) -> Option<Value> {
    let findings = ran.json();
    let found = findings.as_array().unwrap().iter();
    found.into_iter().find(|finding| finding["topic"] == topic && finding["state"] == state).cloned()
}

#[test]
fn a_machine_where_nothing_was_done_yet_is_well_and_stays_as_it_was() {
    let home = Home::new();
    let ran = home.run(&["doctor", "--json"]);
    for topic in ["configuration", "data directory", "store", "clock", "keys"] {
        assert!(finding(&ran, topic, "good").is_some(), "{topic}: {}", ran.stdout);
    }
    assert!(!home.data().exists(), "looking makes nothing");
    let shown = home.run(&["doctor"]).stdout;
    assert!(shown.contains("sandbox"), "{shown}");
}

#[test]
fn what_is_open_to_others_is_told_with_its_cure() {
    let home = Home::with_config("");
    home.ran(home.command(&["secrets", "set", "TOKEN"]).write_stdin("hunter2-and-more"));
    assert!(finding(&home.run(&["doctor", "--json"]), "keys", "good").is_some());
    let ring = home.data().join("keys/ring");
    fs::set_permissions(&ring, Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(home.path().join("project/clawsmith.toml"), Permissions::from_mode(0o666)).unwrap();
    let ran = home.run(&["doctor", "--json"]);
    assert_eq!(ran.code, 1);
    let open = finding(&ran, "permissions", "bad").unwrap();
    assert_eq!(open["fix"], "chmod go= ~/.local/share/clawsmith/keys/ring");
    assert!(finding(&ran, "configuration", "bad").is_some(), "{}", ran.stdout);
}

#[test]
fn lost_keys_are_found_out() {
    let home = Home::new();
    home.ran(home.command(&["secrets", "set", "TOKEN"]).write_stdin("hunter2-and-more"));
    fs::remove_file(home.data().join("keys/ring")).unwrap();
    let ran = home.run(&["doctor", "--json"]);
    assert_eq!(ran.code, 1);
    assert!(finding(&ran, "keys", "bad").is_some(), "{}", ran.stdout);
    assert!(!home.data().join("keys/ring").exists(), "another key would open nothing");
}

#[test]
fn a_store_that_is_none_and_a_configuration_that_does_not_hold_are_bad() {
    let home = Home::new();
    fs::create_dir_all(home.data()).unwrap();
    fs::set_permissions(home.data(), Permissions::from_mode(0o700)).unwrap();
    fs::write(home.data().join("clawsmith.db"), "this is no database, not even nearly one").unwrap();
    let ran = home.run(&["doctor", "--json"]);
    assert_eq!(ran.code, 1);
    assert!(finding(&ran, "store", "bad").is_some(), "{}", ran.stdout);
    let home = Home::with_config("nonsense = 1\n");
    let ran = home.run(&["doctor", "--json"]);
    assert_eq!(ran.code, 1);
    assert!(finding(&ran, "configuration", "bad").is_some(), "{}", ran.stdout);
}

#[test]
fn says_who_answers_and_which_agent_has_no_model() {
    let home = Home::new();
    let ran = home.run(&["doctor", "--json"]);
    let demo = finding(&ran, "models", "worth").unwrap();
    assert!(demo["what"].as_str().unwrap().contains("a demo plays a script"), "{demo}");
    assert!(finding(&ran, "agents", "good").is_some(), "{}", ran.stdout);
    assert!(!home.data().exists(), "looking makes nothing");
    let keyed = home.run_with(&[("OPENAI_API_KEY", "sk-none")], &["doctor", "--json"]);
    assert!(finding(&keyed, "models", "good").unwrap()["what"].as_str().unwrap().contains("`openai/gpt-5`"));

    home.run(&["agent", "add", "ada", "--model", "opnai/gpt-5"]);
    let ran = home.run(&["doctor", "--json"]);
    assert_eq!(ran.code, 1);
    let bad = finding(&ran, "agents", "bad").unwrap();
    let what = bad["what"].as_str().unwrap();
    assert!(what.contains("agent `ada` has no model") && what.contains("did you mean `openai`?"), "{bad}");
    assert!(bad["fix"].as_str().unwrap().starts_with("clawsmith agent edit ada --model"), "{bad}");
}

#[test]
fn advises_only_what_would_help() {
    #[track_caller]
    fn check(home: &Home, variables: &[(&str, &str)], expected: &str) {
        let ran = home.run_with(variables, &["doctor", "--json"]);
        let fix = finding(&ran, "models", "bad").or_else(|| finding(&ran, "models", "worth")).unwrap();
        assert_eq!(fix["fix"], expected, "{}", ran.stdout);
    }
    let home = Home::new();
    let usual = "clawsmith onboard, or set a provider's key, for instance `ANTHROPIC_API_KEY`";
    check(&home, &[], usual);
    // The user's file is not read where another one is named.
    let other = home.write("other.toml", "");
    let named = [("CLAWSMITH_CONFIG", other.to_str().unwrap())];
    check(&home, &named, &usual.replace("onboard", "onboard --file ~/other.toml"));
    // Another provider's key would not be used.
    let groq = [("CLAWSMITH_MODELS__PROVIDER", "groq")];
    check(&home, &groq, "set `GROQ_API_KEY`, or change `$CLAWSMITH_MODELS__PROVIDER`");
    let home = Home::with_config("[models]\nprovider = \"groq\"\n");
    let fix = "set `GROQ_API_KEY`, or change `models.provider` in `~/project/clawsmith.toml`, line 2";
    check(&home, &[], fix);
    let home = Home::new();
    std::fs::create_dir_all(home.path().join(".config/clawsmith")).unwrap();
    home.write(".config/clawsmith/clawsmith.toml", "[models]\nprovider = \"groq\"\n");
    check(&home, &[], "set `GROQ_API_KEY`, or choose another provider: clawsmith onboard");
}

#[test]
fn says_what_is_wrong_with_what_was_written_down() {
    let home = Home::with_config(
        "[models]\nfallback = [\"groq/x\"]\n[models.providers.anthropic]\nkey_env = [\"MINE\"]\n\
         [endpoints.rank]\nbase_url = \"file:///etc\"\n",
    );
    let ran = home.run(&["doctor", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    let all = ran.stdout;
    assert!(all.contains("provider `anthropic` cannot be used: no key is set"), "{all}");
    assert!(all.contains("fallback `groq/x` cannot be used"), "{all}");
    assert!(all.contains("`endpoints.rank.base_url`"), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn asks_models_where_that_is_wanted() {
    use claw_testkit::models::{Manners, ModelServer};
    let script =
        "[[turn]]\nwhen.said = \"never\"\ndo = [{ say = \"x\" }]\n[[turn]]\ndo = [{ say = \"ready\" }]\n";
    let server = ModelServer::start(script, Manners::default()).await;
    let base = server.base_url(claw_llm::ProviderKind::OpenAi);
    let home = Home::with_config(&format!(
        "[models]\nprovider = \"near\"\nretries = 0\n[models.providers.near]\nkind = \"openai\"\nbase_url = \"{base}\"\nmodel = \"m\"\n"
    ));
    let run = |words: &[&str]| tokio::task::block_in_place(|| home.run(words));
    assert!(finding(&run(&["doctor", "--json"]), "models", "good").is_some());
    assert_eq!(server.asked().len(), 0, "looking sends nothing");
    let probed = finding(&run(&["doctor", "--probe", "--json"]), "models", "good").unwrap();
    assert!(probed["what"].as_str().unwrap().ends_with("(tested just now)"), "{probed}");
    assert_eq!(server.asked().len(), 1);
    drop(server);
    assert!(finding(&run(&["doctor", "--probe", "--json"]), "models", "bad").is_some());
}
