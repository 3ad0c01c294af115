//! The suite of an [`AccessStore`]: valid keys are admitted, and no others.

use std::sync::Arc;
use std::time::Duration;

use claw_core::port::UnixMillis;
use claw_core::store::{
    AccessRole, AccessStore, Admitted, ApiKey, KEY_USE_EVERY, Key, KeyLimits, KeyScope, NewKey, StoreError,
    Tenant, TenantChange, Topic, User, UserChange,
};
use claw_core::{AgentId, KeyId, TenantId};

use serde_json::{Value, json};

use crate::fixture::{NOW, key_of, tenant, user};

/// Runs the suite; `make` creates a new store.
pub async fn access<S: AccessStore + 'static>(make: impl AsyncFn() -> S) {
    has_the_main_tenant(make().await).await;
    adds_and_changes_tenants(make().await).await;
    adds_and_changes_users(make().await).await;
    adds_lists_and_revokes_keys(make().await).await;
    refuses_keys_of_nobody_and_keys_that_are_taken(make().await).await;
    lets_in_who_has_a_key(make().await).await;
    refuses_a_key_that_is_expired_or_revoked(make().await).await;
    refuses_a_key_of_a_disabled_tenant_or_user(make().await).await;
    writes_down_a_use_at_most_once_a_minute(make().await).await;
    keeps_tenants_apart(make().await).await;
    adds_one_of_many_equal_ones(make().await).await;
    wakes_those_who_wait(make().await).await;
}

async fn has_the_main_tenant(store: impl AccessStore) {
    let main = store.tenant(&TenantId::main()).await.unwrap().expect("the main tenant");
    assert_eq!((&main.id, main.disabled), (&TenantId::main(), false));
    assert_eq!(store.tenants().await.unwrap(), [main]);
    assert_eq!(store.users(&TenantId::main()).await.unwrap(), []);
    assert_eq!(store.keys(&TenantId::main()).await.unwrap(), []);
}

async fn adds_and_changes_tenants(store: impl AccessStore) {
    let mut all = store.tenants().await.unwrap();
    for (n, id) in ["z", "B", "a-b", "a.b", "ab"].into_iter().enumerate() {
        let new = Tenant {
            id: tenant(id),
            name: format!("{id} \u{1f980}"),
            created: UnixMillis(NOW.0 + n as i64),
            disabled: n == 1,
            policy: if n == 2 { json!({ "deny": ["exec"] }) } else { Value::Null },
        };
        assert!(store.add_tenant(new.clone()).await.unwrap());
        let again = Tenant { name: "again".to_owned(), created: NOW, disabled: true, ..new.clone() };
        assert!(!store.add_tenant(again).await.unwrap(), "it is there");
        assert_eq!(store.tenant(&new.id).await.unwrap(), Some(new.clone()), "as it was");
        all.push(new);
    }
    all.sort_by(|a, b| a.id.as_str().cmp(b.id.as_str()));
    assert_eq!(store.tenants().await.unwrap(), all);

    let z = tenant("z");
    let before = store.tenant(&z).await.unwrap().unwrap();
    let change = async |change| store.change_tenant(&z, change).await.unwrap();
    assert_eq!(change(TenantChange::default()).await, Some(before.clone()));
    let renamed = Tenant { name: "Zed".to_owned(), ..before };
    assert_eq!(
        change(TenantChange { name: Some("Zed".to_owned()), ..TenantChange::default() }).await,
        Some(renamed.clone())
    );
    for disabled in [true, false] {
        let changed = change(TenantChange { disabled: Some(disabled), ..TenantChange::default() }).await;
        assert_eq!(changed, Some(Tenant { disabled, ..renamed.clone() }));
        assert_eq!(store.tenant(&z).await.unwrap(), changed);
    }
    for policy in [json!({ "allow": ["read_file"] }), Value::Null] {
        let changed = change(TenantChange { policy: Some(policy.clone()), ..TenantChange::default() }).await;
        assert_eq!(changed.as_ref().map(|tenant| &tenant.policy), Some(&policy));
        assert_eq!(store.tenant(&z).await.unwrap(), changed);
    }
    let nobody = store.change_tenant(&tenant("nobody"), TenantChange::default()).await.unwrap();
    assert_eq!(nobody, None);
    assert_eq!(store.tenant(&tenant("nobody")).await.unwrap(), None);
}

