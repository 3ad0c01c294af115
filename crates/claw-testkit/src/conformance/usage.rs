//! The suites of a [`UsageLog`] and of [`Offers`]: every answer counted once, none lost, none of others'.

use std::collections::HashMap;
use std::sync::Arc;

use claw_core::port::UnixMillis;
use claw_core::store::{
    NewUsage, Offers, Spender, StoreError, Tokens, Usage, UsageFilter, UsageLine, UsageLog,
};
use claw_core::{AgentId, JobId, TenantId, ToolName, UsageId, UserId};

use crate::fixture::{NOW, agent, session, tenant};

const DAY: i64 = 24 * 60 * 60 * 1_000;
const MANY: u64 = 32;

/// Runs the suite of a usage log; `make` creates an empty one.
pub async fn usage<S: UsageLog + 'static>(make: impl AsyncFn() -> S) {
    sums_what_was_recorded(make().await).await;
    records_an_answer_once(make().await).await;
    sums_what_the_filter_names(make().await).await;
    counts_a_time_range_from_its_start_to_before_its_end(make().await).await;
    sorts_by_day_provider_and_model(make().await).await;
    says_what_was_spent(make().await).await;
    gives_the_last_answer_of_a_conversation(make().await).await;
    refuses_what_no_answer_can_be(make().await).await;
    keeps_the_usage_of_tenants_apart(make().await).await;
    loses_none_of_many_answers_at_once(make().await).await;
}

/// Runs the suite of remembered offers; `make` creates an empty store.
pub async fn offers<S: Offers + 'static>(make: impl AsyncFn() -> S) {
    keeps_the_order_of_an_offer(make().await).await;
    adds_up_uses(make().await).await;
    keeps_the_offers_of_tenants_apart(make().await).await;
    loses_none_of_many_uses_at_once(make().await).await;
}

async fn sums_what_was_recorded(store: impl UsageLog) {
    assert_eq!(all(&store, &TenantId::main()).await, Usage::default());
    let tokens = Tokens { input: 1, output: 20, cache_read: 300, cache_write: 4_000 };
    let (first, second) = (NewUsage { tokens, ..answer(50_000) }, NewUsage { tokens, ..answer(7) });
    store.record_usage(NewUsage { run: Some(JobId::new()), ..first }).await.unwrap();
    store.record_usage(second).await.unwrap();
    let tokens = Tokens { input: 2, output: 40, cache_read: 600, cache_write: 8_000 };
    assert_eq!(all(&store, &TenantId::main()).await, Usage { answers: 2, tokens, cost: 50_007 });
}

async fn records_an_answer_once(store: impl UsageLog) {
    let first = answer(10);
    store.record_usage(first.clone()).await.unwrap();
    store.record_usage(first.clone()).await.unwrap();
    store.record_usage(NewUsage { cost: 99, session: session("cli:you"), ..first }).await.unwrap();
    let found = all(&store, &TenantId::main()).await;
    assert_eq!((found.answers, found.cost), (1, 10), "the first one stands");
}

async fn gives_the_last_answer_of_a_conversation(store: impl UsageLog) {
    let (main, me) = (TenantId::main(), session("cli:me"));
    assert_eq!(store.last_usage(&main, &me).await.unwrap(), None);
    let tokens = Tokens { input: 1, output: 20, cache_read: 300, cache_write: 4_000 };
    let user = Some(UserId::new("ann").unwrap());
    let last = NewUsage { tokens, user, run: Some(JobId::new()), at: UnixMillis(NOW.0 + 9), ..answer(5) };
    store.record_usage(last.clone()).await.unwrap();
    store.record_usage(answer(1)).await.unwrap();
    let later = UnixMillis(NOW.0 + 10);
    store.record_usage(NewUsage { session: session("cli:you"), at: later, ..answer(2) }).await.unwrap();
    store.record_usage(NewUsage { tenant: tenant("other"), at: later, ..answer(3) }).await.unwrap();
    assert_eq!(store.last_usage(&main, &me).await.unwrap(), Some(last));
    let theirs = store.last_usage(&tenant("other"), &me).await.unwrap().map(|last| last.cost);
    assert_eq!(theirs, Some(3));
}

