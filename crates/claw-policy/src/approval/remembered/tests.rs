use super::*;
use crate::approval::programs;
use crate::shell::{Invocation, Rules};

/// A script with its verdict, and every program seen at its usual path.
struct Case {
    script: Script,
    verdict: Verdict,
    sights: Vec<Sight>,
}

impl Case {
    fn new(script: Script) -> Self {
        let invocation = Invocation { text: &script.text, env: &script.env, input: script.input.as_deref() };
        let verdict = invocation.analyse(&Rules::default());
        let sight = |name: String| {
            let path = if name.starts_with('/') { name.clone() } else { format!("/usr/bin/{name}") };
            let target = Target::Program { name, directory: ".".into() };
            Sight {
                target,
                identity: Some(format!("file of {path}")),
                path: Some(path),
                credential: None,
                writable: false,
            }
        };
        let sights = programs(&verdict).into_iter().map(sight).collect();
        Self { script, verdict, sights }
    }

    fn text(text: &str) -> Self {
        Self::new(Script { text: text.into(), directory: ".".into(), ..Script::default() })
    }

    fn judged(&self) -> Judged<'_> {
        Judged { script: &self.script, verdict: &self.verdict, sights: Some(&self.sights), credential: None }
    }
}

/// The rule of the last of the widths that are offered.
fn widest(mut rules: Vec<(RuleWidth, Remembered)>) -> Remembered {
    rules.pop().unwrap().1
}

#[track_caller]
fn rule(text: &str) -> Remembered {
    let rule = widest(suggest(&Case::text(text).judged()).unwrap());
    let stored = serde_json::to_value(&rule).unwrap();
    assert_eq!(serde_json::from_value::<Remembered>(stored).unwrap(), rule);
    rule
}

/// Checks whether a rule given for one command covers another.
#[track_caller]
fn check(given: &str, text: &str, expected: bool) {
    let rule = rule(given);
    let case = Case::text(text);
    assert_eq!(covering(&[&rule], &case.judged()).is_some(), expected, "`{given}` on `{text}`: {rule}");
}

#[test]
fn a_rule_covers_what_it_was_given_for_and_little_more() {
    check("git status", "git status", true);
    check("git status", "git status -s", false);
    check("git status", "git push", false);
    check("cat src/a.rs", "cat src/deep/b.rs", true);
    check("cat src/a.rs", "cat ../a.rs", false);
    check("cat src/a.rs", "cat /etc/passwd", false);
    check("cat src/a.rs", "cat -A", false);
    check("cat src/a.rs", "cat a.rs b.rs", false);
    check("touch src/a.rs", "touch src/b.rs", true);
    check("touch src/a.rs", "touch ../b.rs", false);
    check("python3 -m pytest", "python3 -m pytest", true);
    check("python3 x.py", "python3 y.py", false);
}

#[test]
fn refuses_a_rule_for_a_program_that_the_agent_can_write() {
    for text in ["./tool --check", "/tmp/tool", "cd sub && /workspace/tool", "env /workspace/tool"] {
        let mut case = Case::text(text);
        let given = suggest(&case.judged());
        for sight in &mut case.sights {
            sight.writable |= matches!(&sight.target, Target::Program { name, .. } if name.ends_with("tool"));
        }
        assert!(suggest(&case.judged()).is_err(), "{text}");
        // A rule given while the program was elsewhere does not cover it either.
        if let Ok(rules) = given {
            let rule = widest(rules);
            assert_eq!(covering(&[&rule], &case.judged()), None, "{text}");
        }
    }
    assert_eq!(
        suggest(
            &{
                let mut case = Case::text("./tool --check");
                case.sights[0].writable = true;
                case
            }
            .judged()
        ),
        Err("the agent can change the program that it runs")
    );
}

#[test]
fn what_is_fed_to_a_command_is_part_of_what_was_agreed_to() {
    check("cat a.txt | sort", "cat b.txt | sort", true);
    check("echo 'print(1)' | python3 -", "echo 'print(1)' | python3 -", true);
    check("echo 'print(1)' | python3 -", "echo 'print(2)' | python3 -", false);
    check("echo one | tee notes.txt", "echo two | tee notes.txt", false);
    check("echo one | tee notes.txt", "tee notes.txt", false);
}

#[test]
fn what_does_more_than_read_is_covered_where_it_was() {
    let within = |text: &str, directory: &str| {
        Case::new(Script { text: text.into(), directory: directory.into(), ..Script::default() })
    };
    for (text, elsewhere) in [("touch a", false), ("git status", true)] {
        let rule = widest(suggest(&within(text, "one").judged()).unwrap());
        assert!(covering(&[&rule], &within(text, "one").judged()).is_some(), "{text}");
        assert_eq!(covering(&[&rule], &within(text, "two").judged()).is_some(), elsewhere, "{text}");
    }
}

#[test]
fn a_script_is_covered_only_if_every_command_is() {
    check("git status", "git status && git status 2>&1", true);
    check("git status", "cd sub && git status", false);
    check("cd sub && git status", "cd sub && git status", true);
    check("git status", "git status; id", false);
    check("git status", "git status | tee x.txt", false);
    check("git status", "echo now; git status", true);
    for text in [
        "git status > .profile",
        "A=1 git status",
        "git status $(id)",
        "git status &",
        "HOME=/x; git status",
        "$(git status)",
        "git() { id; }; git status",
        "alias git=id; git status",
        "bash -c 'git status'",
        "env git status",
        "sudo git status",
        "./git status",
        "git \"$X\"",
        "git *",
        "for i in 1; do git status; done",
    ] {
        check("git status", text, false);
    }
}

