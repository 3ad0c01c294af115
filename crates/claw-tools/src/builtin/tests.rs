use std::path::Path;

use super::*;

#[test]
fn the_list_is_sorted() {
    assert!(builtin().is_sorted_by_key(|tool| (tool.meta.group.rank(), tool.meta.name.clone())));
}

#[test]
fn what_is_made_is_what_was_listed() {
    for tool in builtin() {
        let made = (tool.make)();
        assert_eq!(made.meta().clone().source(Source::Core), tool.meta);
        assert_eq!(made.spec().name, tool.meta.name);
    }
}

#[test]
fn every_tool_file_is_in_its_groups_list() {
    let mut listed: Vec<String> =
        builtin().map(|tool| format!("{}/{}.rs", tool.meta.group, tool.meta.name)).collect();
    listed.sort();
    // Custom tools are defined at run time; their folder holds no built-in one.
    let files: Vec<_> = tool_files().into_iter().filter(|file| !file.starts_with("custom/")).collect();
    assert_eq!(files, listed, "files on the left, tools in their group's `TOOLS` on the right");
}

/// `group/tool.rs` of every folder that is a group.
#[expect(clippy::disallowed_methods, reason = "the test reads the source tree; no tool does")]
fn tool_files() -> Vec<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let names = |directory: &Path| -> Vec<String> {
        let entries = directory.read_dir().unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let groups = names(&source).into_iter().filter(|name| source.join(name).join("mod.rs").is_file());
    let mut files = Vec::new();
    for group in groups {
        let tools = names(&source.join(&group)).into_iter();
        let tools = tools.filter(|name| name.ends_with(".rs") && name != "mod.rs");
        files.extend(tools.map(|name| format!("{group}/{name}")));
    }
    files.sort();
    files
}
