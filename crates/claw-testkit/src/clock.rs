//! A clock that only moves when told.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use claw_core::port::{Clock, UnixMillis};

/// Returns the time that the test sets.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `now`.
    pub const fn at(now: UnixMillis) -> Self {
        Self(AtomicI64::new(now.0))
    }

    /// Moves it on.
    pub fn advance(&self, duration: Duration) {
        self.set(self.now().plus(duration));
    }

    /// Sets it, backwards too.
    pub fn set(&self, now: UnixMillis) {
        self.0.store(now.0, Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    /// Shows 2026-01-01T00:00:00Z.
    fn default() -> Self {
        Self::at(UnixMillis(1_767_225_600_000))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> UnixMillis {
        UnixMillis(self.0.load(Ordering::SeqCst))
    }
}
