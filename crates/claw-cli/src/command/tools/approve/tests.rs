use std::io::Cursor;
use std::time::Duration;

use claw_core::port::UnixMillis;
use claw_core::store::{Approval, ApprovalState, NewApproval, RuleWidth, Suggestion, Suggestions};
use claw_core::tool::{Digest, Effect, Effects};
use claw_core::{AgentId, ApprovalId, CallId, SessionKey, TenantId, ToolName};
use clawsmith::app::RuleFor;
use clawsmith::app::question::{Question, how_ended};

use super::{Said, ask};

fn question(summary: &str) -> Approval {
    let asked = UnixMillis(1_000);
    Approval {
        id: ApprovalId::new(),
        request: NewApproval {
            tenant: TenantId::main(),
            session: SessionKey::new("cli:me").unwrap(),
            agent: AgentId::new("default").unwrap(),
            user: None,
            call: CallId::new(),
            run: None,
            digest: Digest::of_bytes(b""),
            tool: ToolName::literal("exec"),
            effects: Effects::of(&[Effect::Execute]),
            summary: summary.to_owned(),
            reason: "`approvals.effects.execute` says ask".to_owned(),
            asked,
            expires: asked.plus(Duration::from_secs(120)),
            remember: None,
            directories: Vec::new(),
            input: None,
        },
        state: ApprovalState::Pending,
        answered_by: None,
        reason: None,
    }
}

#[track_caller]
fn check(typed: &str, yes: bool) {
    let mut shown = Vec::new();
    let answer =
        ask(&Question::from(&question("run")), &|_| Ok(()), &mut Cursor::new(typed), &mut shown).unwrap();
    assert_eq!(answer == Said::Once, yes, "{}", String::from_utf8_lossy(&shown));
    assert!(!matches!(answer, Said::Always { .. }));
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
fn a_long_question_can_be_seen_whole() {
    let script: Vec<String> = (1..=500).map(|at| format!("step {at}")).collect();
    let mut shown = Vec::new();
    let question = question(&script.join("\n"));
    ask(&Question::from(&question), &|_| Ok(()), &mut Cursor::new("n\n"), &mut shown).unwrap();
    let first = String::from_utf8(shown).unwrap();
    assert!(
        first.contains("step 50\n") && first.contains("step 500\n") && !first.contains("step 51\n"),
        "{first}"
    );
    assert!(
        first.contains("[440 more lines; `v` shows the whole]") && first.contains("[v]iew whole"),
        "{first}"
    );
    let mut shown = Vec::new();
    assert_eq!(
        ask(&Question::from(&question), &|_| Ok(()), &mut Cursor::new("v\ny\n"), &mut shown).unwrap(),
        Said::Once
    );
    let whole = String::from_utf8(shown).unwrap();
    assert!(script.iter().all(|line| whole.contains(&format!("{line}\n"))), "{whole}");
}

#[test]
fn always_offers_its_widths_as_a_list() {
    let rule = |width, text: &str| Suggestion { width, rule: serde_json::json!({}), text: text.to_owned() };
    let exact = rule(RuleWidth::Exact, "`/usr/bin/cat a.txt`");
    let paths = rule(RuleWidth::Paths, "`/usr/bin/cat <any path of the workspace>`");
    let said = |rules: &[&Suggestion], typed: &str| {
        let mut question = question("run");
        let rules = rules.iter().map(|rule| (*rule).clone()).collect();
        question.request.remember = Some(Suggestions { rules, impossible: None });
        let mut shown = Vec::new();
        let said = ask(&Question::from(&question), &|_| Ok(()), &mut Cursor::new(typed), &mut shown).unwrap();
        (said, String::from_utf8(shown).unwrap())
    };
    let (answer, shown) = said(&[&exact], "a\n");
    assert_eq!(answer, Said::Always { scope: RuleFor::Agent, width: RuleWidth::Exact });
    let choice = "[y]es once / yes in this [s]ession / [a]lways / [n]o";
    assert!(shown.contains(&format!("always   `/usr/bin/cat a.txt`\n{choice}")), "{shown}");
    let both = [&exact, &paths];
    let (answer, shown) = said(&both, "s2\n");
    assert_eq!(answer, Said::Always { scope: RuleFor::Session, width: RuleWidth::Paths });
    assert!(
        shown.contains(
            "  always   1  `/usr/bin/cat a.txt`\n           2  `/usr/bin/cat <any path of the workspace>`\n"
        ),
        "{shown}"
    );
    assert_eq!(said(&both, "s\n").0, Said::Always { scope: RuleFor::Session, width: RuleWidth::Exact });
    for wrong in ["a3\nx\nx\n", "a0\n", "aa\n", "a 1 2\n", "s99999999999999999999999\n"] {
        assert_eq!(said(&both, wrong).0, Said::No(None), "{wrong}");
    }
    assert_eq!(said(&[], "a\n").0, Said::No(None), "there is no rule");
}

#[test]
fn says_what_it_is_about() {
    let mut shown = Vec::new();
    let question = question("run in /work:\nrm -r build\narguments: {}");
    ask(&Question::from(&question), &|_| Ok(()), &mut Cursor::new("n\n"), &mut shown).unwrap();
    insta::assert_snapshot!(String::from_utf8(shown).unwrap(), @r"

    `exec` needs your approval
      effects  execute
      why      `approvals.effects.execute` says ask
      what     run in /work:
               rm -r build
               arguments: {}
    [y]es once / [n]o, or no and why, within 120 s:
    ");
}

#[test]
fn refuses_a_call_that_rewrites_its_own_question() {
    let mut shown = Vec::new();
    let question = question("harmless\u{1b}[1A\u{1b}[2K\rread a file");
    ask(&Question::from(&question), &|_| Ok(()), &mut Cursor::new("n\n"), &mut shown).unwrap();
    let shown = String::from_utf8(shown).unwrap();
    assert!(!shown.contains(['\u{1b}', '\r']), "{shown:?}");
}

#[test]
fn says_how_a_question_ended_without_its_answer() {
    let mut question = question("run");
    let (early, late) = (UnixMillis(2_000), UnixMillis(500_000));
    assert_eq!(how_ended(Some(&question), early), None);
    // The asking program may be gone: nobody closes it then.
    let expired = "the approval expired: nobody answered within 120 s";
    assert_eq!(how_ended(Some(&question), late).as_deref(), Some(expired));
    assert_eq!(how_ended(None, early).as_deref(), Some("the approval was withdrawn"));
    let mut said = |state, by: Option<&str>| {
        question.state = state;
        question.answered_by = by.map(str::to_owned);
        // As standard error shows it.
        claw_terminal::visible(&how_ended(Some(&question), early).unwrap()).into_owned()
    };
    assert_eq!(said(ApprovalState::Expired, None), expired);
    assert_eq!(said(ApprovalState::Used, Some("ann")), "answered elsewhere: ann said yes");
    assert_eq!(said(ApprovalState::Denied, Some("a\u{1b}nn")), "answered elsewhere: a\u{241b}nn said no");
    assert_eq!(said(ApprovalState::Cancelled, None), "the approval was withdrawn: the call was given up");
}
