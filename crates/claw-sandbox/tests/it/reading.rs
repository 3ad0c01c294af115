//! Everyday commands that are judged to read: the read-only workspace changes neither their output nor their exit code.

use std::path::Path;
use std::process::Command;

use claw_core::port::WorkspaceAccess;
use claw_core::tool::{Plan, Script};
use claw_policy::approval::Analysis;
use claw_policy::shell::{Rules, corpus};

use crate::kit::Kit;

/// Programs whose output is that of the machine or the moment, or that wait for ever.
const OF_THE_MACHINE: &[&str] = &[
    "df", "du", "env", "id", "printenv", "pwd", "realpath", "sleep", "stat", "tail -f", "uname", "which",
    "whoami",
];
/// Places that the sandbox shows as its own.
const PLACES_OF_ITS_OWN: &[&str] = &["/var", "/etc", "/proc", "/tmp", "~", "$HOME", "$PATH", "$USER", "$PWD"];

#[tokio::test]
async fn a_command_that_reads_gives_the_same_on_a_read_only_workspace() {
    let mut kit = Kit::new();
    prepare(kit.workspace.path());
    kit.context.access = WorkspaceAccess::ReadOnly;
    let mut compared = 0;
    for command in corpus::harmless().filter(|command| is_comparable(command)) {
        let plan = Plan::script(Script { text: command.clone(), ..Script::default() });
        let analysis = Analysis::of(&plan, &Rules::default(), false, &[], |_, _| None);
        if analysis.access() != WorkspaceAccess::ReadOnly {
            continue;
        }
        let outside = Command::new("/bin/bash")
            .args(["-c", &command])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .current_dir(kit.workspace.path())
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let inside = kit.finish(&["/bin/bash", "-c", &command]).await;
        let printed = String::from_utf8_lossy(&outside.stdout);
        assert_eq!(inside.ended.exit, outside.status.code(), "{command}: {inside:?}");
        // The directory above the workspace is the sandbox's own.
        let is_of_above = |line: &&str| line.starts_with("total ") || line.ends_with(" ..");
        // Columns are as wide as their widest entry, that of the directory above included.
        let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown: Vec<String> = inside.output.lines().map(squeezed).collect();
        for line in printed.lines().filter(|line| !is_of_above(line)).map(squeezed) {
            assert!(shown.contains(&line), "{command}: {line:?} is missing of {:?}", inside.output);
        }
        compared += 1;
    }
    assert!(compared > 60, "only {compared} commands were compared");
    println!("{compared} commands compared");
}

fn is_comparable(command: &str) -> bool {
    let words: Vec<&str> = command.split(|c: char| c.is_whitespace() || "|;&()`".contains(c)).collect();
    !OF_THE_MACHINE.iter().any(|program| words.contains(program) || command.contains(&format!("{program} ")))
        && !PLACES_OF_ITS_OWN.iter().any(|place| command.contains(place))
}

/// A small project with a repository, in the shapes that the corpus names.
fn prepare(workspace: &Path) {
    for directory in ["src", "tests", "scripts", "docs"] {
        std::fs::create_dir(workspace.join(directory)).unwrap();
    }
    for (path, text) in [
        ("README.md", "# project\n\nTODO: words\nfoo\n"),
        ("Cargo.toml", "[package]\nname = \"a\"\n"),
        ("package.json", "{\"name\": \"a\", \"scripts\": {\"test\": \"true\"}}\n"),
        ("src/main.rs", "fn main() {\n    // TODO\n    println!(\"foo\");\n}\n"),
        ("src/lib.rs", "pub fn a() {}\n"),
        ("src/app.ts", "export const a = 1;\n"),
        ("scripts/run.sh", "echo run\n"),
        ("a.txt", "a\nb\nfoo halt\n"),
        ("b.txt", "b\nc\n"),
        ("bar.txt", "foo\nfoo\n"),
        ("file", "a\nb\nab\n"),
        ("data.csv", "x,1\ny,2\n"),
        ("log.txt", "one\ntwo\n"),
    ] {
        std::fs::write(workspace.join(path), text).unwrap();
    }
    let git = "git init -q . && git config user.email t@example.org && git config user.name t && git add . \
               && git commit -q -m first && echo more >> a.txt";
    let made = Command::new("/bin/sh").args(["-c", git]).current_dir(workspace).status().unwrap();
    assert!(made.success());
}
