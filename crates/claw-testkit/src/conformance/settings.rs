//! The suite of a [`SettingsStore`]: a tenant's settings override the deployment's, and no other tenant's.

use std::sync::Arc;

use claw_core::store::{Layer, Settings, SettingsStore, StoredSettings, ToolSettings, Topic};
use claw_core::{TenantId, ToolName};
use serde_json::{Value, json};

use crate::fixture::{NOW, object, tenant};

/// Runs the suite; `make` creates an empty store.
pub async fn settings<S: SettingsStore + 'static>(make: impl AsyncFn() -> S) {
    writes_lists_and_removes(make().await).await;
    lays_a_tenants_settings_over_everyones(make().await).await;
    keeps_what_json_can_say(make().await).await;
    keeps_tenants_apart(make().await).await;
    keeps_one_row_of_many_writers(make().await).await;
    wakes_those_who_wait(make().await).await;
}

const EXEC: ToolName = ToolName::literal("exec");
const DATETIME: ToolName = ToolName::literal("datetime");

async fn writes_lists_and_removes(store: impl SettingsStore) {
    for layer in [Layer::Deployment, ours()] {
        assert_eq!(store.settings(&layer).await.unwrap(), []);
        assert_eq!(store.settings_of(&layer, &EXEC).await.unwrap(), None);
        assert!(!store.remove_settings(&layer, &EXEC).await.unwrap());
        put(&store, &layer, &EXEC, json!({ "depth": 3 })).await;
        put(&store, &layer, &DATETIME, json!({})).await;
        let later = claw_core::port::UnixMillis(NOW.0 + 1);
        store.put_settings(&layer, &EXEC, object(json!({ "name": "x" })), later).await.unwrap();
        let exec = StoredSettings { tool: EXEC, settings: object(json!({ "name": "x" })), updated: later };
        assert_eq!(store.settings_of(&layer, &EXEC).await.unwrap().as_ref(), Some(&exec));
        let datetime = StoredSettings { tool: DATETIME, settings: Settings::new(), updated: NOW };
        assert_eq!(store.settings(&layer).await.unwrap(), [datetime.clone(), exec], "by tool");
        assert!(store.remove_settings(&layer, &EXEC).await.unwrap());
        assert!(!store.remove_settings(&layer, &EXEC).await.unwrap());
        assert_eq!(store.settings(&layer).await.unwrap(), [datetime]);
    }
}

async fn lays_a_tenants_settings_over_everyones(store: impl SettingsStore) {
    let everyone = Layer::Deployment;
    put(&store, &everyone, &EXEC, json!({ "a": 1, "b": { "x": 1, "y": 2 }, "c": 3 })).await;
    put(&store, &ours(), &EXEC, json!({ "b": { "x": 9 }, "c": null, "d": 4 })).await;
    put(&store, &everyone, &DATETIME, json!({ "timezone": "Europe/Paris" })).await;
    put(&store, &ours(), &ToolName::literal("own"), json!({ "on": true })).await;
    let expected = json!({
        "datetime": { "timezone": "Europe/Paris" },
        "exec": { "a": 1, "b": { "x": 9 }, "c": null, "d": 4 },
        "own": { "on": true },
    });
    assert_eq!(effective(&store, &TenantId::main()).await, expected);
    store.remove_settings(&everyone, &EXEC).await.unwrap();
    assert_eq!(
        effective(&store, &TenantId::main()).await["exec"],
        json!({ "b": { "x": 9 }, "c": null, "d": 4 })
    );
    store.remove_settings(&ours(), &EXEC).await.unwrap();
    assert_eq!(effective(&store, &TenantId::main()).await.get("exec"), None);
}

async fn keeps_what_json_can_say(store: impl SettingsStore) {
    let hard =
        json!({ "": "\0", "\0": ["\u{1f980}", "\u{e000}", 1.5, i64::MIN, u64::MAX, null], "'$1": "\"" });
    put(&store, &ours(), &EXEC, hard.clone()).await;
    assert_eq!(store.settings_of(&ours(), &EXEC).await.unwrap().unwrap().settings, object(hard.clone()));
    assert_eq!(effective(&store, &TenantId::main()).await["exec"], hard);
}

async fn keeps_tenants_apart(store: impl SettingsStore) {
    let (other, theirs) = (tenant("other"), Layer::Tenant(tenant("other")));
    put(&store, &ours(), &EXEC, json!({ "whose": "ours" })).await;
    assert_eq!(store.settings(&theirs).await.unwrap(), []);
    assert_eq!(store.settings_of(&theirs, &EXEC).await.unwrap(), None);
    assert_eq!(effective(&store, &other).await, json!({}));
    assert_eq!(store.settings(&Layer::Deployment).await.unwrap(), [], "a tenant's are not everyone's");
    assert!(!store.remove_settings(&theirs, &EXEC).await.unwrap());
    assert!(!store.remove_settings(&Layer::Deployment, &EXEC).await.unwrap());
    put(&store, &theirs, &EXEC, json!({ "whose": "theirs" })).await;
    assert_eq!(effective(&store, &TenantId::main()).await, json!({ "exec": { "whose": "ours" } }));
    assert_eq!(effective(&store, &other).await, json!({ "exec": { "whose": "theirs" } }));
}

async fn keeps_one_row_of_many_writers(store: impl SettingsStore + 'static) {
    let store = Arc::new(store);
    let write = |n: i32| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { put(&*store, &ours(), &EXEC, json!({ "n": n, "twice": n })).await })
    };
    for writer in (0..16).map(write).collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let stored = store.settings(&ours()).await.unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].settings["n"], stored[0].settings["twice"]);
}

async fn wakes_those_who_wait(store: impl SettingsStore) {
    let mut changes = store.changes(Topic::Settings);
    changes.mark_unchanged();
    put(&store, &Layer::Deployment, &EXEC, json!({})).await;
    assert!(changes.has_changed().unwrap(), "everyone's are written");
    changes.mark_unchanged();
    put(&store, &ours(), &EXEC, json!({})).await;
    assert!(changes.has_changed().unwrap(), "a tenant's are written");
    changes.mark_unchanged();
    store.remove_settings(&ours(), &EXEC).await.unwrap();
    assert!(changes.has_changed().unwrap(), "they are removed");
}

async fn put(store: &impl SettingsStore, layer: &Layer, tool: &ToolName, settings: Value) {
    store.put_settings(layer, tool, object(settings), NOW).await.unwrap();
}

async fn effective(store: &impl SettingsStore, tenant: &TenantId) -> Value {
    let settings: ToolSettings = store.tool_settings(tenant).await.unwrap();
    serde_json::to_value(settings).unwrap()
}

fn ours() -> Layer {
    Layer::Tenant(TenantId::main())
}