async fn sums_what_the_filter_names(store: impl UsageLog) {
    let (ann, other) = (UserId::new("ann").unwrap(), AgentId::new("other").unwrap());
    let (me, you) = (session("cli:me"), session("cli:you"));
    for (cost, new) in [
        (1, answer(0)),
        (2, NewUsage { user: Some(ann.clone()), ..answer(0) }),
        (4, NewUsage { agent: other.clone(), ..answer(0) }),
        (8, NewUsage { session: you.clone(), user: Some(ann.clone()), ..answer(0) }),
        (16, NewUsage { session: you.clone(), agent: other.clone(), ..answer(0) }),
    ] {
        store.record_usage(NewUsage { cost, ..new }).await.unwrap();
    }
    let of = |filter: UsageFilter| {
        let store = &store;
        async move { store.usage(&TenantId::main(), &filter).await.unwrap().cost }
    };
    let none = UsageFilter::default;
    assert_eq!(of(none()).await, 31);
    assert_eq!(of(UsageFilter { session: Some(me), ..none() }).await, 7);
    assert_eq!(of(UsageFilter { session: Some(you.clone()), ..none() }).await, 24);
    assert_eq!(of(UsageFilter { agent: Some(agent()), ..none() }).await, 11);
    assert_eq!(of(UsageFilter { user: Some(ann.clone()), ..none() }).await, 10);
    assert_eq!(of(UsageFilter { user: Some(ann), session: Some(you.clone()), ..none() }).await, 8);
    assert_eq!(of(UsageFilter { agent: Some(other), session: Some(you), ..none() }).await, 16);
    assert_eq!(of(UsageFilter { session: Some(session("cli:nobody")), ..none() }).await, 0);
}

async fn counts_a_time_range_from_its_start_to_before_its_end(store: impl UsageLog) {
    for (n, millis) in [-1, 0, 1, 1_767_225_600_001, 253_402_300_799_999].into_iter().enumerate() {
        store.record_usage(NewUsage { at: UnixMillis(millis), ..answer(1 << n) }).await.unwrap();
    }
    let between = async |from: i64, to: i64| {
        let (from, to) = (Some(UnixMillis(from)), Some(UnixMillis(to)));
        let filter = UsageFilter { from, to, ..UsageFilter::default() };
        store.usage(&TenantId::main(), &filter).await.unwrap().cost
    };
    assert_eq!(between(-1, 0).await, 1, "to the millisecond");
    assert_eq!(between(0, 1).await, 2);
    assert_eq!(between(0, 1_767_225_600_001).await, 6);
    assert_eq!(between(0, 1_767_225_600_002).await, 14);
    assert_eq!(between(1_767_225_600_002, i64::MAX).await, 16);
    assert_eq!(between(i64::MIN, i64::MAX).await, 31);
}

async fn sorts_by_day_provider_and_model(store: impl UsageLog) {
    for (at, provider, model, cost) in [
        (2 * DAY - 1, "b", "m", 1),
        (2 * DAY, "b", "m", 2),
        (DAY, "b", "m", 4),
        (DAY, "b", "M", 8),
        (DAY + 5, "B", "z", 16),
        (DAY + 5, "a-b", "z", 32),
        (DAY + 5, "ab", "z", 64),
        (-1, "b", "m", 128),
        (0, "b", "m", 256),
    ] {
        let new =
            NewUsage { at: UnixMillis(at), provider: provider.into(), model: model.into(), ..answer(cost) };
        store.record_usage(new).await.unwrap();
    }
    let lines = async |filter: UsageFilter| {
        let found = store.usage_lines(&TenantId::main(), &filter).await.unwrap();
        let line = |line: UsageLine| {
            let (provider, model) = (line.provider.to_string(), line.model.to_string());
            (line.day.0, provider, model, line.usage.answers, line.usage.cost)
        };
        found.into_iter().map(line).collect::<Vec<_>>()
    };
    let expected = [
        (-DAY, "b", "m", 1, 128),
        (0, "b", "m", 1, 256),
        (DAY, "B", "z", 1, 16),
        (DAY, "a-b", "z", 1, 32),
        (DAY, "ab", "z", 1, 64),
        (DAY, "b", "M", 1, 8),
        (DAY, "b", "m", 2, 5),
        (2 * DAY, "b", "m", 1, 2),
    ]
    .map(|(day, provider, model, answers, cost)| (day, provider.to_owned(), model.to_owned(), answers, cost));
    assert_eq!(lines(UsageFilter::default()).await, expected);
    let from = Some(UnixMillis(2 * DAY));
    assert_eq!(lines(UsageFilter { from, ..UsageFilter::default() }).await, expected[7..]);
}

