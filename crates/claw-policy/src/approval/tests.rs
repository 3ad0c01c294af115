use claw_core::port::WorkspaceAccess;
use claw_core::tool::{Plan, Script};

use super::*;

fn circumstances<'a>(scope: &'a Scope, analysis: &'a Analysis) -> Circumstances<'a> {
    let directory = Path::new("/w");
    Circumstances {
        ceiling: Effects::ALL,
        left: Effects::ALL,
        directory,
        scope,
        asked: &[],
        sandboxed: true,
        analysis,
        sights: &[],
    }
}

fn analysis(plan: &Plan) -> Analysis {
    Analysis::of(plan, &crate::shell::Rules::default(), false, &[], |_, _| None)
}

fn script() -> Plan {
    running("ls")
}

fn running(text: &str) -> Plan {
    Plan::script(Script { text: text.into(), directory: "/w".into(), ..Script::default() })
}

#[track_caller]
fn check(config: &ApprovalConfig, plan: &Plan, expected: &str) {
    let scope = Scope::workspace("/w");
    let got = match judge(config, &circumstances(&scope, &analysis(plan))) {
        Judgement::Allow => "allow".to_owned(),
        Judgement::Ask { reason } => format!("ask: {reason}"),
        Judgement::Deny { reason, .. } => format!("deny: {reason}"),
    };
    assert_eq!(got, expected);
}

fn config(ask: AskMode, effects: &[(Effect, EffectRule)]) -> ApprovalConfig {
    ApprovalConfig { ask, effects: effects.iter().copied().collect(), ..ApprovalConfig::default() }
}

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

const PATH: &str = "rule `environment.path`: changes `PATH`, where programs are searched, in `PATH=/x ls`";

#[test]
fn commands_are_judged_by_what_the_analysis_says() {
    let open = ApprovalConfig::default();
    check(&open, &script(), "allow");
    check(&open, &running("PATH=/x ls"), &format!("ask: {PATH}"));
    check(
        &config(AskMode::Off, &[]),
        &running("PATH=/x ls"),
        &format!("deny: {PATH}, and `approvals.ask` is `off`"),
    );
    let denied = "deny: rule `destructive.rm-recursive`: deletes whole directories without confirmation, in \
                  `rm -rf x`";
    check(&open, &running("ls; rm -rf x"), denied);
    check(&config(AskMode::Always, &[]), &running("rm -rf x"), denied);
    check(&config(AskMode::Always, &[]), &script(), "ask: `approvals.ask` is `always`");
}

#[test]
fn a_remembered_answer_settles_the_question_of_a_mode_and_not_that_of_the_configuration() {
    let edits = Narrowing { mode: "edits".into(), effects: [(Effect::Execute, EffectRule::Ask)].into() };
    let scope = Scope::workspace("/w");
    let judged = |config: &ApprovalConfig, plan: &Plan, covered: bool| {
        let analysis = analysis(plan).with_all_covered(covered);
        judge(config, &circumstances(&scope, &analysis))
    };
    let mode = ApprovalConfig::default().narrowed(edits.clone());
    let asked = Judgement::Ask { reason: "the mode `edits` says ask".to_owned() };
    assert_eq!(judged(&mode, &script(), false), asked);
    assert_eq!(judged(&mode, &script(), true), Judgement::Allow);
    // No rule covers a tool that may do anything.
    assert_eq!(judged(&mode, &Plan::opaque(Effects::ALL), true), asked);
    let configured = config(AskMode::OnMiss, &[(Effect::Execute, EffectRule::Ask)]).narrowed(edits);
    let asked = Judgement::Ask { reason: "`approvals.effects.execute` says ask".to_owned() };
    assert_eq!(judged(&configured, &script(), true), asked);
    let plan = Narrowing { mode: "plan".into(), effects: [(Effect::Execute, EffectRule::Deny)].into() };
    let denied = judged(&ApprovalConfig::default().narrowed(plan), &script(), true);
    assert!(matches!(denied, Judgement::Deny { .. }), "{denied:?}");
}

#[test]
fn security_decides_about_what_no_rule_is_against() {
    let with = |security| ApprovalConfig { security, ..ApprovalConfig::default() };
    check(&with(Security::Deny), &script(), "deny: `approvals.security` is `deny`, so no command runs");
    let uncovered = "ask: `approvals.security` is `allowlist`, and no rule covers the command";
    check(&with(Security::Allowlist), &script(), uncovered);
}

#[test]
fn wishing_for_the_network_is_asked_unless_it_is_on() {
    let script = Script { text: "ls".into(), directory: "/w".into(), network: true, ..Script::default() };
    let plan = Plan::script(script);
    check(&ApprovalConfig::default(), &plan, "ask: the command requests network access (`network: true`)");
    let scope = Scope::workspace("/w");
    let on = Analysis { network: true, ..analysis(&plan) };
    assert_eq!(judge(&ApprovalConfig::default(), &circumstances(&scope, &on)), Judgement::Allow);
}

