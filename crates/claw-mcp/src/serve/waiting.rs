//! Calls of clients that wait for an approval: a call that is made again, by the same caller with the same arguments, is the
//! same call.
//!
//! A call is kept no longer than its approval is open. Tenants have their own shares, and so have their users: nobody can fill
//! the share of another.

use std::collections::HashMap;

use claw_core::port::UnixMillis;
use claw_core::tool::{Caller, Digest};
use claw_core::{CallId, TenantId, UserId};
use serde_json::Value;

/// The most calls of one tenant; further ones are not found again.
const MOST_OF_TENANT: usize = 10_000;
/// The most calls of one user; a further one replaces the one whose approval expires first.
const MOST_OF_USER: usize = 1_000;

/// A call as it can be made again.
pub(super) struct RepeatableCall {
    tenant: TenantId,
    user: Option<UserId>,
    digest: Digest,
}

impl RepeatableCall {
    pub(super) fn new(caller: &Caller, tool: &str, args: &Value) -> Self {
        let who = (&caller.tenant, &caller.user, &caller.agent, &caller.session);
        let digest = Digest::of(&(who, tool, args));
        Self { tenant: caller.tenant.clone(), user: caller.user.clone(), digest }
    }
}

/// Calls that wait for an approval, by tenant and digest.
#[derive(Default)]
pub(super) struct WaitingCalls(HashMap<TenantId, HashMap<Digest, WaitingCall>>);

struct WaitingCall {
    call: CallId,
    user: Option<UserId>,
    expires: UnixMillis,
}

impl WaitingCalls {
    /// Returns the id of this call, if it waits.
    pub(super) fn call_id(&self, made: &RepeatableCall) -> Option<CallId> {
        Some(self.0.get(&made.tenant)?.get(&made.digest)?.call)
    }

    /// Keeps a call until its approval expires; drops those whose approvals have.
    pub(super) fn insert(
        &mut self,
        made: &RepeatableCall,
        call: CallId,
        expires: UnixMillis,
        now: UnixMillis,
    ) {
        self.0.retain(|_, calls| {
            calls.retain(|_, known| known.expires > now);
            !calls.is_empty()
        });
        let calls = self.0.entry(made.tenant.clone()).or_default();
        calls.remove(&made.digest);
        let own = calls.iter().filter(|(_, known)| known.user == made.user);
        if own.clone().count() >= MOST_OF_USER
            && let Some(first) = own.min_by_key(|(_, known)| known.expires).map(|(digest, _)| *digest)
        {
            calls.remove(&first);
        }
        if calls.len() < MOST_OF_TENANT {
            let user = made.user.clone();
            calls.insert(made.digest, WaitingCall { call, user, expires });
        }
    }

    /// Drops a call that waits no more.
    pub(super) fn remove(&mut self, made: &RepeatableCall) {
        if let Some(calls) = self.0.get_mut(&made.tenant) {
            calls.remove(&made.digest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(tenant: &str, user: &str, number: usize) -> RepeatableCall {
        RepeatableCall {
            tenant: TenantId::new(tenant).unwrap(),
            user: Some(UserId::new(user).unwrap()),
            digest: Digest::of(&(tenant, user, number)),
        }
    }

    /// The number of calls that are kept.
    fn kept(calls: &WaitingCalls) -> usize {
        calls.0.values().map(HashMap::len).sum()
    }

    const NOW: UnixMillis = UnixMillis(1_000);
    const LATER: UnixMillis = UnixMillis(2_000);

    #[test]
    fn calls_that_nobody_makes_again_are_dropped_when_their_approvals_expire() {
        let mut calls = WaitingCalls::default();
        for number in 0..10 {
            calls.insert(&made("main", "ann", number), CallId::new(), LATER, NOW);
            calls.insert(&made("other", "ann", number), CallId::new(), LATER, NOW);
        }
        assert_eq!(kept(&calls), 20);
        let (last, id) = (made("main", "ann", 99), CallId::new());
        calls.insert(&last, id, UnixMillis(3_000), LATER);
        assert_eq!((kept(&calls), calls.0.len()), (1, 1), "of other tenants too");
        assert_eq!(calls.call_id(&last), Some(id));
        assert_eq!(calls.call_id(&made("other", "ann", 99)), None);
        calls.remove(&last);
        assert_eq!(calls.call_id(&last), None);
    }

    #[test]
    fn a_user_who_makes_ever_more_calls_fills_no_share_but_their_own() {
        let mut calls = WaitingCalls::default();
        let (of_ben, id) = (made("main", "ben", 0), CallId::new());
        calls.insert(&of_ben, id, LATER, NOW);
        for number in 0..=MOST_OF_USER {
            let expires = LATER.plus(std::time::Duration::from_millis(number as u64));
            calls.insert(&made("main", "ann", number), CallId::new(), expires, NOW);
        }
        assert_eq!(kept(&calls), MOST_OF_USER + 1);
        assert_eq!(calls.call_id(&made("main", "ann", 0)), None, "the first gives way");
        assert!(calls.call_id(&made("main", "ann", MOST_OF_USER)).is_some());
        assert_eq!(calls.call_id(&of_ben), Some(id));
        // The same call again takes no second place.
        calls.insert(&of_ben, id, LATER, NOW);
        assert_eq!(kept(&calls), MOST_OF_USER + 1);
    }

    #[test]
    fn a_tenant_whose_users_fill_its_share_leaves_others_theirs() {
        let mut calls = WaitingCalls::default();
        let one = |user: usize| WaitingCall {
            call: CallId::new(),
            user: Some(UserId::new(format!("u{user}")).unwrap()),
            expires: LATER,
        };
        let full = (0..MOST_OF_TENANT).map(|number| (Digest::of(&number), one(number % 20))).collect();
        calls.0.insert(TenantId::new("loud").unwrap(), full);
        let (late, other) = (made("loud", "ann", 0), made("main", "ann", 0));
        calls.insert(&late, CallId::new(), LATER, NOW);
        calls.insert(&other, CallId::new(), LATER, NOW);
        assert!(calls.call_id(&late).is_none() && calls.call_id(&other).is_some());
    }
}
