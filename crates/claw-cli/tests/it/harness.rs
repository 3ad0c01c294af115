//! Runs `clawsmith` isolated from the machine's own configuration.

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use tempfile::TempDir;

/// A home, a project in it and no configuration.
pub(crate) struct Home(TempDir);

/// The result of a run.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("project")).unwrap();
        Self(home)
    }

    /// Creates a home whose project has this configuration.
    pub(crate) fn with_config(text: &str) -> Self {
        let home = Self::new();
        home.configure(text);
        home
    }

    /// Writes the project's configuration, and accepts it. An unusable one is for the test to notice.
    pub(crate) fn configure(&self, text: &str) {
        self.write("project/clawsmith.toml", text);
        self.run(&["config", "trust"]);
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path().join(".local/share/clawsmith")
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("clawsmith"));
        command.env_clear().env("HOME", self.path()).env("USER", "tester");
        command.current_dir(self.path().join("project")).args(words);
        command
    }

    /// The same as a process that goes on.
    pub(crate) fn process(&self, words: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("clawsmith"));
        command.env_clear().env("HOME", self.path()).env("USER", "tester");
        command.current_dir(self.path().join("project")).args(words);
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Ran {
        self.ran(&mut self.command(words))
    }

    pub(crate) fn run_with(&self, variables: &[(&str, &str)], words: &[&str]) -> Ran {
        self.ran(self.command(words).envs(variables.iter().copied()))
    }

    /// Runs it and removes the temporary path from its output. A panic is never an answer.
    #[track_caller]
    pub(crate) fn ran(&self, command: &mut Command) -> Ran {
        let Output { status, stdout, stderr } = command.output().unwrap();
        let real = self.path().canonicalize().unwrap();
        let clean = |bytes: Vec<u8>| {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            text.replace(real.to_str().unwrap(), "~").replace(self.path().to_str().unwrap(), "~")
        };
        let ran = Ran { code: status.code().unwrap_or(-1), stdout: clean(stdout), stderr: clean(stderr) };
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        ran
    }
}

impl Ran {
    /// Returns the output and exit code, for a snapshot.
    pub(crate) fn shown(&self) -> String {
        let Self { code, stdout, stderr } = self;
        format!("{stdout}--- standard error\n{stderr}--- exit code {code}\n")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.shown()))
    }
}
