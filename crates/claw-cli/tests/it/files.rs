//! The file tools by hand, as a newcomer would call them.

use claw_core::port::UnixMillis;
use claw_core::store::{Layer, SettingsStore as _};
use claw_core::{NodeId, TenantId, ToolName};
use claw_store::{Backend as _, SqliteStore};

use crate::approvals::Waiting;
use crate::harness::{Home, Ran};

fn call(home: &Home, tool: &str, args: serde_json::Value) -> Ran {
    home.run(&["tools", "call", tool, "--args", &args.to_string()])
}

#[test]
fn a_file_is_written_edited_and_read() {
    let home = Home::new();
    let args = serde_json::json!({ "path": "notes/a.txt", "content": "one\ntwo\n" });
    let ran = call(&home, "write_file", args);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "created `notes/a.txt`: 8 bytes\n"), "{}", ran.shown());
    let args = serde_json::json!({ "path": "notes/a.txt", "old_string": "two", "new_string": "2" });
    let ran = call(&home, "edit", args);
    assert!(ran.code == 0 && ran.stdout.contains("-two\n+2\n"), "{}", ran.shown());
    let ran = call(&home, "read_file", serde_json::json!({ "path": "notes/a.txt" }));
    assert!(ran.stdout.contains("     1\tone\n     2\t2\n"), "{}", ran.shown());
    assert_eq!(std::fs::read_to_string(home.path().join("project/notes/a.txt")).unwrap(), "one\n2\n");
}

