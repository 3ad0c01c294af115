//! Finding the configuration, overriding it, and its problems.

use crate::harness::Home;

#[track_caller]
fn found(home: &Home, variables: &[(&str, &str)], words: &[&str]) -> String {
    let ran = home.run_with(variables, &[&["config", "show", "--json"], words].concat());
    ran.json()["file"]["by"].as_str().unwrap_or("none").to_owned()
}

#[test]
fn is_found_by_flag_variable_project_and_home() {
    let home = Home::new();
    assert_eq!(found(&home, &[], &[]), "none");
    std::fs::create_dir_all(home.path().join(".config/clawsmith")).unwrap();
    home.write(".config/clawsmith/clawsmith.toml", "");
    assert_eq!(found(&home, &[], &[]), "user");
    home.write("clawsmith.toml", "");
    assert_eq!(found(&home, &[], &[]), "project");
    let other = home.write("other.toml", "");
    assert_eq!(found(&home, &[("CLAWSMITH_CONFIG", other.to_str().unwrap())], &[]), "variable");
    assert_eq!(found(&home, &[("CLAWSMITH_CONFIG", "none.toml")], &["--config", "../other.toml"]), "flag");
}

#[test]
fn shows_every_key_and_who_set_it() {
    let home =
        Home::with_config("[tools]\ndeny = [\"exec\"]\n\n[settings.datetime]\ntimezone = \"Europe/Paris\"\n");
    let variables = [
        ("CLAWSMITH_TOOLS__PROFILE", "coding"),
        ("CLAWSMITH_LIMITS__RATE__HEAVY", "3"),
        ("CLAWSMITH_AGENTS__ADA__DENY", "exec, group:fs"),
    ];
    insta::assert_snapshot!("config_show", home.run_with(&variables, &["config", "show", "--all"]).shown());
    insta::assert_snapshot!("config_show_set", home.run_with(&variables, &["config", "show"]).shown());
    let all = home.run(&["config", "show", "--json"]).json()["settings"].as_array().unwrap().len();
    assert!(all > 60, "programs are told all: {all}");
    let none = Home::new().run(&["config", "show"]).stdout;
    assert!(none.contains("Nothing is set.\n") && none.contains("config show --all"), "{none}");
}

#[test]
fn a_secret_in_settings_is_not_shown() {
    let home =
        Home::with_config("[settings.their_tool]\nkey = \"ghp_16C7e42F292c6912E7710c838347Ae178B4a\"\n");
    let ran = home.run(&["config", "show"]);
    assert!(ran.stdout.contains("[REDACTED]") && !ran.stdout.contains("ghp_"), "{}", ran.stdout);
}

#[test]
fn a_setting_known_as_secret_by_its_key_is_not_shown() {
    let home = Home::with_config("[settings.their_tool]\npassword = \"hunter2hunter2\"\n");
    let ran = home.run(&["config", "show"]);
    assert!(ran.stdout.contains("[REDACTED]") && !ran.stdout.contains("hunter2"), "{}", ran.stdout);
}

#[test]
fn refuses_a_setting_that_its_tool_does_not_read() {
    let home = Home::with_config("[settings.web_fetch]\nblocks = [\"evil.example\"]\n");
    let ran = home.run(&["config", "check"]);
    assert_ne!(ran.code, 0, "a guard that is misspelt guards nothing");
    let shown = ran.shown();
    for part in ["`settings.web_fetch`", "no setting `blocks`", "did you mean `block`?"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn refuses_unknown_keys_with_line_and_nearest_name() {
    let home = Home::with_config("[tools]\nprofle = \"coding\"\n\n[limts]\n\n[agents.ada]\ndenny = []\n");
    insta::assert_snapshot!("unknown_keys", home.run(&["config", "check"]).shown());
    // Nothing else runs under a configuration that cannot be read.
    for words in [&["tools", "list"][..], &["tools", "call", "datetime"], &["policy", "lint"], &["scrub"]] {
        assert_eq!(home.run(words).code, 2, "{words:?}");
    }
}

#[test]
fn reports_all_bad_entries_at_once() {
    let home = Home::with_config(
        "[tools]\ndeny = [\"groop:fs\", \"exec\"]\n\n[agents.ada]\nallow = [\"effect:wriet\"]\n",
    );
    insta::assert_snapshot!("bad_entries", home.run(&["config", "check"]).shown());
}

#[test]
fn says_where_the_file_cannot_be_read() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let ran = Home::with_config(text).run(&["config", "check"]);
        assert_eq!(ran.code, 2, "{}", ran.shown());
        assert!(ran.stderr.contains(expected), "{}", ran.shown());
    }
    check("[tools", "clawsmith.toml:1:7: ");
    check("[tools]\nprofile = \"codign\"", ":2:11: `codign` is none of");
    check("[tools]\ndeny = 3", ":2:8: expected a list, got integer `3`");
    check("tenant = \"a b\"", ":1:10: `a b` is not a valid tenant id");
    check("[limits]\ntimeout_secs = 0", ":2:1: `limits.timeout_secs` is 0; use at least 1");
    check("[limits]\nresult_days = 40000", ":2:1: `limits.result_days` is 40000; use at most 36500");
    check("[files]\nundo_mib = 0", ":2:1: `files.undo_mib` is 0; use at least 1");
    check("[sandbox.docker]\nmemory_mib = 1", ":2:1: `sandbox.docker.memory_mib` is 1; use at least 16");
    check("[approvals.effects]\nreed = \"ask\"", ":2:1: `reed` is none of");
    check("[settings]\ndatetime = 3", ":2:12: expected a table, got integer `3`");
    check("x = 1\nx = 2", ":2:1: ");
}

