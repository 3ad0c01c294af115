//! The machine's clock.

use std::time::{SystemTime, UNIX_EPOCH};

use claw_core::port::{Clock, UnixMillis};

/// Tells the time as the machine has it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> UnixMillis {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        UnixMillis::default().plus(elapsed)
    }
}
