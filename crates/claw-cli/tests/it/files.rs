//! The file tools by hand, as a newcomer would call them.

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
    assert!(ran.code == 1 && ran.stderr.contains("is not as this session last saw it"), "{}", ran.shown());
    assert_eq!(std::fs::read_to_string(home.path().join("project/a.txt")).unwrap(), "of another\n");
}