async fn says_what_was_spent(store: impl UsageLog) {
    let (one, other) = (agent(), AgentId::new("other").unwrap());
    let (me, you) = (session("cli:me"), session("cli:you"));
    let before = UnixMillis(NOW.0 - 1);
    for new in [
        answer(1),
        NewUsage { at: before, ..answer(2) },
        NewUsage { agent: other.clone(), ..answer(4) },
        NewUsage { session: you.clone(), ..answer(8) },
    ] {
        store.record_usage(new).await.unwrap();
    }
    let spent = async |spender, since| store.spent(&TenantId::main(), spender, since).await.unwrap();
    assert_eq!(spent(Spender::Tenant, NOW).await, 13);
    assert_eq!(spent(Spender::Tenant, before).await, 15);
    assert_eq!(spent(Spender::Agent(&one), NOW).await, 9);
    assert_eq!(spent(Spender::Agent(&one), before).await, 11);
    assert_eq!(spent(Spender::Agent(&other), NOW).await, 4);
    assert_eq!(spent(Spender::Session(&me), NOW).await, 5);
    assert_eq!(spent(Spender::Session(&you), NOW).await, 8);
    assert_eq!(spent(Spender::Session(&you), UnixMillis(NOW.0 + 1)).await, 0);
}

async fn refuses_what_no_answer_can_be(store: impl UsageLog) {
    let most = NewUsage::MOST;
    let tokens = |input| Tokens { input, ..Tokens::default() };
    for new in [
        answer(-1),
        answer(most + 1),
        answer(i64::MAX),
        NewUsage { tokens: tokens(most.unsigned_abs() + 1), ..answer(0) },
        NewUsage { tokens: Tokens { cache_write: u64::MAX, ..Tokens::default() }, ..answer(0) },
    ] {
        let refused = store.record_usage(new).await;
        assert!(matches!(refused, Err(StoreError::Database { transient: false, .. })), "{refused:?}");
    }
    assert_eq!(all(&store, &TenantId::main()).await, Usage::default());
    for _ in 0..2 {
        let new = NewUsage { tokens: tokens(most.unsigned_abs()), ..answer(most) };
        store.record_usage(new).await.unwrap();
    }
    let found = all(&store, &TenantId::main()).await;
    assert_eq!((found.cost, found.tokens.input), (2 * most, 2 * most.unsigned_abs()));
}

async fn keeps_the_usage_of_tenants_apart(store: impl UsageLog) {
    let (ours, other) = (answer(1), tenant("other"));
    store.record_usage(ours.clone()).await.unwrap();
    store.record_usage(NewUsage { tenant: other.clone(), cost: 2, ..ours }).await.unwrap();
    for (tenant, cost) in [(TenantId::main(), 1), (other, 2), (tenant("third"), 0)] {
        assert_eq!(all(&store, &tenant).await.cost, cost);
        let lines = store.usage_lines(&tenant, &UsageFilter::default()).await.unwrap();
        assert_eq!(lines.iter().map(|line| line.usage.cost).sum::<i64>(), cost);
        for spender in [Spender::Tenant, Spender::Agent(&agent()), Spender::Session(&session("cli:me"))] {
            assert_eq!(store.spent(&tenant, spender, NOW).await.unwrap(), cost);
        }
    }
}

async fn loses_none_of_many_answers_at_once(store: impl UsageLog + 'static) {
    let (store, shared) = (Arc::new(store), answer(1_000));
    let record = |n: u64| {
        let (store, shared) = (Arc::clone(&store), shared.clone());
        tokio::spawn(async move {
            store.record_usage(shared).await.unwrap();
            store.record_usage(answer(n as i64)).await.unwrap();
        })
    };
    for recorded in (0..MANY).map(record).collect::<Vec<_>>() {
        recorded.await.unwrap();
    }
    let found = all(&*store, &TenantId::main()).await;
    assert_eq!((found.answers, found.cost), (MANY + 1, 1_000 + 31 * 32 / 2));
}

async fn keeps_the_order_of_an_offer(store: impl Offers) {
    let (main, me) = (TenantId::main(), session("cli:me"));
    assert_eq!(store.offered(&main, &me).await.unwrap(), []);
    let first = ["write_file", "exec", "Zoo", "a-b"].map(|name| ToolName::new(name).unwrap());
    store.set_offered(&main, &me, &first).await.unwrap();
    assert_eq!(store.offered(&main, &me).await.unwrap(), first);
    let more: Vec<_> = first.into_iter().chain([ToolName::literal("about")]).collect();
    store.set_offered(&main, &me, &more).await.unwrap();
    assert_eq!(store.offered(&main, &me).await.unwrap(), more, "what is new comes last");
    assert_eq!(store.offered(&main, &session("cli:you")).await.unwrap(), []);
    store.set_offered(&main, &me, &[]).await.unwrap();
    assert_eq!(store.offered(&main, &me).await.unwrap(), []);
}

