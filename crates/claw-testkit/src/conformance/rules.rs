//! The suite of [`Rules`]: given once, for certain callers, until they end.

use std::sync::Arc;
use std::time::Duration;

use claw_core::port::UnixMillis;
use claw_core::store::{
    Answer, Approval, ApprovalState, Approvals, NewApproval, NewRule, Rule, RuleScope, Rules, StoreError,
    Topic,
};
use claw_core::{AgentId, ApprovalId, CallId, TenantId, ToolName};
use serde_json::json;

use crate::fixture::{NOW, agent, question, rule, session, tenant};

const MANY: u64 = 32;

/// Runs the suite of rules; `make` creates an empty store.
pub async fn rules<S: Rules + Approvals + 'static>(make: impl AsyncFn() -> S) {
    gives_a_rule_back_as_it_was_given(make().await).await;
    puts_a_rule_once(make().await).await;
    gives_the_rules_that_apply(make().await).await;
    lets_a_rule_end_to_the_millisecond(make().await).await;
    revokes_a_rule_for_good(make().await).await;
    counts_the_uses_of_a_live_rule(make().await).await;
    gives_a_rule_with_a_yes(make().await).await;
    gives_no_rule_where_the_answer_does_not_count(make().await).await;
    refuses_a_rule_that_reaches_past_who_asked(make().await).await;
    keeps_the_rules_of_tenants_apart(make().await).await;
    tells_of_rules(make().await).await;
    loses_none_of_many_uses_at_once(make().await).await;
    lets_one_of_many_answers_give_its_rule(make().await).await;
    lets_no_use_follow_a_revocation(make().await).await;
}

async fn gives_a_rule_back_as_it_was_given(store: impl Rules) {
    let given = json!({
        "program": "/usr/bin/git", "arguments": ["status", "naïve \u{0} \u{1f980}"],
        "numbers": [0, -1, u64::MAX, i64::MIN, 0.1], "scope": "its own", "nested": { "agent": null },
    });
    let scopes = [
        RuleScope::Session { agent: agent(), session: session("agent:main:telegram:42") },
        RuleScope::Agent { agent: agent() },
        RuleScope::Tenant,
    ];
    for (n, scope) in scopes.into_iter().enumerate() {
        let new = NewRule {
            scope,
            rule: given.clone(),
            text: "git status \u{0} in `here`".to_owned(),
            by: "ann\u{0}".to_owned(),
            approval: (n == 0).then(ApprovalId::new),
            created: UnixMillis([-1, 0, 253_402_300_799_999][n]),
            expires: (n > 0).then_some(UnixMillis(i64::MAX)),
            ..rule()
        };
        store.put_rule(new.clone()).await.unwrap();
        let expected = Rule { new, uses: 0, last_used: None, revoked: None };
        assert_eq!(store.all_rules(&TenantId::main()).await.unwrap()[n], expected);
    }
}

async fn puts_a_rule_once(store: impl Rules) {
    let first = rule();
    store.put_rule(first.clone()).await.unwrap();
    store.use_rule(&TenantId::main(), first.id, NOW).await.unwrap();
    store
        .put_rule(NewRule { scope: RuleScope::Tenant, text: "rm".to_owned(), ..first.clone() })
        .await
        .unwrap();
    let found = one(&store).await;
    assert_eq!((found.new, found.uses), (first, 1), "the first one stands");
}

