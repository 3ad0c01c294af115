//! Checks that hold in every sandbox: the kernel's, a container, and most of them without any.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use claw_core::port::{Allowed, Child, Program, RunContext, ShellHost, Size, Start, Stopped};
use claw_core::tool::{Argv, Effect, Effects, ErrorKind, Progress, Script};
use claw_sandbox::shell::{Finished, ShellOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::kit::processes_with;

/// A sandbox under test, with its workspace.
pub(crate) trait Sandbox {
    /// The shell whose commands run in it.
    fn host(&self) -> Arc<dyn ShellHost>;
    /// The workspace, as the test sees it.
    fn workspace(&self) -> &Path;
    fn context(&self) -> &RunContext;
    fn context_mut(&mut self) -> &mut RunContext;
    fn options_mut(&mut self) -> &mut ShellOptions;
    /// Runs a script to its end.
    async fn script(&self, text: &str) -> Finished;
    /// Runs an attack of this binary inside, with one argument.
    async fn attack(&self, name: &str, word: &str) -> Finished;

    /// An attack that must be refused, and how.
    #[track_caller]
    fn refuses<'a>(
        &'a self,
        name: &'a str,
        word: &'a str,
        errors: &'a [i32],
    ) -> impl Future<Output = ()> + 'a {
        let at = std::panic::Location::caller();
        async move {
            let finished = self.attack(name, word).await;
            let expected = errors.iter().any(|error| finished.output == format!("refused {error}\n"));
            assert!(expected, "{at}: {name}: {finished:?}");
        }
    }
}

pub(crate) fn script(text: &str) -> Script {
    Script { text: text.to_owned(), ..Script::default() }
}

pub(crate) fn argv(words: &[&str]) -> Argv {
    let argv = words.iter().map(|word| (*word).to_owned()).collect();
    Argv { argv, directory: String::new(), env: Vec::new(), credentials: false }
}

pub(crate) fn start(text: &str) -> Start {
    Start::new(Program::Script(script(text)))
}

pub(crate) fn on_a_terminal(text: &str) -> Start {
    Start { terminal: Some(Size { columns: 100, rows: 30 }), ..start(text) }
}

/// Reads until the expected text was printed; returns all output.
pub(crate) async fn until(child: &mut Child, expected: &str) -> String {
    let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&seen).into_owned();
        if text.contains(expected) {
            return text;
        }
        match child.output.read(&mut buffer).await {
            Ok(count @ 1..) => seen.extend(&buffer[..count]),
            other => panic!("{other:?} after {text:?}, waiting for {expected:?}"),
        }
    }
}

pub(crate) async fn rest(child: &mut Child) -> String {
    let mut seen = Vec::new();
    // A terminal that nobody has any more gives an error, not an end.
    let _ = child.output.read_to_end(&mut seen).await;
    String::from_utf8_lossy(&seen).into_owned()
}

/// Asserts that a script neither printed what it tried to read, nor succeeded.
#[track_caller]
pub(crate) fn check_refused(finished: Finished) {
    assert_ne!(finished.ended.exit, Some(0), "{finished:?}");
    assert!(!finished.output.contains("secret-content"), "{finished:?}");
}

/// A context that may do everything but this.
pub(crate) fn without(context: &RunContext, effect: Effect) -> RunContext {
    RunContext { effects: Effects::ALL.without(Effects::of(&[effect])), ..context.clone() }
}

pub(crate) async fn names_a_missing_program(kit: &impl Sandbox) {
    let error = kit.host().spawn(kit.context(), &argv(&["no-such-program"])).await.unwrap_err();
    assert!(error.message.contains("no-such-program"), "{error:?}");
    assert_eq!(error.kind, ErrorKind::Failed);
}

