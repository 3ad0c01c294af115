use super::check;
use crate::tree::Tree;

#[track_caller]
fn check_page(page: &str, expected: &[&str]) {
    let files = [
        ("ARCHITECTURE.md", page),
        ("crates/claw-core/src/lib.rs", ""),
        ("crates/claw-core/src/tool/a.rs", ""),
        ("crates/claw-core/src/tool/b.rs", ""),
        ("docs/shell.md", ""),
    ];
    let findings: Vec<String> = check(&Tree::of(&files)).iter().map(ToString::to_string).collect();
    assert_eq!(findings.len(), expected.len(), "{findings:#?}");
    for (finding, expected) in findings.iter().zip(expected) {
        assert!(finding.contains(expected), "`{finding}` does not say `{expected}`");
    }
}

const CRATES: &str = "  claw-core/      the vocabulary\n## Where to look\n";

#[test]
fn paths_that_exist_are_fine() {
    let rows = "| x | `claw-core/src/lib.rs`, `claw-core/src/tool/`; [docs/shell.md](docs/shell.md); `clawsmith runs` |\n\
                | y | `claw-core/src/tool/{a,b}.rs`, `ToolError`, `a/b` |";
    check_page(&format!("{CRATES}{rows}"), &[]);
}

#[test]
fn paths_that_moved_are_found() {
    let rows = "| x | `claw-core/src/dialect.rs`, `claw-host/src/` |\n| y | `claw-core/src/tool/{a,c}.rs`, [m](docs/m.md) |";
    let expected = [
        "ARCHITECTURE.md:3: `crates/claw-core/src/dialect.rs` does not exist",
        "ARCHITECTURE.md:3: `crates/claw-host/src/` does not exist",
        "ARCHITECTURE.md:4: `crates/claw-core/src/tool/c.rs` does not exist",
        "ARCHITECTURE.md:4: `docs/m.md` does not exist",
    ];
    check_page(&format!("{CRATES}{rows}"), &expected);
}

#[test]
fn rows_of_other_tables_are_not_looked_at() {
    check_page(&format!("`claw-core/gone`\n{CRATES}\n## Then\n`claw-core/gone`"), &[]);
}

#[test]
fn a_crate_that_the_list_forgot_is_found() {
    check_page("## Where to look\n", &["`claw-core` is not in the list of crates"]);
}