#[test]
fn refuses_variables_that_name_no_key() {
    let home = Home::new();
    let variables = [
        ("CLAWSMITH_TOOLS__PROFLE", "coding"),
        ("CLAWSMITH_TOOLS_DENY", "exec"),
        ("CLAWSMITH_CONFG", "x.toml"),
        ("CLAWSMITH_TENANT__X", "x"),
    ];
    insta::assert_snapshot!("unknown_variables", home.run_with(&variables, &["config", "check"]).shown());
    let bad = [("CLAWSMITH_LIMITS__TIMEOUT_SECS", "soon"), ("CLAWSMITH_TOOLS__DENY", "groop:fs")];
    insta::assert_snapshot!("bad_variables", home.run_with(&bad, &["config", "check"]).shown());
}

#[test]
fn warns_of_what_is_probably_not_meant() {
    let home = Home::with_config(
        "[scrub]\noutput = false\nvalues_from_env = [\"MISSING\"]\n\n[settings.datetim]\nzone = \"UTC\"\n",
    );
    insta::assert_snapshot!("warnings", home.run(&["config", "check"]).shown());
    let outside = Home::new();
    outside.write("clawsmith.toml", "");
    outside.run(&["config", "trust"]);
    assert_eq!(
        outside.run(&["config", "check"]).stdout,
        "file: ~/clawsmith.toml (the nearest one above the current directory)\nok\n"
    );
}