async fn adds_and_changes_users(store: impl AccessStore) {
    let main = TenantId::main();
    let mut all = Vec::new();
    for (id, role) in ["bob", "Ann", "a@b", "a.b"].into_iter().zip(AccessRole::ALL) {
        let new = User { role, created: UnixMillis(NOW.0 + 1), ..user(id) };
        assert!(store.add_user(new.clone()).await.unwrap());
        let again = User {
            name: "again".to_owned(),
            role: AccessRole::Owner,
            created: NOW,
            disabled: true,
            ..new.clone()
        };
        assert!(!store.add_user(again).await.unwrap(), "it is there");
        assert_eq!(store.user(&main, &new.id).await.unwrap(), Some(new.clone()), "as it was");
        all.push(new);
    }
    all.sort_by(|a, b| a.id.as_str().cmp(b.id.as_str()));
    assert_eq!(store.users(&main).await.unwrap(), all);

    let bob = User { created: UnixMillis(NOW.0 + 1), role: AccessRole::Viewer, ..user("bob") };
    let change = async |change| store.change_user(&main, &bob.id, change).await.unwrap();
    assert_eq!(change(UserChange::default()).await, Some(bob.clone()));
    let promoted = change(UserChange { role: Some(AccessRole::Admin), ..UserChange::default() }).await;
    assert_eq!(promoted, Some(User { role: AccessRole::Admin, ..bob.clone() }));
    let all_of_it =
        UserChange { name: Some("Bob".to_owned()), role: Some(AccessRole::Owner), disabled: Some(true) };
    let changed = User { name: "Bob".to_owned(), role: AccessRole::Owner, disabled: true, ..bob.clone() };
    assert_eq!(change(all_of_it).await.as_ref(), Some(&changed));
    assert_eq!(store.user(&main, &bob.id).await.unwrap(), Some(changed));
    assert_eq!(store.change_user(&main, &user("nobody").id, UserChange::default()).await.unwrap(), None);
    let unknown = User { tenant: tenant("unknown"), ..user("ann") };
    check_refused(store.add_user(unknown).await, "there is no tenant `unknown`; add it first");
}

async fn adds_lists_and_revokes_keys(store: impl AccessStore) {
    let main = TenantId::main();
    store.add_user(user("ann")).await.unwrap();
    let first = key_of(&key(1));
    let second = NewKey {
        user: Some(user("ann").id),
        label: "it's \"Ann's\" \u{1f980}".to_owned(),
        scopes: KeyScope::ALL.into_iter().collect(),
        created: UnixMillis(NOW.0 + 1),
        expires: Some(UnixMillis(i64::MAX)),
        ..key_of(&key(2))
    };
    let third =
        NewKey { scopes: [].into_iter().collect(), created: UnixMillis(NOW.0 - 1), ..key_of(&key(3)) };
    for new in [&first, &second, &third] {
        assert!(store.add_key(new.clone()).await.unwrap());
        assert!(!store.add_key(new.clone()).await.unwrap(), "it is there");
    }
    let all = [third, first.clone(), second].map(|new| Key { new, revoked: None, last_used: None });
    assert_eq!(store.keys(&main).await.unwrap(), all, "oldest first");

    let revoked = store.revoke_key(&main, first.id, UnixMillis(NOW.0 + 7)).await.unwrap().unwrap();
    assert_eq!((&revoked.new, revoked.revoked), (&first, Some(UnixMillis(NOW.0 + 7))));
    assert_eq!(
        store.revoke_key(&main, first.id, NOW).await.unwrap().as_ref(),
        Some(&revoked),
        "the first stands"
    );
    assert!(!store.add_key(first).await.unwrap());
    assert_eq!(store.keys(&main).await.unwrap()[1], revoked, "to add it again brings nothing back");
    assert_eq!(store.revoke_key(&main, KeyId::new(), NOW).await.unwrap(), None);
}

