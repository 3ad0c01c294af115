use super::*;

fn typing<'a>(text: &'a str, before: &'a str, terminal: bool) -> Typing<'a> {
    let started = Invocation { text, env: &[], input: None };
    Typing { started, before, terminal, programs: &[] }
}

#[track_caller]
fn check(typing: Typing<'_>, text: &str, expected: &str) {
    let verdict = typing.analyse(text, &Rules::default());
    let rule = verdict.finding().map(|finding| format!(" {}", finding.rule)).unwrap_or_default();
    assert_eq!(format!("{}{rule}", verdict.decision), expected, "{typing:?} {text:?}");
}

#[test]
fn what_a_shell_reads_is_a_script() {
    for shell in ["bash", "sh", "bash -i", "env bash --norc", "cd sub && exec bash", "cat | sh", "./bash"] {
        check(typing(shell, "", false), "echo hello\n", "allow");
        check(typing(shell, "", false), "rm -rf x\n", "deny destructive.rm-recursive");
        check(typing(shell, "", true), "rm -rf x\r", "deny destructive.rm-recursive");
    }
    check(typing("cat", "", false), "rm -rf x\n", "allow");
    check(typing("cat", "", true), "rm -rf x\r\u{1}\u{4}", "allow");
    check(typing("python3 app.py", "", false), "rm -rf x\n", "allow");
}

#[test]
fn what_another_interpreter_reads_is_asked() {
    for program in ["python3 -i", "python3", "python3 -i x.py", "node", "sqlite3 a.db", "gdb ./x", "ssh host"]
    {
        check(typing(program, "", false), "1\n", "ask unknown.input");
    }
    for program in ["tmux", "screen", "script out.txt"] {
        check(typing(program, "", true), "ls\r", "ask unknown.input");
    }
    check(typing("less notes.txt", "", true), "q", "ask unknown.input");
    check(typing("git log", "", true), "!rm -rf x\r", "ask unknown.input");
}

#[test]
fn refuses_a_command_in_two_halves() {
    check(typing("bash", "rm -r", false), "f x\n", "deny destructive.rm-recursive");
    check(typing("bash", "X=rm\n", false), "$X -rf x\n", "deny destructive.rm-recursive");
    check(typing("bash", "alias ls='rm -rf x'\n", false), "ls\n", "deny destructive.rm-recursive");
    check(typing("bash", "f() { rm -rf \"$@\"; }\n", false), "f x\n", "deny destructive.rm-recursive");
    let started = Invocation { text: "bash", env: &[], input: Some("X=rm\n") };
    check(Typing { started, ..typing("", "", false) }, "$X -rf x\n", "deny destructive.rm-recursive");
}

#[test]
fn refuses_lines_that_another_command_takes_away_first() {
    let hidden = "cat <<E\nrm -rf x\nE\n";
    for first in ["read x\n", "mapfile -n 1 x\n", "head -n 1\n", "bash -c 'read x'\n", "sed q\n"] {
        check(typing("bash", first, false), hidden, "ask unknown.script");
        check(typing("bash", "", false), &format!("{first}{hidden}"), "ask unknown.script");
    }
    check(typing("bash", "x=rm\nread y\n", false), "x=echo\n$x -rf z\n", "ask unknown.script");
    check(typing("bash", "python3\n", false), "import os\n", "ask unknown.input");
    check(typing("bash", "ls | head -n 1; cat notes.txt\n", false), "make test\n", "allow");
}

#[test]
fn refuses_keys_that_make_another_command() {
    // Home, delete, and a letter; recall with an arrow; completion; a killed word that is yanked.
    for text in ["xm -rf y\u{1}\u{1b}[3~r\r", "\u{1b}[A\r", "ech\t", "rm -r\u{15}\u{19}f x\r", "a\u{7f}\r"] {
        let verdict = typing("bash", "", true).analyse(text, &Rules::default());
        assert_ne!(verdict.decision, Decision::Allow, "{text:?}");
    }
    // An interrupt in a here-document ends it, and the following text is run.
    for key in ["\u{3}", "\u{4}"] {
        check(typing("bash", "", true), &format!("cat <<E\r{key}rm -rf x\rE\r"), "ask unknown.input");
        check(typing("bash", "ls\r", true), key, "allow");
    }
    check(typing("bash", "cat <<E\r\u{3}", true), "rm -rf x\r", "ask unknown.syntax");
}

#[test]
fn refuses_to_bring_earlier_commands_back() {
    let before = "echo rm -rf x\n";
    for text in ["!!:1-3\n", "!echo:2\n", "^echo ^^\n"] {
        check(typing("bash", before, true), text, "ask unknown.input");
        check(typing("bash -i", before, false), text, "ask unknown.input");
        check(typing("bash", "set -o history -o histexpand\n", false), text, "ask unknown.input");
    }
    check(typing("bash", "", true), "if ! test a != b; then echo 'done'; fi\n", "allow");
    check(typing("bash", "", false), "echo \"done!\"\n", "allow");
}

#[test]
fn refuses_a_shell_under_another_name() {
    let programs = [("./quiet".to_owned(), "/usr/bin/bash".to_owned())];
    let typed = Typing { programs: &programs, ..typing("./quiet", "", false) };
    check(typed, "echo\n", "ask unknown.input");
    let programs =
        [("vi".to_owned(), "/usr/bin/vim.basic".to_owned()), ("sh".to_owned(), "/bin/dash".to_owned())];
    check(Typing { programs: &programs, ..typing("sh", "", false) }, "echo\n", "allow");
}

#[test]
fn what_cannot_be_followed_is_asked() {
    check(typing("bash", "", false), "echo \"abc\n", "ask unknown.syntax");
    check(typing("$X", "", false), "echo\n", "ask unknown.command");
    check(typing("bash", "", false), &"echo\n".repeat(20_000), "ask unknown.size");
    check(typing("bash", "", false), "a\0b\n", "ask unknown.syntax");
}

#[test]
fn refuses_a_terminal_whose_keys_were_changed() {
    for set in ["stty erase Z\r", "tset -e Z\r", "reset -e Z\r"] {
        check(typing("bash", "", true), set, "ask unknown.input");
        check(typing("bash", set, true), "rqZm -rf build\r", "ask unknown.input");
    }
    check(typing("sh -c 'stty erase Z; exec bash'", "", true), "rqZm -rf build\r", "ask unknown.input");
    check(typing("bash", "stty size\r", true), "ls\r", "allow");
}

#[test]
fn refuses_what_is_brought_back_in_two_pieces() {
    let before = "echo 'x;rm -rf build'\rtrue x!";
    check(typing("bash", before, true), "echo:s/'/ /:s/'/ /\r", "ask unknown.input");
    check(typing("bash -i", &before.replace('\r', "\n"), false), "echo:s/a/b/\n", "ask unknown.input");
    check(typing("bash", "echo done!\r", true), "ls\r", "allow");
}
