//! A chat at a real terminal: what a person sees and types.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::harness::Home;

/// A timeout longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

const SCRIPT: &str = r#"
[[turn]]
when.said = "change it"
when.round = 0
do = [{ say = "I read it **first**." }, { call = "read_file", args = { path = "notes.txt" } }]

[[turn]]
when.result_of = "read_file"
do = [{ call = "edit", args = { path = "notes.txt", old_string = "two", new_string = "three" } }]

[[turn]]
when.result_of = "edit"
do = [{ say = "It is changed." }]

[[turn]]
when.said = "ask me"
when.round = 0
do = [{ call = "exec", args = { command = "$WHAT; echo it ran" } }]

[[turn]]
when.result_of = "exec"
do = [{ say = "The command was run." }]

[[turn]]
when.said = "count slowly"
when.round = 0
do = [{ call = "exec", args = { command = "echo line 1; until [ -e signals/go ]; do sleep 0.1; done; echo line 3; seq 10 60; printf 'half a line '; until [ -e signals/stop ]; do sleep 0.1; done; echo; exit 3" } }]

[[turn]]
when.said = "list it"
when.round = 0
do = [{ call = "exec", args = { command = "ls -a" } }]

[[turn]]
when.said = "touch it"
when.round = 0
do = [{ call = "exec", args = { command = "touch made" } }]

[[turn]]
when.said = "write it"
when.round = 0
do = [{ call = "write_file", args = { path = "new.txt", content = "first\nsecond\n" } }]

[[turn]]
when.result_of = "write_file"
do = [{ say = "| name | size |\n|---|---|\n| *new* | [two](https://x.y) |\n\nDone.\n" }]

[[turn]]
when.said = "think long"
do = [{ say = "Soon. \n", delay_ms = 2500 }, { say = "There.", delay_ms = 2500 }]

[[turn]]
when.said = "begin and write"
when.round = 0
do = [{ say = "I write it now." }, { call = "write_file", args = { path = "new.txt", content = "a line that is long enough to count" }, piece = 40, delay_ms = 1500 }]

[[turn]]
when.said = "stop in a line"
do = [{ say = "One and" }, { wait_ms = 1500 }, { say = " two." }]

[[turn]]
when.said = "go on for ever"
do = [{ say = "Very well. ", delay_ms = 1 }, { hang = true }]

[[turn]]
when.said = "echo"
do = [{ say = "You said <{{said}}>." }]

[[turn]]
do = [{ say = "I heard you." }]
"#;

/// `clawsmith` in a terminal of its own.
pub(crate) struct Terminal {
    child: Child,
    typed: File,
    shown: Receiver<Vec<u8>>,
    /// All output.
    raw: Vec<u8>,
    /// The visible part of it.
    seen: String,
    /// The offset up to which the test has looked.
    looked: usize,
}

impl Terminal {
    fn start(home: &Home) -> Self {
        let script = home.write("script.toml", SCRIPT);
        Self::run(home, &["chat", "--script", script.to_str().unwrap()])
    }

    pub(crate) fn run(home: &Home, words: &[&str]) -> Self {
        Self::with_columns(home, words, 100)
    }

    pub(crate) fn with_columns(home: &Home, words: &[&str], columns: u16) -> Self {
        Self::begin(home, words, columns, &[])
    }

    pub(crate) fn with_variables(home: &Home, words: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::begin(home, words, 100, variables)
    }