#[test]
fn the_schema_describes_every_key() {
    let schema = Home::new().run(&["config", "schema"]).json();
    assert_eq!(schema["title"], "clawsmith.toml");
    for key in
        ["tenant", "node", "data_dir", "store", "tools", "agents", "approvals", "limits", "scrub", "settings"]
    {
        assert!(schema["properties"][key]["description"].is_string(), "{key}");
    }
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn a_relative_data_directory_starts_from_the_file() {
    let home = Home::new();
    home.write("clawsmith.toml", "data_dir = \"kept\"\n");
    home.run(&["config", "trust"]);
    home.run(&["tools", "call", "workspace_dir"]);
    assert!(home.path().join("kept/clawsmith.db").is_file());
}

#[test]
fn a_relative_path_of_the_store_starts_from_the_file() {
    let home = Home::new();
    home.write("clawsmith.toml", "[store]\nurl = \"sqlite:kept/claw.db\"\n");
    home.run(&["config", "trust"]);
    home.run(&["tools", "call", "workspace_dir"]);
    assert!(home.path().join("kept/claw.db").is_file());
    let variables = [("CLAWSMITH_STORE__URL", "sqlite:~/elsewhere.db")];
    let shown = home.run_with(&variables, &["config", "show", "--json"]).json();
    assert_eq!(shown["store"], "sqlite:~/elsewhere.db");
}

#[test]
fn the_password_of_a_store_is_never_shown() {
    const SECRET: &str = "hunter2hunter2";
    #[track_caller]
    fn check(url_line: &str, variables: &[(&str, &str)]) {
        let home = Home::with_config(&format!("[store]\n{url_line}\n"));
        for words in [
            &["config", "show"][..],
            &["config", "show", "--json"],
            &["config", "check"],
            &["config", "check", "--json"],
            &["db", "status"],
            &["db", "migrate"],
            &["ledger", "show"],
            &["approvals", "list", "--json"],
            &["tools", "call", "workspace_dir"],
        ] {
            let ran = home.run_with(variables, words);
            assert!(!ran.shown().contains(SECRET), "{words:?}: {}", ran.shown());
        }
    }
    let nowhere = format!("postgres://me:{SECRET}@127.0.0.1:1/claw");
    check(&format!("url = \"{nowhere}\""), &[]);
    check(&format!("url = \"{nowhere}?password={SECRET}\""), &[]);
    check("", &[("CLAWSMITH_STORE__URL", &nowhere)]);
    // Errors that quote what they are about.
    check(&format!("url = \"postgres://me:{SECRET}@[/claw\""), &[]);
    check(&format!("url = \"{nowhere}\" x"), &[]);
    check(&format!("url = \"{nowhere}"), &[]);
    check(&format!("url = \"mysql://me:{SECRET}@host/claw\""), &[]);
    check(&format!("readers = \"{nowhere}\""), &[]);
    check("", &[("CLAWSMITH_STORE__READERS", &nowhere)]);
    check("", &[("CLAWSMITH_STORE_URL", &nowhere)]);
}

#[test]
fn a_store_that_cannot_be_is_said_with_its_place() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let ran = Home::with_config(&format!("[store]\n{text}\n")).run(&["config", "check"]);
        assert_eq!(ran.code, 2, "{}", ran.shown());
        assert!(ran.stderr.contains(expected), "{}", ran.shown());
    }
    check("url = \"mysql://host/claw\"", ":2:1: could not open the store: `mysql` is not a kind of store");
    check("readers = 0", ":2:1: `store.readers` is 0; use at least 1");
    check("connections = 5000", ":2:1: `store.connections` is 5000; use at most 1000");
    check("raeders = 2", "did you mean `readers`?");
}

#[test]
fn what_a_call_would_refuse_is_refused_by_the_check() {
    for (text, said) in [
        ("[endpoints.rank]\nabout = \"x\"\n", "`endpoints.rank.base_url`"),
        ("[web]\nblock = [\"http://a.example\"]\n", "`web.block`"),
        ("[agents.a]\nblock_hosts = [\"a*\"]\n", "`agents.a.block_hosts`"),
        ("[models.providers.mine]\nmodel = \"m\"\n", "`models.providers.mine.kind`"),
    ] {
        let home = Home::with_config(text);
        let ran = home.run(&["config", "check"]);
        assert!(
            ran.code == 2 && ran.stdout.contains(said) && ran.stdout.ends_with("not ok\n"),
            "{}",
            ran.shown()
        );
        assert_eq!(home.run(&["config", "check", "--json"]).json()["ok"], false);
    }
    let home =
        Home::with_config("[endpoints.rank]\nbase_url = \"https://a.example\"\nkey_env = [\"RANK_KEY\"]\n");
    assert_eq!(home.run(&["config", "check"]).code, 0);
    let ran = home.run(&["doctor"]);
    assert!(ran.stdout.contains("`rank` has no key: `RANK_KEY` is not set"), "{}", ran.shown());
}

#[test]
fn a_misspelt_tool_is_the_same_error_everywhere() {
    const SAID: &str = "error: `tools.deny` entry `exce` names no known tool; did you mean `exec`?";
    let home = Home::new();
    home.write("project/clawsmith.toml", "[tools]\ndeny = [\"exce\"]\n");
    let shown = |words: &[&str], code: i32| {
        let ran = home.run(words);
        assert!(ran.code == code && ran.shown().contains(SAID), "{words:?}: {}", ran.shown());
    };
    shown(&["config", "check"], 2);
    shown(&["policy", "lint"], 1);
    shown(&["config", "trust"], 2);
    let refused = home.run(&["tools", "list"]).stderr;
    assert!(refused.contains("has not been accepted"), "a file with an error is not accepted: {refused}");
    let file = home.path().join("project/clawsmith.toml");
    for words in [&["tools", "call", "datetime"][..], &["tools", "list"], &["chat", "-m", "hi"], &["doctor"]]
    {
        let ran = home.run(&[&["--config", file.to_str().unwrap()], words].concat());
        assert!(ran.code > 0 && ran.shown().contains(SAID.trim_start_matches("error: ")), "{}", ran.shown());
    }
    // An MCP server's tools and custom tools come and go.
    home.write("project/clawsmith.toml", "[tools]\ndeny = [\"group:mcp:notes\", \"weather\"]\n");
    for (words, code) in [(["config", "check"], 0), (["policy", "lint"], 0), (["config", "trust"], 0)] {
        let ran = home.run(&words);
        let said = "warning: `tools.deny` entry `weather` names no built-in tool";
        assert!(ran.code == code && ran.stdout.contains(said), "{words:?}: {}", ran.shown());
    }
    assert_eq!(home.run(&["tools", "call", "datetime"]).code, 0);
}

