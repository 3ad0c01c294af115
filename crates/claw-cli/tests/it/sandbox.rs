//! `clawsmith sandbox`, with the real sandbox.

use serde_json::Value;

use crate::harness::Home;

#[test]
fn status_names_layers_and_reach() {
    let home = Home::new();
    let ran = home.run(&["sandbox", "status"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for word in ["landlock", "seccomp", "works", "~/project", "read, write", "network", "4096 MiB"] {
        assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
    }
    let ran = home.run(&["sandbox", "status", "--read-only", "--json"]);
    let status: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(status["usable"], true);
    assert_eq!(status["reach"]["write"], false);
    let layer = status["layers"].as_array().unwrap().iter().find(|layer| layer["name"] == "seccomp").unwrap();
    assert_eq!(layer["standing"]["standing"], "works");
}

#[test]
fn nothing_that_is_tried_gets_out() {
    let ran = Home::new().run(&["sandbox", "probe", "--json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let probe: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(probe["held"], true);
    assert!(probe["tries"].as_array().unwrap().len() > 5);
    assert!(probe["cost"]["sandbox_ms"].as_f64().unwrap() > 0.0);
}

#[test]
fn doctor_and_probe_say_whether_changes_of_commands_can_be_undone() {
    let home = Home::new();
    assert_eq!(home.run(&["tools", "call", "exec", r#"{"command": "true"}"#]).code, 0);
    let can = home.run(&["sandbox", "probe"]);
    assert!(can.stdout.contains("changes of commands in this directory can be undone"), "{}", can.shown());
    let doctor = home.run(&["doctor"]);
    assert!(doctor.stdout.contains("project` can be undone"), "{}", doctor.shown());
    // A data directory on another file system.
    let data = tempfile::tempdir_in("/dev/shm").unwrap();
    let elsewhere = [("CLAWSMITH_DATA_DIR", data.path().to_str().unwrap())];
    let cannot = home.run_with(&elsewhere, &["sandbox", "probe"]);
    assert!(cannot.stdout.contains("this directory cannot be undone: "), "{}", cannot.shown());
    let doctor = home.run_with(&elsewhere, &["doctor"]);
    assert!(doctor.stdout.contains("project` cannot be undone: "), "{}", doctor.shown());
}

#[test]
fn a_command_runs_in_it_and_its_code_is_ours() {
    let home = Home::new();
    home.write("project/in", "read me\n");
    home.write("beside", "secret-content\n");
    let script = "cat in; cat ../beside; echo made > out; exit 7";
    let ran = home.run_with(&[("SECRET_TOKEN", "leaked")], &["sandbox", "run", "--", "sh", "-c", script]);
    assert_eq!(ran.code, 7, "{}", ran.stderr);
    assert!(ran.stdout.starts_with("read me\n") && !ran.stdout.contains("secret-content"), "{}", ran.stdout);
    assert_eq!(std::fs::read_to_string(home.path().join("project/out")).unwrap(), "made\n");
    let ran = home.run_with(&[("SECRET_TOKEN", "leaked")], &["sandbox", "run", "--", "env"]);
    assert!(ran.stdout.contains("HOME=/run/home") && !ran.stdout.contains("leaked"), "{}", ran.stdout);
    let ran = home.run(&["sandbox", "run", "--read-only", "--", "sh", "-c", "echo changed > in"]);
    assert_ne!(ran.code, 0);
    assert_eq!(std::fs::read_to_string(home.path().join("project/in")).unwrap(), "read me\n");
    let ran = home.run(&["sandbox", "run", "--json", "--", "sh", "-c", "sleep 600 & kill -9 $$"]);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &told["signal"], &told["stragglers"]), (137, &9.into(), &1.into()), "{told}");
}

#[test]
fn the_data_directory_is_hidden_even_where_the_workspace_holds_it() {
    let home = Home::new();
    std::fs::create_dir_all(home.data().join("keys")).unwrap();
    std::fs::write(home.data().join("keys/ring"), "secret-content").unwrap();
    let shown = home.data().join("keys/ring");
    let words = ["sandbox", "run", "--workspace", "..", "--", "cat", shown.to_str().unwrap()];
    let ran = home.run(&words);
    assert!(ran.code == 1 && !ran.stdout.contains("secret-content"), "{}: {}", ran.code, ran.stdout);
}

#[test]
fn refuses_what_cannot_be_a_workspace() {
    let home = Home::new();
    let ran = home.run(&["sandbox", "run", "--workspace", "/", "--", "true"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot be granted"), "{}", ran.stderr);
    let ran = home.run(&["sandbox", "run", "--workspace", "nowhere", "--", "true"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let ran = home.run(&["sandbox", "run", "--", "no-such-program"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.starts_with("error: `no-such-program` cannot be run: No such file"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("sandbox status"), "{}", ran.stderr);
}
