use super::*;

#[track_caller]
fn check(env: &[(&str, &str)], input: Option<&str>, text: &str, expected: &str) {
    let env: Vec<(String, String)> =
        env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let verdict = Invocation { text, env: &env, input }.analyse(&Rules::default());
    let rule = verdict.finding().map(|finding| format!(" {}", finding.rule)).unwrap_or_default();
    assert_eq!(format!("{}{rule}", verdict.decision), expected, "{text}");
}

#[test]
fn variables_are_judged_as_assignments() {
    check(&[("FOO", "it's")], None, "ls \"$FOO\"", "allow");
    check(&[("LD_PRELOAD", "/tmp/x.so")], None, "ls", "deny environment.injection");
    check(&[("PATH", "/tmp")], None, "ls", "ask environment.path");
    check(&[("CMD", "rm -rf /")], None, "$CMD", "deny destructive.rm-recursive");
    check(&[("X", "'; rm -rf /; '")], None, "echo $X", "allow");
}

#[test]
fn refuses_names_that_are_none() {
    for name in ["BASH_FUNC_ls%%", "", "A=B", "A B", "1A", "A\n", "A;id", "\u{e4}"] {
        check(&[(name, "() { id; }")], None, "ls", "deny environment.injection");
    }
}

#[test]
fn what_a_shell_reads_is_a_script() {
    check(&[], Some("ls"), "bash", "allow");
    for text in ["bash", "cat | sh", "sh -s a b", "env bash", "source /dev/stdin", "tee x.sh; bash x.sh"] {
        check(&[], Some("rm -rf /\n"), text, "deny destructive.rm-recursive");
    }
    check(&[], Some("-rf /"), "xargs rm", "deny destructive.rm-recursive");
    check(&[], Some("rm -rf /"), "cat", "allow");
    check(&[], Some("rm"), "read x; $x -rf /", "ask unknown.command");
}

#[test]
fn refuses_a_word_that_only_looks_like_a_program() {
    for text in ["python3 - x", "python3 -W ignore", "perl -I lib", "ruby -r set", "node -r ./x.js"] {
        check(&[], Some("import shutil"), text, "ask unknown.input");
    }
    check(&[], Some("rm -rf build"), "fakeroot", "deny destructive.rm-recursive");
    check(&[], Some("rm -rf build"), "python3 -W ignore app.py", "allow");
}

#[test]
fn what_another_interpreter_reads_is_asked() {
    for text in
        ["python3", "python3.11 -u", "perl -", "node", "ruby -w", "php", "sqlite3 a.db", "lua /dev/stdin"]
    {
        check(&[], Some("print(1)"), text, "ask unknown.input");
    }
    check(&[], Some(""), "python3 -i", "allow");
    for text in ["python3 x.py", "python3 -m json.tool", "node x.js", "wc -l", "perl -ne 'print'", "jq ."] {
        check(&[], Some("1"), text, "allow");
    }
}

#[test]
fn refuses_a_text_that_would_end_the_group_early() {
    for text in ["bash\n}; {", "true; }; bash; { true", "bash\n} <<'CLAWSMITH_INPUT'\n", "ls \\", "cat <<A"] {
        let verdict = Invocation { text, env: &[], input: Some("rm -rf /") }.analyse(&Rules::default());
        assert_ne!(verdict.decision, Decision::Allow, "{text}");
    }
    check(&[], Some("x"), "true; }; ls; { true", "ask unknown.syntax");
    let input = "x\nCLAWSMITH_INPUT\nrm -rf /";
    check(&[], Some(input), "cat", "allow");
    check(&[], Some(input), "bash", "deny destructive.rm-recursive");
}

#[test]
fn places_are_those_of_the_command() {
    let env = [("A".to_owned(), "1".to_owned())];
    let text = "ls && rm -rf x";
    let verdict = Invocation { text, env: &env, input: Some("y") }.analyse(&Rules::default());
    let finding = verdict.finding().unwrap();
    assert_eq!(&text[finding.span.start..finding.span.end], "rm -rf x");
    assert_eq!(verdict.commands.len(), 2);
}