pub(crate) async fn streams_output_while_it_runs(mut kit: impl Sandbox) {
    let (sender, mut heard) = tokio::sync::mpsc::unbounded_channel();
    kit.context_mut().progress = Progress::to(move |text| sender.send(text.to_owned()).unwrap());
    let (shell, fifo) = (kit.host(), kit.workspace().join("go"));
    // It goes on only when what it said before was heard.
    let waiting = script("mkfifo go; echo first; cat go; echo last");
    let run = shell.run(kit.context(), &waiting);
    let hear = async {
        assert_eq!(heard.recv().await.unwrap(), "first\n");
        tokio::task::spawn_blocking(move || fs::write(fifo, "")).await.unwrap().unwrap();
    };
    let (ran, ()) = tokio::join!(run, hear);
    assert_eq!(ran.unwrap().output, "first\nlast\n");
}

pub(crate) async fn keeps_the_ends_of_a_long_output(kit: &impl Sandbox) {
    let long = script("echo begin; head -c 3145728 /dev/zero | tr '\\0' x; echo end");
    let ran = kit.host().run(kit.context(), &long).await.unwrap();
    assert!(ran.output.starts_with("begin\nxxx") && ran.output.ends_with("xxxend\n"));
    assert_eq!(ran.dropped, (3 << 20) + 10 - (1 << 20));
}

/// Expects that the timeout of the options ends a command with all its processes.
pub(crate) async fn runs_out_of_time(kit: &impl Sandbox) {
    // One ends when asked; the other must be killed.
    let ran = kit.host().run(kit.context(), &script("exec sleep 600")).await.unwrap();
    assert_eq!((ran.signal, ran.stopped), (Some(15), Some(Stopped::Time)));
    let stubborn =
        script("trap '' TERM; (trap '' TERM; sleep 600; sleep 600) & wait; wait; sleep 600; sleep 600");
    let ran = kit.host().run(kit.context(), &stubborn).await.unwrap();
    assert_eq!((ran.signal, ran.stopped), (Some(9), Some(Stopped::Time)));
}

pub(crate) async fn counts_stragglers(kit: &impl Sandbox) {
    let leaving = script("setsid sleep 612 & (sleep 612 &) ; exit 3");
    let ran = kit.host().run(kit.context(), &leaving).await.unwrap();
    assert_eq!((ran.exit, ran.stragglers), (Some(3), 2));
}

/// Expects that `./tool`, which was judged, is not run once it is another file.
pub(crate) async fn refuses_a_swapped_tool(kit: &impl Sandbox) {
    let shell = kit.host();
    assert_eq!(shell.run(kit.context(), &script("sh ./tool")).await.unwrap().output, "judged\n");
    fs::write(kit.workspace().join("tool"), "#!/bin/sh\necho swapped afterwards\n").unwrap();
    let error = shell.run(kit.context(), &script("sh ./tool")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.message.contains("./tool"), "{error:?}");
}

/// Talks with `cat; echo over` until it has ended.
pub(crate) async fn reads_what_is_written(child: &mut Child) {
    child.input.write_all(b"first\n").await.unwrap();
    until(child, "first\n").await;
    child.input.write_all(b"second\n").await.unwrap();
    until(child, "second\n").await;
    child.input = Box::new(tokio::io::sink());
    assert_eq!(rest(child).await, "over\n");
    assert!(child.control.resize(Size::default()).is_err(), "it has no terminal");
}

/// Expects that a child reaches a file outside the workspace as it was granted to that child.
pub(crate) async fn has_streams_and_paths_of_its_own(kit: &impl Sandbox, file: &Path) {
    fs::write(file, "granted\n").unwrap();
    let text = format!("echo wrong >&2; cat '{0}'; echo x > '{0}'", file.display());
    let mut start = Start { apart: true, ..start(&text) };
    let shell = kit.host();
    let absent = shell.start(kit.context(), &start).await.unwrap();
    let mut errors = String::new();
    absent.errors.unwrap().read_to_string(&mut errors).await.unwrap();
    assert!(errors.starts_with("wrong\n") && errors.contains("No such file"), "{errors}");

    start.paths = vec![Allowed { path: file.parent().unwrap().to_owned(), write: false }];
    let mut child = shell.start(kit.context(), &start).await.unwrap();
    assert_eq!(rest(&mut child).await, "granted\n");
    assert_ne!(child.control.ended().await.unwrap().exit, Some(0), "it may not be written");
    // Nor where the policy has taken writing away, whatever is granted.
    start.paths[0].write = true;
    let mut child = shell.start(&without(kit.context(), Effect::Write), &start).await.unwrap();
    assert_ne!(child.control.ended().await.unwrap().exit, Some(0));
    let mut child = shell.start(kit.context(), &start).await.unwrap();
    assert_eq!(child.control.ended().await.unwrap().exit, Some(0));
    assert_eq!(fs::read_to_string(file).unwrap(), "x\n");
}

