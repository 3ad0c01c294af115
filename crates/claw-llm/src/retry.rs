//! Retries of requests that failed: whether there is another one, and the wait before it.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use claw_core::port::Fault;

/// Retries after transient failures, with waits that grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retry {
    /// Number of retries.
    pub(crate) retries: u32,
    /// Approximate first wait; each is about twice the one before.
    pub(crate) wait: Duration,
    /// The longest wait. If a provider asks for a longer one, there is no retry.
    pub(crate) longest: Duration,
}

impl Retry {
    /// Returns the wait before the next retry, after `again` retries; `None` if there is none.
    pub(crate) fn wait(self, fault: Fault, again: u32) -> Option<Duration> {
        if !fault.is_transient() || again >= self.retries {
            return None;
        }
        // Half of it is random, so that clients that failed together do not retry together.
        let backoff = self.wait.saturating_mul(1 << again.min(16)).min(self.longest);
        let jitter = (backoff / 2).mul_f64(chance());
        match fault {
            Fault::RateLimited { retry_after: Some(after) } if after > self.longest => None,
            Fault::RateLimited { retry_after: Some(after) } => Some(after + self.wait.mul_f64(chance())),
            _ => Some(backoff / 2 + jitter),
        }
    }
}

/// A random number from 0 to 1.
fn chance() -> f64 {
    // Every state is seeded anew by the system.
    let random = RandomState::new().build_hasher().finish() >> 32;
    f64::from(u32::try_from(random).unwrap_or(0)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests;