async fn gives_the_rules_that_apply(store: impl Rules) {
    let other = AgentId::new("other").unwrap();
    let (me, you) = (session("cli:me"), session("cli:you"));
    let scopes = [
        RuleScope::Tenant,
        RuleScope::Agent { agent: agent() },
        RuleScope::Agent { agent: other.clone() },
        RuleScope::Session { agent: agent(), session: me.clone() },
        RuleScope::Session { agent: agent(), session: you.clone() },
        RuleScope::Session { agent: other.clone(), session: me.clone() },
    ];
    // The younger ones first: the order is that of being given.
    for (n, scope) in scopes.into_iter().enumerate().rev() {
        let created = UnixMillis(NOW.0 + n as i64);
        store.put_rule(NewRule { scope, created, ..rule() }).await.unwrap();
    }
    let apply = async |agent: &AgentId, session| {
        let found = store.rules(&TenantId::main(), agent, session, NOW).await.unwrap();
        found.iter().map(|rule| rule.new.created.0 - NOW.0).collect::<Vec<_>>()
    };
    assert_eq!(apply(&agent(), &me).await, [0, 1, 3]);
    assert_eq!(apply(&agent(), &you).await, [0, 1, 4]);
    assert_eq!(apply(&other, &me).await, [0, 2, 5]);
    assert_eq!(apply(&other, &you).await, [0, 2]);
    assert_eq!(apply(&AgentId::new("third").unwrap(), &me).await, [0]);
    let all = store.all_rules(&TenantId::main()).await.unwrap();
    assert_eq!(all.iter().map(|rule| rule.new.created.0 - NOW.0).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
}

async fn lets_a_rule_end_to_the_millisecond(store: impl Rules) {
    let (main, end) = (TenantId::main(), NOW.plus(Duration::from_millis(5)));
    let last = UnixMillis(end.0 - 1);
    let new = NewRule { expires: Some(end), ..rule() };
    store.put_rule(new.clone()).await.unwrap();
    assert_eq!(applying(&store, last).await, 1);
    assert_eq!(applying(&store, end).await, 0);
    store.use_rule(&main, new.id, last).await.unwrap();
    check_state(store.use_rule(&main, new.id, end).await, "expired");
    let found = one(&store).await;
    assert_eq!((found.uses, found.last_used, found.state(end)), (1, Some(last), "expired"));
}

async fn revokes_a_rule_for_good(store: impl Rules) {
    let (main, new) = (TenantId::main(), rule());
    check_state(store.revoke_rule(&main, new.id, NOW).await, "missing");
    store.put_rule(new.clone()).await.unwrap();
    let revoked = store.revoke_rule(&main, new.id, NOW).await.unwrap();
    assert_eq!((revoked.revoked, revoked.state(NOW)), (Some(NOW), "revoked"));
    let later = NOW.plus(Duration::from_secs(1));
    assert_eq!(store.revoke_rule(&main, new.id, later).await.unwrap().revoked, Some(NOW), "the first stands");
    check_state(store.use_rule(&main, new.id, NOW).await, "revoked");
    assert_eq!(applying(&store, NOW).await, 0);
    store.put_rule(new).await.unwrap();
    assert_eq!(applying(&store, NOW).await, 0, "putting it again does not bring it back");
    assert_eq!(one(&store).await, revoked, "and it is still shown");
}

async fn counts_the_uses_of_a_live_rule(store: impl Rules) {
    let (main, new) = (TenantId::main(), rule());
    check_state(store.use_rule(&main, new.id, NOW).await, "missing");
    store.put_rule(new.clone()).await.unwrap();
    let (later, earlier) = (NOW.plus(Duration::from_millis(1)), UnixMillis(NOW.0 - 1));
    for (n, (now, last)) in [(NOW, NOW), (later, later), (earlier, later)].into_iter().enumerate() {
        let used = store.use_rule(&main, new.id, now).await.unwrap();
        assert_eq!((used.uses, used.last_used), (n as u64 + 1, Some(last)));
        assert_eq!(one(&store).await, used);
    }
}

async fn gives_a_rule_with_a_yes(store: impl Rules + Approvals) {
    let asked = ask(&store).await;
    let new = NewRule { approval: None, ..rule() };
    let answered = store.answer_with_rule(&TenantId::main(), asked.id, yes(), new.clone()).await.unwrap();
    assert_eq!((answered.state, answered.answered_by.as_deref()), (ApprovalState::Approved, Some("ann")));
    assert_eq!(stands(&store, &asked).await, answered);
    assert_eq!(one(&store).await.new, NewRule { approval: Some(asked.id), ..new }, "it names its question");
    assert_eq!(applying(&store, NOW).await, 1);
}

async fn gives_no_rule_where_the_answer_does_not_count(store: impl Rules + Approvals) {
    let main = TenantId::main();
    let asked = ask(&store).await;
    let late = Answer { at: asked.request.expires, ..yes() };
    check_answer(store.answer_with_rule(&main, asked.id, late, rule()).await, "expired");
    assert_eq!(stands(&store, &asked).await.state, ApprovalState::Expired);

    let asked = ask(&store).await;
    store.answer(&main, asked.id, Answer { approve: false, ..yes() }).await.unwrap();
    check_answer(store.answer_with_rule(&main, asked.id, yes(), rule()).await, "denied");
    check_answer(store.answer_with_rule(&main, ApprovalId::new(), yes(), rule()).await, "missing");

    let asked = ask(&store).await;
    let no = Answer { approve: false, ..yes() };
    let refused = store.answer_with_rule(&main, asked.id, no, rule()).await;
    assert!(matches!(refused, Err(StoreError::Database { transient: false, .. })), "{refused:?}");
    assert_eq!(stands(&store, &asked).await, asked);
    assert_eq!(store.all_rules(&main).await.unwrap(), []);

    let taken = rule();
    store.put_rule(taken.clone()).await.unwrap();
    let refused = store.answer_with_rule(&main, asked.id, yes(), taken).await.unwrap_err().to_string();
    assert!(refused.contains("its id is taken"), "{refused}");
    assert_eq!(stands(&store, &asked).await, asked, "no rule, no answer");
}

async fn refuses_a_rule_that_reaches_past_who_asked(store: impl Rules + Approvals) {
    let (main, asked) = (TenantId::main(), ask(&store).await);
    let other = AgentId::new("other").unwrap();
    for bad in [
        NewRule { tenant: tenant("other"), ..rule() },
        NewRule { scope: RuleScope::Agent { agent: other.clone() }, ..rule() },
        NewRule { scope: RuleScope::Session { agent: other, session: session("cli:me") }, ..rule() },
        NewRule { scope: RuleScope::Session { agent: agent(), session: session("cli:you") }, ..rule() },
        NewRule { tool: ToolName::literal("write_file"), ..rule() },
    ] {
        let refused = store.answer_with_rule(&main, asked.id, yes(), bad).await;
        assert!(matches!(refused, Err(StoreError::Database { transient: false, .. })), "{refused:?}");
    }
    assert_eq!(stands(&store, &asked).await, asked, "nothing was answered");
    assert_eq!(store.all_rules(&main).await.unwrap(), []);
    assert_eq!(store.all_rules(&tenant("other")).await.unwrap(), []);
    let wide = NewRule { scope: RuleScope::Tenant, ..rule() };
    store.answer_with_rule(&main, asked.id, yes(), wide).await.unwrap();
}

async fn keeps_the_rules_of_tenants_apart(store: impl Rules + Approvals) {
    let (main, other) = (TenantId::main(), tenant("other"));
    let ours = NewRule { scope: RuleScope::Tenant, ..rule() };
    store.put_rule(ours.clone()).await.unwrap();
    assert_eq!(store.all_rules(&other).await.unwrap(), []);
    assert_eq!(store.rules(&other, &agent(), &session("cli:me"), NOW).await.unwrap(), []);
    check_state(store.use_rule(&other, ours.id, NOW).await, "missing");
    check_state(store.revoke_rule(&other, ours.id, NOW).await, "missing");
    store
        .put_rule(NewRule { tenant: other.clone(), text: "theirs".to_owned(), ..ours.clone() })
        .await
        .unwrap();
    store.use_rule(&other, ours.id, NOW).await.unwrap();
    store.revoke_rule(&other, ours.id, NOW).await.unwrap();
    assert_eq!(one(&store).await, Rule { new: ours, uses: 0, last_used: None, revoked: None });

    let asked = ask(&store).await;
    let theirs = NewRule { tenant: other.clone(), ..rule() };
    check_answer(store.answer_with_rule(&other, asked.id, yes(), theirs).await, "missing");
    assert_eq!(stands(&store, &asked).await, asked);
    assert_eq!(store.all_rules(&main).await.unwrap().len(), 1);
}

async fn tells_of_rules(store: impl Rules + Approvals) {
    let (main, new, asked) = (TenantId::main(), rule(), ask(&store).await);
    let mut told = store.changes(Topic::Approvals);
    let mut tells = |why: &str| {
        assert!(told.has_changed().unwrap(), "{why} is told");
        told.mark_unchanged();
    };
    store.put_rule(new.clone()).await.unwrap();
    tells("a rule that was given");
    store.revoke_rule(&main, new.id, NOW).await.unwrap();
    tells("a rule that was revoked");
    store.answer_with_rule(&main, asked.id, yes(), rule()).await.unwrap();
    tells("an answer");
}

async fn loses_none_of_many_uses_at_once(store: impl Rules + 'static) {
    let (store, new) = (Arc::new(store), rule());
    store.put_rule(new.clone()).await.unwrap();
    let use_it = |_| {
        let (store, id) = (Arc::clone(&store), new.id);
        tokio::spawn(async move { store.use_rule(&TenantId::main(), id, NOW).await.unwrap().uses })
    };
    let mut counted = Vec::new();
    for used in (0..MANY).map(use_it).collect::<Vec<_>>() {
        counted.push(used.await.unwrap());
    }
    counted.sort_unstable();
    assert_eq!(counted, (1..=MANY).collect::<Vec<_>>());
}

async fn lets_one_of_many_answers_give_its_rule(store: impl Rules + Approvals + 'static) {
    let (store, main) = (Arc::new(store), TenantId::main());
    let asked = ask(&*store).await;
    let answer = |_| {
        let (store, id) = (Arc::clone(&store), asked.id);
        tokio::spawn(
            async move { store.answer_with_rule(&TenantId::main(), id, yes(), rule()).await.is_ok() },
        )
    };
    let mut won = 0;
    for answered in (0..8).map(answer).collect::<Vec<_>>() {
        won += usize::from(answered.await.unwrap());
    }
    assert_eq!((won, store.all_rules(&main).await.unwrap().len()), (1, 1), "one answer, one rule");
}

async fn lets_no_use_follow_a_revocation(store: impl Rules + 'static) {
    let (store, new, main) = (Arc::new(store), rule(), TenantId::main());
    store.put_rule(new.clone()).await.unwrap();
    let use_it = |_| {
        let (store, id) = (Arc::clone(&store), new.id);
        tokio::spawn(async move { store.use_rule(&TenantId::main(), id, NOW).await.is_ok() })
    };
    let uses = (0..MANY).map(use_it).collect::<Vec<_>>();
    let revoked = store.revoke_rule(&main, new.id, NOW).await.unwrap();
    let mut used = 0;
    for one in uses {
        used += u64::from(one.await.unwrap());
    }
    let found = one(&*store).await;
    assert_eq!((found.uses, found.uses), (used, revoked.uses), "what was counted was counted before");
}

async fn ask(store: &impl Approvals) -> Approval {
    store.request(NewApproval { agent: agent(), ..question(CallId::new(), "git status") }).await.unwrap()
}

async fn stands(store: &impl Approvals, asked: &Approval) -> Approval {
    store.approval(&TenantId::main(), asked.id).await.unwrap().unwrap()
}

async fn one(store: &impl Rules) -> Rule {
    let mut all = store.all_rules(&TenantId::main()).await.unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Returns the number of rules that hold for the suite's agent and session.
async fn applying(store: &impl Rules, now: UnixMillis) -> usize {
    store.rules(&TenantId::main(), &agent(), &session("cli:me"), now).await.unwrap().len()
}

fn yes() -> Answer {
    Answer { approve: true, by: "ann".to_owned(), at: NOW, reason: None, values: None }
}

#[track_caller]
fn check_state(result: Result<Rule, StoreError>, expected: &str) {
    match result {
        Err(StoreError::RuleState { state, .. }) => assert_eq!(state, expected),
        other => panic!("expected a rule that is {expected}, got {other:?}"),
    }
}

#[track_caller]
fn check_answer(result: Result<Approval, StoreError>, expected: &str) {
    match result {
        Err(StoreError::ApprovalState { state, .. }) => assert_eq!(state, expected),
        other => panic!("expected a question that is {expected}, got {other:?}"),
    }
}