pub(crate) async fn gives_a_terminal_with_a_size(kit: &impl Sandbox) {
    let text = "test -t 0 && test -t 1 && test -t 2 && echo all; stty size; \
                trap 'echo now; stty size' WINCH; echo ready; while :; do sleep 0.1; done";
    let mut child = kit.host().start(kit.context(), &on_a_terminal(text)).await.unwrap();
    let seen = until(&mut child, "ready\r\n").await;
    assert_eq!(seen, "all\r\n30 100\r\nready\r\n");
    child.control.resize(Size { columns: 132, rows: 43 }).unwrap();
    until(&mut child, "now\r\n43 132\r\n").await;
    child.control.kill().await;
    assert_eq!(child.control.ended().await.unwrap().signal, Some(9));
}

pub(crate) async fn is_interrupted_by_a_key(kit: &impl Sandbox) {
    let text = "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.1; done";
    let mut child = kit.host().start(kit.context(), &on_a_terminal(text)).await.unwrap();
    until(&mut child, "ready").await;
    child.input.write_all(b"\x03").await.unwrap();
    until(&mut child, "interrupted").await;
    assert_eq!(child.control.ended().await.unwrap().exit, Some(5));
}

pub(crate) async fn gives_a_terminal_to_a_script(kit: &impl Sandbox) {
    let on_it = Script {
        input: Some("typed\n".into()),
        terminal: true,
        ..script("test -t 1 && echo yes; cat; echo over")
    };
    let ran = kit.host().run(kit.context(), &on_it).await.unwrap();
    assert!(ran.output.contains("yes\r\n") && ran.output.ends_with("typed\r\nover\r\n"), "{ran:?}");
    // Without input it ends instead of waiting for a person.
    let ran = kit.host().run(kit.context(), &Script { input: None, ..on_it }).await.unwrap();
    assert!(ran.output.ends_with("over\r\n"), "{ran:?}");
}

/// Expects that the file `in` of the workspace, which holds `read me`, can be read and nothing be written.
pub(crate) async fn only_reads_the_workspace(kit: &impl Sandbox) {
    let before = fs::read_to_string(kit.workspace().join("in")).unwrap();
    let finished = kit
        .script("cat in; echo x > in; touch new; rm in; chmod 777 in; echo tmp > /tmp/x && cat /tmp/x")
        .await;
    assert!(finished.output.starts_with("read me") && finished.output.ends_with("tmp\n"), "{finished:?}");
    assert_eq!(fs::read_to_string(kit.workspace().join("in")).unwrap(), before);
    assert!(!kit.workspace().join("new").exists());
}

/// Expects that no script reads or replaces a hidden store and its keys; returns the path of the store.
pub(crate) async fn hides_the_store_and_the_keys(kit: &mut impl Sandbox) -> PathBuf {
    let (data, store) = (kit.workspace().join("data"), kit.workspace().join("clawsmith.db"));
    fs::create_dir_all(data.join("keys")).unwrap();
    fs::write(data.join("keys/ring"), "secret-content").unwrap();
    fs::write(&store, "secret-content").unwrap();
    kit.options_mut().hidden = vec![data.clone(), store.clone()];
    for attack in [
        "cat data/keys/ring; grep . clawsmith.db",
        "mv data other && cat other/keys/ring",
        "mv clawsmith.db other && cat other",
        "ln clawsmith.db hard && cat hard",
        "rm -rf data clawsmith.db; cat data/keys/ring",
        "cp -r data copy && cat copy/keys/ring",
        "umount data; cat data/keys/ring",
    ] {
        check_refused(kit.script(attack).await);
    }
    kit.script("echo x > clawsmith.db").await;
    assert_eq!(fs::read_to_string(&store).unwrap(), "secret-content");
    assert_eq!(fs::read_to_string(data.join("keys/ring")).unwrap(), "secret-content");
    store
}

