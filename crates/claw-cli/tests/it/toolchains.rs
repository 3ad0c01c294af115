//! An agent that can work: it clones, builds and tests real projects in the sandbox with the user's toolchains, and
//! reaches nothing that was not granted.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::harness::{Home, Ran};
use crate::terminal::Terminal;

/// Runs a program of this machine to prepare something.
#[track_caller]
fn prepared(directory: &Path, words: &[&str]) {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(directory).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// The first program of this name in this test's own `PATH` that passes.
fn in_path(name: &str, passes: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| passes(file))
}

/// Lays a Rust toolchain out as rustup does, below this home; returns the directories to be granted.
pub(crate) fn rust_like_rustup(home: &Home) -> Vec<String> {
    let cargo = PathBuf::from(std::env::var_os("CARGO").unwrap()).canonicalize().unwrap();
    let toolchain = cargo.parent().and_then(Path::parent).unwrap().to_owned();
    let bin = home.path().join(".cargo/bin");
    fs::create_dir_all(&bin).unwrap();
    let rustup = home.path().join(".rustup");
    fs::create_dir_all(rustup.join("toolchains")).unwrap();
    symlink(&toolchain, rustup.join("toolchains/mine")).unwrap();
    fs::write(rustup.join("settings.toml"), "version = \"12\"\ndefault_toolchain = \"mine\"\n").unwrap();
    match in_path("rustup", Path::is_file) {
        Some(real) => {
            fs::copy(real.canonicalize().unwrap(), bin.join("rustup")).unwrap();
            ["cargo", "rustc"].iter().for_each(|name| symlink("rustup", bin.join(name)).unwrap());
        }
        // Without rustup the programs themselves stand where its own would.
        None => ["cargo", "rustc"].iter().for_each(|name| {
            symlink(toolchain.join("bin").join(name), bin.join(name)).unwrap();
        }),
    }
    vec!["~/.cargo/bin".into(), "~/.rustup".into(), toolchain.display().to_string()]
}

/// Lets every agent read these directories, as the user's own configuration says.
pub(crate) fn grant(home: &Home, directories: &[String], more: &str) {
    fs::create_dir_all(home.path().join(".config/clawsmith")).unwrap();
    let read = serde_json::to_string(directories).unwrap();
    home.write(".config/clawsmith/clawsmith.toml", format!("[files]\nread = {read}\n{more}"));
}

/// Runs these commands by an agent one after the other, which then prints the output of the last one.
fn works(home: &Home, path: &str, commands: &[&str]) -> Ran {
    let mut script = String::new();
    for (round, command) in commands.iter().enumerate() {
        let args = format!("{{ command = {} }}", json!(command));
        script += &format!("[[turn]]\nwhen.round = {round}\ndo = [{{ call = \"exec\", args = {args} }}]\n\n");
    }
    script += "[[turn]]\ndo = [{ say = \"Result: {{result}}\" }]\n";
    let script = home.write("work.toml", script);
    let words = ["chat", "-m", "build it", "--script", script.to_str().unwrap()];
    home.run_with(&[("PATH", path)], &words)
}

fn exec(home: &Home, path: &str, command: &str) -> Ran {
    home.run_with(&[("PATH", path)], &["tools", "call", "exec", &json!({ "command": command }).to_string()])
}

pub(crate) fn path_with(home: &Home, first: &str) -> String {
    format!("{}:/usr/bin:/bin", home.path().join(first).display())
}

