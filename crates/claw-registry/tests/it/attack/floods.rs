//! Calls by the thousand.

use claw_core::port::{InputAnswer, InputForm, InputRequest};

use super::*;
use crate::approvals::answer;

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

/// The bytes of the largest arguments among the latest refusals at this step; `None` if none has any.
async fn largest_refused(bench: &Bench, at: &str) -> Option<usize> {
    let entries = bench.store.recent(&TenantId::main(), 10).await.unwrap();
    let sizes = entries.iter().filter_map(|entry| match &entry.record.event {
        EntryEvent::Refused { step, args, .. } if step == at => Some(args.as_ref()?.to_string().len()),
        _ => None,
    });
    sizes.max()
}

#[tokio::test]
async fn the_ledger_holds_a_bounded_part_of_refused_arguments() {
    let refusing = [
        ("authorise", Setup { policy: denies("say"), ..Setup::default() }),
        ("judge", Setup { approvals: denies_reads(), ..Setup::default() }),
    ];
    for (step, setup) in refusing {
        let bench = Bench::new(setup);
        let reply = bench.call("say", json!({ "text": "x".repeat(3_900_000) })).await;
        assert_eq!(refused(&reply).0, step);
        let size = largest_refused(&bench, step).await.unwrap();
        assert!(size < 16 * 1024, "one entry of {size} bytes, and 10,000 entries are kept in memory");
    }
}

#[tokio::test]
async fn a_flood_of_refused_calls_is_limited() {
    let bench = Bench::new(Setup::default());
    let offer = bench.offer().await;
    bench.executor.set_policy(Policy::compile(&denies("say")).unwrap());
    let mut steps = Vec::new();
    for _ in 0..1000 {
        let reply = bench.executor.execute(&offer, Request::new("say", json!({ "text": "x" }))).await;
        steps.push(refused(&reply).0);
    }
    assert_eq!((steps[0], steps[999]), ("authorise", "limit"));
    assert_eq!(largest_refused(&bench, "limit").await, None, "a limited call leaves no arguments");
}

/// A listener with room for the events of as many calls as it has permits.
struct Slow(tokio::sync::Semaphore);

impl Listener for Slow {
    fn hear(&self, _: Event) {}

    fn room(&self) -> Option<Room<'_>> {
        Some(Box::pin(async { self.0.acquire().await.unwrap().forget() }))
    }
}

#[tokio::test(start_paused = true)]
async fn callers_that_outrun_the_listener_wait_before_their_next_call() {
    let bench = Bench::new(Setup::default());
    let (tool, runs) = says("count", "one more");
    bench.executor.registry().register(tool).unwrap();
    let slow = Arc::new(Slow(tokio::sync::Semaphore::new(1)));
    let executor = Executor::builder(
        bench.executor.registry().clone(),
        bench.store.clone(),
        Policy::compile(&PolicyConfig::default()).unwrap(),
    )
    .listener(slow.clone())
    .build();
    let offer = executor.offer(caller()).await;
    let call = || executor.execute(&offer, Request::new("count", json!({})));
    assert!(call().await.is_done());
    let mut second = Box::pin(call());
    assert!(tokio::time::timeout(Duration::from_secs(60), &mut second).await.is_err(), "it did not wait");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    let entries = bench.store.recent(&TenantId::main(), 10).await.unwrap();
    assert_eq!(entries.len(), 2, "a call that waits has left no entry: {entries:?}");
    slow.0.add_permits(1);
    assert!(second.await.is_done());
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

/// A server's request for input in so many words.
fn input_request(words: usize) -> InputRequest {
    let form = InputForm::Url { url: "https://far.example/".to_owned() };
    InputRequest { server: "far".to_owned(), message: "who ".repeat(words), form }
}

#[tokio::test]
async fn refuses_a_queue_of_large_requests_for_input_behind_one_that_waits() {
    let bench = Bench::new(Setup::default());
    let refused_ones = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&refused_ones);
    let mut meta = Meta::of("inquire".parse().unwrap(), Group::Tools);
    meta.effects = Effects::NONE;
    meta.needs = vec![Need::Inputs].into();
    let (tool, _) = custom(
        meta,
        any_schema(),
        |_, _| Ok(Plan { effects: Effects::NONE, asks: vec![], given: None }),
        move |call, _| {
            let counted = Arc::clone(&counted);
            Box::pin(async move {
                let (inputs, counted) = (call.inputs()?, &counted);
                // The first is too large, nine may wait, and four are too many.
                let asks = (0..14).map(|at| async move {
                    let answer = inputs.ask(input_request(if at == 0 { 250_000 } else { 10 })).await;
                    counted.fetch_add(usize::from(answer.is_err()), Ordering::SeqCst);
                    answer.is_ok_and(|answer| answer == InputAnswer::Declined)
                });
                let declined = futures_util::future::join_all(asks).await;
                let declined = declined.into_iter().filter(|declined| *declined).count();
                Ok::<_, ToolError>(Output::text(format!("{declined} declined")))
            })
        },
    );
    bench.executor.registry().register(tool).unwrap();
    let offer = bench.offer().await;
    let person = async {
        question(&bench).await;
        assert_eq!(refused_ones.load(Ordering::SeqCst), 5, "they wait for an answer to the first");
        for _ in 0..9 {
            answer(&bench, false).await;
        }
    };
    let request = Request::new("inquire", json!({}));
    let (reply, ()) = tokio::join!(bench.executor.execute(&offer, request), person);
    assert_eq!(done(&reply), "9 declined");
    assert_eq!(refused_ones.load(Ordering::SeqCst), 5);
}
