//! Rotation of a provider's API keys: tells with which key a request is sent next after one was refused.

use std::sync::atomic::{AtomicUsize, Ordering};

use claw_core::port::Fault;

use crate::provider_error::Trouble;

/// The keys of a provider, as they are tried for one question.
pub(crate) struct KeyRotation<'a> {
    /// Number of keys, at least 1: a server that needs no key counts as one with one.
    keys: usize,
    /// Index of the key that worked last.
    last_worked: &'a AtomicUsize,
    current: usize,
    /// Keys not tried since the last wait.
    fresh: usize,
    /// The last rate limit of a key since then.
    limited: Option<Trouble>,
}

impl<'a> KeyRotation<'a> {
    /// Starts with the key that worked last.
    pub(crate) fn new(keys: usize, last_worked: &'a AtomicUsize) -> Self {
        let keys = keys.max(1);
        let current = last_worked.load(Ordering::Relaxed) % keys;
        Self { keys, last_worked, current, fresh: keys, limited: None }
    }

    /// Returns the index of the key to send the request with.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// Remembers the current key as the one that worked last.
    pub(crate) fn worked(&self) {
        self.last_worked.store(self.current, Ordering::Relaxed);
    }

    /// Switches to the next key if the trouble is the current key's; returns `false` if it is not, or all keys have been
    /// tried since the last wait.
    pub(crate) fn switch_after(&mut self, trouble: &Trouble) -> bool {
        let is_limited = matches!(trouble.fault, Fault::RateLimited { .. });
        if !(is_limited || trouble.fault == Fault::Unauthorised) || self.fresh <= 1 {
            return false;
        }
        self.fresh -= 1;
        self.current = (self.current + 1) % self.keys;
        if is_limited {
            self.limited = Some(trouble.clone());
        }
        true
    }

    /// Returns the trouble that decides whether the request is repeated. If the last key was refused but another is only
    /// rate limited, waiting may help.
    pub(crate) fn decisive(&mut self, trouble: Trouble) -> Trouble {
        match self.limited.take() {
            Some(limited) if trouble.fault == Fault::Unauthorised => limited,
            _ => trouble,
        }
    }

    /// Tries all keys again after a wait, the one that worked last first.
    pub(crate) fn restart(&mut self) {
        *self = Self::new(self.keys, self.last_worked);
    }
}

#[cfg(test)]
mod tests;