async fn adds_up_uses(store: impl Offers) {
    let main = TenantId::main();
    let [exec, read] = ["exec", "read_file"].map(|name| ToolName::new(name).unwrap());
    let uses = async || store.tool_uses(&main, &agent()).await.unwrap();
    store.count_tool_uses(&main, &agent(), &[]).await.unwrap();
    store.count_tool_uses(&main, &agent(), &[(exec.clone(), 0)]).await.unwrap();
    assert_eq!(uses().await, HashMap::new());
    let twice = [(exec.clone(), 2), (read.clone(), 1), (exec.clone(), 3)];
    store.count_tool_uses(&main, &agent(), &twice).await.unwrap();
    assert_eq!(uses().await, HashMap::from([(exec.clone(), 5), (read.clone(), 1)]));
    store.count_tool_uses(&main, &agent(), &[(read.clone(), 4)]).await.unwrap();
    assert_eq!(uses().await, HashMap::from([(exec.clone(), 5), (read.clone(), 5)]));
    store.count_tool_uses(&main, &agent(), &[(exec.clone(), u64::MAX)]).await.unwrap();
    store.count_tool_uses(&main, &agent(), &[(exec.clone(), 1)]).await.unwrap();
    assert_eq!(uses().await[&exec], i64::MAX.unsigned_abs(), "it stays at the end");
    let other = AgentId::new("other").unwrap();
    assert_eq!(store.tool_uses(&main, &other).await.unwrap(), HashMap::new());
}

async fn keeps_the_offers_of_tenants_apart(store: impl Offers) {
    let (main, other, me) = (TenantId::main(), tenant("other"), session("cli:me"));
    let [exec, read] = ["exec", "read_file"].map(|name| ToolName::new(name).unwrap());
    store.set_offered(&main, &me, std::slice::from_ref(&exec)).await.unwrap();
    store.count_tool_uses(&main, &agent(), &[(exec.clone(), 3)]).await.unwrap();
    assert_eq!(store.offered(&other, &me).await.unwrap(), []);
    assert_eq!(store.tool_uses(&other, &agent()).await.unwrap(), HashMap::new());
    store.set_offered(&other, &me, &[read]).await.unwrap();
    store.count_tool_uses(&other, &agent(), &[(exec.clone(), 1)]).await.unwrap();
    assert_eq!(store.offered(&main, &me).await.unwrap(), std::slice::from_ref(&exec));
    assert_eq!(store.tool_uses(&main, &agent()).await.unwrap()[&exec], 3);
}

async fn loses_none_of_many_uses_at_once(store: impl Offers + 'static) {
    let store = Arc::new(store);
    let mut tools = ["exec", "read_file", "write_file"].map(|name| ToolName::new(name).unwrap());
    let count = |n: u64| {
        let store = Arc::clone(&store);
        // In another order each time: who adds must not wait for one that waits for it.
        tools.rotate_left(1);
        let uses = tools.clone().map(|tool| (tool, n));
        tokio::spawn(async move { store.count_tool_uses(&TenantId::main(), &agent(), &uses).await.unwrap() })
    };
    for counted in (1..=MANY).map(count).collect::<Vec<_>>() {
        counted.await.unwrap();
    }
    let uses = store.tool_uses(&TenantId::main(), &agent()).await.unwrap();
    assert_eq!(uses.len(), 3);
    assert!(uses.values().all(|uses| *uses == MANY * (MANY + 1) / 2), "{uses:?}");
}

async fn all(store: &impl UsageLog, tenant: &TenantId) -> Usage {
    store.usage(tenant, &UsageFilter::default()).await.unwrap()
}

fn answer(cost: i64) -> NewUsage {
    NewUsage {
        id: UsageId::new(),
        tenant: TenantId::main(),
        agent: agent(),
        user: None,
        session: session("cli:me"),
        run: None,
        provider: "anthropic".into(),
        model: "large".into(),
        tokens: Tokens::default(),
        cost,
        at: NOW,
    }
}