pub(crate) async fn keeps_hidden_keys_where_they_are(mut kit: impl Sandbox) {
    let data = kit.workspace().join(".local/share/clawsmith");
    fs::create_dir_all(&data).unwrap();
    fs::write(data.join("ring"), "secret-content").unwrap();
    kit.options_mut().hidden = vec![data.clone()];
    let moves = "mv .local moved; mv .local/share .local/moved; mv .local/share/clawsmith .local/share/moved; rm -rf .local";
    kit.script(moves).await;
    assert_eq!(fs::read_to_string(data.join("ring")).unwrap(), "secret-content");
    let finished = kit
        .script("cat $(find . -name ring) .local/share/clawsmith/ring; echo kept > .local/share/beside")
        .await;
    assert!(!finished.output.contains("secret-content"), "{finished:?}");
    assert_eq!(fs::read_to_string(data.parent().unwrap().join("beside")).unwrap(), "kept\n");
}

/// Starts this binary as the owner of a command that has `word` in its processes, and kills it.
pub(crate) fn kill_owner(arguments: &[&str], word: &str, workspace: &Path) {
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(arguments)
        .arg(workspace)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(owner.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    assert!(!processes_with(word).is_empty());
    owner.kill().unwrap();
    owner.wait().unwrap();
}

/// Runs git in a directory, outside of any sandbox, and returns its output.
#[track_caller]
pub(crate) fn git(directory: &Path, words: &[&str]) -> String {
    let ran = Command::new("git").args(words).current_dir(directory).output().unwrap();
    assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// A command that writes to the workspace directly changes no file that makes git run programs, by any of these ways.
pub(crate) async fn plants_nothing_in_its_repository(sandbox: &impl Sandbox) {
    let git_directory = sandbox.workspace().join(".git");
    git(sandbox.workspace(), &["init", "-q"]);
    for name in ["hooks", "info"] {
        fs::remove_dir_all(git_directory.join(name)).unwrap();
    }
    let config = fs::read_to_string(git_directory.join("config")).unwrap();
    let attacks = [
        "echo x >> .git/config",
        "cd .git; echo x > new; mv new config",
        "rm -f .git/config; echo x > .git/config",
        "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
        "mkdir h; echo x > h/pre-commit; rmdir .git/hooks; mv h .git/hooks",
        "ln -s ../planted .git/hooks/post-checkout",
        "mkdir -p .git/info; echo '* filter=x' > .git/info/attributes",
        "mv .git moved; cp -r moved .git; echo x >> .git/config",
        "chmod 777 .git/config",
    ];
    for attack in attacks {
        sandbox.script(attack).await;
        assert_eq!(fs::read_to_string(git_directory.join("config")).unwrap(), config, "{attack}");
        for name in ["hooks", "info"] {
            assert_eq!(fs::read_dir(git_directory.join(name)).unwrap().count(), 0, "{attack}");
        }
        assert!(!sandbox.workspace().join("moved").exists(), "{attack}");
    }
    // Everything else in it can be written.
    let free = sandbox.script("echo x > .git/description; echo x > file; cat .git/config | head -n 1").await;
    assert_eq!(free.output, "[core]\n", "{free:?}");
    assert_eq!(fs::read_to_string(git_directory.join("description")).unwrap(), "x\n");
    assert!(sandbox.workspace().join("file").exists());
}
