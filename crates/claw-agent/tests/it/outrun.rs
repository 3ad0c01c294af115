//! Callers that are faster than the database.

use std::time::Duration;

use claw_core::CallId;
use claw_core::event::{Event, Listener as _, What};
use claw_core::store::Outcome;

use crate::kit::{Bench, session, tenant};

/// On one thread the writer gets its turn only when the test waits: as long as it does not, callers outrun it.
#[tokio::test]
async fn callers_that_outrun_the_database_wait_and_no_event_is_lost() {
    let bench = Bench::new("[[turn]]\ndo = [{ say = \"hello\" }]").await;
    let chronicle = &bench.deployment.chronicle;
    let hear = |what: What| {
        chronicle.hear(Event { tenant: tenant(), session: session(), call: CallId::new(), what });
    };
    assert!(chronicle.room().is_none(), "nobody waits for nothing");
    let mut told = 0;
    while chronicle.room().is_none() {
        assert!(told < 100_000, "{told} events are kept in memory, and nobody waits");
        hear(What::CallStarted { tool: "peek".parse().unwrap() });
        hear(What::CallFinished { tool: "peek".parse().unwrap(), outcome: Outcome::Done, micros: 1 });
        told += 2;
    }
    // Calls that already run end, however much is waiting.
    hear(What::CallFinished { tool: "peek".parse().unwrap(), outcome: Outcome::Done, micros: 1 });
    told += 1;
    let room = chronicle.room().unwrap();
    tokio::time::timeout(Duration::from_secs(60), room)
        .await
        .expect("there is room once the writer has written");
    assert!(chronicle.room().is_none());
    assert_eq!(bench.events().await.len(), told);
}
