//! Runs with the rest of a store: owners of sessions, rules given with an approval, costs.

use claw_core::store::{Circle, Finish, NewUsage, Store, Tokens, UsageFilter};
use claw_core::{RuleId, UsageId};

use super::announcing::{news, party, start_child, with};
use super::*;
use crate::fixture::{agent, child_of, rule, tenant};

/// Runs the suite of a whole store; `make` creates an empty one.
pub async fn runs_in_store<S: Store + 'static>(make: impl AsyncFn() -> S) {
    accepts_the_news_for_the_owner_alone(make().await).await;
    wakes_a_run_whose_approval_comes_with_a_rule(make().await).await;
    shows_a_parked_run_as_running(make().await).await;
    sums_what_a_tree_costs(make().await).await;
}

async fn accepts_the_news_for_the_owner_alone(store: impl Store) {
    let asked = job_of("cli:me");
    store.accept_from(&party(), message("cli:me", "hello"), asked.clone()).await.unwrap();
    let lease = take_this(&store, &worker("a"), asked.id).await;
    let child = start_child(&store, &asked).await;
    store.finish_job(&lease).await.unwrap();
    let mut wrong = news(&asked, "cli:me");
    wrong.party.agent = claw_core::AgentId::new("other").unwrap();
    let refused = store.finish_run(&child, with(wrong)).await;
    assert!(matches!(refused, Err(StoreError::Refused { .. })), "{refused:?}");
    assert_eq!(state(&store, child.job).await, JobState::Leased, "nothing happened");
    assert_eq!(messages(&store, "agent:child").await, []);

    let mut right = news(&asked, "cli:me");
    right.job.payload = json!({ "answer": "the child" });
    store.finish_run(&child, with(right.clone())).await.unwrap();
    let circle = Circle::Session(session("cli:me"));
    let found = store.conversation(&asked.tenant, &circle, &session("cli:me")).await.unwrap().unwrap();
    assert_eq!((found.messages, found.waiting, &found.order), (2, 1, &right.job.payload));
}

async fn wakes_a_run_whose_approval_comes_with_a_rule(store: impl Store) {
    let main = TenantId::main();
    let yes = || Answer { approve: true, by: "ann".to_owned(), at: NOW, reason: None, values: None };
    let (lease, approval) = parked(&store, "cli:me").await;
    let misfit = claw_core::store::NewRule { tool: claw_core::ToolName::literal("edit"), ..rule() };
    store.answer_with_rule(&main, approval, yes(), misfit).await.unwrap_err();
    assert_eq!(
        state(&store, lease.job).await,
        JobState::Parked,
        "an answer that does not count wakes nobody"
    );
    let given = claw_core::store::NewRule { id: RuleId::new(), ..rule() };
    store.answer_with_rule(&main, approval, yes(), given).await.unwrap();
    take_this(&store, &worker("b"), lease.job).await;
}

async fn shows_a_parked_run_as_running(store: impl Store) {
    let asked = job_of("cli:me");
    store.accept_from(&party(), message("cli:me", "hello"), asked.clone()).await.unwrap();
    let circle = Circle::Session(session("cli:me"));
    let shown = async || {
        let found = store.conversation(&asked.tenant, &circle, &session("cli:me")).await.unwrap().unwrap();
        (found.waiting, found.running)
    };
    assert_eq!(shown().await, (1, false));
    let lease = take_this(&store, &worker("a"), asked.id).await;
    assert_eq!(shown().await, (0, true));
    store.park(&lease, until_answered(&[])).await.unwrap();
    assert_eq!(shown().await, (0, true));
    store.cancel(&asked.tenant, asked.id, by_ann()).await.unwrap();
    assert_eq!(shown().await, (0, false));
}

async fn sums_what_a_tree_costs(store: impl Store) {
    let root = job_of("cli:me");
    let child = child_of(&root, "agent:child");
    let below = child_of(&child, "agent:below");
    let other = job_of("cli:you");
    for new in [&root, &child, &below, &other] {
        store.enqueue(new.clone()).await.unwrap();
    }
    let eve = NewJob { tenant: tenant("eve"), ..child_of(&root, "agent:eve") };
    store.enqueue(eve.clone()).await.unwrap();
    let spend = async |of: &NewJob, run: Option<JobId>, cost: i64| {
        let usage = NewUsage {
            id: UsageId::new(),
            tenant: of.tenant.clone(),
            agent: agent(),
            user: None,
            session: of.session.clone().unwrap(),
            run,
            provider: "local".into(),
            model: "m".into(),
            tokens: Tokens { input: 1, ..Tokens::default() },
            cost,
            at: NOW,
        };
        store.record_usage(usage).await.unwrap();
    };
    for (new, cost) in [(&root, 1), (&child, 2), (&below, 4), (&below, 8), (&other, 16), (&eve, 32)] {
        spend(new, Some(new.id), cost).await;
    }
    spend(&root, None, 64).await;
    let of = async |root: JobId, session| {
        let filter = UsageFilter { root: Some(root), session, ..UsageFilter::default() };
        let usage = store.usage(&TenantId::main(), &filter).await.unwrap();
        let lines = store.usage_lines(&TenantId::main(), &filter).await.unwrap();
        assert_eq!(usage.cost, lines.iter().map(|line| line.usage.cost).sum::<i64>());
        (usage.answers, usage.cost)
    };
    assert_eq!(of(root.id, None).await, (4, 15));
    assert_eq!(of(root.id, Some(session("agent:below"))).await, (2, 12));
    assert_eq!(of(other.id, None).await, (1, 16));
    assert_eq!(of(child.id, None).await, (0, 0), "it is not the root of a tree");
    assert_eq!(of(JobId::new(), None).await, (0, 0));
    let finish = Finish::done(vec![]);
    let lease = take_this(&store, &worker("a"), root.id).await;
    store.finish_run(&lease, finish).await.unwrap();
    assert_eq!(of(root.id, None).await, (4, 15), "a run that is over still counts");
}