async fn refuses_keys_of_nobody_and_keys_that_are_taken(store: impl AccessStore) {
    let ours = key_of(&key(1));
    let unknown = NewKey { tenant: tenant("unknown"), ..ours.clone() };
    check_refused(store.add_key(unknown).await, "there is no tenant `unknown`");
    let unknown = NewKey { user: Some(user("ann").id), ..ours.clone() };
    check_refused(store.add_key(unknown).await, "there is no user `ann` in a tenant `main`");
    store.add_key(ours.clone()).await.unwrap();
    check_refused(store.add_key(NewKey { id: KeyId::new(), ..ours.clone() }).await, "exists already");
    check_refused(store.add_key(NewKey { hash: key(2).hash(), ..ours.clone() }).await, "exists already");
    assert_eq!(
        store.keys(&TenantId::main()).await.unwrap(),
        [Key { new: ours, revoked: None, last_used: None }]
    );
    assert_eq!(store.authenticate(&key(2).hash(), NOW).await.unwrap(), None);
}

async fn lets_in_who_has_a_key(store: impl AccessStore) {
    store.add_user(User { role: AccessRole::Admin, ..user("ann") }).await.unwrap();
    let scopes = [KeyScope::AnswerApprovals, KeyScope::ReadSessions];
    let limits = KeyLimits { agents: Some(vec![AgentId::new("a").unwrap()]), per_minute: Some(60) };
    let anns = NewKey {
        user: Some(user("ann").id),
        scopes: scopes.into_iter().collect(),
        limits: limits.clone(),
        ..key_of(&key(1))
    };
    let program = key_of(&key(2));
    assert_eq!(store.authenticate(&key(1).hash(), NOW).await.unwrap(), None);
    store.add_key(anns.clone()).await.unwrap();
    store.add_key(program.clone()).await.unwrap();
    let admitted = Admitted {
        key: anns.id,
        tenant: TenantId::main(),
        user: Some((user("ann").id, AccessRole::Admin)),
        scopes: anns.scopes,
        limits,
    };
    assert_eq!(store.authenticate(&key(1).hash(), NOW).await.unwrap(), Some(admitted));
    let (tenant, limits) = (TenantId::main(), KeyLimits::default());
    let admitted = Admitted { key: program.id, tenant, user: None, scopes: program.scopes, limits };
    assert_eq!(store.authenticate(&key(2).hash(), NOW).await.unwrap(), Some(admitted));
    assert_eq!(store.authenticate(&key(3).hash(), NOW).await.unwrap(), None);
    let change = UserChange { role: Some(AccessRole::Viewer), ..UserChange::default() };
    store.change_user(&TenantId::main(), &user("ann").id, change).await.unwrap();
    let admitted = store.authenticate(&key(1).hash(), NOW).await.unwrap().unwrap();
    assert_eq!(admitted.user, Some((user("ann").id, AccessRole::Viewer)), "the role of now");
}

async fn refuses_a_key_that_is_expired_or_revoked(store: impl AccessStore) {
    let expires = NOW.plus(Duration::from_millis(1));
    store.add_key(NewKey { expires: Some(expires), ..key_of(&key(1)) }).await.unwrap();
    assert!(comes_in(&store, 1, NOW).await);
    assert!(!comes_in(&store, 1, expires).await, "from then on");
    assert!(!comes_in(&store, 1, UnixMillis(i64::MAX)).await);
    let new = key_of(&key(2));
    store.add_key(new.clone()).await.unwrap();
    assert!(comes_in(&store, 2, UnixMillis(i64::MAX)).await, "it never expires");
    // By a clock that is ahead.
    store.revoke_key(&TenantId::main(), new.id, NOW.plus(Duration::from_secs(3600))).await.unwrap();
    for now in [NOW, NOW.plus(Duration::from_secs(7200))] {
        assert!(!comes_in(&store, 2, now).await, "revoked is revoked");
    }
}

