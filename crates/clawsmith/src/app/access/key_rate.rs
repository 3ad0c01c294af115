//! Rates: the requests that each API key has made in the last minute, limited.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use claw_core::KeyId;

const MINUTE: Duration = Duration::from_secs(60);
/// Number of keys beyond which those without recent requests are forgotten.
const MOST_KEYS: usize = 10_000;

/// The rates of all keys that have a limit. Each process counts for itself.
#[derive(Debug, Default)]
pub(super) struct Rates {
    /// For each key, the time at which its requests so far would have been made at its rate.
    until: Mutex<HashMap<KeyId, Instant>>,
}

impl Rates {
    /// Counts a request of a key that may make `per_minute`; the error is the time to wait if it has made too
    /// many. A whole minute's requests may come at once.
    pub(super) fn count(&self, key: KeyId, per_minute: u32) -> Result<(), Duration> {
        let now = Instant::now();
        let mut rates = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if rates.len() >= MOST_KEYS {
            rates.retain(|_, until| *until > now);
        }
        let until = rates.entry(key).or_insert(now);
        let next = (*until).max(now) + MINUTE / per_minute.max(1);
        let ahead = next.duration_since(now);
        if ahead > MINUTE {
            return Err(ahead - MINUTE);
        }
        *until = next;
        Ok(())
    }
}