#[test]
fn an_agent_clones_builds_and_tests_a_rust_crate() {
    let home = Home::new();
    let upstream = home.path().join("upstream");
    fs::create_dir_all(upstream.join("src")).unwrap();
    home.write(
        "upstream/Cargo.toml",
        "[package]\nname = \"adder\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    );
    home.write(
        "upstream/src/lib.rs",
        "pub fn add(a: i32, b: i32) -> i32 { a + b }\n#[test]\nfn adds() { assert_eq!(add(20, 22), 42); }\n",
    );
    home.write("upstream/.gitignore", "target\n");
    prepared(&upstream, &["git", "init", "--quiet"]);
    prepared(&upstream, &["git", "add", "."]);
    let commit = ["-c", "user.name=U", "-c", "user.email=u@x", "commit", "--quiet", "-m", "one"];
    prepared(&upstream, &[&["git"], &commit[..]].concat());
    home.write(".gitconfig", "[user]\n\tname = Ada Lovelace\n\temail = ada@example.org\n");
    let mut directories = rust_like_rustup(&home);
    directories.push("~/upstream".into());
    grant(&home, &directories, "");

    let path = path_with(&home, ".cargo/bin");
    let upstream = upstream.canonicalize().unwrap();
    let clone = format!("git clone --quiet {} adder", upstream.display());
    let commit = "cd adder && echo more > MORE && git add MORE && git commit --quiet -m more && git log -1 --format=%an:%ae";
    let ran = works(&home, &path, &[&clone, "cd adder && cargo test --quiet", commit]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stdout.contains("Ada Lovelace:ada@example.org"), "{}", ran.shown());
    assert!(ran.stderr.contains("1 passed") || ran.stdout.contains("1 passed"), "{}", ran.shown());
    let project = home.path().join("project");
    assert!(project.join("adder/target/debug").is_dir(), "the build is in the workspace");
    assert!(!project.join(".cargo").exists() && !project.join("adder/.cargo").exists(), "caches are not");

    // Files that a command leaves in its home are there for the next one, and nowhere else.
    let kept = exec(&home, &path, "echo kept > ~/.note; echo $HOME");
    assert!(kept.stdout.contains("/run/home"), "{}", kept.shown());
    let kept = exec(&home, &path, "cat ~/.note; ls -a $HOME");
    assert!(kept.stdout.contains("kept") && !kept.stdout.contains("upstream"), "{}", kept.shown());
    assert!(!project.join(".note").exists());
}

#[test]
fn an_agent_tests_a_node_package_with_the_node_of_a_version_manager() {
    let Some(node) = in_path("node", |file| file.is_file()) else {
        eprintln!("skipped: there is no node on this machine");
        return;
    };
    let home = Home::new();
    let bin = home.path().join(".nvm/versions/node/v0.0.1/bin");
    fs::create_dir_all(&bin).unwrap();
    fs::copy(node.canonicalize().unwrap(), bin.join("node")).unwrap();
    home.write("project/package.json", r#"{ "name": "adder", "version": "1.0.0", "type": "module" }"#);
    home.write("project/index.js", "export const add = (a, b) => a + b;\n");
    home.write(
        "project/index.test.js",
        "import test from 'node:test';\nimport assert from 'node:assert';\nimport { add } from './index.js';\n\
         test('adds', () => assert.equal(add(20, 22), 42));\nconsole.log('by ' + process.execPath);\n",
    );
    grant(&home, &["~/.nvm/versions/node/v0.0.1".into()], "");
    let path = path_with(&home, ".nvm/versions/node/v0.0.1/bin");
    let ran = works(&home, &path, &["node --test"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stdout.contains("pass 1") && ran.stdout.contains("fail 0"), "{}", ran.shown());
    assert!(ran.stdout.contains(".nvm/versions/node/v0.0.1/bin/node"), "{}", ran.shown());
}

#[test]
fn an_agent_tests_a_python_package() {
    let home = Home::new();
    fs::create_dir(home.path().join("project/adder")).unwrap();
    home.write("project/adder/__init__.py", "def add(a, b):\n    return a + b\n");
    home.write(
        "project/test_adder.py",
        "import unittest\nfrom adder import add\n\n\
         class Adds(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(20, 22), 42)\n",
    );
    let ran = works(&home, "/usr/bin:/bin", &["python3 -m unittest -v"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stdout.contains("Ran 1 test") && ran.stdout.contains("OK"), "{}", ran.shown());
}

#[test]
fn a_granted_directory_does_not_show_the_secrets_in_it() {
    let home = Home::new();
    for (name, text) in [
        ("tools/.cargo/credentials.toml", "token = 'one'"),
        ("tools/.npmrc", "token two"),
        ("tools/deep/.netrc", "three"),
        ("tools/deep/.pypirc", "four"),
        ("tools/keys/id_ed25519", "five"),
        ("tools/readme.txt", "open"),
    ] {
        fs::create_dir_all(home.path().join(name).parent().unwrap()).unwrap();
        home.write(name, text);
    }
    // By another name in the same grant, and as a link from beside it.
    symlink(".npmrc", home.path().join("tools/innocent")).unwrap();
    grant(&home, &["~/tools".into()], "");
    let tools = home.path().canonicalize().unwrap().join("tools");
    for secret in
        [".cargo/credentials.toml", ".npmrc", "deep/.netrc", "deep/.pypirc", "keys/id_ed25519", "innocent"]
    {
        let path = tools.join(secret).display().to_string();
        let ran = exec(&home, "/usr/bin:/bin", &format!("cat {path}; echo; echo done"));
        let shown = ran.stdout.replace("done", "");
        for word in ["token", "three", "four", "five"] {
            assert!(!shown.contains(word), "{secret}: {}", ran.shown());
        }
        let read = home.run(&["tools", "call", "read_file", &json!({ "path": path }).to_string()]);
        assert!(read.code != 0 && read.stdout.is_empty(), "{secret}: {}", read.shown());
    }
    let path = tools.join("readme.txt").display().to_string();
    let read = home.run(&["tools", "call", "read_file", &json!({ "path": path }).to_string()]);
    assert!(read.code == 0 && read.stdout.contains("open"), "{}", read.shown());
    assert!(exec(&home, "/usr/bin:/bin", &format!("cat {path}")).stdout.contains("open"));
    // A search finds none of them either.
    let args = json!({ "pattern": "t.ken|op[e]n", "path": tools.display().to_string(), "all": true });
    let found = home.run(&["tools", "call", "search", &args.to_string()]);
    assert!(found.stdout.contains("readme.txt") && !found.stdout.contains("token"), "{}", found.shown());
    // A directory granted for reading is not written to.
    let args = json!({ "path": path, "content": "changed" }).to_string();
    assert_ne!(home.run(&["tools", "call", "write_file", &args]).code, 0);
    exec(&home, "/usr/bin:/bin", &format!("echo changed > {path}"));
    assert_eq!(fs::read_to_string(home.path().join("tools/readme.txt")).unwrap(), "open");
}

#[test]
fn a_link_in_a_granted_directory_does_not_lead_out_of_it() {
    let home = Home::new();
    fs::create_dir(home.path().join("tools")).unwrap();
    fs::create_dir(home.path().join("private")).unwrap();
    home.write("private/diary.txt", "dear diary");
    symlink(home.path().join("private"), home.path().join("tools/more")).unwrap();
    symlink("../private/diary.txt", home.path().join("tools/diary")).unwrap();
    grant(&home, &["~/tools".into()], "");
    let tools = home.path().canonicalize().unwrap().join("tools");
    for link in ["more/diary.txt", "diary"] {
        let path = tools.join(link).display().to_string();
        let ran = exec(&home, "/usr/bin:/bin", &format!("cat {path}"));
        assert!(!ran.stdout.contains("dear diary"), "{}", ran.shown());
        let read = home.run(&["tools", "call", "read_file", &json!({ "path": path }).to_string()]);
        assert!(read.code != 0 && !read.stdout.contains("dear diary"), "{}", read.shown());
    }
}

#[test]
fn a_project_cannot_grant_itself_anything() {
    let home = Home::new();
    fs::create_dir(home.path().join("private")).unwrap();
    home.write("private/diary.txt", "dear diary");
    home.write("project/clawsmith.toml", "[files]\nread = [\"~/private\"]\n");
    let diary = home.path().canonicalize().unwrap().join("private/diary.txt").display().to_string();
    let ran = exec(&home, "/usr/bin:/bin", &format!("cat {diary}"));
    assert!(ran.code == 2 && ran.stderr.contains("has not been accepted"), "{}", ran.shown());
    // Nor can an agent write that file where there is none.
    fs::remove_file(home.path().join("project/clawsmith.toml")).unwrap();
    let args = json!({ "path": "clawsmith.toml", "content": "[files]\nread = [\"~/private\"]\n" });
    assert_ne!(home.run(&["tools", "call", "write_file", &args.to_string()]).code, 0);
}

#[test]
fn grants_that_would_give_everything_are_refused() {
    for (entry, why) in [
        ("~", "the home directory"),
        ("/", "the home directory"),
        ("~/.config/clawsmith", "no agent may reach"),
        ("~/.local/share", "no agent may reach"),
        ("~/file", "only directories"),
        ("~/*/src", "patterns are not supported"),
    ] {
        let home = Home::new();
        home.write("file", "");
        grant(&home, &[entry.to_owned()], "");
        let ran = exec(&home, "/usr/bin:/bin", "true");
        assert!(ran.code == 2 && ran.stderr.contains(why), "{entry}: {}", ran.shown());
    }
}

#[test]
fn a_grant_of_one_agent_is_not_another_ones() {
    let home = Home::new();
    fs::create_dir(home.path().join("shared")).unwrap();
    let more = "[agents.coder]\nwrite_paths = [\"~/shared\"]\n[agents.reader]\n";
    grant(&home, &[], more);
    let shared = home.path().canonicalize().unwrap().join("shared");
    let write = |agent: &str, text: &str| {
        let [file, other] = ["a.txt", "b.txt"].map(|name| shared.join(name).display().to_string());
        let args = json!({ "command": format!("echo {text} > {file}") }).to_string();
        home.run(&["tools", "call", "exec", &args, "--agent", agent]);
        let args = json!({ "path": other, "content": text }).to_string();
        home.run(&["tools", "call", "write_file", &args, "--agent", agent])
    };
    assert_ne!(write("reader", "reader").code, 0);
    assert_eq!(fs::read_dir(&shared).unwrap().count(), 0);
    let written = write("coder", "coder");
    assert_eq!(written.code, 0, "{}", written.shown());
    for name in ["a.txt", "b.txt"] {
        assert_eq!(fs::read_to_string(shared.join(name)).unwrap().trim(), "coder");
    }
}

#[test]
fn doctor_says_which_toolchains_commands_do_not_find() {
    let home = Home::new();
    let directories = rust_like_rustup(&home);
    let path = path_with(&home, ".cargo/bin");
    let told = |home: &Home| home.run_with(&[("PATH", &path)], &["doctor", "--json"]);
    let before = told(&home);
    assert!(before.stdout.contains("do not find Rust"), "{}", before.shown());
    assert!(before.stdout.contains(r#"read = [\"~/.cargo/bin\", \"~/.rustup\"]"#), "{}", before.shown());
    // The advice can be pasted: it names the file in force and keeps the entries of its list.
    grant(&home, &["~/notes".into()], "");
    let merged = told(&home);
    assert!(
        merged.stdout.contains(r#"`files.read = [\"~/notes\", \"~/.cargo/bin\", \"~/.rustup\"]` in `"#)
            && merged.stdout.contains(".config/clawsmith/clawsmith.toml`"),
        "{}",
        merged.shown()
    );
    grant(&home, &directories, "");
    let after = told(&home);
    assert!(after.stdout.contains("commands find Rust"), "{}", after.shown());
}

#[test]
fn a_program_of_a_toolchain_that_is_not_granted_is_explained_to_person_and_model() {
    let home = Home::new();
    rust_like_rustup(&home);
    let path = path_with(&home, ".cargo/bin");
    let setting = r#"to allow it: `files.read = ["~/.cargo/bin", "~/.rustup"]` in `"#;
    let ran = works(&home, &path, &["cargo --version"]);
    // The model repeats what it was told; the person is told beside it.
    assert!(ran.stdout.contains("`cargo` is in `") && ran.stdout.contains(setting), "{}", ran.shown());
    assert!(ran.stderr.contains("exit code 127") && ran.stderr.contains("to allow it:"), "{}", ran.shown());
    let other = exec(&home, &path, "no-such-program");
    assert!(!other.stdout.contains("to allow it"), "{}", other.shown());
}

#[test]
fn without_a_key_onboarding_still_offers_the_toolchains() {
    let home = Home::new();
    rust_like_rustup(&home);
    let path = path_with(&home, ".cargo/bin");
    let mut terminal = Terminal::with_variables(&home, &["onboard"], &[("PATH", &path)]);
    terminal.wait_for("Number or name");
    terminal.type_in("demo\r");
    terminal.wait_for("could use, read-only: Rust");
    terminal.wait_for("Let agents use them?");
    terminal.type_in("\r");
    terminal.wait_for("no model was configured");
    assert_eq!(terminal.ended().0, Some(0));
    let text = fs::read_to_string(home.path().join(".config/clawsmith/clawsmith.toml")).unwrap();
    assert_eq!(text, "[files]\nread = [\"~/.cargo/bin\", \"~/.rustup\"]\n");
}

#[test]
fn caches_of_package_managers_are_in_the_private_home() {
    let home = Home::new();
    for (program, command, cache) in [
        ("npm", "npm config get cache", "/run/home/.npm"),
        ("pip3", "pip3 cache dir", "/run/home/.cache/pip"),
    ] {
        if ["/usr/bin", "/bin"].iter().all(|place| !Path::new(place).join(program).is_file()) {
            eprintln!("skipped: the system has no {program}");
            continue;
        }
        let ran = exec(&home, "/usr/bin:/bin", command);
        assert!(ran.stdout.contains(cache), "{}", ran.shown());
    }
}

#[test]
fn commands_on_the_host_find_what_the_user_finds() {
    let home = Home::new();
    fs::create_dir_all(home.path().join("mine/bin")).unwrap();
    let tool = home.write("mine/bin/mytool", "#!/bin/sh\necho my tool\n");
    prepared(home.path(), &["chmod", "+x", tool.to_str().unwrap()]);
    grant(&home, &[], "[sandbox]\nmode = \"off\"\n");
    let ran = exec(&home, &path_with(&home, "mine/bin"), "mytool");
    assert!(ran.stdout.contains("my tool"), "{}", ran.shown());
}

#[test]
fn onboarding_writes_the_toolchains_of_the_path() {
    let home = Home::new();
    rust_like_rustup(&home);
    let path = path_with(&home, ".cargo/bin");
    let words = ["onboard", "--provider", "ollama", "--model", "m", "--no-test", "--toolchains"];
    let ran = home.run_with(&[("PATH", &path)], &words);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let text = fs::read_to_string(home.path().join(".config/clawsmith/clawsmith.toml")).unwrap();
    assert!(text.contains("[files]\nread = [\"~/.cargo/bin\""), "{text}");
    // Once more: the list is there already, and is not written a second time.
    let again = home.run_with(&[("PATH", &path)], &words);
    assert_eq!(again.code, 0, "{}", again.shown());
    assert_eq!(fs::read_to_string(home.path().join(".config/clawsmith/clawsmith.toml")).unwrap(), text);
}

#[test]
fn a_dry_run_changes_nothing_in_a_granted_directory() {
    let home = Home::new();
    fs::create_dir_all(home.path().join("shared")).unwrap();
    fs::create_dir_all(home.path().join(".config/clawsmith")).unwrap();
    home.write(".config/clawsmith/clawsmith.toml", "[files]\nwrite = [\"~/shared\"]\n");
    let shared = home.path().canonicalize().unwrap().join("shared/made");
    let command = format!("echo here > made; echo there > {}", shared.display());
    let run = |dry_run: bool| {
        home.run(&["tools", "call", "exec", &json!({ "command": command, "dry_run": dry_run }).to_string()])
    };
    let ran = run(true);
    assert!(ran.stdout.contains("+ made") && ran.stdout.contains("dry run"), "{}", ran.shown());
    assert!(!shared.exists() && !home.path().join("project/made").exists(), "{}", ran.shown());
    let ran = run(false);
    assert!(shared.exists() && home.path().join("project/made").exists(), "{}", ran.shown());
}
