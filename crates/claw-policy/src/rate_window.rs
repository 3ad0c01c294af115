//! The window that limits the rate of a session: the arithmetic of one sliding minute.
//!
//! Pure: the caller passes the time and stores the windows.

use std::time::Duration;

use claw_core::port::UnixMillis;
use claw_core::tool::Cost;

use crate::rate_config::RateConfig;

/// The length of the window that limits apply to.
pub const WINDOW: Duration = Duration::from_secs(60);

/// The window is counted in slots. One more slot than it holds is counted, so that a slot partly inside
/// counts whole: calls are never undercounted, and a call is forgotten after 60 to 65 seconds.
const SLOT_MILLIS: u64 = 5_000;
const SLOTS: u64 = 13;

/// Time after which any counted window is idle, wherever its clock was.
pub const IDLE_AFTER: Duration = Duration::from_millis(2 * SLOTS * SLOT_MILLIS);

/// A refused call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{by}: at most {limit} in {} s; try again in {} s", WINDOW.as_secs(), whole_secs(*.retry_after))]
pub struct Limited {
    /// The limit that was reached.
    pub by: LimitedBy,
    /// Number of calls that it allows in [`WINDOW`].
    pub limit: usize,
    /// Time after which the call would pass, if nobody else calls before.
    pub retry_after: Duration,
}

/// A limit that a call can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LimitedBy {
    /// The session's limit for all calls.
    #[error("too many calls in this session")]
    Session,
    /// The session's limit for calls of one class.
    #[error("too many {} calls in this session", .0.name())]
    Class(Cost),
    /// The limit for all calls of a user's sessions.
    #[error("too many calls in all sessions of this user")]
    User,
    /// The limit for calls of one class of a user's sessions.
    #[error("too many {} calls in all sessions of this user", .0.name())]
    UserClass(Cost),
    /// Too many sessions are active to be counted.
    #[error("too many sessions are active")]
    Sessions,
}

impl Limited {
    /// The same limit of all sessions of a user together.
    #[must_use]
    pub const fn of_user(mut self) -> Self {
        self.by = match self.by {
            LimitedBy::Session => LimitedBy::User,
            LimitedBy::Class(cost) => LimitedBy::UserClass(cost),
            by => by,
        };
        self
    }
}

/// The recent calls of one session, by slot of time and class.
#[derive(Debug, Clone, Default)]
pub struct Window {
    /// The slot of the last call that passed.
    last: u64,
    passed: [[u16; Cost::ALL.len()]; SLOTS as usize],
}

impl Window {
    /// Counts a call and lets it pass, or returns when to try again. A refused call does not count.
    pub fn check(&mut self, config: &RateConfig, cost: Cost, now: UnixMillis) -> Result<(), Limited> {
        if self.is_ahead(now) {
            *self = Self::default();
        }
        let now = millis(now);
        // A clock that was set back a little counts as stopped.
        let slot = (now / SLOT_MILLIS).max(self.last);
        let limits = [(LimitedBy::Session, config.total), (LimitedBy::Class(cost), config.of(cost))];
        for (by, limit) in limits {
            if limit > 0 && self.count(by, slot) >= usize::from(limit) {
                let opens = self.opens(config, cost, slot);
                let retry_after = Duration::from_millis((opens * SLOT_MILLIS).saturating_sub(now));
                return Err(Limited { by, limit: limit.into(), retry_after });
            }
        }
        for stale in (self.last + 1..=slot).rev().take(SLOTS as usize) {
            self.passed[index(stale)] = Default::default();
        }
        self.last = slot;
        let passed = &mut self.passed[index(slot)][cost as usize];
        *passed = passed.saturating_add(1);
        Ok(())
    }

    /// Returns whether no call counts any more, so that the window can be dropped.
    pub fn is_idle(&self, now: UnixMillis) -> bool {
        self.idle_at() <= now || self.is_ahead(now)
    }

    /// The time from which no call counts any more, if no other call passes.
    pub fn idle_at(&self) -> UnixMillis {
        UnixMillis::default().plus(Duration::from_millis((self.last + SLOTS) * SLOT_MILLIS))
    }

    /// Returns whether the last call is further ahead than a window: the clock was wrong when it passed, and
    /// waiting for it would lock the session out.
    fn is_ahead(&self, now: UnixMillis) -> bool {
        self.last > millis(now) / SLOT_MILLIS + SLOTS
    }

    /// The first later slot in which a call of this class passes.
    fn opens(&self, config: &RateConfig, cost: Cost, slot: u64) -> u64 {
        let room = |by, limit: u16, at| limit == 0 || self.count(by, at) < usize::from(limit);
        (slot + 1..slot + SLOTS)
            .find(|at| {
                room(LimitedBy::Session, config.total, *at)
                    && room(LimitedBy::Class(cost), config.of(cost), *at)
            })
            .unwrap_or(slot + SLOTS)
    }

    /// The number of calls that count at `slot`.
    fn count(&self, by: LimitedBy, slot: u64) -> usize {
        let oldest = (slot + 1).saturating_sub(SLOTS);
        (oldest..=self.last)
            .map(|slot| match by {
                LimitedBy::Class(cost) => usize::from(self.passed[index(slot)][cost as usize]),
                _ => self.passed[index(slot)].iter().copied().map(usize::from).sum(),
            })
            .sum()
    }
}

fn index(slot: u64) -> usize {
    (slot % SLOTS) as usize
}

fn millis(time: UnixMillis) -> u64 {
    u64::try_from(time.0).unwrap_or(0)
}

fn whole_secs(duration: Duration) -> u64 {
    duration.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
