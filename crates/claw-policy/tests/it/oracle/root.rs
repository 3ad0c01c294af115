//! A throw-away root in which a real bash runs and every other program only notes how it was started.
//!
//! Mount, process, network and IPC namespaces; an ordinary user who may write to the directory of one command and
//! to the log; no device but null; limits on time, files and processes. Works as root and as an ordinary user.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::stub::STUB;

/// The first of some users that own nothing on this machine. Each root has its own, so that the process
/// limits are separate.
const NOBODY: usize = 61_000;

/// Runs each command in a directory of its own, and kills its leftover processes before the next. Built of
/// bash's own commands: every program here is a stub.
const DRIVER: &str = r#"
ulimit -t 2 -f 2048 -c 0 -n 64 -u 300
for ((i = 0; i < $1; i++)); do
    IFS= read -r -d '' command < /commands/$i
    printf '#%d\0' $i >> /log
    (cd /work/$i && exec -c /shells/bash -c "export PATH=/shells:/usr/bin:/bin HOME=/work/$i; $command" < /dev/null > /dev/null 2>&1)
    kill -9 -1 2> /dev/null
done
exit 0
"#;

pub(super) struct Root {
    directory: TempDir,
    user: String,
}

impl Root {
    /// Creates a root with a stub for every word of the corpus that may name a program.
    pub(super) fn new(corpus: &[String], number: usize) -> Self {
        let root = Self { directory: tempfile::tempdir().unwrap(), user: (NOBODY + number).to_string() };
        for name in ["usr", "usr/bin", "bin", "sbin", "shells", "dev", "commands", "work", "tmp"] {
            fs::create_dir(root.path(name)).unwrap();
        }
        root.install(Path::new("/bin/bash"), "shells/bash");
        root.install(&std::env::current_exe().unwrap(), STUB);
        for name in ["sh", "dash", "zsh", "ksh"] {
            symlink("/shells/bash", root.path(&format!("shells/{name}"))).unwrap();
        }
        for directory in ["bin", "usr/bin"] {
            for name in ["bash", "sh"] {
                symlink("/shells/bash", root.path(&format!("{directory}/{name}"))).unwrap();
            }
        }
        for name in names(corpus) {
            for directory in ["bin", "usr/bin", "sbin"] {
                // Two names of the same length differ, so that none is there already but a shell.
                let _ = symlink(Path::new("/").join(STUB), root.path(&format!("{directory}/{name}")));
            }
        }
        fs::write(root.path("dev/null"), "").unwrap();
        fs::set_permissions(root.path("dev/null"), fs::Permissions::from_mode(0o666)).unwrap();
        fs::write(root.path("driver"), DRIVER).unwrap();
        root
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// Copies a program with the libraries it needs.
    fn install(&self, program: &Path, name: &str) {
        fs::copy(program, self.path(name)).unwrap();
        let output = Command::new("ldd").arg(program).output().unwrap();
        for word in
            String::from_utf8_lossy(&output.stdout).split_whitespace().filter(|word| word.starts_with('/'))
        {
            let to = self.path(word.trim_start_matches('/'));
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(word, to).unwrap();
        }
    }

    /// Runs commands one after the other; returns for each the arguments of every program that ran.
    pub(super) fn run(&self, commands: &[&str]) -> Vec<Vec<Vec<String>>> {
        for directory in ["commands", "work"] {
            let path = self.path(directory);
            fs::remove_dir_all(&path).unwrap();
            fs::create_dir(&path).unwrap();
        }
        for (i, command) in commands.iter().enumerate() {
            fs::write(self.path(&format!("commands/{i}")), format!("{command}\0")).unwrap();
            let work = self.path(&format!("work/{i}"));
            fs::create_dir(&work).unwrap();
            fs::write(work.join("in"), "").unwrap();
            open_to_all(&work, 0o777);
        }
        fs::write(self.path("log"), "").unwrap();
        open_to_all(&self.path("log"), 0o666);
        open_to_all(self.directory.path(), 0o755);
        self.enter(commands.len());
        parse(&fs::read(self.path("log")).unwrap(), commands.len())
    }

    fn enter(&self, commands: usize) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = std::env::split_paths(&path).map(|directory| directory.join("unshare"));
        let program =
            places.into_iter().find(|path| path.exists()).expect("the oracle needs `unshare` of util-linux");
        let mut unshare = Command::new(program);
        unshare.args(["--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child"]);
        match rustix::process::geteuid().is_root() {
            true => unshare.args(["--setuid", &self.user, "--setgid", &self.user]),
            false => unshare.args(["--user", "--map-user", &self.user, "--map-group", &self.user]),
        };
        unshare.arg("--root").arg(self.directory.path()).args(["--wd", "/", "/shells/bash", "/driver"]);
        unshare.arg(commands.to_string()).env_clear();
        unshare.stdin(Stdio::null()).stdout(Stdio::null());
        let output = unshare.output().unwrap();
        assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
}

fn open_to_all(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns all words of the corpus that may be a program's name.
fn names(corpus: &[String]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for command in corpus {
        for word in command.split(|c: char| !(c.is_ascii_alphanumeric() || "._+-[".contains(c))) {
            let usable = !word.starts_with(['-', '.'])
                && word.len() < 40
                && !["bash", "sh", "dash", "zsh", "ksh"].contains(&word);
            if usable && !word.is_empty() {
                names.insert(word.to_owned());
            }
        }
    }
    names
}

/// Parses the log: a mark for each command, then the records of the programs it ran.
fn parse(log: &[u8], commands: usize) -> Vec<Vec<Vec<String>>> {
    let mut ran = vec![Vec::new(); commands];
    let mut words = log.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let mut current = 0;
    let mut marks = 0;
    while let Some(word) = words.next() {
        if word.is_empty() {
            continue;
        }
        if let Some(mark) = word.strip_prefix('#') {
            current = mark.parse().unwrap();
            marks += 1;
            continue;
        }
        let count: usize = word.parse().unwrap();
        ran[current].push(words.by_ref().take(count).collect());
    }
    assert_eq!(marks, commands, "the driver did not come to its end");
    ran
}