#[test]
fn the_data_directory_is_out_of_reach_and_a_workspace_in_it_is_not() {
    let home = Home::with_config("data_dir = \"data\"\n");
    home.run(&["tools", "call", "workspace_dir"]);
    std::fs::create_dir_all(home.path().join("project/data/workspaces/main/a/shared")).unwrap();
    for path in
        ["data/clawsmith.db", "data/../data/installation", "data/workspaces/main/a/shared/x", "data/new"]
    {
        let ran = call(&home, "read_file", serde_json::json!({ "path": path }));
        assert!(ran.code == 1 && ran.stderr.contains("does not exist"), "{}", ran.shown());
        let args = serde_json::json!({ "path": path, "content": "x" });
        let ran = call(&home, "write_file", args);
        assert!(ran.code != 0, "{}", ran.shown());
    }
    let args = serde_json::json!({ "path": "x", "content": "mine" }).to_string();
    let inside = ["--workspace", "data/workspaces/main/a/shared"];
    let ran = home.run(&[&["tools", "call", "write_file", "--args", &args], &inside[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let args = serde_json::json!({ "path": "../../../../installation" }).to_string();
    let ran = home.run(&[&["tools", "call", "read_file", "--args", &args], &inside[..]].concat());
    assert!(ran.code == 1 && ran.stderr.contains("outside the workspace"), "{}", ran.shown());
}

#[test]
fn a_store_in_the_project_is_out_of_reach() {
    let home = Home::with_config("[store]\nurl = \"sqlite:here.db\"\n");
    home.run(&["tools", "call", "workspace_dir"]);
    assert!(home.path().join("project/here.db").exists());
    let ran = call(&home, "read_file", serde_json::json!({ "path": "here.db" }));
    assert!(ran.code == 1 && ran.stderr.contains("does not exist"), "{}", ran.shown());
}

#[test]
fn what_one_process_has_read_the_next_may_overwrite_unless_it_changed() {
    let home = Home::new();
    home.write("project/a.txt", "old\n");
    let write = |text: &str| {
        let args = serde_json::json!({ "path": "a.txt", "content": text, "mode": "overwrite" });
        call(&home, "write_file", args)
    };
    let ran = write("new\n");
    assert!(ran.code == 1 && ran.stderr.contains("has not read it"), "{}", ran.shown());
    call(&home, "read_file", serde_json::json!({ "path": "a.txt" }));
    assert_eq!(write("new\n").code, 0);
    assert_eq!(write("newer\n").code, 0, "what was written is known");
    home.write("project/a.txt", "of another\n");
    let ran = write("newest\n");
    assert!(ran.code == 1 && ran.stderr.contains("differs from what this session"), "{}", ran.shown());
    assert_eq!(std::fs::read_to_string(home.path().join("project/a.txt")).unwrap(), "of another\n");
}

/// Tries to write, change and read a file that holds or would hold the agents' permissions.
#[track_caller]
fn refused(home: &Home, words: &[&str], path: &str, told: &str) {
    let write = serde_json::json!({ "path": path, "content": "[tools]\nprofile = \"full\"\n" });
    let edit = serde_json::json!({ "path": path, "old_string": "minimal", "new_string": "full" });
    let read = serde_json::json!({ "path": path });
    for (tool, args) in [("read_file", read), ("edit", edit), ("write_file", write)] {
        let args = args.to_string();
        let ran = home.run(&[&["tools", "call", tool, "--args", &args], words].concat());
        assert!(ran.code != 0 && ran.stderr.contains(told), "{tool}: {}", ran.shown());
    }
}

const TOLD: &str = "configuration file of Clawsmith";

#[test]
fn refuses_to_change_the_configuration_in_force() {
    let text = "[tools]\ndeny = [\"datetime\"] # minimal\n";
    let home = Home::with_config(text);
    let file = home.path().join("project/clawsmith.toml");
    std::fs::create_dir(home.path().join("project/sub")).unwrap();
    for path in ["clawsmith.toml", "./sub/../clawsmith.toml", file.to_str().unwrap()] {
        refused(&home, &[], path, TOLD);
    }
    std::os::unix::fs::symlink("clawsmith.toml", home.path().join("project/link")).unwrap();
    std::fs::hard_link(&file, home.path().join("project/hard")).unwrap();
    refused(&home, &[], "link", "");
    refused(&home, &[], "hard", "");
    let ran = call(&home, "list_files", serde_json::json!({}));
    assert!(ran.code == 0 && !ran.stdout.contains("clawsmith.toml"), "{}", ran.shown());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    // An ordinary file of that name is one.
    let args = serde_json::json!({ "path": "sub/clawsmith.toml", "content": "x" });
    assert_eq!(call(&home, "write_file", args).code, 0);
}

#[test]
fn refuses_to_change_a_configuration_that_was_named() {
    let home = Home::new();
    let file = home.write("project/mine.toml", "# minimal\n");
    refused(&home, &["--config", "mine.toml"], "mine.toml", TOLD);
    let args = serde_json::json!({ "path": "mine.toml", "content": "x" }).to_string();
    let named = [("CLAWSMITH_CONFIG", file.to_str().unwrap())];
    let ran = home.run_with(&named, &["tools", "call", "write_file", "--args", &args]);
    assert!(ran.code != 0 && ran.stderr.contains(TOLD), "{}", ran.shown());
}

#[test]
fn refuses_to_make_a_configuration_that_would_be_found() {
    let home = Home::new();
    let (project, user) = (home.path().join("project"), home.path().join(".config"));
    std::fs::create_dir_all(project.join("a/b")).unwrap();
    std::fs::create_dir(&user).unwrap();
    refused(&home, &[], "clawsmith.toml", TOLD);
    // The user's, whose directory is not there.
    refused(&home, &["--workspace", user.to_str().unwrap()], "clawsmith/clawsmith.toml", TOLD);
    // Where the next command may be run.
    refused(&home, &["--workspace", project.join("a").to_str().unwrap()], "clawsmith.toml", TOLD);
    // Above the directory that we are in. Through a link the path is another one, and the file is not.
    std::os::unix::fs::symlink("..", project.join("a/up")).unwrap();
    for path in
        ["a/clawsmith.toml", "a/b/clawsmith.toml", "a/up/a/clawsmith.toml", "a/b/../../a/clawsmith.toml"]
    {
        let args = serde_json::json!({ "path": path, "content": "x" }).to_string();
        let words = ["tools", "call", "write_file", "--workspace", "../..", "--args", &args];
        let ran = home.ran(home.command(&words).current_dir(project.join("a/b")));
        assert!(ran.code != 0 && (ran.stderr.contains(TOLD) || path.contains("up")), "{}", ran.shown());
    }
    for path in ["project", "project/a", "project/a/b", ".config/clawsmith"] {
        assert!(!home.path().join(path).join("clawsmith.toml").exists(), "{path}");
    }
}

#[tokio::test]
async fn settings_of_the_store_hold_from_the_next_call_on() {
    let home = Home::new();
    home.write("project/locked", "x\n");
    let read = || call(&home, "read_file", serde_json::json!({ "path": "locked" }));
    assert_eq!(read().code, 0, "{}", read().shown());
    let store = SqliteStore::open(&home.data().join("clawsmith.db"), NodeId::local()).await.unwrap();
    let settings = serde_json::json!({ "deny_paths": ["locked"] }).as_object().unwrap().clone();
    let (layer, tool) = (Layer::Tenant(TenantId::main()), ToolName::new("read_file").unwrap());
    store.put_settings(&layer, &tool, settings, UnixMillis(1)).await.unwrap();
    store.disconnect().await;
    let ran = read();
    assert!(ran.code == 1 && ran.stderr.contains("does not exist"), "{}", ran.shown());
}

#[test]
fn what_git_would_run_is_asked_about_wherever_it_is_written() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("project/.git/hooks")).unwrap();
    home.write("project/.git/config", "[core]\n");
    home.write("project/.git/hooks/pre-commit", "#!/bin/sh\n");
    for (to, name) in [(".git/hooks", "scripts"), (".git", "hidden")] {
        std::os::unix::fs::symlink(to, home.path().join("project").join(name)).unwrap();
    }
    for path in [
        ".git/config",
        ".git/hooks/new",
        "sub/.git",
        "scripts/post-commit",
        "hidden/new/er/x",
        "./x/../.git/info/attributes",
    ] {
        let ran = call(
            &home,
            "write_file",
            serde_json::json!({ "path": path, "content": "x\n", "mode": "append" }),
        );
        assert!(ran.code == 3 && ran.stderr.contains("belongs to git"), "{path} {}", ran.shown());
    }
    let ran = call(&home, "read_file", serde_json::json!({ "path": ".git/config" }));
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let ran = call(&home, "write_file", serde_json::json!({ "path": ".gitignore", "content": "x\n" }));
    assert_eq!(ran.code, 0, "{}", ran.shown());
}

#[test]
fn a_change_of_a_hidden_value_is_told() {
    let home = Home::new();
    let key = |end: &str| format!("ghp_aB3dE5gH7jK9mN1pQ3sT5vX7zA2cD4fG{end}");
    let file = home.write("project/r.txt", format!("tok {} end\n", key("6h8k")));
    call(&home, "read_file", serde_json::json!({ "path": "r.txt" }));
    let args = serde_json::json!({ "path": "r.txt", "old_string": "[REDACTED]", "new_string": key("0000") });
    let ran = call(&home, "edit", args.clone());
    assert!(ran.code == 0 && ran.stdout.contains("a hidden value was changed"), "{}", ran.shown());
    assert!(!ran.shown().contains("ghp_"), "{}", ran.shown());
    assert!(std::fs::read_to_string(&file).unwrap().contains(&key("0000")));
    let ran = call(&home, "edit", args);
    assert!(ran.stdout.contains("nothing was changed"), "{}", ran.shown());
}

#[test]
fn line_ends_stay_as_they_are() {
    let home = Home::new();
    let file = home.write("project/dos.txt", "x\r\ny\r\n");
    call(
        &home,
        "write_file",
        serde_json::json!({ "path": "dos.txt", "content": "z\nw\n", "mode": "append" }),
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\r\ny\r\nz\r\nw\r\n");
    call(&home, "read_file", serde_json::json!({ "path": "dos.txt" }));
    call(&home, "write_file", serde_json::json!({ "path": "dos.txt", "content": "a\nb\n" }));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "a\r\nb\r\n");
    let mixed = home.write("project/mixed.txt", "x\r\ny\n");
    call(&home, "write_file", serde_json::json!({ "path": "mixed.txt", "content": "z\n", "mode": "append" }));
    assert_eq!(std::fs::read_to_string(&mixed).unwrap(), "x\r\ny\nz\n");
}

#[test]
fn a_managed_workspace_is_made_for_a_command_too() {
    let home = Home::new();
    let ran = home.run(&["tools", "call", "exec", "--managed", r#"{"command": "echo here"}"#]);
    assert!(ran.code == 0 && ran.stdout.starts_with("here\n"), "{}", ran.shown());
}

#[test]
fn denied_paths_that_could_never_match_are_refused() {
    for (entry, why) in [("*.pem", "patterns"), ("a/../b", "`..`"), ("", "empty")] {
        let home = Home::with_config(&format!("[files]\ndeny = [\"{entry}\"]\n"));
        let ran = home.run(&["config", "check"]);
        assert!(ran.code == 2 && ran.stderr.contains(why), "{}", ran.shown());
    }
}

#[test]
fn a_write_that_was_approved_goes_where_the_question_said() {
    let home = Home::with_config("[approvals.effects]\nwrite = \"ask\"\n");
    let at = |name: &str| home.path().join("project").join(name);
    for name in ["one", "two"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    std::os::unix::fs::symlink("one", at("link")).unwrap();
    let waiting = Waiting::start(&home, &["write_file", r#"{"path": "link/f.txt", "content": "x"}"#]);
    let ran = home.run(&["approvals", "show", &waiting.id]);
    assert!(
        ran.stdout.contains("write link/f.txt") && ran.stdout.contains("/project/one/f.txt"),
        "{}",
        ran.shown()
    );
    std::fs::remove_file(at("link")).unwrap();
    std::os::unix::fs::symlink("two", at("link")).unwrap();
    assert_eq!(home.run(&["approvals", "approve", &waiting.id]).code, 0);
    let ran = waiting.end();
    assert!(ran.code == 3 && ran.stderr.contains("leads elsewhere"), "{}", ran.shown());
    assert!(!at("one/f.txt").exists() && !at("two/f.txt").exists());
}
