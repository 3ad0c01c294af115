//! The suite of an [`AgentStore`]: of two concurrent writers, one is refused as outdated.

use std::sync::Arc;

use claw_core::port::UnixMillis;
use claw_core::store::{Agent, AgentKind, AgentSetup, AgentStore, AgentWrite, StoreError, Topic};
use claw_core::{AgentId, TenantId};
use serde_json::json;

use crate::fixture::{NOW, agent_setup, object, tenant};

/// Runs the suite; `make` creates an empty store.
pub async fn agents<S: AgentStore + 'static>(make: impl AsyncFn() -> S) {
    writes_and_lists(make().await).await;
    keeps_all_that_an_agent_is(make().await).await;
    refuses_who_saw_another_version(make().await).await;
    never_lets_a_version_fall(make().await).await;
    lets_one_of_many_writers_win(make().await).await;
    lets_one_of_many_add(make().await).await;
    keeps_tenants_apart(make().await).await;
    wakes_those_who_wait(make().await).await;
}

async fn writes_and_lists(store: impl AgentStore) {
    let main = TenantId::main();
    assert_eq!(store.agents(&main).await.unwrap(), []);
    assert_eq!(store.agent(&main, &id("a")).await.unwrap(), None);
    let mut added = Vec::new();
    // Byte by byte, and not as a dictionary has them.
    for name in ["B", "a", "a+b", "a-b", "a.b", "a_b", "ab"] {
        added.push(add(&store, name).await);
    }
    added.sort_by(|a, b| a.id.as_str().cmp(b.id.as_str()));
    assert_eq!(store.agents(&main).await.unwrap(), added);
    let first = &added[1];
    let expected = Agent {
        tenant: main.clone(),
        id: id("a"),
        setup: agent_setup("a"),
        version: 1,
        created: NOW,
        updated: NOW,
    };
    assert_eq!((first, store.agent(&main, &id("a")).await.unwrap().as_ref()), (&expected, Some(&expected)));
    let changed = store
        .put_agent(&main, &id("a"), AgentWrite { setup: agent_setup("b"), seen: Some(1) }, later(1))
        .await
        .unwrap();
    let expected = Agent { setup: agent_setup("b"), version: 2, updated: later(1), ..expected };
    assert_eq!((&changed, store.agent(&main, &id("a")).await.unwrap()), (&expected, Some(expected.clone())));
    store.remove_agent(&main, &id("a"), 2, later(2)).await.unwrap();
    assert_eq!(store.agent(&main, &id("a")).await.unwrap(), None);
    assert_eq!(store.agents(&main).await.unwrap().len(), added.len() - 1);
}

async fn keeps_all_that_an_agent_is(store: impl AgentStore) {
    let setup = AgentSetup {
        name: "\0 \u{1f980} 'quoted' \u{e000}".to_owned(),
        kind: AgentKind::Predefined,
        provider: Some("anthropic".into()),
        model: Some("m\0".into()),
        policy: json!({ "allow": ["group:fs"], "deny": ["exec"], "n": [1.5, i64::MIN, u64::MAX, null] }),
        other_config: object(json!({ "": {}, "\0": "\0", "max_delegation_load": 5 })),
    };
    let put = store
        .put_agent(
            &TenantId::main(),
            &id("a"),
            AgentWrite { setup: setup.clone(), seen: None },
            UnixMillis(-1),
        )
        .await
        .unwrap();
    assert_eq!((&put.setup, put.created), (&setup, UnixMillis(-1)));
    assert_eq!(store.agent(&TenantId::main(), &id("a")).await.unwrap(), Some(put.clone()));
    assert_eq!(store.agents(&TenantId::main()).await.unwrap(), [put]);
}

async fn refuses_who_saw_another_version(store: impl AgentStore) {
    let (main, a) = (TenantId::main(), id("a"));
    let put = async |seen| {
        store.put_agent(&main, &a, AgentWrite { setup: agent_setup("late"), seen }, later(5)).await
    };
    for seen in [Some(0), Some(1), Some(u64::MAX)] {
        check_stale(put(seen).await, None);
    }
    check_stale(store.remove_agent(&main, &a, 1, NOW).await, None);
    add(&store, "a").await;
    let now =
        store.put_agent(&main, &a, AgentWrite { setup: agent_setup("a"), seen: Some(1) }, NOW).await.unwrap();
    for seen in [None, Some(0), Some(1), Some(3), Some(u64::MAX)] {
        check_stale(put(seen).await, Some(2));
    }
    for seen in [0, 1, 3, u64::MAX] {
        check_stale(store.remove_agent(&main, &a, seen, NOW).await, Some(2));
    }
    assert_eq!(store.agent(&main, &a).await.unwrap(), Some(now), "nothing was written");
}

