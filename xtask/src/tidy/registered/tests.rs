use super::check;
use crate::tree::Tree;

const FILE: &str = "crates/claw-tools/src/fs/read_file.rs";
const GROUP: &str = "crates/claw-tools/src/fs/mod.rs";
const LIST: &str = "crates/claw-tools/src/builtin.rs";
const TOOL: &str = "//! A tool.\n\nimpl Tool for ReadFile {}\n";
const LISTED: &str = "mod read_file;\n\nconst TOOLS: &[Builtin] = &[Builtin::of::<read_file::ReadFile>()];\n";

#[track_caller]
fn check_files(files: &[(&str, &str)], expected: Option<&str>) {
    let findings: Vec<String> = check(&Tree::of(files)).iter().map(ToString::to_string).collect();
    assert_eq!(findings.len(), usize::from(expected.is_some()), "{findings:#?}");
    if let Some(expected) = expected {
        assert!(findings[0].contains(expected), "`{}` does not say `{expected}`", findings[0]);
    }
}

#[test]
fn a_listed_tool_is_fine() {
    check_files(&[(FILE, TOOL), (GROUP, LISTED), (LIST, "static G: [&[Builtin]; 1] = [fs::TOOLS];")], None);
}

#[test]
fn a_forgotten_line_is_found() {
    let forgotten = "mod read_file;\npub(crate) use read_file::{ReadFile};\n// ReadFile\nconst TOOLS: &[Builtin] = &[];\n";
    check_files(
        &[(FILE, TOOL), (GROUP, forgotten), (LIST, "[fs::TOOLS]")],
        Some(
            "fs/read_file.rs:3: `ReadFile` is not registered; add it to the list in crates/claw-tools/src/fs/mod.rs",
        ),
    );
    check_files(&[(FILE, TOOL), (LIST, "[fs::TOOLS]")], Some("is not registered"));
}

#[test]
fn a_longer_name_does_not_stand_for_it() {
    let other = "const TOOLS: &[Builtin] = &[Builtin::of::<read_file::ReadFileTail>()];";
    check_files(&[(FILE, TOOL), (GROUP, other), (LIST, "[fs::TOOLS]")], Some("is not registered"));
}

#[test]
fn a_forgotten_group_is_found() {
    let imported = "use crate::{fs, web};\nstatic G: [&[Builtin]; 1] = [web::TOOLS];";
    check_files(&[(FILE, TOOL), (GROUP, LISTED), (LIST, imported)], Some("add `fs` to"));
}

#[test]
fn tools_of_tests_are_free_and_strays_are_not() {
    let inside = "#[cfg(test)]\nmod tests { impl Tool for Fake {} }";
    check_files(&[(FILE, inside), ("crates/claw-tools/src/fixture/tests.rs", TOOL)], None);
    check_files(&[("crates/claw-tools/src/stray.rs", TOOL)], Some("is in no group"));
}
