//! A chat with the real binary: offline, from a script.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::harness::{Home, Ran};

/// Parses the events of a run.
fn events(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// A chat in a process of its own.
fn start(home: &Home, words: &[&str]) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin!("clawsmith"))
        .env_clear()
        .env("HOME", home.path())
        .env("USER", "tester")
        .current_dir(home.path().join("project"))
        .arg("chat")
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn answers_without_a_key_and_says_that_it_is_a_demo() {
    let home = Home::new();
    let ran = home.run(&["chat", "-m", "hello"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stdout.starts_with("Hello! I am Clawsmith's demo"), "{}", ran.shown());
    assert_eq!(
        ran.stderr,
        "no model is set up: a demo plays a script instead. The tools that it calls are real.\n"
    );
}

#[test]
fn reads_the_question_from_standard_input_and_shows_the_calls() {
    let home = Home::new();
    home.write("project/notes.txt", "one\ntwo\n");
    let ran = home.ran(home.command(&["chat"]).write_stdin("read notes.txt\n"));
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(
        ran.stdout.starts_with("Let me look.\nHere it is:\n") && ran.stdout.contains("two"),
        "{}",
        ran.shown()
    );
    assert!(ran.stderr.contains("→ read_file notes.txt\n✓ read_file notes.txt "), "{}", ran.shown());
}

#[test]
fn a_demo_writes_reads_and_edits_a_file_and_it_can_be_undone() {
    let home = Home::new();
    let ran = home.run(&["chat", "-m", "show me"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let file = home.path().join("project/clawsmith-demo.txt");
    assert!(std::fs::read_to_string(&file).unwrap().contains("crustaceans"));
    assert!(ran.stdout.contains("+3. They are crustaceans."), "{}", ran.shown());
    let undone = home.run(&["undo", "list", "--json"]);
    assert!(undone.stdout.contains("clawsmith-demo.txt"), "{}", undone.shown());
}

#[test]
fn a_demo_plays_again_in_the_same_directory() {
    let home = Home::new();
    let file = home.path().join("project/clawsmith-demo.txt");
    for _ in 0..3 {
        let ran = home.run(&["chat", "-m", "show me"]);
        assert!(!ran.stdout.contains("That did not work"), "{}", ran.shown());
        assert!(ran.stdout.contains("+3. They are crustaceans."), "{}", ran.shown());
        assert!(std::fs::read_to_string(&file).unwrap().contains("crustaceans"));
    }
    // A text of somebody else is left as it is.
    std::fs::write(&file, "mine\n").unwrap();
    let ran = home.run(&["chat", "-m", "show me"]);
    assert!(ran.stdout.contains("I leave it alone"), "{}", ran.shown());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine\n");
}

#[test]
fn tells_programs_everything_in_events_line_by_line() {
    let home = Home::new();
    let first = events(&home.run(&["chat", "-m", "list the files", "--json"]));
    let kinds: Vec<&str> = first.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..2], ["chat", "message"]);
    assert_eq!((&first[0]["demo"], kinds.last()), (&true.into(), Some(&"usage")));
    let usage = &first.last().unwrap()["usage"];
    assert!(usage["tokens"]["output"].is_u64() && usage["cost"].is_u64(), "{usage}");
    let states: Vec<_> = of_type(&first, "tool").iter().map(|event| event["state"].clone()).collect();
    assert_eq!(states, ["started", "finished"]);
    let words: String = of_type(&first, "text").iter().map(|event| event["text"].as_str().unwrap()).collect();
    assert!(words.starts_with("These are the files here:"), "{words}");
    assert_eq!(of_type(&first, "run").last().unwrap()["end"], "answered");

    let fresh = events(&home.run(&["chat", "hello", "--json"]));
    assert_ne!(first[0]["session"], fresh[0]["session"], "a message has a session of its own");
    let session = first[0]["session"].as_str().unwrap();
    let second = events(&home.run(&["chat", "-m", "hello", "--json", "--resume", session]));
    let seq = |events: &[Value]| of_type(events, "message")[0]["message"]["seq"].as_u64().unwrap();
    assert_eq!((seq(&first), seq(&second)), (1, 5), "the conversation goes on");
    let other = events(&home.run(&["chat", "-m", "hello", "--json", "--session", "cli:other"]));
    assert_eq!(seq(&other), 1, "and another one begins");
    assert_eq!(first[0]["session"], second[0]["session"]);
}

#[test]
fn refuses_what_needs_an_approval_where_nobody_can_be_asked() {
    let home = Home::with_config("[approvals.effects]\nwrite = \"ask\"\n");
    let ran = home.run(&["chat", "-m", "show me"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stdout.contains("That did not work"), "{}", ran.shown());
    assert!(ran.stderr.contains("✗ write_file") && ran.stderr.contains("`--wait`"), "{}", ran.shown());
    let call = home.run(&["tools", "call", "write_file", r#"{"path": "a", "content": "x"}"#]);
    assert!(call.code == 3 && call.stderr.contains("`--wait`"), "{}", call.shown());
    assert!(call.stderr.contains("`clawsmith approvals approve ID`"), "{}", call.shown());
    assert!(!home.path().join("project/clawsmith-demo.txt").exists());
}

#[test]
fn the_words_of_a_conversation_are_done_and_not_said() {
    let home = Home::new();
    home.run(&["chat", "-m", "show me"]);
    let file = home.path().join("project/clawsmith-demo.txt");
    assert!(std::fs::read_to_string(&file).unwrap().contains("crustaceans"));
    let undone = home.run(&["chat", "-m", "/undo"]);
    assert!(
        undone.code == 0 && undone.stdout.contains("put back `clawsmith-demo.txt`"),
        "{}",
        undone.shown()
    );
    assert!(std::fs::read_to_string(&file).unwrap().contains("birds"));
    let cost = home.ran(home.command(&["chat"]).write_stdin("/cost\n"));
    assert!(cost.code == 0 && cost.stdout.contains("for 5 answers: "), "{}", cost.shown());
    let why = home.run(&["chat", "-m", "/policy exec"]);
    assert!(why.stdout.contains("has `exec`"), "{}", why.shown());
    for word in ["/new", "/exit", "/image a.png"] {
        let ran = home.run(&["chat", "-m", word]);
        assert!(ran.code == 2 && ran.stderr.contains("only in an interactive chat"), "{}", ran.shown());
    }
    let said = home.run(&["chat", "-m", "/etc/hosts is what?"]);
    assert!(said.code == 0 && !said.stdout.is_empty(), "a path is no word: {}", said.shown());
}

#[test]
fn the_policy_of_a_conversation_is_that_of_the_provider_that_answers() {
    let home = Home::with_config(
        "[tools.by_provider.demo]\nallow = [\"datetime\"]\n[agents.other]\nprovider = \"openai\"\n",
    );
    let why = home.run(&["chat", "-m", "/policy exec"]);
    assert!(why.stdout.contains("does not have `exec`") && why.stdout.contains("demo"), "{}", why.shown());
    let tools = home.run(&["chat", "-m", "/tools"]);
    assert!(!tools.stdout.contains("exec "), "{}", tools.shown());
    let home = Home::with_config(
        "[tools.by_provider.openai]\nallow = [\"datetime\"]\n[agents.other]\nprovider = \"openai\"\n",
    );
    let why = home.run(&["policy", "explain", "exec", "--agent", "other"]);
    assert!(why.stdout.contains("does not have `exec`"), "{}", why.shown());
    let why = home.run(&["policy", "explain", "exec"]);
    assert!(why.stdout.contains("has `exec`"), "{}", why.shown());
}

#[test]
fn another_process_approves_what_a_run_waits_for() {
    let home = Home::with_config("[approvals.effects]\nwrite = \"ask\"\n");
    let script = home.write(
        "script.toml",
        r#"
        [[turn]]
        when.result_of = "write_file"
        do = [{ say = "Written." }]

        [[turn]]
        do = [{ call = "write_file", args = { path = "a.txt", content = "x" } }]
        "#,
    );
    let mut chat = start(&home, &["-m", "go", "--wait", "--json", "--script", script.to_str().unwrap()]);
    let lines = BufReader::new(chat.stdout.take().unwrap()).lines();
    let mut events = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let asked = events.find(|event| event["type"] == "approval").expect("a question");
    let id = asked["approval"].as_str().unwrap();
    assert_eq!((&asked["tool"], &asked["state"]), (&"write_file".into(), &"pending".into()));
    let approved = home.run(&["approvals", "approve", id]);
    assert_eq!(approved.code, 0, "{}", approved.shown());
    let last = events.filter(|event| event["type"] == "run").last().unwrap();
    assert_eq!((&last["state"], &last["end"]), (&"ended".into(), &"answered".into()));
    assert_eq!(chat.wait().unwrap().code(), Some(0));
    assert!(home.path().join("project/a.txt").exists());
}

#[test]
fn a_run_that_fails_says_why_and_exits_with_1() {
    let home = Home::new();
    let script =
        home.write("s.toml", "[[turn]]\ndo = [{ fail = \"unauthorised\", message = \"the key is wrong\" }]");
    let ran = home.run(&["chat", "-m", "hello", "--script", script.to_str().unwrap()]);
    assert_eq!(ran.code, 1, "{}", ran.shown());
    assert!(
        ran.stderr.contains("the run failed") && ran.stderr.contains("the key is wrong"),
        "{}",
        ran.shown()
    );
}

#[test]
fn ctrl_c_ends_the_run_and_keeps_what_was_said() {
    let home = Home::new();
    let script = home.write("s.toml", "[[turn]]\ndo = [{ say = \"Once\\nupon\" }, { hang = true }]");
    let mut chat = start(&home, &["-m", "go", "--session", "cli:x", "--script", script.to_str().unwrap()]);
    let mut stdout = BufReader::new(chat.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "Once\n");
    let process = rustix::process::Pid::from_child(&chat);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), chat.wait().unwrap().code()), ("upon\n", Some(130)));
}

/// A limit is told from Ctrl-C by its exit code.
#[test]
fn a_run_that_reaches_its_time_limit_ends_with_code_4() {
    let home = Home::with_config("[runs]\nseconds = 1\n");
    let calls = "[[turn]]\ndo = [{ call = \"exec\", args = { command = \"sleep 600\" } }]";
    for script in ["[[turn]]\ndo = [{ say = \"Once\\nupon\" }, { hang = true }]", calls] {
        let script = home.write("s.toml", script);
        let ran = home.run(&["chat", "-m", "go", "--script", script.to_str().unwrap()]);
        assert_eq!(ran.code, 4, "{}", ran.shown());
    }
}

#[test]
fn says_what_is_wrong_with_how_it_was_called() {
    let home = Home::new();
    let script = home.write("bad.toml", "[[turn]]\ndo = [{ sya = \"hi\" }]");
    for (words, expected) in [
        (&["chat", "-m", "  "][..], "the message is empty"),
        (&["chat", "-m", "hi", "--workspace", "/"], "never a workspace"),
        (&["chat", "-m", "hi", "--session", "nothing"], "session key"),
        (&["chat", "-m", "hi", "--script", "missing.toml"], "cannot be played"),
        (&["chat", "-m", "hi", "--script", script.to_str().unwrap()], "sya"),
    ] {
        let ran = home.run(words);
        assert_eq!(ran.code, 2, "{words:?}: {}", ran.shown());
        assert!(ran.stderr.contains(expected), "{words:?}: {}", ran.shown());
    }
}

#[test]
fn a_message_from_one_conversation_is_answered_in_the_other() {
    let home = Home::new();
    let script = home.write(
        "send.toml",
        r#"
        [[turn]]
        when.result_of = "sessions_send"
        do = [{ say = "I wrote: {{result}}" }]

        [[turn]]
        when.said = "tell them"
        do = [{ call = "sessions_send", args = { session_key = "cli:b", message = "the kettle is on" } }]

        [[turn]]
        do = [{ say = "You said: {{said}}" }]
        "#,
    );
    let script = script.to_str().unwrap();
    let chat =
        |session: &str, text: &str| home.run(&["chat", "-m", text, "--script", script, "--session", session]);
    assert_eq!(chat("cli:b", "hello").code, 0);
    let sent = chat("cli:a", "tell them");
    assert!(sent.stdout.contains("message #3 of session cli:b is accepted"), "{}", sent.shown());
    let next = chat("cli:b", "and now?");
    let answered = next.stdout.find("the kettle is on").expect("it is answered where it was sent");
    assert!(answered < next.stdout.find("You said: and now?").unwrap(), "{}", next.shown());

    let list = home.run(&["tools", "call", "sessions_list", "--session", "cli:a"]);
    assert_eq!(list.code, 0, "{}", list.shown());
    assert!(list.stdout.contains("cli:a (this one)") && list.stdout.contains("cli:b: "), "{}", list.shown());
    let other = home.run(&["tools", "call", "sessions_list", "--session", "cli:c", "--user", "ben"]);
    assert_eq!(other.stdout, "there are no sessions\n", "{}", other.shown());
    let refused = home.run(&["chat", "-m", "let me in", "--session", "cli:b", "--user", "ben"]);
    assert_eq!(refused.code, 1, "{}", refused.shown());
    assert!(
        refused.stderr.contains("session `cli:b` belongs to another user or agent"),
        "{}",
        refused.shown()
    );
}

/// A command that writes although its text does not show it changes nothing in the mode `plan`.
#[test]
fn plan_mode_holds_back_what_a_command_changes_unsaid() {
    let home = Home::new();
    home.write("project/keep.txt", "kept\n");
    let script = home.write(
        "plan.toml",
        r#"
[[turn]]
when.result_of = "exec"
do = [{ say = "Done." }]
[[turn]]
do = [{ call = "exec", args = { command = "sort -o keep.txt /dev/null" } }]
"#,
    );
    let script = script.to_str().unwrap();
    let ran = home.run(&["chat", "--mode", "plan", "--script", script, "-m", "tidy"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert_eq!(
        std::fs::read_to_string(home.path().join("project/keep.txt")).unwrap(),
        "kept\n",
        "{}",
        ran.shown()
    );
    let ran = home.run(&["chat", "--script", script, "-m", "tidy"]);
    assert_eq!(std::fs::read_to_string(home.path().join("project/keep.txt")).unwrap(), "", "{}", ran.shown());
}

/// In the mode `plan` a command changes nothing beside the workspace, and none is left running.
#[test]
fn plan_mode_writes_no_home_and_starts_nothing_in_the_background() {
    let home = Home::new();
    let script = home.write(
        "plan.toml",
        r#"
[[turn]]
when.round = 0
do = [{ call = "exec", args = { command = "sort -o ~/planted /dev/null" } }]
[[turn]]
when.round = 1
do = [{ call = "exec", args = { command = "sleep 30", background = true } }]
[[turn]]
do = [{ say = "Result: {{result}}" }]
"#,
    );
    let script = script.to_str().unwrap();
    let ran = home.run(&["chat", "--mode", "plan", "--script", script, "-m", "plan it"]);
    assert!(ran.stdout.contains("could change files, and the mode `plan` denies that"), "{}", ran.shown());
    let listed = home.run(&["tools", "call", "exec", r#"{"command": "ls -a ~"}"#]);
    assert!(!listed.stdout.contains("planted"), "{}", listed.shown());
    // Without the mode the home is its own to write.
    let ran = home.run(&["tools", "call", "exec", r#"{"command": "sort -o ~/planted /dev/null; ls ~"}"#]);
    assert!(ran.stdout.contains("planted"), "{}", ran.shown());
}

/// A command whose changes must be looked at first does not run in the background, where it changes files at once.
#[test]
fn refuses_a_writer_in_the_background_whose_changes_must_be_held_back() {
    let cases = [
        ("[approvals.effects]\nwrite = \"ask\"\n", "configured", "which `approvals.effects.write` requires"),
        ("", "ask", "which the mode `ask` requires"),
        ("[shell]\napply = \"review\"\n", "configured", "`shell.apply` is `review`"),
        ("[shell]\napply = \"on_success\"\n", "configured", "`shell.apply` is `on_success`"),
    ];
    for (config, mode, reason) in cases {
        let home = Home::with_config(config);
        let script = home.write(
            "background.toml",
            r#"
[[turn]]
when.round = 0
do = [{ call = "exec", args = { command = "sort -o planted /dev/null", background = true } }]
[[turn]]
do = [{ say = "Result: {{result}}" }]
"#,
        );
        let script = script.to_str().unwrap();
        let ran = home.run(&["chat", "--mode", mode, "--script", script, "-m", "do it"]);
        assert!(ran.stdout.contains("its changes cannot be held back"), "{}", ran.shown());
        assert!(ran.stdout.contains(reason), "{reason}: {}", ran.shown());
        assert!(!home.path().join("project/planted").exists(), "{}", ran.shown());
    }
}

/// A server sees the project's words and the picture that was sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_sent_the_projects_words_and_an_image() {
    use claw_llm::ProviderKind;
    use claw_testkit::models::{Manners, ModelServer};

    let server = ModelServer::start("[[turn]]\ndo = [{ say = \"seen\" }]\n", Manners::default()).await;
    let base = server.base_url(ProviderKind::OpenAi);
    let home = Home::with_config(&format!(
        "[models]\nprovider = \"own\"\nmodel = \"gpt-5\"\n\n[models.providers.own]\nkind = \"openai\"\nbase_url = \"{base}\"\n"
    ));
    home.write("project/AGENTS.md", "Always answer in rhymes.\n");
    // One grey point.
    let png: &[u8] = &[
        0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0,
        0, 0, 1, 8, 0, 0, 0, 0, 0x3a, 0x7e, 0x9b, 0x55, 0, 0, 0, 10, b'I', b'D', b'A', b'T', 0x78, 0x9c,
        0x63, 0x68, 0, 0, 0, 0x82, 0, 0x81, 0x77, 0xcd, 0x72, 0xb6, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae,
        0x42, 0x60, 0x82,
    ];
    let picture = home.write("project/point.png", png);
    let ran = tokio::task::block_in_place(|| {
        home.run(&["chat", "-m", "what is this?", "--image", picture.to_str().unwrap()])
    });
    assert!(ran.code == 0 && ran.stdout.contains("seen"), "{}", ran.shown());
    assert!(
        ran.stderr.contains("attached `") && ran.stderr.contains("(image/png, 1 KiB)"),
        "{}",
        ran.shown()
    );
    let other = tokio::task::block_in_place(|| home.run(&["chat", "-m", "hi", "--model", "own/gpt-6"]));
    assert_eq!(other.code, 0, "{}", other.shown());
    let asked = server.asked();
    let models: Vec<_> = asked.iter().map(|asked| asked.body["model"].as_str()).collect();
    assert_eq!(models, [Some("gpt-5"), Some("gpt-6")], "`--model` chooses who answers");
    let sent = server.asked()[0].body.to_string();
    assert!(sent.contains("Always answer in rhymes."), "{sent}");
    assert!(sent.contains("data:image/png;base64,iVBORw0KGgo"), "{sent}");
    let missing = tokio::task::block_in_place(|| home.run(&["chat", "-m", "x", "--image", "none.png"]));
    assert!(missing.code != 0 && missing.stderr.contains("none.png"), "{}", missing.shown());
}
