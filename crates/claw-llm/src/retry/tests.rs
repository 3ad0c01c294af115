use std::time::Duration;

use claw_core::port::Fault;

use super::Retry;

const RETRY: Retry = Retry { retries: 3, wait: Duration::from_secs(1), longest: Duration::from_secs(60) };

#[track_caller]
fn check(fault: Fault, again: u32, from: u64, to: u64) {
    for _ in 0..200 {
        let wait = RETRY.wait(fault, again).unwrap();
        let range = Duration::from_millis(from)..=Duration::from_millis(to);
        assert!(range.contains(&wait), "{fault} {again}: {wait:?}");
    }
}

#[test]
fn waits_become_longer_and_differ() {
    check(Fault::Unavailable, 0, 500, 1_000);
    check(Fault::Connection, 1, 1_000, 2_000);
    check(Fault::RateLimited { retry_after: None }, 2, 2_000, 4_000);
    let waits = [(); 20].map(|()| RETRY.wait(Fault::Unavailable, 0));
    assert!(waits.iter().any(|wait| *wait != waits[0]));
    let eager = Retry { retries: u32::MAX, ..RETRY };
    assert!(eager.wait(Fault::Unavailable, u32::MAX - 1).unwrap() <= RETRY.longest);
}

#[test]
fn what_the_provider_asks_for_is_honoured() {
    let after = |secs| Fault::RateLimited { retry_after: Some(Duration::from_secs(secs)) };
    check(after(7), 0, 7_000, 8_000);
    check(after(60), 2, 60_000, 61_000);
    check(after(0), 0, 0, 1_000);
    assert_eq!(RETRY.wait(after(61), 0), None);
}

#[test]
fn what_does_not_pass_is_not_waited_for() {
    for fault in [Fault::Unauthorised, Fault::TooLong, Fault::BadRequest, Fault::NotSetUp] {
        assert_eq!(RETRY.wait(fault, 0), None);
    }
    assert_eq!(RETRY.wait(Fault::Unavailable, 3), None);
}
