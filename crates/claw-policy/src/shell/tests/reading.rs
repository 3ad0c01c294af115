//! Tests of the commands found in a text.

use super::*;

#[track_caller]
fn finds(command: &str, argv: &[&str]) {
    let verdict = analyse(command, &Rules::default());
    assert!(verdict.covers(argv), "{command}: {:#?}", verdict.commands);
}

fn shown(command: &str) -> Vec<String> {
    let verdict = analyse(command, &Rules::default());
    let line = |simple: &Simple| simple.argv.iter().map(Argument::to_string).collect::<Vec<_>>().join(" ");
    verdict.commands.iter().map(line).collect()
}

#[test]
fn quoting_in_all_its_forms_is_resolved() {
    for command in [
        "r''m x",
        "'rm' x",
        "\"rm\" x",
        "\\rm x",
        "$'\\x72m' x",
        "$'\\162\\155' x",
        "r\\\nm x",
        "$\"rm\" x",
        "$'r\\u006d' 'x'",
    ] {
        assert_eq!(shown(command), ["rm x"], "{command}");
    }
    assert_eq!(shown(r#"echo "a\"b\$c\d" 'e f' g\ h"#), [r#"echo a"b$c\d e f g h"#]);
    assert_eq!(shown("echo a{b,c}d {1,2}{x,y} {} {a} '{a,b}'"), ["echo abd acd 1x 1y 2x 2y {} {a} {a,b}"]);
}

#[test]
fn variables_of_the_same_command_are_resolved() {
    assert_eq!(shown("X=ls; $X -l"), ["ls -l"]);
    assert_eq!(shown("X='ls -l a'; $X"), ["ls -l a"]);
    assert_eq!(shown("X='ls -l'; \"$X\""), ["ls -l"]);
    assert_eq!(shown("X=1 echo $X"), ["echo <?>"]);
    assert_eq!(shown("X=a; (X=b); echo $X"), ["echo a"]);
    assert_eq!(shown("X=a; true && X=b; echo $X"), ["true", "echo <?>"]);
    assert_eq!(shown("X=a; echo $HOME/$X"), ["echo <?>/a"]);
    assert_eq!(shown("set -- a 'b c'; echo \"$@\" $2"), ["set -- a b c", "echo a b c b c"]);
}

#[test]
fn what_loops_leave_is_unknown() {
    finds("X=a; for i in 1 2; do echo $X; X=b; done", &["echo", "a"]);
    finds("X=a; for i in 1 2; do echo $X; X=b; done", &["echo", "b"]);
    finds("a=1; b=2; c=3; while x; do echo $a; a=$b; b=$c; c=4; done", &["echo", "4"]);
}

#[test]
fn wrappers_are_peeled() {
    for wrapper in [
        "env",
        "env -i A=b",
        "command",
        "nice -n 3",
        "nohup",
        "timeout -k 1 5",
        "stdbuf -oL",
        "time",
        "setsid",
        "xargs -n 1",
        "find . -exec",
        "busybox",
        "env -S 'nice -n 3'",
        "exec",
        "builtin command",
        "ionice -c2 -n 0",
        "flock /tmp/l",
        "/lib64/ld-linux-x86-64.so.2",
        "time -p !",
    ] {
        finds(&format!("{wrapper} cat x"), &["cat", "x"]);
    }
}

#[test]
fn spans_name_the_part() {
    let verdict = analyse("ls && rm -rf x; echo", &Rules::default());
    assert_eq!(verdict.finding().unwrap().part, "rm -rf x");
    let verdict = analyse("ls; sh -c 'rm -rf x' a", &Rules::default());
    assert_eq!(verdict.finding().unwrap().part, "sh -c 'rm -rf x' a");
}

#[test]
fn what_cannot_be_read_is_asked() {
    for command in [
        "echo \"",
        "echo '",
        "ls )",
        "if true",
        "(ls",
        "${",
        "$(",
        "`",
        "cat <<EOF",
        "a=(",
        "[[ a",
        "case x in",
        "echo $[1]",
        "x() ls",
    ] {
        check(command, Decision::Ask, "unknown.syntax");
    }
    check(&"a".repeat(LONGEST + 1), Decision::Ask, "unknown.size");
    check("ls \0", Decision::Ask, "unknown.syntax");
    check(&("$(".repeat(500) + &")".repeat(500)), Decision::Ask, "unknown.syntax");
    check(&"((".repeat(10_000), Decision::Ask, "unknown.syntax");
}

#[test]
fn every_rule_is_reached_by_the_corpus_and_documented() {
    let mut hit = std::collections::BTreeSet::new();
    for command in crate::shell::corpus::dangerous() {
        hit.extend(
            analyse(&command, &Rules::default()).findings.into_iter().map(|finding| finding.rule.to_string()),
        );
    }
    let page = include_str!("../../../../../docs/shell.md");
    for rule in RULES {
        assert!(
            // The input of a command is not part of its text.
            hit.contains(rule.id) || ["unknown.size", "unknown.input"].contains(&rule.id),
            "no command of the corpus reaches `{}`",
            rule.id
        );
        let row = format!("| `{}` | {} | {} |", rule.id, rule.decision, rule.person);
        assert!(page.contains(&row), "docs/shell.md lacks the row\n{row}");
    }
}
