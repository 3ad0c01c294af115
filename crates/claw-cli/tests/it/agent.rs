//! Setting agents up, and the effect of their settings.

use crate::harness::Home;

#[test]
fn an_agent_is_added_changed_shown_and_removed() {
    let home = Home::new();
    let none = home.run(&["agent", "list"]);
    assert_eq!(none.stdout, "no agent is set up; the agent `default` stands for every agent\n");
    assert!(!home.data().exists(), "looking makes nothing");
    let add = ["agent", "add", "ada", "--about", "Finds things out", "--deny", "datetime", "--model", "m1"];
    let added = home.run(&add);
    assert_eq!((added.code, added.stdout.as_str()), (0, "agent `ada` is added\n"), "{}", added.stderr);
    let again = home.run(&add);
    assert_eq!(again.code, 1);
    assert!(again.stderr.contains("the agent `ada` already exists"), "{}", again.stderr);

    let listed = home.run(&["agent", "list", "--json"]).json();
    let ada = &listed.as_array().unwrap()[0];
    assert_eq!((ada["id"].as_str(), ada["kind"].as_str()), (Some("ada"), Some("open")));
    assert_eq!((ada["model"].as_str(), ada["about"].as_str()), (Some("m1"), Some("Finds things out")));
    let told = home.run(&["tools", "call", "agents_list"]).stdout;
    assert!(told.contains("Finds things out"), "{told}");
    assert_eq!(home.run(&["agent", "edit", "ada", "--kind", "predefined", "--model", ""]).code, 0);
    let shown = home.run(&["agent", "show", "ada"]).stdout;
    assert!(shown.contains("predefined") && shown.contains("datetime"), "{shown}");
    assert!(!shown.contains("m1"), "an empty model is the deployment's: {shown}");

    assert_eq!(home.run(&["agent", "remove", "ada"]).code, 0);
    let gone = home.run(&["agent", "show", "ada"]);
    assert_eq!(gone.code, 2);
    assert!(gone.stderr.contains("there is no agent `ada`"), "{}", gone.stderr);
}