async fn never_lets_a_version_fall(store: impl AgentStore) {
    let (main, a) = (TenantId::main(), id("a"));
    add(&store, "a").await;
    store.remove_agent(&main, &a, 1, later(1)).await.unwrap();
    check_stale(store.remove_agent(&main, &a, 1, NOW).await, None);
    check_stale(store.remove_agent(&main, &a, 2, NOW).await, None);
    for seen in [1, 2] {
        check_stale(
            store
                .put_agent(&main, &a, AgentWrite { setup: agent_setup("late"), seen: Some(seen) }, NOW)
                .await,
            None,
        );
    }
    let again = store
        .put_agent(&main, &a, AgentWrite { setup: agent_setup("again"), seen: None }, later(2))
        .await
        .unwrap();
    assert_eq!((again.version, again.created, again.updated), (3, later(2), later(2)));
    assert_eq!(store.agent(&main, &a).await.unwrap(), Some(again));
    check_stale(
        store.put_agent(&main, &a, AgentWrite { setup: agent_setup("late"), seen: Some(1) }, NOW).await,
        Some(3),
    );
}

async fn lets_one_of_many_writers_win(store: impl AgentStore + 'static) {
    let store = Arc::new(store);
    add(&*store, "a").await;
    for round in 1..=4 {
        let write = |n: usize| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let setup = agent_setup(&n.to_string());
                store
                    .put_agent(&TenantId::main(), &id("a"), AgentWrite { setup, seen: Some(round) }, NOW)
                    .await
            })
        };
        let mut won = Vec::new();
        for writer in (0..8).map(write).collect::<Vec<_>>() {
            match writer.await.unwrap() {
                Ok(agent) => won.push(agent),
                lost => check_stale(lost, Some(round + 1)),
            }
        }
        assert_eq!(won.len(), 1, "exactly one wins");
        assert_eq!(store.agents(&TenantId::main()).await.unwrap(), won);
    }
}

async fn lets_one_of_many_add(store: impl AgentStore + 'static) {
    let store = Arc::new(store);
    let write = |n: usize| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let setup = agent_setup(&n.to_string());
            store.put_agent(&TenantId::main(), &id("a"), AgentWrite { setup, seen: None }, NOW).await
        })
    };
    let mut won = Vec::new();
    for writer in (0..8).map(write).collect::<Vec<_>>() {
        match writer.await.unwrap() {
            Ok(agent) => won.push(agent),
            lost => check_stale(lost, Some(1)),
        }
    }
    assert_eq!(won.len(), 1);
    assert_eq!(store.agents(&TenantId::main()).await.unwrap(), won);
}

async fn keeps_tenants_apart(store: impl AgentStore) {
    let (main, other, a) = (TenantId::main(), tenant("other"), id("a"));
    let ours = add(&store, "a").await;
    assert_eq!(store.agent(&other, &a).await.unwrap(), None);
    assert_eq!(store.agents(&other).await.unwrap(), []);
    check_stale(
        store.put_agent(&other, &a, AgentWrite { setup: agent_setup("evil"), seen: Some(1) }, NOW).await,
        None,
    );
    check_stale(store.remove_agent(&other, &a, 1, NOW).await, None);
    let theirs = store
        .put_agent(&other, &a, AgentWrite { setup: agent_setup("theirs"), seen: None }, NOW)
        .await
        .unwrap();
    store
        .put_agent(&other, &a, AgentWrite { setup: agent_setup("theirs"), seen: Some(theirs.version) }, NOW)
        .await
        .unwrap();
    store.remove_agent(&other, &a, 2, NOW).await.unwrap();
    assert_eq!(store.agent(&main, &a).await.unwrap(), Some(ours));
}

async fn wakes_those_who_wait(store: impl AgentStore) {
    let mut changes = store.changes(Topic::Agents);
    changes.mark_unchanged();
    add(&store, "a").await;
    assert!(changes.has_changed().unwrap(), "one is added");
    changes.mark_unchanged();
    store.remove_agent(&TenantId::main(), &id("a"), 1, NOW).await.unwrap();
    assert!(changes.has_changed().unwrap(), "one is removed");
}

async fn add(store: &impl AgentStore, name: &str) -> Agent {
    store
        .put_agent(&TenantId::main(), &id(name), AgentWrite { setup: agent_setup(name), seen: None }, NOW)
        .await
        .unwrap()
}

#[track_caller]
fn check_stale<T: std::fmt::Debug>(result: Result<T, StoreError>, version: Option<u64>) {
    match result {
        Err(StoreError::Stale { path, now }) => assert_eq!((path.as_str(), now), ("a", version)),
        other => panic!("expected a stale agent at {version:?}, got {other:?}"),
    }
}

fn id(name: &str) -> AgentId {
    AgentId::new(name).expect("an agent id")
}

fn later(millis: i64) -> UnixMillis {
    UnixMillis(NOW.0 + millis)
}
