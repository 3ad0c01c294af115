//! Calls by the thousand.

use super::*;

#[tokio::test]
async fn a_flood_of_unknown_names_is_limited() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    let mut limited = false;
    for _ in 0..2000 {
        let reply = bench.executor.execute(&offer, Request::new("no_such", json!({}))).await;
        limited |= reply.refusal().is_some_and(|refusal| refusal.step.name() == "limit");
    }
    assert!(limited, "2000 refused calls in no time, each a synced line in the ledger");
}

#[tokio::test]
async fn the_ledger_holds_a_bounded_part_of_the_arguments() {
    let bench = Bench::new(Setup::default());
    let reply = bench.call("say", json!({"text": "x".repeat(3_900_000)})).await;
    assert!(reply.is_done());
    let entries = bench.store.recent(&TenantId::main(), 10).await.unwrap();
    let size = entries
        .iter()
        .map(|entry| match &entry.record.event {
            EntryEvent::Intent { args, .. } => args.to_string().len(),
            _ => 0,
        })
        .max()
        .unwrap();
    assert!(size < 200_000, "one entry of {size} bytes, and 10,000 entries are kept in memory");
}