#[test]
fn the_policy_of_a_stored_agent_holds() {
    let home = Home::new();
    home.run(&["agent", "add", "ada", "--deny", "datetime"]);
    let call = |agent: &str| {
        home.run(&["tools", "call", "datetime", "--args", r#"{"action":"now"}"#, "--agent", agent])
    };
    let refused = call("ada");
    assert_eq!(refused.code, 3, "{}", refused.shown());
    assert_eq!(call("default").code, 0);
    let why = home.run(&["policy", "explain", "datetime", "--agent", "ada"]).stdout;
    assert!(why.contains("ada"), "{why}");
    home.run(&["agent", "edit", "ada", "--deny", ""]);
    assert_eq!(call("ada").code, 0);
    let misspelt = call("adda");
    assert_eq!(misspelt.code, 2, "{}", misspelt.shown());
    assert!(
        misspelt.stderr.contains("agent `adda` is not set up\n  try: did you mean `ada`?"),
        "{}",
        misspelt.stderr
    );
    let chat = home.run(&["chat", "-m", "hello", "--agent", "adda"]);
    assert_eq!((chat.code, chat.stderr), (2, misspelt.stderr), "{}", chat.stdout);
    let unlike = call("zzz");
    assert!(
        unlike
            .stderr
            .contains("add it with `clawsmith agent add zzz`; `clawsmith agent list` lists the agents"),
        "{}",
        unlike.stderr
    );
}

#[test]
fn what_no_policy_can_be_made_of_is_refused() {
    let home = Home::new();
    let ran = home.run(&["agent", "add", "ada", "--deny", "group:nowhere"]);
    assert_ne!(ran.code, 0, "{}", ran.shown());
    assert_eq!(home.run(&["agent", "list", "--json"]).json().as_array().unwrap().len(), 0);
    assert_eq!(home.run(&["agent", "add", "Not an id"]).code, 2);
    assert_eq!(home.run(&["agent", "add", "default"]).code, 2);
}

#[test]
fn the_configuration_file_holds_where_both_have_an_agent() {
    let home = Home::with_config("[agents.ada]\nabout = \"from the file\"\n");
    let ran = home.run(&["agent", "add", "ada"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("is set up in the configuration file"), "{}", ran.stderr);
    let listed = home.run(&["agent", "list"]).stdout;
    assert!(listed.contains("from the file"), "{listed}");
}

#[test]
fn context_files_are_written_listed_and_removed() {
    let home = Home::new();
    home.run(&["agent", "add", "ada"]);
    let set = |words: &[&str], text: &str| {
        home.ran(home.command(&[&["agent", "files", "set", "ada"], words].concat()).write_stdin(text))
    };
    assert_eq!(set(&["SOUL.md"], "You are kind.\n").code, 0);
    assert_eq!(set(&["USER.md", "--user", "tester"], "Likes tea.\n").code, 0);
    assert_eq!(set(&["SOUL.md"], "You are kind and short.\n").code, 0);
    let get = |words: &[&str]| home.run(&[&["agent", "files", "get", "ada"], words].concat());
    assert_eq!(get(&["SOUL.md"]).stdout, "You are kind and short.\n");
    assert_eq!(get(&["USER.md"]).code, 1, "it is the user's");
    assert_eq!(get(&["USER.md", "--user", "tester"]).stdout, "Likes tea.\n");
    let wrong = set(&["NOTES.md"], "x");
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("SOUL.md, IDENTITY.md"), "{}", wrong.stderr);
    let listed = home.run(&["agent", "files", "list", "ada", "--user", "tester"]).stdout;
    assert!(listed.contains("SOUL.md") && listed.contains("USER.md"), "{listed}");
    assert_eq!(home.run(&["agent", "files", "remove", "ada", "SOUL.md"]).code, 0);
    assert_eq!(get(&["SOUL.md"]).code, 1);
}

#[test]
fn refuses_the_demo_in_the_place_of_an_agents_model() {
    let home = Home::new();
    for (agent, model, told) in [
        ("ada", "nope/large", "there is no provider `nope`; there are `anthropic`, "),
        ("ben", "opnai/gpt-5", "did you mean `openai`?"),
        ("cleo", "demo/nope", "the demo plays a script and has no model `nope`"),
    ] {
        home.run(&["agent", "add", agent, "--model", model]);
        let ran = home.run(&["chat", "-m", "hello", "--agent", agent]);
        assert!(ran.code != 0 && ran.stderr.contains(told), "{}", ran.shown());
        assert!(!ran.stdout.contains("demo"), "{}", ran.shown());
    }
}

#[test]
fn a_name_that_nobody_has_is_refused_with_the_nearest() {
    let home = Home::with_config("[agents.researcher]\nname = \"Ada\"\n");
    assert_eq!(home.run(&["agent", "add", "builder"]).code, 0);
    let commands: &[&[&str]] = &[
        &["agent", "files", "set", "bilder", "SOUL.md"],
        &["agent", "files", "list", "bilder"],
        &["secrets", "set", "TOKEN", "--agent", "bilder"],
        &["credentials", "add", "true", "--binary", "/bin/true", "--env", "TOKEN", "--agent", "bilder"],
        &["policy", "explain", "exec", "--agent", "bilder"],
        &["shell", "check", "--agent", "bilder", "--", "ls"],
        &["tools", "list", "--agent", "bilder"],
        &["tools", "show", "exec", "--agent", "bilder"],
    ];
    for words in commands {
        let misspelt = home.ran(home.command(words).write_stdin("a value that is long"));
        assert_eq!(misspelt.code, 2, "{words:?}: {}", misspelt.shown());
        let expected = "agent `bilder` is not set up\n  try: did you mean `builder`?";
        assert!(misspelt.stderr.contains(expected), "{words:?}: {}", misspelt.shown());
        // Those of the store and of the file are set up, and so is the one that stands for all others.
        for agent in ["builder", "researcher", "default"] {
            let words: Vec<&str> =
                words.iter().map(|word| if *word == "bilder" { agent } else { word }).collect();
            let known = home.ran(home.command(&words).write_stdin("a value that is long"));
            assert_eq!(known.code, 0, "{words:?}: {}", known.shown());
        }
    }
    assert_eq!(home.run(&["secrets", "list", "--json"]).json().as_array().unwrap().len(), 3);
}

#[test]
fn what_a_removed_agent_left_can_still_be_seen_and_removed() {
    let home = Home::new();
    home.run(&["agent", "add", "ada"]);
    home.ran(home.command(&["agent", "files", "set", "ada", "SOUL.md"]).write_stdin("be kind"));
    home.ran(
        home.command(&["secrets", "set", "TOKEN", "--agent", "ada"]).write_stdin("a value that is long"),
    );
    assert_eq!(home.run(&["agent", "remove", "ada"]).code, 0);
    assert!(home.run(&["agent", "files", "list", "ada"]).stdout.contains("SOUL.md"));
    assert_eq!(home.run(&["agent", "files", "remove", "ada", "SOUL.md"]).code, 0);
    assert_eq!(home.run(&["secrets", "remove", "TOKEN", "--agent", "ada"]).code, 0);
}

#[test]
fn a_provider_that_nobody_knows_is_refused_with_the_nearest() {
    let home = Home::new();
    let added = home.run(&["agent", "add", "ada", "--provider", "antropic"]);
    assert_eq!(added.code, 2, "{}", added.shown());
    let expected = "`--provider`: there is no provider `antropic`; did you mean `anthropic`?";
    assert!(added.stderr.contains(expected), "{}", added.stderr);
    assert_eq!(home.run(&["agent", "add", "ada", "--provider", "anthropic"]).code, 0);
    assert_eq!(home.run(&["agent", "edit", "ada", "--provider", "opnai"]).code, 2);
    home.configure("[models]\nprovider = \"opnai\"\nfallback = [\"gemni/some-model\"]\n");
    let checked = home.run(&["config", "check"]);
    assert_eq!(checked.code, 2, "{}", checked.shown());
    assert!(
        checked.stderr.contains(
            "clawsmith.toml:2:1: `models.provider`: there is no provider `opnai`; did you mean `openai`?"
        ),
        "{}",
        checked.stderr
    );
    assert!(checked.stderr.contains("did you mean `gemini`?"), "{}", checked.stderr);
    home.configure(
        "[models]\nprovider = \"mine\"\n[models.providers.mine]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1\"\n",
    );
    assert_eq!(home.run(&["config", "check"]).code, 0, "{}", home.run(&["config", "check"]).shown());
}
