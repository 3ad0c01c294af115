use std::time::Duration;

use super::*;

const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

#[test]
fn counts_each_tenant_and_session_for_itself() {
    let limiter = Limiter::new(RateConfig { heavy: 1, ..RateConfig::default() }, 100);
    let check = |key: (&str, &str)| limiter.check(&key, Cost::Heavy, NOW);
    check(("main", "cli:me")).unwrap();
    check(("main", "cli:you")).unwrap();
    check(("other", "cli:me")).unwrap();
    assert_eq!(check(("main", "cli:me")).unwrap_err().by, LimitedBy::Class(Cost::Heavy));
}

#[test]
fn a_user_who_names_many_sessions_has_not_many_rates() {
    let limiter = Limiter::new(RateConfig { heavy: 1, ..RateConfig::default() }, 1_000);
    let call = |user: &str, session: u32| {
        limiter.check(&("main", session), Cost::Heavy, NOW)?;
        limiter.check_user(&("main", user), Cost::Heavy, NOW)
    };
    let passed = (0..100).filter(|session| call("eve", *session).is_ok()).count();
    assert_eq!(passed, usize::from(claw_policy::rate_config::USER_SESSIONS));
    let limited = call("eve", 100).unwrap_err();
    assert_eq!(limited.by, LimitedBy::UserClass(Cost::Heavy));
    assert!(limited.to_string().contains("in all sessions of this user"), "{limited}");
    call("bob", 101).unwrap();
}

#[test]
fn a_million_sessions_take_no_more_memory_than_the_cap() {
    let limiter = Limiter::new(RateConfig::default(), 10_000);
    // All at once: most are refused.
    let passed = (0..500_000).filter(|key| limiter.check(key, Cost::Light, NOW).is_ok()).count();
    assert_eq!(passed, limiter.keys());
    assert!(limiter.keys() <= 10_000);
    // One after the other: idle sessions make room, and all pass.
    for key in 500_000..1_000_000_i64 {
        let later = UnixMillis(NOW.0 + (key - 499_900) * 1_000);
        limiter.check(&key, Cost::Light, later).unwrap();
    }
    assert!(limiter.keys() <= 10_000);
}

#[test]
fn refuses_to_forget_an_active_session_for_a_new_one() {
    let limiter = Limiter::new(RateConfig { heavy: 1, ..RateConfig::default() }, 1);
    let keys: Vec<u32> = (0..1_000).collect();
    let passed: Vec<_> = keys.iter().filter(|key| limiter.check(key, Cost::Heavy, NOW).is_ok()).collect();
    let crowded = keys.iter().find_map(|key| {
        limiter.check(key, Cost::Heavy, NOW).err().filter(|e| e.by == LimitedBy::Sessions).map(|e| (key, e))
    });
    for key in passed {
        let limited = limiter.check(key, Cost::Heavy, NOW).unwrap_err();
        assert_eq!(limited.by, LimitedBy::Class(Cost::Heavy), "still counted");
    }
    let (key, crowded) = crowded.unwrap();
    assert!(crowded.retry_after <= Duration::from_secs(65));
    let retry = NOW.plus(crowded.retry_after);
    limiter.check(key, Cost::Heavy, retry).unwrap();
}

#[test]
fn a_clock_that_was_ahead_does_not_lock_new_sessions_out() {
    let limiter = Limiter::new(RateConfig::default(), 1);
    let ahead = NOW.plus(Duration::from_secs(24 * 3600));
    let refused = (0..1_000).filter(|key| limiter.check(key, Cost::Light, ahead).is_err()).count();
    assert!(refused > 900, "every shard is full, and knows until when");
    let passed = (1_000..2_000).filter(|key| limiter.check(key, Cost::Light, NOW).is_ok()).count();
    assert_eq!(passed, limiter.keys());
}

#[test]
fn keeps_nothing_where_nothing_is_limited() {
    let limiter = Limiter::new(RateConfig::UNLIMITED, 1);
    for key in 0..1_000 {
        limiter.check(&key, Cost::Heavy, NOW).unwrap();
    }
    assert_eq!(limiter.keys(), 0);
}