    fn begin(home: &Home, words: &[&str], columns: u16, variables: &[(&str, &str)]) -> Self {
        let size = Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        // Only the program has the terminal: a process that another test starts meanwhile must not hold it open.
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let controller = openpt(flags).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let terminal = File::from(ioctl_tiocgptpeer(&controller, flags).unwrap());
        tcsetwinsize(&terminal, size).unwrap();
        let end = || Stdio::from(terminal.try_clone().unwrap());
        // The terminal becomes the one that Ctrl-C belongs to.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(assert_cmd::cargo::cargo_bin!("clawsmith"));
        command.args(words);
        command.env_clear().envs([("PATH", "/usr/bin:/bin"), ("TERM", "xterm-256color"), ("USER", "tester")]);
        command.envs(variables.iter().copied());
        command.env("HOME", home.path()).current_dir(home.path().join("project"));
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let typed = File::from(controller);
        let (sender, shown) = mpsc::channel();
        let mut master = typed.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count) = master.read(&mut bytes) {
                if count == 0 || sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, typed, shown, raw: Vec::new(), seen: String::new(), looked: 0 }
    }

    pub(crate) fn type_in(&mut self, keys: &str) {
        self.typed.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line once the prompt is there.
    pub(crate) fn say(&mut self, line: &str) {
        self.wait_for("default> ");
        self.type_in(line);
        self.type_in("\r");
    }

    /// Waits until a text is shown after the last one; returns all output until then.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let new = &self.seen[self.looked..];
            if let Some(at) = new.find(text) {
                let seen = new[..at + text.len()].to_owned();
                self.looked += at + text.len();
                return seen;
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(bytes) => self.take(&bytes),
                Err(error) => panic!("`{text}` was not shown ({error}); after\n{new}"),
            }
        }
    }

    /// Takes the program's output, without colours; answers requests for the cursor position as a terminal
    /// does.
    fn take(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        for _ in text.matches("\u{1b}[6n") {
            self.typed.write_all(b"\x1b[1;1R").unwrap();
        }
        // All of it anew: what was read may end within a character, or within what says its colour.
        self.raw.extend_from_slice(bytes);
        self.seen = anstream::adapter::strip_str(&String::from_utf8_lossy(&self.raw)).to_string();
    }

    /// Waits for the end; returns the exit code, and all output.
    #[track_caller]
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        const TICK: Duration = Duration::from_millis(20);
        let until = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < until, "it did not end; after\n{}", self.seen);
            match self.shown.recv_timeout(TICK) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Timeout) => {}
                // It closed its terminal, and is about to end.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(TICK),
            }
        };
        // The last output is still on its way; nothing more comes once nobody holds the terminal.
        while let Ok(bytes) = self.shown.recv_timeout(PATIENCE) {
            self.take(&bytes);
        }
        (status.code(), self.seen)
    }

    #[track_caller]
    pub(crate) fn end(mut self) {
        self.wait_for("default> ");
        self.type_in("\u{4}");
        let (code, seen) = self.ended();
        assert_eq!(code, Some(0), "{seen}");
    }
}

#[test]
fn words_stream_and_a_change_is_shown_and_taken_back() {
    let home = Home::new();
    let notes = home.write("project/notes.txt", "one\ntwo\n");
    let mut terminal = Terminal::start(&home);
    terminal.wait_for("/help for commands");
    terminal.say("change it");
    terminal.wait_for("I read it first.");
    terminal.wait_for("→ edit notes.txt");
    terminal.wait_for("✓ edit notes.txt (+1 -1)");
    terminal.wait_for("-two");
    terminal.wait_for("+three");
    terminal.wait_for("It is changed.");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "one\nthree\n");
    terminal.say("/undo");
    terminal.wait_for("put back `notes.txt`");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "one\ntwo\n");
    terminal.say("/cost");
    terminal.wait_for("for 3 answers");
    terminal.say("/nonsense");
    terminal.wait_for("there is no `/nonsense`");
    terminal.say("/udno");
    terminal.wait_for("did you mean `/undo`?");
    terminal.end();
}

#[test]
fn a_question_is_answered_in_the_conversation() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home);
    terminal.say("ask me");
    let asked = terminal.wait_for("[n]o");
    assert!(asked.contains("$WHAT"), "{asked}");
    terminal.type_in("no, because it is late\r");
    terminal.wait_for("denied this call: because it is late");
    terminal.wait_for("The command was run.");
    terminal.say("ask me");
    terminal.wait_for("[n]o");
    terminal.type_in("y\r");
    terminal.wait_for("it ran");
    terminal.end();
}

#[test]
fn ctrl_c_ends_the_answer_and_not_the_program() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home);
    terminal.say("go on for ever");
    terminal.wait_for("Very well.");
    terminal.type_in("\u{3}");
    terminal.wait_for("Stopped.");
    terminal.say("/new");
    terminal.wait_for("a new session");
    terminal.say("are you there?");
    terminal.wait_for("I heard you.");
    terminal.end();
}

