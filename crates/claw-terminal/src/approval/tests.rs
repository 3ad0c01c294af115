use std::io::Cursor;

use serde_json::json;

use super::{AnswerScope, ApprovalAnswer, ApprovalPrompt, PromptInput, ask, choices, show};

fn prompt(summary: &str) -> ApprovalPrompt {
    ApprovalPrompt {
        tool: "exec".to_owned(),
        effects: "execute".to_owned(),
        reason: "`approvals.effects.execute` says ask".to_owned(),
        summary: summary.to_owned(),
        wait_secs: 120,
        ..ApprovalPrompt::default()
    }
}

fn answer(prompt: &ApprovalPrompt, typed: &str) -> (ApprovalAnswer, String) {
    let mut shown = Vec::new();
    let said = ask(prompt, &|_| Ok(()), &mut Cursor::new(typed), &mut shown).unwrap();
    (said, String::from_utf8(shown).unwrap())
}

#[track_caller]
fn check(typed: &str, yes: bool) {
    let (said, shown) = answer(&prompt("run"), typed);
    assert_eq!(said == ApprovalAnswer::Once, yes, "{shown}");
    assert!(!matches!(said, ApprovalAnswer::Always { .. }));
}

#[test]
fn only_a_clear_yes_is_one() {
    check("y\n", true);
    check(" YES \n", true);
    check("n\n", false);
    check("", false);
    check("\n\n\n", false);
    check("maybe\ny\n", true);
    check("a\nb\nc\ny\n", false);
    check("yess\nyep\nyy\n", false);
}

#[test]
fn a_wide_line_breaks_between_words_and_shows_that_it_goes_on() {
    let mut shown = Vec::new();
    let long = show("cargo test --workspace --all-features\n  && echo done", Some(30), &mut shown).unwrap();
    assert!(!long);
    let expected = "  what     cargo test\n         ↪ --workspace\n         ↪ --all-features\n             && echo done\n";
    assert_eq!(String::from_utf8(shown).unwrap(), expected);
    let mut shown = Vec::new();
    let prompt = ApprovalPrompt { rules: vec!["one".to_owned(), "two".to_owned()], ..prompt("run") };
    choices(&prompt, false, Some(40), &mut shown).unwrap();
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.lines().all(|line| line.chars().count() <= 40), "{shown}");
}

#[test]
fn a_long_question_can_be_seen_whole() {
    let script: Vec<String> = (1..=500).map(|at| format!("step {at}")).collect();
    let prompt = prompt(&script.join("\n"));
    let (_, first) = answer(&prompt, "n\n");
    assert!(
        first.contains("step 50\n") && first.contains("step 500\n") && !first.contains("step 51\n"),
        "{first}"
    );
    assert!(
        first.contains("[440 lines left out; `v` shows the whole]") && first.contains("[v]iew whole"),
        "{first}"
    );
    let (said, whole) = answer(&prompt, "v\ny\n");
    assert_eq!(said, ApprovalAnswer::Once);
    assert!(script.iter().all(|line| whole.contains(&format!("{line}\n"))), "{whole}");
}

#[test]
fn always_offers_its_rules_as_a_list() {
    let (exact, paths) = ("`/usr/bin/cat a.txt`", "`/usr/bin/cat <any path of the workspace>`");
    let said = |rules: &[&str], typed: &str| {
        let rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
        answer(&ApprovalPrompt { rules, ..prompt("run") }, typed)
    };
    let always = |scope, rule| ApprovalAnswer::Always { scope, rule };
    let (answer, shown) = said(&[exact], "a\n");
    assert_eq!(answer, always(AnswerScope::Agent, 0));
    let choices = "\
  what     run
  [y]es      this once
  [s]ession  yes, and in this session do not ask again about
  [a]lways   yes, and in every session of this agent do not ask again about
               `/usr/bin/cat a.txt`
  [n]o       refuse it; words after `n` tell the agent why
Your answer, within 120 s: ";
    assert!(shown.ends_with(choices), "{shown}");
    let (answer, shown) = said(&[exact, paths], "s2\n");
    assert_eq!(answer, always(AnswerScope::Session, 1));
    let choices = "\
  [a]lways   yes, and in every session of this agent do not ask again about
               1  `/usr/bin/cat a.txt`
               2  `/usr/bin/cat <any path of the workspace>`
             (`s2` or `a2` chooses line 2; `s` or `a` alone is line 1)
  [n]o       refuse it; words after `n` tell the agent why
";
    assert!(shown.contains(choices), "{shown}");
    assert_eq!(said(&[exact, paths], "s\n").0, always(AnswerScope::Session, 0));
    for wrong in ["a3\nx\nx\n", "a0\n", "aa\n", "a 1 2\n", "s99999999999999999999999\n"] {
        assert_eq!(said(&[exact, paths], wrong).0, ApprovalAnswer::No(None), "{wrong}");
    }
    assert_eq!(said(&[], "a\n").0, ApprovalAnswer::No(None), "there is no rule");
    let why = ApprovalAnswer::No(Some("it is late".to_owned()));
    assert_eq!(said(&[exact], "no, it is late\n").0, why);
}

#[test]
fn says_what_it_is_about() {
    let (_, shown) = answer(&prompt("run in /work:\nrm -r build\narguments: {}"), "n\n");
    let expected = "
`exec` needs your approval
  effects  execute
  why      `approvals.effects.execute` says ask
  what     run in /work:
           rm -r build
           arguments: {}
[y]es once / [n]o, or no and why, within 120 s: ";
    assert_eq!(shown, expected);
}

#[test]
fn values_are_asked_for_field_by_field() {
    let schema = json!({
        "properties": { "name": { "type": "string" }, "loud": { "type": "boolean", "default": false } },
        "required": ["name"],
    });
    let input = Some(PromptInput::Form(schema));
    let prompt = ApprovalPrompt { input, ..prompt("a server asks") };
    let (said, shown) = answer(&prompt, "g\ny\nann\n");
    let values = json!({ "loud": true, "name": "ann" });
    assert_eq!(said, ApprovalAnswer::Values(values.as_object().unwrap().clone()), "{shown}");
    assert!(shown.contains("loud (boolean; empty for false): "), "{shown}");
    assert!(shown.contains("name (string; required): "), "{shown}");
    assert_eq!(answer(&prompt, "d\n").0, ApprovalAnswer::Dismissed);
    assert_eq!(answer(&prompt, "").0, ApprovalAnswer::Dismissed);
}

#[test]
fn refuses_a_call_that_rewrites_its_own_question() {
    let (_, shown) = answer(&prompt("harmless\u{1b}[1A\u{1b}[2K\rread a file"), "n\n");
    assert!(!shown.contains(['\u{1b}', '\r']), "{shown:?}");
}