#[test]
fn refuses_a_directory_outside_and_a_host_that_could_do_what_was_taken() {
    let script = Script { text: "ls".into(), directory: "../x".into(), ..Script::default() };
    check(&ApprovalConfig::default(), &Plan::script(script), "deny: `../x` is outside the workspace");
    let (scope, plan) = (Scope::workspace("/w"), running("ls"));
    let commands = analysis(&plan);
    let left = Effects::ALL.without(Effects::of(&[Effect::Write]));
    let inside = Circumstances { left, ..circumstances(&scope, &commands) };
    assert_eq!(judge(&ApprovalConfig::default(), &inside), Judgement::Allow);
    let host = Circumstances { sandboxed: false, ..inside };
    assert!(matches!(judge(&ApprovalConfig::default(), &host), Judgement::Deny { .. }));
}

#[test]
fn effect_rules_hold_for_what_commands_do() {
    let ask = config(AskMode::OnMiss, &[(Effect::Write, EffectRule::Ask)]);
    check(&ask, &running("touch x"), "ask: `approvals.effects.write` says ask");
    check(&ask, &running("ls"), "allow");
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
    let writing = analysis(&Plan::write("a"));
    let ceiling = Circumstances { ceiling: read, left: read, ..circumstances(&scope, &writing) };
    assert!(matches!(judge(&ApprovalConfig::default(), &ceiling), Judgement::Deny { .. }));
    let left = Circumstances { left: read, ..circumstances(&scope, &writing) };
    assert!(matches!(judge(&ApprovalConfig::default(), &left), Judgement::Deny { .. }));
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

#[test]
fn publishing_a_skill_is_asked_about_unless_the_configuration_says_otherwise() {
    let publish =
        |path: &str| Plan::read().with(Effect::Write).asking(Ask::Publish { path: path.to_owned() });
    let asked = "other agents follow a published skill, and `approvals.publish` says ask";
    let with = |publish| ApprovalConfig { publish, ..ApprovalConfig::default() };
    check(&ApprovalConfig::default(), &publish("skills/x"), &format!("ask: {asked}"));
    check(
        &config(AskMode::Off, &[]),
        &publish("skills/x"),
        &format!("deny: {asked}, and `approvals.ask` is `off`"),
    );
    check(&with(EffectRule::Allow), &publish("skills/x"), "allow");
    check(&with(EffectRule::Deny), &publish("skills/x"), "deny: `approvals.publish` says deny");
    check(&with(EffectRule::Allow), &publish("../x"), "deny: `../x` is outside the workspace");
}

#[test]
fn a_command_that_prints_a_configuration_file_is_known() {
    for text in [
        "cat .env",
        "cd app && head -5 conf/my.cnf",
        "grep -n pass *.yml",
        "git show HEAD:.env",
        "sed -n 1p a.ini",
        // The file is read by a redirection.
        "cat < .env",
        "cat 0<.env",
        "tee < config/my.cnf",
        "head -c 20 <app.toml | rev",
        "cat <> .env",
        "python3 -c 'import sys; print(sys.stdin.read())' < .env",
        "while read line; do echo \"$line\"; done < .env",
        "{ cat; } < .env",
        "echo \"$(< .env)\"",
        "exec 3< .env; cat <&3",
        "mapfile -t lines < .env; printf '%s\\n' \"${lines[@]}\"",
        "cat <<< \"$(cat .env)\"",
        "f=.env; cat < \"$f\"",
        "bash -c 'cat < .env'",
        // Its name is found at run time.
        "find . -name .env -exec cat {} +",
        "find . -name '*.yml' | xargs cat",
        "for f in $(git ls-files '*.toml'); do cat \"$f\"; done",
        "git show HEAD~1:./.env",
        "git diff HEAD -- .env",
        "git log -p .env",
    ] {
        assert!(analysis(&running(text)).prints_settings(), "{text}");
    }
    for text in [
        "cat main.rs",
        "cat < main.rs",
        "cargo test --manifest-path Cargo.toml",
        "cargo test --manifest-path Cargo.toml | head -20",
        "python3 app.py config.yaml",
        "ls",
        "cat <<< .env",
        "cat > .env",
        "for f in src/*.rs; do cat \"$f\"; done",
    ] {
        assert!(!analysis(&running(text)).prints_settings(), "{text}");
    }
}

#[test]
fn a_program_that_can_write_a_file_runs_on_a_layer_whatever_its_options() {
    let access = |text: &str| analysis(&running(text)).access();
    for text in
        ["ls -l", "grep -r x . | head", "cat a b", "git diff HEAD", "diff a b", "jq . a.json", "wc -l < a"]
    {
        assert_eq!(access(text), WorkspaceAccess::ReadOnly, "{text}");
    }
    for text in [
        "sort a",
        "sort -o b a",
        "tree",
        "tree -o b",
        "file -C -m magic",
        "uniq a b",
        "xxd -r a b",
        "find . -fprint b",
        "awk '{print > \"b\"}' a",
        "git diff --output=b",
        "git -C . diff",
        "less -o b a",
        "python3 -c 'print(1)'",
        "ls > b",
        "ls; sort a",
        "$X a",
    ] {
        assert_eq!(access(text), WorkspaceAccess::Layer, "{text}");
    }
}
