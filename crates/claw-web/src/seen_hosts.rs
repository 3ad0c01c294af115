//! Hosts that sessions have fetched pages from. Only this process remembers: after a restart a host is new again.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use claw_core::port::Surfer;
use claw_core::{SessionKey, TenantId};

/// The most sessions that are remembered.
const SESSIONS: usize = 10_000;
/// The most hosts of one session.
const HOSTS: usize = 2_000;

type Key = (TenantId, SessionKey);

/// The hosts of each session.
#[derive(Default)]
pub(crate) struct SeenHosts(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    sessions: HashMap<Key, HashSet<String>>,
    /// Oldest first.
    order: VecDeque<Key>,
}

impl SeenHosts {
    pub(crate) fn knows(&self, surfer: &Surfer, host: &str) -> bool {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.sessions.get(&key(surfer)).is_some_and(|hosts| hosts.contains(host))
    }

    pub(crate) fn learn(&self, surfer: &Surfer, host: &str) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(surfer);
        if !inner.sessions.contains_key(&key) {
            inner.order.push_back(key.clone());
            if inner.order.len() > SESSIONS
                && let Some(oldest) = inner.order.pop_front()
            {
                inner.sessions.remove(&oldest);
            }
        }
        let hosts = inner.sessions.entry(key).or_default();
        if hosts.len() < HOSTS {
            hosts.insert(host.to_owned());
        }
    }
}

fn key(surfer: &Surfer) -> Key {
    (surfer.tenant.clone(), surfer.session.clone())
}