#[test]
fn exit_and_quit_leave_a_conversation() {
    for word in ["exit", "quit"] {
        let home = Home::new();
        let mut terminal = Terminal::start(&home);
        terminal.say(word);
        terminal.wait_for("`/exit` and `/quit` do the same");
        assert_eq!(terminal.ended().0, Some(0));
    }
}

#[test]
fn a_question_shows_a_command_once() {
    let home = Home::with_config("[approvals]\nask = \"always\"\n");
    let args = r#"{"command": "echo hello there"}"#;
    let mut terminal = Terminal::run(&home, &["tools", "call", "exec", args]);
    let asked = terminal.wait_for("[n]o");
    assert_eq!(asked.matches("echo hello there").count(), 1, "{asked}");
    for part in ["effects", "why", "run in .:", "in the kernel sandbox"] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    terminal.type_in("n\r");
    assert_eq!(terminal.ended().0, Some(3));
}

#[test]
fn a_question_hides_no_argument() {
    let home = Home::with_config("[approvals]\nask = \"always\"\n");
    let args = r#"{"command": "echo hello", "network": true, "timeout_seconds": 77, "stdin": "typed"}"#;
    let mut terminal = Terminal::run(&home, &["tools", "call", "exec", args]);
    let asked = terminal.wait_for("[n]o");
    assert!(asked.contains("with the other arguments:"), "{asked}");
    assert!(asked.contains(r#""network":true"#) && asked.contains(r#""timeout_seconds":77"#), "{asked}");
    assert!(asked.contains("with this standard input:"), "{asked}");
    terminal.type_in("n\r");
    assert_eq!(terminal.ended().0, Some(3));
}

#[test]
fn what_was_typed_before_a_question_is_no_answer_to_it() {
    let home = Home::with_config("[approvals]\nask = \"always\"\n");
    let mut terminal = Terminal::run(&home, &["tools", "call", "exec", r#"{"command": "echo it ran"}"#]);
    terminal.type_in("y\r");
    terminal.wait_for("[n]o");
    terminal.type_in("n\r");
    let (code, seen) = terminal.ended();
    assert_eq!(code, Some(3), "{seen}");
}

#[test]
fn a_question_that_is_over_gives_the_terminal_back() {
    let home = Home::with_config("[approvals]\nwait_secs = 3\n");
    let mut terminal = Terminal::start(&home);
    terminal.say("ask me");
    terminal.wait_for("[n]o");
    // Nobody presses Enter.
    terminal.wait_for("the approval expired: nobody answered within 3 s");
    terminal.wait_for("The command was run.");
    terminal.say("are you there?");
    terminal.wait_for("I heard you.");
    terminal.end();
}

#[test]
fn a_question_that_nobody_sees_ends_the_program_all_the_same() {
    let home = Home::with_config("[approvals]\nwait_secs = 2\n");
    let script = home.write("script.toml", SCRIPT);
    let words = ["chat", "-m", "ask me", "--script", script.to_str().unwrap()];
    let mut terminal = Terminal::run(&home, &words);
    terminal.wait_for("The command was run.");
    let (code, seen) = terminal.ended();
    assert_eq!(code, Some(0), "{seen}");
}

#[test]
fn a_question_is_answered_from_elsewhere_and_what_is_typed_is_kept() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home);
    for (word, told) in [("deny", "tester denied"), ("approve", "tester approved")] {
        terminal.say("ask me");
        terminal.wait_for("[n]o");
        // Not a line yet, so no answer.
        terminal.type_in("are you");
        let waiting = home.run(&["approvals", "list", "--json"]).json();
        let answered = home.run(&["approvals", word, waiting[0]["id"].as_str().unwrap()]);
        assert_eq!(answered.code, 0, "{}", answered.shown());
        terminal.wait_for(told);
        terminal.wait_for("The command was run.");
        terminal.wait_for("default> ");
        terminal.wait_for("are you");
        terminal.type_in(" there?\r");
        terminal.wait_for("I heard you.");
    }
    terminal.end();
}

#[test]
fn ctrl_c_withdraws_a_question_at_once() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home);
    terminal.say("ask me");
    terminal.wait_for("[n]o");
    terminal.type_in("\u{3}");
    terminal.wait_for("the approval was withdrawn");
    terminal.wait_for("Stopped. The partial answer is saved.");
    assert_eq!(home.run(&["approvals", "list"]).stdout, "No approvals pending.\n");
    terminal.say("are you there?");
    terminal.wait_for("I heard you.");
    terminal.end();
}