#[test]
fn a_project_is_laid_over_the_users_file_key_by_key() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join(".config/clawsmith")).unwrap();
    home.write(
        ".config/clawsmith/clawsmith.toml",
        "[models]\nprovider = \"ollama\"\nmodel = \"mine\"\n\n[tools]\nprofile = \"coding\"\ndeny = [\"exec\"]\n\
         also_allow = [\"web_fetch\"]\n\n[files]\ndeny = [\"private\"]\n",
    );
    home.configure("[tools]\ndeny = [\"write_file\"]\nalso_allow = [\"datetime\"]\n\n[files]\ndeny = []\n");
    let variables = [("CLAWSMITH_MODELS__MODEL", "other"), ("CLAWSMITH_FILES", "{ deny = [\"hidden\"] }")];
    let shown = home.run_with(&variables, &["config", "show", "--json"]).json();
    let of = |key: &str| {
        let settings = shown["settings"].as_array().unwrap();
        settings
            .iter()
            .find(|setting| setting["key"] == key)
            .unwrap_or_else(|| panic!("{key}: {shown}"))
            .clone()
    };
    let check = |key: &str, value: serde_json::Value, from: &str| {
        let setting = of(key);
        assert_eq!((&setting["value"], setting["from"].as_str()), (&value, Some(from)), "{key}");
    };
    check("models.provider", "ollama".into(), "user");
    check("models.model", "other".into(), "env");
    check("tools.profile", "coding".into(), "user");
    check("tools.deny", serde_json::json!(["exec", "write_file"]), "both");
    check("tools.also_allow", serde_json::json!(["datetime"]), "file");
    check("files.deny", serde_json::json!(["private", "hidden"]), "env");
    check("limits.timeout_secs", 60.into(), "default");
    // A variable adds to the lists that take something away, too.
    let denied =
        home.run_with(&[("CLAWSMITH_TOOLS__DENY", "web_fetch")], &["config", "show", "--json"]).json();
    let denied = denied["settings"].as_array().unwrap().iter().find(|setting| setting["key"] == "tools.deny");
    let expected = serde_json::json!({
        "key": "tools.deny", "value": ["exec", "write_file", "web_fetch"],
        "from": "env", "variable": "CLAWSMITH_TOOLS__DENY", "adds": true,
    });
    assert_eq!(denied, Some(&expected));
    let table = home.run_with(&[("CLAWSMITH_TOOLS__DENY", "web_fetch")], &["config", "show"]).stdout;
    assert!(table.contains("$CLAWSMITH_TOOLS__DENY, and files"), "{table}");
    // A mistake is told where it stands.
    home.write(".config/clawsmith/clawsmith.toml", "[tools]\ndeny = [\"effect:nonsense\"]\n");
    let wrong = home.run(&["config", "check"]);
    assert!(
        wrong.code == 2 && wrong.stderr.contains(".config/clawsmith/clawsmith.toml:2"),
        "{}",
        wrong.shown()
    );
}

#[test]
fn accepting_an_edited_file_shows_what_changed() {
    let home = Home::with_config("[tools]\nprofile = \"minimal\"\n");
    home.write("project/clawsmith.toml", "[tools]\nprofile = \"full\"\n");
    let lint = home.run(&["policy", "lint"]);
    assert!(!lint.stderr.contains("accepted"), "looking needs no accepting: {}", lint.shown());
    let diff = home.run(&["policy", "diff", "clawsmith.toml", "clawsmith.toml"]);
    assert_eq!((diff.code, diff.stderr.as_str()), (0, ""), "{}", diff.shown());
    let ran = home.run(&["config", "trust"]);
    assert!(
        ran.stdout.contains("-profile = \"minimal\"") && ran.stdout.contains("+profile = \"full\""),
        "{}",
        ran.shown()
    );
}