async fn refuses_a_key_of_a_disabled_tenant_or_user(store: impl AccessStore) {
    let main = TenantId::main();
    store.add_user(user("ann")).await.unwrap();
    store.add_key(NewKey { user: Some(user("ann").id), ..key_of(&key(1)) }).await.unwrap();
    store.add_key(key_of(&key(2))).await.unwrap();
    let both = async || (comes_in(&store, 1, NOW).await, comes_in(&store, 2, NOW).await);
    let of_user = |disabled| UserChange { disabled: Some(disabled), ..UserChange::default() };
    let of_tenant = |disabled| TenantChange { disabled: Some(disabled), ..TenantChange::default() };
    assert_eq!(both().await, (true, true));
    store.change_user(&main, &user("ann").id, of_user(true)).await.unwrap();
    assert_eq!(both().await, (false, true));
    store.change_tenant(&main, of_tenant(true)).await.unwrap();
    assert_eq!(both().await, (false, false));
    store.change_user(&main, &user("ann").id, of_user(false)).await.unwrap();
    assert_eq!(both().await, (false, false));
    store.change_tenant(&main, of_tenant(false)).await.unwrap();
    assert_eq!(both().await, (true, true));
}

async fn writes_down_a_use_at_most_once_a_minute(store: impl AccessStore) {
    let new = key_of(&key(1));
    store.add_key(new.clone()).await.unwrap();
    store.add_key(key_of(&key(2))).await.unwrap();
    let last_used = async || store.keys(&TenantId::main()).await.unwrap()[0].last_used;
    let minute = i64::try_from(KEY_USE_EVERY.as_millis()).unwrap();
    assert_eq!((minute, last_used().await), (60_000, None));
    for (after, written) in [
        (5, 5),
        (6, 5),
        (5 + minute - 1, 5),
        (0, 5),
        (-10 * minute, 5),
        (5 + minute, 5 + minute),
        (5 + 2 * minute - 1, 5 + minute),
        (5 + 9 * minute, 5 + 9 * minute),
    ] {
        assert!(comes_in(&store, 1, UnixMillis(NOW.0 + after)).await);
        assert_eq!(last_used().await, Some(UnixMillis(NOW.0 + written)), "{after} ms later");
    }
    assert_eq!(store.keys(&TenantId::main()).await.unwrap()[1].last_used, None, "each key for itself");
    store.revoke_key(&TenantId::main(), new.id, NOW).await.unwrap();
    assert!(!comes_in(&store, 1, UnixMillis(NOW.0 + 100 * minute)).await);
    assert_eq!(last_used().await, Some(UnixMillis(NOW.0 + 5 + 9 * minute)), "who is kept out uses nothing");
}