#[test]
fn a_paste_of_several_lines_is_one_message() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home);
    terminal.wait_for("default> ");
    terminal.type_in("\u{1b}[200~echo one\rtwo\rthree\u{1b}[201~\r");
    terminal.wait_for("You said <echo one");
    terminal.wait_for("two");
    terminal.wait_for("three>.");
    terminal.end();
}

#[test]
fn alt_enter_and_a_backslash_make_a_new_line() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home);
    terminal.wait_for("default> ");
    terminal.type_in("echo one\\\rtwo\u{1b}\rthree\r");
    terminal.wait_for("You said <echo one");
    let said = terminal.wait_for("three>.");
    assert!(said.contains("two") && !said.contains('\\'), "{said}");
    terminal.end();
}

#[test]
fn what_is_typed_ahead_is_not_shown_in_the_answer_and_not_lost() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home);
    terminal.say("think long");
    terminal.wait_for("thinking");
    terminal.type_in("echo typed ahead\r");
    let answer = terminal.wait_for("There.");
    assert!(answer.contains("Soon.") && !answer.contains("typed ahead"), "{answer}");
    terminal.wait_for("You said <echo typed ahead>.");
    terminal.end();
}

#[test]
fn finished_lines_that_are_typed_ahead_are_sent_in_turn_and_the_rest_waits() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home);
    terminal.say("think long");
    terminal.wait_for("thinking");
    terminal.type_in("echo first\recho second\recho third");
    terminal.wait_for("You said <echo first>.");
    terminal.wait_for("You said <echo second>.");
    terminal.wait_for("echo third");
    terminal.type_in(" half\r");
    terminal.wait_for("You said <echo third half>.");
    terminal.end();
}

#[test]
fn ctrl_c_at_the_prompt_tells_how_to_leave_once() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home);
    terminal.wait_for("default> ");
    terminal.type_in("\u{3}");
    terminal.wait_for("Ctrl-D or /quit leaves");
    terminal.wait_for("default> ");
    terminal.type_in("\u{3}");
    let again = terminal.wait_for("default> ");
    assert!(!again.contains("/quit leaves"), "{again}");
    terminal.type_in("\u{4}");
    assert_eq!(terminal.ended().0, Some(0));
}

#[test]
fn a_name_that_is_no_file_is_sent_as_text_with_a_note() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home);
    terminal.say("echo @nope.txt");
    terminal.wait_for("`@nope.txt` is not a file here; sent as text");
    terminal.wait_for("You said <echo @nope.txt>.");
    terminal.end();
}

#[test]
fn a_session_that_resumes_keeps_its_mode() {
    let home = Home::new();
    let script = home.write("script.toml", SCRIPT);
    let chat = ["chat", "--script", script.to_str().unwrap()];
    let ran = home.run(&[&chat[..], &["--mode", "plan", "-m", "echo"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let ran = home.run(&[&chat[..], &["--continue", "-m", "write it"]].concat());
    assert!(ran.stderr.contains("mode `plan`, as in this session's last run"), "{}", ran.shown());
    assert!(!home.path().join("project/new.txt").exists(), "{}", ran.shown());
    let mut terminal = Terminal::run(&home, &[&chat[..], &["--continue"]].concat());
    terminal.wait_for("default (plan)> ");
    terminal.type_in("/mode configured\r");
    terminal.end();
    let ran = home.run(&[&chat[..], &["--continue", "--mode", "configured", "-m", "echo"]].concat());
    assert!(!ran.stderr.contains("mode `"), "{}", ran.shown());
}

#[test]
fn a_spinner_shows_seconds_while_the_model_is_silent() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home);
    terminal.say("think long");
    terminal.wait_for("thinking · 1 s");
    terminal.wait_for("Ctrl-C stops");
    terminal.wait_for("There.");
    terminal.end();
}

#[test]
fn a_spinner_moves_below_an_open_line_and_counts_the_arguments_of_a_call() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home);
    terminal.say("begin and write");
    // The last word is held back: it may become a secret.
    terminal.wait_for("I write it");
    terminal.wait_for("thinking");
    terminal.wait_for("2 tokens");
    // Eleven bytes of text, and the first forty of the arguments.
    terminal.wait_for("12 tokens");
    terminal.wait_for("✓ write_file new.txt");
    terminal.end();
}

