use claw_core::tool::Script;

use super::*;

fn circumstances(scope: &Scope) -> Circumstances<'_> {
    Circumstances { ceiling: Effects::ALL, left: Effects::ALL, directory: Path::new("/w"), scope }
}

fn script() -> Plan {
    Plan::script(Script { text: "ls".into(), directory: "/w".into(), env: Vec::new() })
}

#[track_caller]
fn check(config: &ApprovalConfig, plan: &Plan, expected: &str) {
    let scope = Scope::workspace("/w");
    let got = match judge(config, plan, &circumstances(&scope)) {
        Judgement::Allow => "allow".to_owned(),
        Judgement::Ask { reason } => format!("ask: {reason}"),
        Judgement::Deny { reason, .. } => format!("deny: {reason}"),
    };
    assert_eq!(got, expected);
}

fn config(ask: AskMode, effects: &[(Effect, EffectRule)]) -> ApprovalConfig {
    ApprovalConfig { ask, effects: effects.iter().copied().collect(), wait_secs: 120 }
}

const UNCOVERED: &str = "the command is not covered by any rule, so nothing shows what it would do";

#[test]
fn reads_and_writes_inside_the_scope_run() {
    check(&ApprovalConfig::default(), &Plan::read(), "allow");
    check(&ApprovalConfig::default(), &Plan::write("a/b.txt"), "allow");
    check(&ApprovalConfig::default(), &Plan::opaque(Effects::ALL), "allow");
}

#[test]
fn writes_outside_the_scope_are_denied_even_if_people_could_be_asked() {
    check(
        &config(AskMode::Always, &[]),
        &Plan::write("../etc/passwd"),
        "deny: `../etc/passwd` is outside the workspace",
    );
}

#[test]
fn commands_are_asked_and_refused_where_nobody_is_asked() {
    check(&ApprovalConfig::default(), &script(), &format!("ask: {UNCOVERED}"));
    check(&config(AskMode::Off, &[]), &script(), &format!("deny: {UNCOVERED}, and `approvals.ask` is `off`"));
}

#[test]
fn effect_rules_hold_for_every_plan() {
    let ask = config(AskMode::OnMiss, &[(Effect::Message, EffectRule::Ask)]);
    check(&ask, &Plan::opaque(Effects::of(&[Effect::Message])), "ask: `approvals.effects.message` says ask");
    check(&ask, &Plan::read(), "allow");
    let deny =
        config(AskMode::OnMiss, &[(Effect::Execute, EffectRule::Deny), (Effect::Read, EffectRule::Ask)]);
    check(&deny, &script(), "deny: `approvals.effects.execute` says deny");
}

#[test]
fn always_asks_before_everything_but_reading() {
    let always = config(AskMode::Always, &[]);
    check(&always, &Plan::read(), "allow");
    check(&always, &Plan::write("a"), "ask: `approvals.ask` is `always`");
}

#[test]
fn refuses_a_plan_beyond_its_ceiling_or_what_the_policy_left() {
    let scope = Scope::workspace("/w");
    let read = Effects::of(&[Effect::Read]);
    let plan = Plan::write("a");
    let ceiling = Circumstances { ceiling: read, left: read, ..circumstances(&scope) };
    assert!(matches!(judge(&ApprovalConfig::default(), &plan, &ceiling), Judgement::Deny { .. }));
    let left = Circumstances { left: read, ..circumstances(&scope) };
    assert!(matches!(judge(&ApprovalConfig::default(), &plan, &left), Judgement::Deny { .. }));
}

#[test]
fn a_plan_owns_up_to_what_it_asks_for() {
    let deny = |effect| config(AskMode::OnMiss, &[(effect, EffectRule::Deny)]);
    let quiet = |plan: Plan| Plan { effects: Effects::NONE, ..plan };
    check(&deny(Effect::Write), &quiet(Plan::write("a")), "deny: `approvals.effects.write` says deny");
    check(&deny(Effect::Execute), &quiet(script()), "deny: `approvals.effects.execute` says deny");
    check(
        &deny(Effect::Spend),
        &quiet(Plan::opaque(Effects::NONE)),
        "deny: `approvals.effects.spend` says deny",
    );
}