#[test]
fn settings_that_name_nothing_are_refused_with_their_line() {
    for (text, line, said) in [
        ("[telemetry]\nendpoint = \"nowhere\"\n", 2, "`nowhere` is not a URL"),
        ("[telemetry]\nendpoint = \"nowhere\"\n", 2, "such as `http://127.0.0.1:4318`"),
        ("[telemetry]\nendpoint = \"grpc://a.example:4317\"\n", 2, "neither http nor https"),
        ("[telemetry]\nendpoint = \"https://a.example/v1/traces\"\n", 2, "leave it out"),
        ("[telemetry]\nendpoint = \"https://a.example?key=1\"\n", 2, "more than host, port and path"),
        ("[telemetry]\nendpoint = \"https://me:word@a.example\"\n", 2, "put a token into `token_env`"),
        ("[telemetry]\nendpoint = \"\"\n", 2, "is not a URL"),
        ("[custom_tools]\nprivate_origins = [\"localhost:80\"]\n", 2, "names no origin"),
        ("[memory.embeddings]\nmodel = \"m\"\nbase_url = \"here\"\n", 3, "`here` is not a URL"),
        ("[memory.embeddings]\nbase_url = \"http://127.0.0.1:1\"\n", 1, "names no model"),
        ("[memory.embeddings]\nkind = \"local\"\n", 1, "names no directory"),
        ("[memory.graph]\nprovider = \"opnai\"\n", 2, "did you mean `openai`?"),
        ("[models.providers.openai.models.m]\nfallback = [\"opnai/m\"]\n", 2, "did you mean `openai`?"),
        ("[models.providers.openai]\nkey_secret = [\"my key\"]\n", 2, "key_secret` entry `my key`"),
        ("[gateway]\nhosts = [\"https://a.example\"]\n", 2, "without scheme, port and path"),
        ("[gateway]\nhosts = [\"a.example:443\"]\n", 2, "without scheme, port and path"),
        ("[gateway.aliases]\ngpt = \"no agent\"\n", 2, "`gateway.aliases.gpt`"),
        ("[gateway]\nrequests_per_key = 0\n", 2, "use at least 1"),
        ("[sandbox.docker]\nsocket = \"unix:///run/docker.sock\"\n", 2, "such as `/var/run/docker.sock`"),
        ("[sandbox]\ndirect = [\"a/target\"]\n", 2, "write one name, such as `target`"),
    ] {
        let home = Home::with_config(text);
        let ran = home.run(&["config", "check"]);
        let place = format!("clawsmith.toml:{line}:");
        let shown = ran.shown();
        assert!(ran.code == 2 && shown.contains(said) && shown.contains(&place), "{said}: {shown}");
        assert!(!shown.contains(":word@"), "{shown}");
        assert_eq!(home.run(&["config", "check", "--json"]).json()["ok"], false);
    }
    let good = "[telemetry]\nendpoint = \"http://127.0.0.1:4318/\"\n[gateway]\nhosts = [\"a.example\", \"[::1]\", \"10.0.0.1\"]\n\
                aliases = { a = \"agent:default\", b = \"clawsmith\" }\n[custom_tools]\nprivate_origins = [\"http://localhost:80\"]\n";
    let ran = Home::with_config(good).run(&["config", "check"]);
    assert!(ran.code == 0 && ran.stdout.ends_with("ok\n"), "{}", ran.shown());
}

#[test]
fn warns_of_settings_with_which_the_gateway_would_not_start_here() {
    for (text, said) in [
        (
            "[gateway]\nlisten = \"0.0.0.0:7373\"\n",
            "warning: `gateway.listen`: `0.0.0.0:7373` is not a loopback address",
        ),
        (
            "[gateway.tls]\ncertificate = \"no.pem\"\nkey = \"no.key\"\n",
            "warning: `gateway.tls.certificate`: `~/project/no.pem` cannot be read",
        ),
        (
            "[telemetry]\nendpoint = \"http://127.0.0.1:4318\"\ntoken_env = \"NOT_SET\"\n",
            "warning: `telemetry.token_env` names `NOT_SET`, which is not set",
        ),
    ] {
        let ran = Home::with_config(text).run(&["config", "check"]);
        assert!(ran.code == 0 && ran.stdout.contains(said), "{said}: {}", ran.shown());
    }
}