async fn keeps_tenants_apart(store: impl AccessStore) {
    let (main, other) = (TenantId::main(), tenant("other"));
    store
        .add_tenant(Tenant {
            id: other.clone(),
            name: "Other".to_owned(),
            created: NOW,
            disabled: false,
            policy: Value::Null,
        })
        .await
        .unwrap();
    let (ann, ours) = (user("ann"), NewKey { user: Some(user("ann").id), ..key_of(&key(1)) });
    store.add_user(ann.clone()).await.unwrap();

    // Users.
    assert_eq!(store.user(&other, &ann.id).await.unwrap(), None);
    assert_eq!(store.users(&other).await.unwrap(), []);
    let owner = UserChange { role: Some(AccessRole::Owner), disabled: Some(true), ..UserChange::default() };
    assert_eq!(store.change_user(&other, &ann.id, owner.clone()).await.unwrap(), None);
    let theirs = NewKey { tenant: other.clone(), ..ours.clone() };
    check_refused(store.add_key(theirs.clone()).await, "there is no user `ann` in a tenant `other`");
    assert!(store.add_user(User { tenant: other.clone(), ..ann.clone() }).await.unwrap(), "another Ann");
    store.change_user(&other, &ann.id, owner).await.unwrap().unwrap();
    assert_eq!(store.user(&main, &ann.id).await.unwrap(), Some(ann));

    // Keys.
    store.add_key(ours.clone()).await.unwrap();
    assert_eq!(store.keys(&other).await.unwrap(), []);
    assert_eq!(store.revoke_key(&other, ours.id, NOW).await.unwrap(), None);
    check_refused(store.add_key(theirs.clone()).await, "exists already");
    check_refused(store.add_key(NewKey { id: KeyId::new(), ..theirs }).await, "exists already");
    let admitted = store.authenticate(&key(1).hash(), NOW).await.unwrap().unwrap();
    assert_eq!(
        (admitted.key, admitted.tenant),
        (ours.id, main.clone()),
        "the other Ann is disabled, ours is not"
    );

    // Tenants.
    let disabled = TenantChange { disabled: Some(true), ..TenantChange::default() };
    store.change_tenant(&other, disabled).await.unwrap().unwrap();
    assert!(!store.tenant(&main).await.unwrap().unwrap().disabled);
    assert!(comes_in(&store, 1, NOW).await);
}

async fn adds_one_of_many_equal_ones(store: impl AccessStore + 'static) {
    let (store, new, hash) = (Arc::new(store), key_of(&key(1)), key(1).hash());
    let add = |_| {
        let (store, new) = (Arc::clone(&store), new.clone());
        tokio::spawn(async move {
            let user = store.add_user(user("ann")).await.unwrap();
            let key = store.add_key(new).await.unwrap();
            let admitted = store.authenticate(&hash, NOW).await.unwrap();
            assert!(admitted.is_some());
            (usize::from(user), usize::from(key))
        })
    };
    let mut added = (0, 0);
    for adder in (0..16).map(add).collect::<Vec<_>>() {
        let (user, key) = adder.await.unwrap();
        added = (added.0 + user, added.1 + key);
    }
    assert_eq!(added, (1, 1));
    assert_eq!(store.keys(&TenantId::main()).await.unwrap().len(), 1);
}

async fn wakes_those_who_wait(store: impl AccessStore) {
    let (main, new) = (TenantId::main(), key_of(&key(1)));
    let mut changes = store.changes(Topic::Access);
    changes.mark_unchanged();
    let mut changed = |what: &str| {
        assert!(changes.has_changed().unwrap(), "{what}");
        changes.mark_unchanged();
    };
    let other = Tenant {
        id: tenant("other"),
        name: String::new(),
        created: NOW,
        disabled: false,
        policy: Value::Null,
    };
    store.add_tenant(other).await.unwrap();
    changed("a tenant is added");
    store.change_tenant(&main, TenantChange::default()).await.unwrap();
    changed("a tenant is changed");
    store.add_user(user("ann")).await.unwrap();
    changed("a user is added");
    store.change_user(&main, &user("ann").id, UserChange::default()).await.unwrap();
    changed("a user is changed");
    store.add_key(new.clone()).await.unwrap();
    changed("a key is added");
    store.revoke_key(&main, new.id, NOW).await.unwrap();
    changed("a key is revoked");
}

async fn comes_in(store: &impl AccessStore, n: u8, now: UnixMillis) -> bool {
    store.authenticate(&key(n).hash(), now).await.unwrap().is_some()
}

fn key(n: u8) -> ApiKey {
    ApiKey::from_random([n; 32])
}

#[track_caller]
fn check_refused<T: std::fmt::Debug>(result: Result<T, StoreError>, says: &str) {
    match result {
        Err(StoreError::Refused { why, .. }) => assert!(why.contains(says), "{why}"),
        other => panic!("expected a refusal that says {says:?}, got {other:?}"),
    }
}
