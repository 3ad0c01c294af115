//! Results are scrubbed first and then cut; the whole is kept.

use claw_core::TenantId;
use claw_core::store::Ledger;
use claw_registry::{Limits, Request};
use serde_json::json;

use crate::kit::{Bench, Setup, done};

fn secret() -> String {
    format!("ghp_{}", "a1B2".repeat(9))
}

#[tokio::test]
async fn a_secret_split_by_the_cap_is_still_a_secret() {
    let secret = secret();
    let limit = 300;
    // No position of the cut shows a part of the secret.
    for before in 0..limit {
        let limits = Limits { output_bytes: limit, ..Limits::default() };
        let bench = Bench::new(Setup { limits, ..Setup::default() });
        let text = format!("{} {secret} {}", "x".repeat(before), "y".repeat(2 * limit));
        let reply = bench.call("say", json!({ "text": text })).await;
        let shown = done(&reply);
        assert!(!shown.contains("ghp_") && !shown.contains("a1B2"), "{shown}");
        assert!(!reply.outcome.unwrap().for_user.unwrap().contains("ghp_a1B2"));
    }
}

#[tokio::test]
async fn the_whole_is_kept_and_can_be_read() {
    let limits = Limits { output_bytes: 400, ..Limits::default() };
    let bench = Bench::new(Setup { limits, ..Setup::default() });
    let offer = bench.offer().await;
    assert!(bench.executor.resolve(&offer, "result_read").is_err(), "nothing to read yet");
    let reply =
        bench.executor.execute(&offer, Request::new("say", json!({"text": "xé\n", "times": 1000}))).await;
    let text = done(&reply);
    assert!(text.len() < 700 && text.contains("bytes left out; the whole has 1000 lines"), "{text}");
    assert!(text.starts_with("xé\n") && text.ends_with("xé\n"));
    // The same offer can read it now, and so can the next one.
    let read = bench.executor.execute(&offer, Request::new("result_read", json!({}))).await;
    assert_eq!(done(&read), "4000 bytes, 1000 of them x");
    assert!(bench.executor.resolve(&bench.offer().await, "result_read").is_ok());
}

#[tokio::test]
async fn a_failing_tool_is_scrubbed_and_cut_like_one_that_works() {
    let limits = Limits { output_bytes: 400, ..Limits::default() };
    let bench = Bench::new(Setup { limits, ..Setup::default() });
    let args = json!({"text": format!("{}\n", secret()), "times": 500, "fail": true});
    let reply = bench.call("say", args).await;
    let error = reply.failure().unwrap();
    assert!(error.message.len() < 700, "{}", error.message.len());
    assert!(!format!("{error:?}").contains("ghp_"));
}

#[tokio::test]
async fn no_secret_reaches_ledger_or_events() {
    let bench = Bench::new(Setup::default());
    let secret = secret();
    bench.call("say", json!({"text": secret, "words": [secret]})).await;
    bench.call("say", json!({"text": secret, "fail": true})).await;
    bench.call(&secret, json!({})).await;
    bench.call("say", json!({ secret.clone(): secret })).await;
    let entries = bench.store.recent(&TenantId::main(), 100).await.unwrap();
    let ledger = serde_json::to_string(&entries).unwrap();
    let events = serde_json::to_string(&bench.heard.events()).unwrap();
    assert!(entries.len() >= 6);
    assert!(!ledger.contains("ghp_"), "{ledger}");
    assert!(!events.contains("ghp_"), "{events}");
}

#[tokio::test]
async fn a_key_tells_that_a_value_is_secret() {
    let bench = Bench::new(Setup::default());
    bench.call("nope", json!({})).await;
    let reply = bench.call("say", json!({"text": "{\"password\": \"hunter2hunter2\"}"})).await;
    assert!(!done(&reply).contains("hunter2"));
    let details = reply.outcome.unwrap().details.unwrap().to_string();
    assert!(!details.contains("hunter2"), "{details}");
}

#[tokio::test]
async fn dynamic_values_do_not_leak_between_tenants() {
    let bench = Bench::new(Setup::default());
    let scrubbers = bench.executor.scrubbers();
    scrubbers.add("10.20.30.40.internal").unwrap();
    scrubbers.add_for(&TenantId::new("other").unwrap(), "blue-elephant-7").unwrap();
    let text = "10.20.30.40.internal blue-elephant-7";
    assert_eq!(done(&bench.call("say", json!({"text": text})).await), "[REDACTED] blue-elephant-7");
    let mut other = crate::kit::caller();
    other.tenant = TenantId::new("other").unwrap();
    let offer = bench.executor.offer(other).await;
    let reply = bench.executor.execute(&offer, Request::new("say", json!({"text": text}))).await;
    assert_eq!(done(&reply), "[REDACTED] [REDACTED]");
    scrubbers.remove("10.20.30.40.internal").unwrap();
    assert_eq!(done(&bench.call("say", json!({"text": text})).await), text);
}