#[test]
fn an_open_line_continues_where_it_stopped_once_the_spinner_is_gone() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home);
    terminal.say("stop in a line");
    terminal.wait_for("One");
    terminal.wait_for("thinking");
    terminal.wait_for("two.");
    let raw = String::from_utf8_lossy(&terminal.raw).into_owned();
    let back = "\r\u{1b}[K\u{1b}[A\u{1b}[";
    assert!(raw.contains(back), "the cursor returns to the end of the line: {raw:?}");
    terminal.end();
}

#[test]
fn a_command_is_shown_as_it_runs_by_head_and_tail_and_with_its_exit_code() {
    // A command does not see what others change in the workspace meanwhile, but in a directory that is granted for writing.
    let home = Home::with_config("[files]\nwrite = [\"~/signals\"]\n");
    let signals = home.path().canonicalize().unwrap().join("signals");
    fs::create_dir(&signals).unwrap();
    let script = home.write("script.toml", SCRIPT.replace("signals", signals.to_str().unwrap()));
    let mut terminal = Terminal::run(&home, &["chat", "--script", script.to_str().unwrap()]);
    terminal.say("count slowly");
    terminal.wait_for("→ exec echo line 1");
    terminal.wait_for("\n  line 1");
    // The command waits for the file, so that the line was shown while it ran.
    home.write("signals/go", "");
    terminal.wait_for("  line 3");
    // Beyond the first lines, the latest text is shown, even if its line has not ended.
    terminal.wait_for("53 lines · Ctrl-C stops · half a");
    home.write("signals/stop", "");
    let rest = terminal.wait_for("✗ exec");
    assert!(rest.contains("lines …") && rest.contains("  60") && !rest.contains("  40"), "{rest}");
    terminal.wait_for("(exit code 3)");
    terminal.end();
}

#[test]
fn a_new_file_is_shown_and_tables_and_links_are_dressed() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home);
    terminal.say("write it");
    terminal.wait_for("✓ write_file new.txt (new, +2)");
    terminal.wait_for("+first");
    terminal.wait_for("name  size");
    terminal.wait_for("new   two (https://x.y)");
    terminal.wait_for("Done.");
    terminal.end();
}

#[test]
fn tab_completes_commands_and_files_and_a_file_is_attached() {
    let home = Home::new();
    home.write("project/calculator.py", "print(6 * 7)\n");
    let mut terminal = Terminal::start(&home);
    terminal.wait_for("default> ");
    terminal.type_in("/too\t");
    terminal.wait_for("/tools");
    terminal.type_in("\r");
    terminal.wait_for("read_file");
    terminal.wait_for("default> ");
    terminal.type_in("echo @calc\t");
    terminal.wait_for("@calculator.py");
    terminal.type_in("\r");
    terminal.wait_for("attached `calculator.py` (1 line)");
    terminal.wait_for("You said <echo @calculator.py");
    terminal.end();
    let shown = home.run(&["sessions", "list", "--json"]).json();
    let id = shown[0]["id"].as_str().unwrap();
    let said = home.run(&["sessions", "show", id]);
    assert!(said.stdout.contains("print(6 * 7)"), "{}", said.shown());
}