#[test]
fn two_rules_cover_together_what_neither_does() {
    let (one, two) = (rule("git status"), rule("make test"));
    let case = Case::text("git status && make test");
    assert_eq!(covering(&[&one, &two], &case.judged()), Some(vec![0, 1]));
    assert_eq!(covering(&[&two], &case.judged()), None);
}

#[test]
fn what_is_no_plain_command_is_covered_as_the_very_text() {
    check("for f in a b; do cat $f; done", "for f in a b; do cat $f; done", true);
    check("for f in a b; do cat $f; done", "for f in a c; do cat $f; done", false);
    check("for f in a b; do cat $f; done", "cat a", false);
    check("ls > out.txt", "ls > out.txt", true);
    check("ls > out.txt", "ls > other.txt", false);
    let given = Script {
        text: "make".into(),
        directory: ".".into(),
        env: vec![("A".into(), "1".into())],
        ..Script::default()
    };
    let rule = widest(suggest(&Case::new(given.clone()).judged()).unwrap());
    assert!(covering(&[&rule], &Case::new(given.clone()).judged()).is_some());
    for other in [
        Script { env: vec![("A".into(), "2".into())], ..given.clone() },
        Script { env: vec![], ..given.clone() },
        Script { directory: "sub".into(), ..given.clone() },
        Script { input: Some("x".into()), ..given.clone() },
        Script { network: true, ..given },
    ] {
        assert!(covering(&[&rule], &Case::new(other).judged()).is_none());
    }
}

#[test]
fn refuses_a_program_that_is_another_one_now() {
    let rule = rule("git status");
    let mut case = Case::text("git status");
    case.sights[0].identity = Some("another file".into());
    assert!(covering(&[&rule], &case.judged()).is_none());
    case.sights[0] = Sight { path: Some("/tmp/git".into()), ..Case::text("git status").sights[0].clone() };
    assert!(covering(&[&rule], &case.judged()).is_none());
    case.sights.clear();
    assert!(covering(&[&rule], &case.judged()).is_none());
}

#[test]
fn a_rule_lets_pass_only_what_asked_when_it_was_given() {
    let code = "python3 -c 'import subprocess; subprocess.run([\"ls\"])'";
    check(code, code, true);
    check(code, "python3 -c 'import subprocess; subprocess.run([\"id\"])'", false);
    // Given for the command, not for the path it is searched in.
    check("git status", "PATH=/x git status", false);
    let wish =
        |network| Script { text: "git fetch".into(), directory: ".".into(), network, ..Script::default() };
    let without = widest(suggest(&Case::new(wish(false)).judged()).unwrap());
    let with = widest(suggest(&Case::new(wish(true)).judged()).unwrap());
    assert!(covering(&[&without], &Case::new(wish(true)).judged()).is_none());
    assert!(covering(&[&with], &Case::new(wish(true)).judged()).is_some());
}

#[test]
fn never_gives_a_rule_for_what_could_be_anything() {
    for text in [
        "bash",
        "python3",
        "env",
        "sudo",
        "rm -rf /",
        "$X",
        "eval $X",
        "PATH=/x ls",
        "ls $X",
        "cat *.txt",
        "if",
    ] {
        assert!(suggest(&Case::text(text).judged()).is_err(), "{text}");
    }
    assert!(suggest(&Case::text("cd x && ./run.sh a").judged()).is_err());
}

#[test]
fn nothing_that_is_denied_is_covered() {
    let mut rule = rule("ls");
    rule.script = Some(Whole { text: "rm -rf x".into(), directory: ".".into(), env: vec![], input: None });
    rule.waives = vec!["destructive.rm-recursive".into()];
    let case = Case::text("rm -rf x");
    rule.commands = vec![Covered {
        credential: None,
        program: "/usr/bin/rm".into(),
        identity: Some("file of /usr/bin/rm".into()),
        arguments: vec![Shape::Is("-rf".into()), Shape::Is("x".into())],
        effects: Effects::ALL,
    }];
    assert!(covering(&[&rule], &case.judged()).is_none());
}

#[test]
fn a_rule_reads_as_what_it_covers() {
    let wish = Script {
        text: "git log 'a b' src/x.rs".into(),
        directory: ".".into(),
        network: true,
        ..Script::default()
    };
    let rule = widest(suggest(&Case::new(wish).judged()).unwrap());
    assert!(rule.to_string().ends_with(", with the network"), "{rule}");
    assert!(rule.to_string().starts_with("`/usr/bin/git log 'a b' "), "{rule}");
}

#[test]
fn always_offers_the_very_command_before_any_path() {
    let widths = |text: &str| {
        let rules = suggest(&Case::text(text).judged()).unwrap();
        rules.into_iter().map(|(width, rule)| format!("{width} {rule}")).collect::<Vec<_>>()
    };
    assert_eq!(
        widths("cat -n src/a.rs"),
        ["exact `/usr/bin/cat -n src/a.rs`", "paths `/usr/bin/cat -n <any path of the workspace>`"]
    );
    assert_eq!(widths("git status"), ["exact `/usr/bin/git status`"], "no argument is a path");
    // Another path would be other code.
    for text in ["python3 x.py", "make -f other.mk", "cargo test --manifest-path a/Cargo.toml", "sh ./x.sh"] {
        assert_eq!(widths(text).len(), 1, "{text}");
    }
}
