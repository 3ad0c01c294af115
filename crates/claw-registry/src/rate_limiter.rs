//! The rate limiter's windows of all sessions.
//!
//! Holds a bounded number of them and fails closed. An active session is never dropped to make room for
//! another, since it would start again from zero.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, PoisonError};

use claw_core::port::UnixMillis;
use claw_core::tool::Cost;
use claw_policy::rate_config::RateConfig;
use claw_policy::rate_window::{IDLE_AFTER, Limited, LimitedBy, Window};

const SHARDS: usize = 16;

/// Limits calls to the configured rate.
#[derive(Debug)]
pub struct Limiter {
    config: RateConfig,
    // A session is identified by a keyed hash of 64 bits: small, and nobody can choose to collide with
    // another.
    hasher: RandomState,
    shards: [Mutex<Shard>; SHARDS],
    keys_per_shard: usize,
}

#[derive(Debug, Default)]
struct Shard {
    windows: HashMap<u64, Window>,
    /// Until then a full shard has no idle window, so no search is needed.
    full_until: UnixMillis,
}

impl Limiter {
    /// A limiter that tracks about `max_keys` sessions at a time, some hundred bytes each.
    pub fn new(config: RateConfig, max_keys: usize) -> Self {
        Self {
            config,
            hasher: RandomState::new(),
            shards: Default::default(),
            keys_per_shard: max_keys.div_ceil(SHARDS).max(1),
        }
    }

    /// Counts a call and lets it pass, or returns when to try again. `key` identifies the calls that are
    /// counted together: tenant and session.
    pub fn check<K: Hash + ?Sized>(&self, key: &K, cost: Cost, now: UnixMillis) -> Result<(), Limited> {
        self.check_with(&self.config, key, cost, now)
    }

    /// The same for all sessions of a user together: whoever names many sessions has not many rates.
    pub fn check_user<K: Hash + ?Sized>(&self, key: &K, cost: Cost, now: UnixMillis) -> Result<(), Limited> {
        // The key of a user never equals that of a session.
        self.check_with(&self.config.of_user(), &("user", key), cost, now).map_err(Limited::of_user)
    }

    fn check_with<K: Hash + ?Sized>(
        &self,
        config: &RateConfig,
        key: &K,
        cost: Cost,
        now: UnixMillis,
    ) -> Result<(), Limited> {
        if self.config == RateConfig::UNLIMITED {
            return Ok(());
        }
        let key = self.hasher.hash_one(key);
        let mut shard = self.shards[key as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(window) = shard.windows.get_mut(&key) {
            return window.check(config, cost, now);
        }
        shard.make_room(self.keys_per_shard, now)?;
        shard.windows.entry(key).or_default().check(config, cost, now)
    }

    /// Number of sessions that are tracked.
    pub fn keys(&self) -> usize {
        let count = |shard: &Mutex<Shard>| shard.lock().unwrap_or_else(PoisonError::into_inner).windows.len();
        self.shards.iter().map(count).sum()
    }
}

impl Shard {
    /// Drops idle windows if the shard is full, and refuses if there are none.
    fn make_room(&mut self, most: usize, now: UnixMillis) -> Result<(), Limited> {
        if self.windows.len() < most {
            return Ok(());
        }
        // Further ahead than any window can be idle: the clock was wrong when this was computed.
        if now >= self.full_until || self.full_until.since(now) > IDLE_AFTER {
            self.windows.retain(|_, window| !window.is_idle(now));
            self.full_until = self.windows.values().map(Window::idle_at).min().unwrap_or_default();
        }
        if self.windows.len() < most {
            return Ok(());
        }
        let (by, limit) = (LimitedBy::Sessions, most * SHARDS);
        Err(Limited { by, limit, retry_after: self.full_until.since(now) })
    }
}

#[cfg(test)]
mod tests;
