use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const SMALL: RateConfig = RateConfig { total: 7, light: 0, normal: 5, heavy: 2 };

fn any_cost() -> impl Strategy<Value = Cost> {
    prop_oneof![Just(Cost::Light), Just(Cost::Normal), Just(Cost::Heavy)]
}

proptest! {
    #[test]
    fn no_span_holds_more_than_the_limit(calls in prop::collection::vec((0_i64..9_000, any_cost()), 1..300)) {
        let mut window = Window::default();
        let mut now = 1_700_000_000_000;
        let mut passed = VecDeque::new();
        for (pause, cost) in calls {
            now += pause;
            if window.check(&SMALL, cost, UnixMillis(now)).is_ok() {
                passed.push_back((now, cost));
            }
            passed.retain(|(at, _)| *at > now - 60_000);
            prop_assert!(passed.len() <= 7);
            prop_assert!(passed.iter().filter(|(_, cost)| *cost == Cost::Normal).count() <= 5);
            prop_assert!(passed.iter().filter(|(_, cost)| *cost == Cost::Heavy).count() <= 2);
        }
    }

    #[test]
    fn a_call_passes_exactly_when_it_was_told_to_retry(calls in prop::collection::vec((0_i64..3_000, any_cost()), 1..200)) {
        let mut window = Window::default();
        let mut now = 1_700_000_000_000;
        for (pause, cost) in calls {
            now += pause;
            if let Err(limited) = window.check(&SMALL, cost, UnixMillis(now)) {
                prop_assert!(limited.retry_after <= Duration::from_secs(65));
                let retry = UnixMillis(now).plus(limited.retry_after);
                let early = UnixMillis(retry.0 - 1);
                prop_assert!(window.clone().check(&SMALL, cost, early).is_err());
                prop_assert!(window.clone().check(&SMALL, cost, retry).is_ok());
            }
        }
    }
}

#[test]
fn refuses_more_calls_after_the_clock_is_set_back_a_little() {
    let mut window = Window::default();
    let config = RateConfig { heavy: 1, ..RateConfig::default() };
    window.check(&config, Cost::Heavy, UnixMillis(1_000_000)).unwrap();
    let limited = window.check(&config, Cost::Heavy, UnixMillis(935_000)).unwrap_err();
    assert_eq!(limited.retry_after, Duration::from_millis(130_000));
    assert!(!window.is_idle(UnixMillis(935_000)));
}

#[test]
fn starts_anew_after_the_clock_was_ahead() {
    let mut window = Window::default();
    let config = RateConfig { heavy: 1, ..RateConfig::default() };
    window.check(&config, Cost::Heavy, UnixMillis(1_000_000)).unwrap();
    let now = UnixMillis(934_999);
    assert!(window.is_idle(now));
    window.check(&config, Cost::Heavy, now).unwrap();
    let limited = window.check(&config, Cost::Heavy, now).unwrap_err();
    assert!(limited.retry_after <= Duration::from_secs(65), "{limited}");
    assert!(!window.is_idle(now));
}

#[test]
fn zero_is_no_limit() {
    let mut window = Window::default();
    for _ in 0..100_000 {
        window.check(&RateConfig::UNLIMITED, Cost::Heavy, UnixMillis(5)).unwrap();
    }
}

#[test]
fn says_which_limit_was_met_and_when_to_try_again() {
    let mut window = Window::default();
    let config = RateConfig { heavy: 1, total: 2, ..RateConfig::default() };
    let mut check = |cost, now| window.check(&config, cost, UnixMillis(now)).map_err(|e| e.to_string());
    check(Cost::Heavy, 4_000).unwrap();
    assert_eq!(
        check(Cost::Heavy, 4_000).unwrap_err(),
        "too many heavy calls in this session: at most 1 in 60 s; try again in 61 s"
    );
    check(Cost::Light, 4_000).unwrap();
    assert_eq!(
        check(Cost::Light, 10_500).unwrap_err(),
        "too many calls in this session: at most 2 in 60 s; try again in 55 s"
    );
}

#[test]
fn a_window_is_small_since_there_is_one_per_session() {
    assert!(size_of::<Window>() <= 96);
}