#[test]
fn a_mode_narrows_and_is_shown_at_the_prompt() {
    let home = Home::new();
    let notes = home.write("project/notes.txt", "one\ntwo\n");
    let mut terminal = Terminal::start(&home);
    terminal.say("/mode plan");
    terminal.wait_for("read only");
    terminal.wait_for("default (plan)> ");
    terminal.type_in("write it\r");
    terminal.wait_for("the mode `plan` says deny");
    terminal.wait_for("default (plan)> ");
    terminal.type_in("/mode ask\r");
    terminal.wait_for("default (ask)> ");
    terminal.type_in("change it\r");
    // The change is shown before the question.
    let asked = terminal.wait_for("[n]o");
    assert!(asked.contains("-two") && asked.contains("+three"), "{asked}");
    assert!(asked.contains("the mode `ask` says ask"), "{asked}");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "one\ntwo\n");
    terminal.type_in("y\r");
    terminal.wait_for("It is changed.");
    terminal.wait_for("default (ask)> ");
    terminal.type_in("/mode paln\r");
    terminal.wait_for("did you mean `plan`?");
    terminal.wait_for("default (ask)> ");
    terminal.type_in("\u{4}");
    assert_eq!(terminal.ended().0, Some(0));
}

#[test]
fn in_the_mode_edits_files_change_unasked_and_a_remembered_answer_settles_a_command() {
    let home = Home::new();
    home.write("project/notes.txt", "one\ntwo\n");
    let mut terminal = Terminal::start(&home);
    terminal.say("/mode edits");
    terminal.wait_for("default (edits)> ");
    terminal.type_in("change it\r");
    let edited = terminal.wait_for("It is changed.");
    assert!(edited.contains("✓ edit notes.txt (+1 -1)") && !edited.contains("[n]o"), "{edited}");
    terminal.wait_for("default (edits)> ");
    terminal.type_in("list it\r");
    let asked = terminal.wait_for("Your answer");
    assert!(asked.contains("the mode `edits` says ask") && asked.contains("[s]ession"), "{asked}");
    terminal.type_in("s\r");
    terminal.wait_for("The command was run.");
    terminal.wait_for("default (edits)> ");
    terminal.type_in("list it\r");
    let again = terminal.wait_for("The command was run.");
    assert!(again.contains("✓ exec ls -a") && !again.contains("[n]o"), "{again}");
    terminal.wait_for("default (edits)> ");
    terminal.type_in("touch it\r");
    terminal.wait_for("Your answer");
    terminal.type_in("n\r");
    terminal.wait_for("default (edits)> ");
    // Where each write is to be seen, no answer holds for the next one, and the mode is named as the reason.
    terminal.type_in("/mode ask\r");
    terminal.wait_for("default (ask)> ");
    terminal.type_in("touch it\r");
    let asked = terminal.wait_for("[n]o");
    assert!(!asked.contains("[s]ession"), "{asked}");
    let waiting = home.run(&["approvals", "list", "--json"]).json();
    let shown = home.run(&["approvals", "show", waiting[0]["id"].as_str().unwrap()]);
    assert!(shown.stdout.contains("not possible: the mode `ask` asks each time"), "{}", shown.shown());
    terminal.type_in("n\r");
    terminal.wait_for("default (ask)> ");
    terminal.type_in("\u{4}");
    assert_eq!(terminal.ended().0, Some(0));
}

#[test]
fn a_model_that_takes_no_images_is_sent_none() {
    let home = Home::new();
    home.write("project/point.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    let script =
        home.write("blind.toml", "[model]\nimages = false\n\n[[turn]]\ndo = [{ say = \"Heard.\" }]\n");
    let script = script.to_str().unwrap();
    let mut terminal = Terminal::run(&home, &["chat", "--script", script]);
    terminal.say("/image point.png");
    terminal.wait_for("takes no images");
    terminal.say("look at @point.png");
    terminal.wait_for("not sent");
    terminal.wait_for("takes no images");
    terminal.end();
    for words in [&["-m", "look at @point.png"][..], &["-m", "look", "--image", "point.png"]] {
        let ran = home.run(&[&["chat", "--script", script], words].concat());
        assert!(ran.code != 0 && ran.stderr.contains("takes no images"), "{}", ran.shown());
    }
}
