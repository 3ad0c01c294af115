//! Real builds on a layer: the result is the one that they have outside, and is undone as one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::harness::{Home, Ran};
use crate::toolchains::{grant, path_with, rust_like_rustup};

/// Runs a command on a layer, with time for a build on a busy machine.
#[track_caller]
fn on_layer(home: &Home, path: &str, command: &str) -> Ran {
    let args = json!({ "command": command, "timeout_seconds": 3000 }).to_string();
    let ran = home.run_with(&[("PATH", path)], &["tools", "call", "exec", &args]);
    assert!(ran.stdout.contains("[exit code 0]"), "{}", ran.shown());
    assert!(!ran.stdout.contains("cannot be undone"), "{}", ran.shown());
    ran
}

/// Runs a program of this machine in a directory, outside of any sandbox; returns both of its streams.
#[track_caller]
fn outside(directory: &Path, words: &[&str]) -> String {
    let ran = Command::new(words[0]).args(&words[1..]).current_dir(directory).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{words:?}: {said}");
    said
}

/// Every path below a directory, without caches of compiled Python.
fn paths(root: &Path) -> BTreeSet<PathBuf> {
    let (mut found, mut left) = (BTreeSet::new(), vec![root.to_owned()]);
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            if entry.file_name() != "__pycache__" {
                found.insert(entry.path().strip_prefix(root).unwrap().to_owned());
                if entry.file_type().unwrap().is_dir() {
                    left.push(entry.path());
                }
            }
        }
    }
    found
}

/// The line with which a run of tests ends, without its time.
fn outcome(said: &str) -> Option<&str> {
    said.lines()
        .find(|line| line.starts_with("test result:"))
        .and_then(|line| line.split("; finished").next())
}

/// Copies one crate of this project, with the workspace's own settings and pinned versions.
fn one_crate(name: &str, to: &Path) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let is_ours = |line: &str| line.starts_with("claw-") || line.starts_with("clawsmith =");
    let manifest = fs::read_to_string(from.join("Cargo.toml")).unwrap();
    let lines =
        manifest.lines().filter(|line| !is_ours(line)).map(|line| match line.starts_with("members =") {
            true => "members = [\"crates/*\"]",
            false => line,
        });
    fs::write(to.join("Cargo.toml"), lines.collect::<Vec<_>>().join("\n")).unwrap();
    fs::copy(from.join("Cargo.lock"), to.join("Cargo.lock")).unwrap();
    fs::create_dir(to.join("crates")).unwrap();
    let source = from.join("crates").join(name);
    outside(to, &["cp", "-r", source.to_str().unwrap(), "crates"]);
}

#[test]
fn a_crate_of_this_project_is_built_and_tested_as_outside() {
    let home = Home::new();
    let project = home.path().join("project").canonicalize().unwrap();
    one_crate("claw-terminal", &project);
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.unwrap_or_else(|| std::env::home_dir().unwrap().join(".cargo"));
    let registry = cargo_home.join("registry").canonicalize().unwrap();
    let mut directories = rust_like_rustup(&home);
    directories.push(registry.display().to_string());
    grant(&home, &directories, "");
    let path = path_with(&home, ".cargo/bin");
    let before = paths(&project);

    // No debug information and no incremental state: the build is about the layer.
    let cargo = "CARGO_HOME=$PWD/cache CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 cargo";
    let linked = format!("mkdir cache && ln -s {} cache/registry", registry.display());
    let built = on_layer(&home, &path, &format!("{linked} && {cargo} build --offline --quiet"));
    assert!(built.stdout.contains("target/ (new,"), "{}", built.shown());
    assert!(project.join("target/debug/libclaw_terminal.rlib").is_file());
    let tested = on_layer(&home, &path, &format!("{cargo} test --offline --lib 2>&1"));
    let inside = outcome(&tested.stdout).unwrap_or_else(|| panic!("{}", tested.shown()));
    assert!(inside.contains(" 0 failed") && !inside.contains(" 0 passed"), "{inside}");

    // The tests that were built on the layer run outside, and say the same.
    let running = tested.stdout.lines().find(|line| line.contains("Running unittests")).unwrap();
    let program = running.split(['(', ')']).nth(1).unwrap();
    assert_eq!(outcome(&outside(&project, &[program])), Some(inside));

    for _ in 0..2 {
        let undone = home.run(&["undo", "apply", "--last", "--force"]);
        assert_eq!(undone.code, 0, "{}", undone.shown());
    }
    assert_eq!(paths(&project), before);
}

#[test]
fn a_virtual_environment_is_made_and_used_as_outside() {
    let home = Home::new();
    let project = home.path().join("project").canonicalize().unwrap();
    let path = "/usr/local/bin:/usr/bin:/bin";
    let prefix = "import sys; print('prefix', sys.prefix)";
    on_layer(&home, path, "/usr/bin/python3 -m venv env");
    let used = on_layer(&home, path, &format!("env/bin/python -c \"{prefix}\" && env/bin/pip --version"));
    let expected = outside(&project, &["env/bin/python", "-c", prefix]);
    assert_eq!(expected.trim(), format!("prefix {}", project.join("env").display()));
    let version = outside(&project, &["env/bin/pip", "--version"]);
    let real = home.path().canonicalize().unwrap().display().to_string();
    for line in [expected, version] {
        let line = line.trim().replace(&real, "~");
        assert!(used.stdout.contains(&line), "{line}: {}", used.shown());
    }
    let made = tempfile::tempdir().unwrap();
    outside(made.path(), &["/usr/bin/python3", "-m", "venv", "env"]);
    assert_eq!(paths(&project.join("env")), paths(&made.path().join("env")));
    // Using it may have compiled more of it, which is a change of its own.
    for _ in 0..2 {
        if project.join("env").exists() {
            home.run(&["undo", "apply", "--last", "--force"]);
        }
    }
    assert!(!project.join("env").exists());
}
