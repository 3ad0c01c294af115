use std::io::Cursor;
use std::time::Duration;

use claw_core::port::UnixMillis;
use claw_core::store::{Approval, ApprovalState, NewApproval, Suggestion};
use claw_core::tool::{Digest, Effect, Effects};
use claw_core::{AgentId, ApprovalId, CallId, SessionKey, TenantId, ToolName};

use super::{Question, Said, ask, how_ended};

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
        },
        state: ApprovalState::Pending,
        answered_by: None,
        reason: None,
    }
}

#[track_caller]
fn check(typed: &str, yes: bool) {
    let mut shown = Vec::new();
    let answer = ask(&Question::from(&question("run")), &mut Cursor::new(typed), &mut shown).unwrap();
    assert_eq!(answer == Said::Once, yes, "{}", String::from_utf8_lossy(&shown));
    assert_ne!(answer, Said::Always);
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
    ask(&Question::from(&question), &mut Cursor::new("n\n"), &mut shown).unwrap();
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
    assert_eq!(ask(&Question::from(&question), &mut Cursor::new("v\ny\n"), &mut shown).unwrap(), Said::Once);
    let whole = String::from_utf8(shown).unwrap();
    assert!(script.iter().all(|line| whole.contains(&format!("{line}\n"))), "{whole}");
}

#[test]
fn always_is_an_answer_where_there_is_a_rule() {
    let mut question = question("run");
    let text = "`/usr/bin/git status`".to_owned();
    let mut said = |rule: Option<serde_json::Value>| {
        question.request.remember = Some(Suggestion { rule, text: text.clone() });
        let mut shown = Vec::new();
        let said = ask(&Question::from(&question), &mut Cursor::new("a\n"), &mut shown).unwrap();
        (said, String::from_utf8(shown).unwrap())
    };
    let (answer, shown) = said(Some(serde_json::json!({})));
    assert_eq!(answer, Said::Always);
    assert!(
        shown.contains("always   in this session, `/usr/bin/git status`\n[y]es once / [a]lways / [n]o"),
        "{shown}"
    );
    assert_eq!(said(None).0, Said::No(None));
}

#[test]
fn says_what_it_is_about() {
    let mut shown = Vec::new();
    let question = question("run in /work:\nrm -r build\narguments: {}");
    ask(&Question::from(&question), &mut Cursor::new("n\n"), &mut shown).unwrap();
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
    ask(&Question::from(&question), &mut Cursor::new("n\n"), &mut shown).unwrap();
    let shown = String::from_utf8(shown).unwrap();
    assert!(!shown.contains(['\u{1b}', '\r']), "{shown:?}");
}

#[test]
fn says_how_a_question_ended_without_its_answer() {
    let mut question = question("run");
    let (early, late) = (UnixMillis(2_000), UnixMillis(500_000));
    assert_eq!(how_ended(Some(&question), early), None);
    // Whoever asked may be gone: nobody closes it then.
    let expired = "the question expired: nobody answered within 120 s";
    assert_eq!(how_ended(Some(&question), late).as_deref(), Some(expired));
    assert_eq!(how_ended(None, early).as_deref(), Some("the question is withdrawn"));
    let mut said = |state, by: Option<&str>| {
        question.state = state;
        question.answered_by = by.map(str::to_owned);
        how_ended(Some(&question), early).unwrap()
    };
    assert_eq!(said(ApprovalState::Expired, None), expired);
    assert_eq!(said(ApprovalState::Used, Some("ann")), "answered elsewhere: ann said yes");
    assert_eq!(said(ApprovalState::Denied, Some("a\u{1b}nn")), "answered elsewhere: a\u{241b}nn said no");
    assert_eq!(said(ApprovalState::Cancelled, None), "the question is withdrawn: the call was given up");
}
